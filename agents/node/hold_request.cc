#include "agents/node/hold_request.h"

#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agents/node/process_identity.h"

namespace coppice {
namespace {

constexpr size_t kQuotedBytes = 64;  // of a bad id, in a message

absl::StatusOr<ProcessIdentity> FindOwnProcess(const LocalCaller& caller, int64_t pid) {
  absl::StatusOr<ProcessIdentity> process = FindProcess(pid);
  // The kernel itself said whose the caller is.
  if (!process.ok() || caller.uid == 0 || pid == caller.process) return process;
  const absl::StatusOr<uid_t> owner = OwnerOfProcess(pid);
  if (!owner.ok()) return owner.status();
  if (*owner == caller.uid) return process;
  return absl::InvalidArgumentError(
      absl::StrCat("process ", pid, " is another user's; name your own"));
}

}  // namespace

absl::Status CheckHoldRequest(const v1::HoldJobRequest& request) {
  const std::string& id = request.job_id();
  int64_t number = 0;
  if (!absl::SimpleAtoi(id, &number) || number < 1 || absl::StrCat(number) != id) {
    return absl::InvalidArgumentError(absl::StrCat("job_id: \"", id.substr(0, kQuotedBytes),
                                                   "\" is no id of a job; give it as the daemon "
                                                   "answered it"));
  }
  if (static_cast<size_t>(request.processes_size()) > kMostHeldProcesses) {
    return absl::ResourceExhaustedError(
        absl::StrCat("job ", id, ": names more than ", kMostHeldProcesses, " processes"));
  }
  return absl::OkStatus();
}

absl::StatusOr<HeldJob> MakeHeldJob(const LocalCaller& caller, const v1::HoldJobRequest& request) {
  std::set<int64_t> pids(request.processes().begin(), request.processes().end());
  if (pids.empty()) pids.insert(caller.process);
  HeldJob job{request.job_id(), caller.user, {}, request.end_job()};
  for (const int64_t pid : pids) {
    const absl::StatusOr<ProcessIdentity> process = FindOwnProcess(caller, pid);
    if (!process.ok()) {
      return absl::Status(absl::IsNotFound(process.status()) ? absl::StatusCode::kInvalidArgument
                                                             : process.status().code(),
                          absl::StrCat("job ", job.id, ": ", process.status().message()));
    }
    job.processes.push_back(*process);
  }
  return job;
}

}  // namespace coppice
