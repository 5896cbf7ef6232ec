// Jobs::Register: the one use case of jobs that reads the fabric. Split from jobs.cc for length.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/fingerprint.h"
#include "daemon/manager/jobs.h"
#include "daemon/manager/tree_request.h"

namespace coppice {
namespace {

uint64_t FingerprintOf(const RegisterJobArgs& args) {
  Fingerprint fingerprint;
  fingerprint.Add(args.display_name).Add(args.owner).Add(uint64_t{args.all_endpoints});
  fingerprint.Add(uint64_t{args.endpoints.size()});
  for (const std::string& endpoint : args.endpoints) fingerprint.Add(endpoint);
  fingerprint.Add(uint64_t{args.lease.has_value()});
  fingerprint.Add(args.lease ? absl::ToDoubleSeconds(*args.lease) : 0.0);
  return fingerprint.value();
}

absl::Status TooManyRanks(size_t ranks, uint32_t limit) {
  return absl::InvalidArgumentError(absl::StrCat(
      "endpoints: ", ranks, " ranks are over the daemon's limits.job_ranks of ", limit));
}

// By host name, then port: hosts are sorted, and so are the ports of each.
absl::StatusOr<std::vector<Guid>> AllEndpoints(const Fabric& fabric, uint32_t limit) {
  if (fabric.endpoint_count() == 0) {
    return absl::FailedPreconditionError("all_endpoints: the fabric has no endpoints");
  }
  if (fabric.endpoint_count() > limit) return TooManyRanks(fabric.endpoint_count(), limit);
  std::vector<Guid> guids;
  guids.reserve(fabric.endpoint_count());
  for (uint32_t h = 0; h < fabric.host_count(); ++h) {
    for (const EndpointIndex e : fabric.endpoints_of_host(HostIndex(h))) {
      guids.push_back(fabric.endpoint(e).port_guid);
    }
  }
  return guids;
}

absl::StatusOr<std::vector<Guid>> NamedEndpoints(const Fabric& fabric,
                                                 const std::vector<std::string>& entries,
                                                 uint32_t limit) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   ExpandEndpointNames(fabric, entries, limit, "endpoints"));
  std::vector<Guid> guids;
  guids.reserve(names.size());
  for (size_t rank = 0; rank < names.size(); ++rank) {
    const absl::StatusOr<EndpointIndex> endpoint = ResolveEndpoint(fabric, names[rank]);
    if (!endpoint.ok()) return Annotate(endpoint.status(), absl::StrCat("endpoints[", rank, "]"));
    guids.push_back(fabric.endpoint(*endpoint).port_guid);
  }
  return guids;
}

}  // namespace

absl::Status Jobs::CheckArgs(const RegisterJobArgs& args) const {
  RETURN_IF_ERROR(CheckLength("request_id", args.request_id, kMaxRequestIdBytes));
  RETURN_IF_ERROR(CheckLength("display_name", args.display_name, kMaxNameBytes));
  RETURN_IF_ERROR(CheckLength("owner", args.owner, kMaxNameBytes));
  if (args.all_endpoints && !args.endpoints.empty()) {
    return absl::InvalidArgumentError("endpoints: give a list or all_endpoints, not both");
  }
  if (!args.all_endpoints && args.endpoints.empty()) {
    return absl::InvalidArgumentError("endpoints: none; name one per rank or set all_endpoints");
  }
  if (args.endpoints.size() > options_->max_job_ranks) {
    return TooManyRanks(args.endpoints.size(), options_->max_job_ranks);
  }
  return LeaseOf({args.owner, args.actor.is_administrator}, args.lease).status();
}

absl::StatusOr<absl::Duration> Jobs::LeaseOf(const QuotaAccount& account,
                                             std::optional<absl::Duration> asked) const {
  const absl::Duration lease =
      asked.value_or(std::min(options_->default_lease, tables_->quotas.LongestLease(account)));
  if (lease >= options_->min_lease && lease <= options_->max_lease) {
    RETURN_IF_ERROR(tables_->quotas.CheckLease(account, lease, "lease"));
    return lease;
  }
  return absl::InvalidArgumentError(absl::StrCat("lease: ", absl::FormatDuration(lease),
                                                 " must be between ",
                                                 absl::FormatDuration(options_->min_lease), " and ",
                                                 absl::FormatDuration(options_->max_lease)));
}

absl::StatusOr<JobRecord> Jobs::MakeRecord(RegisterJobArgs& args, const FabricView& view,
                                           uint64_t fingerprint) const {
  const Fabric& fabric = *view.snapshot->fabric;
  JobRecord record;
  ASSIGN_OR_RETURN(record.endpoints,
                   args.all_endpoints
                       ? AllEndpoints(fabric, options_->max_job_ranks)
                       : NamedEndpoints(fabric, args.endpoints, options_->max_job_ranks));
  record.request_id = std::move(args.request_id);
  record.request_fingerprint = fingerprint;
  record.name = std::move(args.display_name);
  record.owner = std::move(args.owner);
  record.by_administrator = args.actor.is_administrator;
  ASSIGN_OR_RETURN(record.lease, LeaseOf(AccountOf(record), args.lease));
  record.created = clock_->Now();
  record.ended = absl::InfiniteFuture();
  return record;
}

