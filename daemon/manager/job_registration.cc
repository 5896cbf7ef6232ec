// Jobs::Register: the one use case of jobs that reads the fabric. Split from jobs.cc for length.
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
  return CheckLease(args.lease.value_or(options_->default_lease));
}

absl::Status Jobs::CheckLease(absl::Duration lease) const {
  if (lease >= options_->min_lease && lease <= options_->max_lease) return absl::OkStatus();
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
  record.lease = args.lease.value_or(options_->default_lease);
  record.created = clock_->Now();
  record.ended = absl::InfiniteFuture();
  return record;
}

bool Jobs::BeginRegistration(const std::string& request_id, uint64_t fingerprint,
                             Manager::Callback<JobView>& done) {
  using Turn = NamedRequests<JobId, JobView>::Turn;
  std::unique_lock lock(tables_->mu);
  JobTable& jobs = tables_->jobs;
  switch (jobs.registrations.Peek(request_id, fingerprint)) {
    case Turn::kMisused:
      lock.unlock();
      done(jobs.registrations.MisusedError(request_id));
      return false;
    case Turn::kWait:
      jobs.registrations.Wait(request_id, std::move(done));
      return false;
    case Turn::kDone: {
      JobView view = ViewOf(*jobs.Find(jobs.registrations.IdOf(request_id)));
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
  jobs.registrations.Begin(request_id, fingerprint);
  return true;
}

void Jobs::SubmitRegistration(JobRecord made,
                              const std::function<Mutation(const JobRecord&)>& mutation,
                              Manager::Callback<JobView> done) {
  auto record = std::make_shared<JobRecord>(std::move(made));
  {
    std::lock_guard lock(tables_->mu);
    record->id = tables_->jobs.TakeId();
  }
  calls_->Submit(mutation(*record),
                 [this, record, callback = std::move(done)](absl::Status status) mutable {
                   OnRegistered(std::move(record), std::move(status), std::move(callback));
                 });
}

void Jobs::RegisterBy(JobRecord record, std::function<Mutation(const JobRecord&)> mutation,
                      Manager::Callback<JobView> done) {
  if (!BeginRegistration(record.request_id, record.request_fingerprint, done)) return;
  SubmitRegistration(std::move(record), mutation, std::move(done));
}

void Jobs::Register(RegisterJobArgs args, Manager::Callback<JobView> done) {
  if (absl::Status status = CheckArgs(args); !status.ok()) return done(std::move(status));
  const uint64_t fingerprint = FingerprintOf(args);
  const std::string request_id = args.request_id;
  if (!BeginRegistration(request_id, fingerprint, done)) return;
  std::shared_ptr<const FabricView> view;  // there is one, and it does not go
  {
    std::lock_guard lock(tables_->mu);
    view = tables_->view;
  }
  absl::StatusOr<JobRecord> made = MakeRecord(args, *view, fingerprint);
  if (!made.ok()) return FailRegistration(request_id, made.status(), std::move(done));
  SubmitRegistration(
      *std::move(made), [](const JobRecord& record) { return PutJob{record}; }, std::move(done));
}

void Jobs::OnRegistered(std::shared_ptr<const JobRecord> record, absl::Status status,
                        Manager::Callback<JobView> done) {
  if (!status.ok()) {
    if (absl::IsAlreadyExists(status) && !record->request_id.empty()) {
      status = Annotate(status, absl::StrCat("request_id ", record->request_id,
                                             " belongs to a job that is over; take a new one"));
    }
    return FailRegistration(record->request_id, status, std::move(done));
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
    waiters = tables_->jobs.registrations.Succeed(record->request_id, record->id);
  }
  on_deadline_();
  events_->Append("info", "job.registered", absl::StrCat("job:", record->id.value()),
                  absl::StrCat("\"", record->name, "\" of ", record->owner, " with ",
                               record->endpoints.size(), " ranks"));
  for (Manager::Callback<JobView>& waiter : waiters) waiter(view);
  done(std::move(view));
}

void Jobs::FailRegistration(const std::string& request_id, const absl::Status& status,
                            Manager::Callback<JobView> done) {
  std::vector<Manager::Callback<JobView>> waiters;
  {
    std::lock_guard lock(tables_->mu);
    waiters = tables_->jobs.registrations.Fail(request_id);
  }
  for (Manager::Callback<JobView>& waiter : waiters) waiter(status);
  done(status);
}

}  // namespace coppice
