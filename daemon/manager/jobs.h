// The use cases of jobs: register, look up, keep alive, end, expire. A job's end takes its trees
// with it in one mutation.
//
//               RegisterJob                EndJob or lease over
//   (none) --PutJob durable--> active --ending--EndJob durable--> ended | expired
//                                ^-----store failed------+         (in the store only)
//
// While a job is ending no tree can be granted to it: the reservation refuses it, and a grant that
// was reserved before but reaches the store later is refused there.
#ifndef COPPICE_DAEMON_MANAGER_JOBS_H_
#define COPPICE_DAEMON_MANAGER_JOBS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/manager/fabric_view.h"
#include "daemon/manager/options.h"
#include "daemon/manager/requests.h"
#include "daemon/manager/store_calls.h"
#include "daemon/manager/tables.h"

namespace coppice {

// Whether a daemon that heard nobody for so long owes a lease of that term a new one: renewals come
// about thrice in a term.
inline bool IsForgiven(absl::Duration stalled, absl::Duration term) {
  return stalled >= std::min(absl::Seconds(1), term / 4);
}

// FAILED_PRECONDITION: what every grant answers for a job whose end has begun.
absl::Status JobIsEnding(JobId id);

// Thread-safe. Methods as Manager's of the same name.
class Jobs : private UseCase {
 public:
  // `on_deadline` is called, on any thread and without a lock, when a deadline was added that may
  // be the earliest.
  Jobs(const UseCase& with, std::function<void()> on_deadline)
      : UseCase(with), on_deadline_(std::move(on_deadline)) {}

  // Enters the jobs of an earlier run; their leases start now.
  void Restore(std::vector<JobRecord> jobs, JobId last);

  void Register(RegisterJobArgs args, Callback<JobView> done);
  using RegistrationMutation = std::function<Mutation(const std::shared_ptr<const JobRecord>&)>;
  // Registers a job that comes with another mutation than PutJob, which `mutation` makes of the
  // record once it has its id. The record is complete but for that.
  void RegisterBy(JobRecord record, const RegistrationMutation& mutation, const Actor& actor,
                  Callback<JobView> done);
  absl::StatusOr<JobView> Get(JobId id);
  std::vector<JobView> List(JobId after, size_t limit) const;
  absl::StatusOr<JobView> KeepAlive(JobId id);
  void End(JobId id, Callback<uint32_t> done, const Actor& actor = {});
  // As of `now`, by the clock's monotonic time.
  absl::Duration ExpireLeases(absl::Duration now);
  // The daemon heard nobody for so long: leases that this may have cost a renewal begin anew.
  void ForgiveStall(absl::Duration stalled);

  // The term that a job gets. INVALID_ARGUMENT: the daemon gives no lease so long or so short;
  // RESOURCE_EXHAUSTED: not to this user.
  absl::StatusOr<absl::Duration> LeaseOf(const Payer& payer,
                                         std::optional<absl::Duration> asked) const;
  // One that is not ending. NOT_FOUND, or FAILED_PRECONDITION with its state, which the store may
  // be asked for: not with the lock held.
  absl::StatusOr<std::shared_ptr<Job>> FindActive(JobId id);

 private:
  // A job that is not in the table.
  absl::Status WhyNotActive(JobId id);
  absl::Status CheckArgs(const RegisterJobArgs& args) const;
  // What is to be done for a registration of that name: false if `done` was answered or waits.
  bool BeginRegistration(const std::string& owner, const std::string& request_id,
                         uint64_t fingerprint, Callback<JobView>& done);
  void SubmitRegistration(JobRecord made, const RegistrationMutation& mutation, const Actor& actor,
                          Callback<JobView> done);
  JobView ViewOf(const Job& job) const;
  absl::StatusOr<JobRecord> FromStore(JobId id);
  absl::StatusOr<JobRecord> MakeRecord(RegisterJobArgs& args, const FabricView& view,
                                       uint64_t fingerprint) const;
  void OnRegistered(std::shared_ptr<const JobRecord> record, const std::string& by,
                    absl::Status status, Callback<JobView> done);
  // `name`: an OwnName.
  void FailRegistration(const std::string& name, const absl::Status& status,
                        Callback<JobView> done);
  void SubmitEnd(std::shared_ptr<Job> job, JobState state, const Actor& actor);
  void OnEnded(Job& job, JobState state, const std::string& by, const absl::Status& status);

  const std::function<void()> on_deadline_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_JOBS_H_
