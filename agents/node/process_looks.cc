#include "agents/node/process_looks.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

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

absl::Status NotHeld(const HeldJob& job, const absl::Status& why) {
  const auto code = absl::IsNotFound(why) ? absl::StatusCode::kInvalidArgument : why.code();
  return absl::Status(code, absl::StrCat("job ", job.id, ": ", why.message()));
}

template <class Value>
void KeepEachOnce(std::vector<Value>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

void FindGone(std::vector<ProcessIdentity> processes,
              std::function<void(const std::set<ProcessIdentity>& gone)> done, LoopTurns& turns,
              std::function<bool(const ProcessIdentity&)> is_gone) {
  KeepEachOnce(processes);
  turns.Add([processes = std::move(processes), done = std::move(done), is_gone = std::move(is_gone),
             gone = std::set<ProcessIdentity>(), next = size_t{0}]() mutable {
    if (next < processes.size() && is_gone(processes[next])) gone.insert(processes[next]);
    if (++next < processes.size()) return true;
    done(gone);
    return false;
  });
}

void FindHeldJob(const LocalCaller& caller, const v1::HoldJobRequest& request,
                 std::function<void(absl::StatusOr<HeldJob>)> done, LoopTurns& turns) {
  std::vector<int64_t> pids(request.processes().begin(), request.processes().end());
  if (pids.empty()) pids.push_back(caller.process);
  KeepEachOnce(pids);
  HeldJob job{request.job_id(), caller.user, {}, request.end_job()};
  turns.Add(
      [caller, pids = std::move(pids), job = std::move(job), done = std::move(done)]() mutable {
        const size_t next = job.processes.size();
        const absl::StatusOr<ProcessIdentity> process = FindOwnProcess(caller, pids[next]);
        if (!process.ok()) return done(NotHeld(job, process.status())), false;
        job.processes.push_back(*process);
        if (next + 1 < pids.size()) return true;
        return done(std::move(job)), false;
      });
}

}  // namespace coppice
