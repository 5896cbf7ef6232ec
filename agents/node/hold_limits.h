// How much the agent holds: renewals, looks at processes and the hold file cost each second, or
// each hold, as much as there is.
#ifndef COPPICE_AGENTS_NODE_HOLD_LIMITS_H_
#define COPPICE_AGENTS_NODE_HOLD_LIMITS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agents/node/hold_file.h"

namespace coppice {

// That one request may name, and that one job may have.
inline constexpr size_t kMostHeldProcesses = 4096;
// Of one user, and of all. A process counts in each job that names it.
inline constexpr size_t kMostJobsOfUser = 1024, kMostJobs = 4096;
inline constexpr size_t kMostProcessesOfUser = 8192, kMostProcesses = 32'768;

struct HoldShares {
  size_t jobs = 0, jobs_of_user = 0;
  size_t processes = 0, processes_of_user = 0;
};

// That the user may have `job`, with all of its processes, beside those of `others`.
// RESOURCE_EXHAUSTED names the job and the bounds.
absl::Status AdmitJob(absl::string_view id, absl::string_view user, const HoldShares& others);
absl::Status AdmitProcesses(const HeldJob& job, const HoldShares& others);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_HOLD_LIMITS_H_