bool Jobs::BeginRegistration(const std::string& owner, const std::string& request_id,
                             uint64_t fingerprint, Manager::Callback<JobView>& done) {
  const std::string name = OwnName(owner, request_id);
  using Turn = NamedRequests<JobId, JobView>::Turn;
  std::unique_lock lock(tables_->mu);
  JobTable& jobs = tables_->jobs;
  switch (jobs.registrations.Peek(name, fingerprint)) {
    case Turn::kMisused:
      lock.unlock();
      done(jobs.registrations.MisusedError(request_id));
      return false;
    case Turn::kWait:
      jobs.registrations.Wait(name, std::move(done));
      return false;
    case Turn::kDone: {
      JobView view = ViewOf(*jobs.Find(jobs.registrations.IdOf(name)));
      lock.unlock();
      done(std::move(view));
      return false;
    }
    case Turn::kBegin:
      break;
  }
  if (tables_->view == nullptr) {
    lock.unlock();
    done(NoFabricError());
    return false;
  }
  jobs.registrations.Begin(name, fingerprint);
  return true;
}

void Jobs::SubmitRegistration(JobRecord made, const RegistrationMutation& mutation,
                              const Actor& actor, Manager::Callback<JobView> done) {
  auto record = std::make_shared<JobRecord>(std::move(made));
  // The nodes are the placement's, which has been allowed them.
  QuotaAmounts asked = AmountsOf(*record), placed;
  std::swap(asked[Quota::kNodes], placed[Quota::kNodes]);
  if (absl::Status room = tables_->quotas.Take(AccountOf(*record), asked); !room.ok()) {
    return FailRegistration(OwnName(record->owner, record->request_id), room, std::move(done));
  }
  tables_->quotas.Count(AccountOf(*record), placed);
  {
    std::lock_guard lock(tables_->mu);
    record->id = tables_->jobs.TakeId();
  }
  calls_->Submit(mutation(record), [this, record, by = NameOf(actor),
                                    callback = std::move(done)](absl::Status status) mutable {
    OnRegistered(std::move(record), by, std::move(status), std::move(callback));
  });
}

void Jobs::RegisterBy(JobRecord record, const RegistrationMutation& mutation, const Actor& actor,
                      Manager::Callback<JobView> done) {
  const uint64_t fingerprint = record.request_fingerprint;
  if (!BeginRegistration(record.owner, record.request_id, fingerprint, done)) return;
  SubmitRegistration(std::move(record), mutation, actor, std::move(done));
}

void Jobs::Register(RegisterJobArgs args, Manager::Callback<JobView> done) {
  if (absl::Status status = CheckArgs(args); !status.ok()) return done(std::move(status));
  const uint64_t fingerprint = FingerprintOf(args);
  const std::string name = OwnName(args.owner, args.request_id);
  const Actor actor = args.actor;
  if (!BeginRegistration(args.owner, args.request_id, fingerprint, done)) return;
  std::shared_ptr<const FabricView> view;  // there is one, and it does not go
  {
    std::lock_guard lock(tables_->mu);
    view = tables_->view;
  }
  absl::StatusOr<JobRecord> made = MakeRecord(args, *view, fingerprint);
  if (!made.ok()) return FailRegistration(name, made.status(), std::move(done));
  SubmitRegistration(
      *std::move(made),
      [&](const std::shared_ptr<const JobRecord>& record) {
        return PutJob(record,
                      DeedOf(actor, absl::StrCat("job:", record->id.value()), clock_->Now()));
      },
      actor, std::move(done));
}

void Jobs::OnRegistered(std::shared_ptr<const JobRecord> record, const std::string& by,
                        absl::Status status, Manager::Callback<JobView> done) {
  const std::string name = OwnName(record->owner, record->request_id);
  if (!status.ok()) {
    tables_->quotas.Give(AccountOf(*record), AmountsOf(*record));
    if (absl::IsAlreadyExists(status) && !record->request_id.empty()) {
      status = Annotate(status, absl::StrCat("request_id ", record->request_id,
                                             " belongs to a job that is over; take a new one"));
    }
    return FailRegistration(name, status, std::move(done));
  }
  auto job = std::make_shared<Job>();
  job->record = record;
  job->deadline = clock_->Monotonic() + record->lease;
  std::vector<Manager::Callback<JobView>> waiters;
  JobView view;
  {
    std::lock_guard lock(tables_->mu);
    view = ViewOf(*job);
    tables_->jobs.Add(std::move(job));
    waiters = tables_->jobs.registrations.Succeed(name, record->id);
  }
  on_deadline_();
  events_->Append("info", "job.registered", absl::StrCat("job:", record->id.value()),
                  absl::StrCat("\"", record->name, "\" of ", record->owner, " with ",
                               record->endpoints.size(), " ranks"),
                  {by, record->owner});
  for (Manager::Callback<JobView>& waiter : waiters) waiter(view);
  done(std::move(view));
}

void Jobs::FailRegistration(const std::string& name, const absl::Status& status,
                            Manager::Callback<JobView> done) {
  std::vector<Manager::Callback<JobView>> waiters;
  {
    std::lock_guard lock(tables_->mu);
    waiters = tables_->jobs.registrations.Fail(name);
  }
  for (Manager::Callback<JobView>& waiter : waiters) waiter(status);
  done(status);
}

}  // namespace coppice
