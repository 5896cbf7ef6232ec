#include "agents/node/hold_limits.h"

#include "absl/strings/str_cat.h"

namespace coppice {

absl::Status AdmitJob(absl::string_view id, absl::string_view user, const HoldShares& others) {
  if (others.jobs < kMostJobs && others.jobs_of_user < kMostJobsOfUser) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "job ", id, ": the agent holds ", others.jobs, " jobs already, ", others.jobs_of_user,
      " of user ", user, "; the most are ", kMostJobs, ", ", kMostJobsOfUser, " of a user"));
}

absl::Status AdmitProcesses(const HeldJob& job, const HoldShares& others) {
  const size_t own = job.processes.size();
  if (own > kMostHeldProcesses) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "job ", job.id, ": has more than ", kMostHeldProcesses, " processes on this node"));
  }
  if (others.processes + own <= kMostProcesses &&
      others.processes_of_user + own <= kMostProcessesOfUser) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("job ", job.id, ": with its ", own, " processes the agent would hold ",
                   others.processes + own, ", counted in each of their jobs, ",
                   others.processes_of_user + own, " of user ", job.user, "; the most are ",
                   kMostProcesses, ", ", kMostProcessesOfUser, " of a user"));
}

}  // namespace coppice
