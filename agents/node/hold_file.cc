#include "agents/node/hold_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;

absl::Status NoHolds(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("no list of held jobs: ", why));
}

// Reads `key` of a kind that `is_kind` tells; false: it is absent or of another.
template <class Value>
bool Read(const json& object, const char* key, bool (json::*is_kind)() const noexcept,
          Value& value) {
  const auto found = object.find(key);
  if (found == object.end() || !((*found).*is_kind)()) return false;
  value = found->get<Value>();
  return true;
}

bool ReadProcesses(const json& list, std::vector<ProcessIdentity>& processes) {
  if (!list.is_array()) return false;
  for (const json& entry : list) {
    ProcessIdentity process;
    if (!entry.is_object() || !Read(entry, "pid", &json::is_number_integer, process.pid) ||
        !Read(entry, "start", &json::is_number_unsigned, process.start_time)) {
      return false;
    }
    processes.push_back(process);
  }
  return true;
}

bool ReadJob(const json& entry, HeldJob& job) {
  return entry.is_object() && Read(entry, "job", &json::is_string, job.id) &&
         Read(entry, "user", &json::is_string, job.user) &&
         Read(entry, "end", &json::is_boolean, job.end_job) && entry.contains("processes") &&
         ReadProcesses(entry["processes"], job.processes);
}

// fsync, and close whatever comes of it.
bool Finish(int fd) {
  const bool is_synced = fsync(fd) == 0;
  return close(fd) == 0 && is_synced;
}

bool WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// 0, or errno.
int ReadToEnd(int fd, std::string& text) {
  for (;;) {
    char bytes[65536];
    const ssize_t count = read(fd, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0 ? 0 : errno;
    text.append(bytes, static_cast<size_t>(count));
  }
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

std::string FormatHolds(const std::vector<HeldJob>& jobs, const std::string& boot_id) {
  json list = json::array();
  for (const HeldJob& job : jobs) {
    json processes = json::array();
    for (const ProcessIdentity& process : job.processes) {
      processes.push_back({{"pid", process.pid}, {"start", process.start_time}});
    }
    list.push_back(
        {{"job", job.id}, {"user", job.user}, {"end", job.end_job}, {"processes", processes}});
  }
  const json whole = {{"format", kFormat}, {"boot", boot_id}, {"jobs", list}};
  return whole.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

absl::StatusOr<std::vector<HeldJob>> ParseHolds(absl::string_view text,
                                                const std::string& boot_id) {
  const json whole = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  int64_t format = 0;
  std::string boot;
  if (!whole.is_object() || !Read(whole, "format", &json::is_number_integer, format)) {
    return NoHolds("it is no JSON object with a format");
  }
  if (format != kFormat) return NoHolds(absl::StrCat("its format is ", format));
  if (!Read(whole, "boot", &json::is_string, boot)) return NoHolds("it has no boot");
  const auto list = whole.find("jobs");
  if (list == whole.end() || !list->is_array()) return NoHolds("it has no jobs");
  std::vector<HeldJob> jobs;
  for (const json& entry : *list) {
    HeldJob& job = jobs.emplace_back();
    if (!ReadJob(entry, job)) return NoHolds(absl::StrCat("job ", jobs.size(), " is malformed"));
    if (!boot.empty() && !boot_id.empty() && boot != boot_id) job.processes.clear();
  }
  return jobs;
}

absl::StatusOr<std::vector<HeldJob>> HoldFile::Load() const {
  const auto failed = [this](int error) {
    return absl::UnavailableError(absl::StrCat("held jobs ", path_, ": ", std::strerror(error),
                                               "; make it the agent's own, or move it away"));
  };
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return std::vector<HeldJob>();
  if (fd < 0) return failed(errno);
  std::string text;
  const int error = ReadToEnd(fd, text);
  close(fd);
  if (error != 0) return failed(error);
  auto jobs = ParseHolds(text, BootId());
  if (jobs.ok()) return jobs;
  const std::string aside = path_ + ".unreadable";
  if (std::rename(path_.c_str(), aside.c_str()) != 0) return failed(errno);
  return absl::DataLossError(absl::StrCat("held jobs ", path_, ": ", jobs.status().message(),
                                          "; it is now ", aside,
                                          ", and the jobs' leases are no longer renewed"));
}

absl::Status HoldFile::Save(const std::vector<HeldJob>& jobs) const {
  const std::string next = path_ + ".next";
  const int fd = open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool is_written = fd >= 0 && WriteAll(fd, FormatHolds(jobs, BootId()));
  const bool is_finished = fd >= 0 && Finish(fd);
  if (!is_written || !is_finished || std::rename(next.c_str(), path_.c_str()) != 0) {
    return absl::UnavailableError(
        absl::StrCat("held jobs ", path_, ": cannot be written: ", std::strerror(errno)));
  }
  const int folder = open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) Finish(folder);
  return absl::OkStatus();
}

absl::Status AdmitJob(absl::string_view id, absl::string_view user, const HoldShares& others) {
  if (others.jobs < kMaxJobs && others.jobs_of_user < kMaxJobsOfUser) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "job ", id, ": the agent holds ", others.jobs, " jobs already, ", others.jobs_of_user,
      " of user ", user, "; the most are ", kMaxJobs, ", ", kMaxJobsOfUser, " of a user"));
}

absl::Status AdmitProcesses(const HeldJob& job, const HoldShares& others) {
  const size_t own = job.processes.size();
  if (own > kMaxHeldProcesses) {
    return absl::ResourceExhaustedError(absl::StrCat("job ", job.id, ": has more than ",
                                                     kMaxHeldProcesses, " processes on this node"));
  }
  if (others.processes + own <= kMaxProcesses &&
      others.processes_of_user + own <= kMaxProcessesOfUser) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("job ", job.id, ": with its ", own, " processes the agent would hold ",
                   others.processes + own, ", counted in each of their jobs, ",
                   others.processes_of_user + own, " of user ", job.user, "; the most are ",
                   kMaxProcesses, ", ", kMaxProcessesOfUser, " of a user"));
}

namespace {

constexpr size_t kQuotedBytes = 64;  // of a bad id, in a message

}  // namespace

absl::Status CheckHoldRequest(const v1::HoldJobRequest& request) {
  const std::string& id = request.job_id();
  int64_t number = 0;
  if (!absl::SimpleAtoi(id, &number) || number < 1 || absl::StrCat(number) != id) {
    return absl::InvalidArgumentError(absl::StrCat("job_id: \"", id.substr(0, kQuotedBytes),
                                                   "\" is no id of a job; give it as the daemon "
                                                   "answered it"));
  }
  if (static_cast<size_t>(request.processes_size()) > kMaxHeldProcesses) {
    return absl::ResourceExhaustedError(
        absl::StrCat("job ", id, ": names more than ", kMaxHeldProcesses, " processes"));
  }
  return absl::OkStatus();
}

}  // namespace coppice
