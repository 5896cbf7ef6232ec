#include "agents/node/process_identity.h"

#include <signal.h>

#include <cerrno>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

absl::Status NoProcess(int64_t pid) {
  return absl::NotFoundError(absl::StrCat("there is no process ", pid, " on this node"));
}

// No file of /proc says that nobody is there: under hidepid it is not shown, and without a
// descriptor nothing can be opened. kill(2) needs neither.
bool IsNumberFree(int64_t pid) {
  return pid <= 0 || pid > std::numeric_limits<pid_t>::max() ||
         (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH);
}

absl::StatusOr<std::string> ReadOf(int64_t pid, absl::string_view file) {
  if (IsNumberFree(pid)) return NoProcess(pid);
  absl::StatusOr<std::string> text = ReadTextFile(absl::StrCat("/proc/", pid, "/", file));
  if (text.ok()) return text;
  if (IsNumberFree(pid)) return NoProcess(pid);
  return absl::UnavailableError(
      absl::StrCat("process ", pid, ": cannot be looked at: ", text.status().message(),
                   "; is /proc mounted with hidepid, or no descriptor left (LimitNOFILE)?"));
}

}  // namespace

absl::StatusOr<uint64_t> ParseStartTime(absl::string_view stat) {
  // "PID (NAME) STATE ...": the name may hold anything, also ") S".
  const size_t name_end = stat.rfind(')');
  const std::vector<absl::string_view> fields =
      name_end == absl::string_view::npos
          ? std::vector<absl::string_view>()
          : absl::StrSplit(stat.substr(name_end + 1), ' ', absl::SkipEmpty());
  // Fields 3, 20 and 22 of proc(5).
  constexpr size_t kState = 0, kThreads = 17, kStartTime = 19;
  uint64_t start_time = 0;
  int64_t threads = 0;
  if (fields.size() <= kStartTime || !absl::SimpleAtoi(fields[kThreads], &threads) ||
      !absl::SimpleAtoi(fields[kStartTime], &start_time)) {
    return absl::UnavailableError("no text of /proc/PID/stat");
  }
  // Of a process whose main() ended by pthread_exit() the first thread is a zombie.
  const bool is_over = fields[kState] == "X" || (fields[kState] == "Z" && threads <= 1);
  if (is_over) return absl::NotFoundError("the process has ended");
  return start_time;
}

absl::StatusOr<ProcessIdentity> FindProcess(int64_t pid) {
  const absl::StatusOr<std::string> text = ReadOf(pid, "stat");
  if (!text.ok()) return text.status();
  const absl::StatusOr<uint64_t> start_time = ParseStartTime(*text);
  if (start_time.ok()) return ProcessIdentity{pid, *start_time};
  return absl::IsNotFound(start_time.status()) ? NoProcess(pid) : start_time.status();
}

// The owner of /proc/PID itself is root for one that may not be traced.
absl::StatusOr<uid_t> OwnerOfProcess(int64_t pid) {
  const absl::StatusOr<std::string> text = ReadOf(pid, "status");
  if (!text.ok()) return text.status();
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar("\t "), absl::SkipEmpty());
    uid_t uid = 0;
    if (words.size() > 1 && words[0] == "Uid:" && absl::SimpleAtoi(words[1], &uid)) return uid;
  }
  return absl::UnavailableError(absl::StrCat("process ", pid, ": its status names no Uid"));
}

bool IsGone(const ProcessIdentity& process) {
  const absl::StatusOr<ProcessIdentity> now = FindProcess(process.pid);
  return now.ok() ? *now != process : absl::IsNotFound(now.status());
}

std::string BootId() {
  const absl::StatusOr<std::string> text = ReadTextFile("/proc/sys/kernel/random/boot_id");
  return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : "";
}

}  // namespace coppice
