#include "daemon/service/systemd.h"

#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

// Each line that is sent is an assignment of its own.
std::string Line(std::string status) {
  std::replace_if(
      status.begin(), status.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
  return absl::StrCat("STATUS=", status, "\n");
}

}  // namespace

ServiceManager::ServiceManager() {
  const char* socket = std::getenv("NOTIFY_SOCKET");
  is_there_ = socket != nullptr && *socket != '\0';
  uint64_t microseconds = 0;
  if (sd_watchdog_enabled(/*unset_environment=*/0, &microseconds) > 0) {
    watchdog_ = absl::Microseconds(static_cast<int64_t>(microseconds));
  }
}

void ServiceManager::Ready(const std::string& status) const {
  Send(absl::StrCat(Line(status), "READY=1"));
}

void ServiceManager::Reloading() const {
  // The time tells the service manager which READY=1 is the answer (Type=notify-reload).
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t microseconds = absl::ToInt64Microseconds(absl::DurationFromTimespec(now));
  Send(absl::StrCat("RELOADING=1\nMONOTONIC_USEC=", microseconds));
}

void ServiceManager::Stopping() const { Send("STOPPING=1"); }
void ServiceManager::Status(const std::string& status) const { Send(Line(status)); }
void ServiceManager::KeepAlive() const { Send("WATCHDOG=1"); }

// A service manager that does not listen is no reason not to serve.
void ServiceManager::Send(const std::string& state) const {
  if (is_there_) (void)sd_notify(/*unset_environment=*/0, state.c_str());
}

bool StderrIsJournal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat info {};
  return stream != nullptr && fstat(STDERR_FILENO, &info) == 0 &&
         absl::StrCat(info.st_dev, ":", info.st_ino) == stream;
}

}  // namespace coppice
