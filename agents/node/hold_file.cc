#include "agents/node/hold_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr size_t kQuotedBytes = 64;  // of a bad id, in a message

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

// Replaces `path`, which is the agent's own to read, by `text`, durably. False: errno.
bool Replace(const std::string& path, absl::string_view text) {
  const std::string next = path + ".next";
  std::FILE* const file = std::fopen(next.c_str(), "we");
  if (file == nullptr) return false;
  const bool is_written = fchmod(fileno(file), 0600) == 0 &&
                          std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                          std::fflush(file) == 0 && fsync(fileno(file)) == 0;
  if (std::fclose(file) != 0 || !is_written || std::rename(next.c_str(), path.c_str()) != 0) {
    return false;
  }
  const std::string of = std::filesystem::absolute(path).parent_path();
  const int folder = open(of.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
  return true;
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
  const auto failed = [this](absl::string_view why) {
    return absl::UnavailableError(
        absl::StrCat("held jobs ", path_, ": ", why, "; make it the agent's own, or move it away"));
  };
  const absl::StatusOr<std::string> text = ReadTextFile(path_);
  if (absl::IsNotFound(text.status())) return std::vector<HeldJob>();
  if (!text.ok()) return failed(text.status().message());
  auto jobs = ParseHolds(*text, BootId());
  if (jobs.ok()) return jobs;
  const std::string aside = path_ + ".unreadable";
  if (std::rename(path_.c_str(), aside.c_str()) != 0) return failed(std::strerror(errno));
  return absl::DataLossError(absl::StrCat("held jobs ", path_, ": ", jobs.status().message(),
                                          "; it is now ", aside,
                                          ", and the jobs' leases are no longer renewed"));
}

absl::Status HoldFile::Save(const std::vector<HeldJob>& jobs) const {
  if (Replace(path_, FormatHolds(jobs, BootId()))) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("held jobs ", path_, ": cannot be written: ", std::strerror(errno)));
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
