// What the agent must not forget when it is started anew: the jobs that it holds. A small file of
// JSON, replaced as a whole.
#ifndef COPPICE_AGENTS_NODE_HOLD_FILE_H_
#define COPPICE_AGENTS_NODE_HOLD_FILE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/node/process_identity.h"
#include "coppice/v1/local.pb.h"

namespace coppice {

struct HeldJob {
  std::string id;    // "7"
  std::string user;  // in whose name it is renewed
  std::vector<ProcessIdentity> processes;
  bool end_job = false;  // when the last process is gone

  friend bool operator==(const HeldJob&, const HeldJob&) = default;
};

// Processes of another start of the node are gone: `boot_id` tells, unless one of the two is empty.
std::string FormatHolds(const std::vector<HeldJob>& jobs, const std::string& boot_id);
// INVALID_ARGUMENT: it is no such text.
absl::StatusOr<std::vector<HeldJob>> ParseHolds(absl::string_view text, const std::string& boot_id);

class HoldFile final {
 public:
  explicit HoldFile(std::string path) : path_(std::move(path)) {}

  // Empty if there is no file. DATA_LOSS: it holds something else; it is moved aside, and the
  // message says where to. UNAVAILABLE: nobody can tell what it holds, so it must not be replaced.
  absl::StatusOr<std::vector<HeldJob>> Load() const;
  // Durable when it returns. UNAVAILABLE: it cannot be written, and the old one is still there.
  absl::Status Save(const std::vector<HeldJob>& jobs) const;

 private:
  const std::string path_;
};

// How much the agent holds: renewals, looks at processes and the hold file cost each second, or
// each hold, as much as there is.

// That one request may name, and that one job may have.
inline constexpr size_t kMaxHeldProcesses = 4096;
// Of one user, and of all. A process counts in each job that names it.
inline constexpr size_t kMaxJobsOfUser = 1024, kMaxJobs = 4096;
inline constexpr size_t kMaxProcessesOfUser = 8192, kMaxProcesses = 32'768;

struct HoldShares {
  size_t jobs = 0, jobs_of_user = 0;
  size_t processes = 0, processes_of_user = 0;
};

// That the user may have `job`, with all of its processes, beside those of `others`.
// RESOURCE_EXHAUSTED names the job and the bounds.
absl::Status AdmitJob(absl::string_view id, absl::string_view user, const HoldShares& others);
absl::Status AdmitProcesses(const HeldJob& job, const HoldShares& others);

// What can be judged of a request without a look at anything: looking at processes (job_keeper.h)
// takes time on the loop, so nobody gets it for a job that is another's. INVALID_ARGUMENT: `job_id`
// is not an id as the daemon writes it ("7", not "07": one job would be held under many names).
// RESOURCE_EXHAUSTED: too many processes.
absl::Status CheckHoldRequest(const v1::HoldJobRequest& request);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_HOLD_FILE_H_
