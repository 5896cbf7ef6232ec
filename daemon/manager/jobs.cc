#include "daemon/manager/jobs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/fingerprint.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/manager/switches/installation.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

// How long a job whose end could not be written waits for the next try.
constexpr absl::Duration kEndRetry = absl::Seconds(1);

uint64_t FingerprintOf(const RegisterJobArgs& args) {
  Fingerprint fingerprint;
  fingerprint.Add(args.display_name).Add(args.owner).Add(uint64_t{args.all_endpoints});
  fingerprint.Add(uint64_t{args.endpoints.size()});
  for (const std::string& endpoint : args.endpoints) fingerprint.Add(endpoint);
  fingerprint.Add(uint64_t{args.lease.has_value()});
  fingerprint.Add(args.lease ? absl::ToDoubleSeconds(*args.lease) : 0.0);
  // Came later: says nothing where it is not set.
  if (args.partition != PartitionNum()) {
    fingerprint.Add("partition").Add(uint64_t{args.partition.value()});
  }
  if (!args.account.empty()) fingerprint.Add("account").Add(args.account);
  return fingerprint.value();
}

absl::Status TooManyRanks(size_t ranks, uint32_t limit) {
  return absl::InvalidArgumentError(absl::StrCat(
      "endpoints: ", ranks, " ranks are over the daemon's limits.job_ranks of ", limit));
}

// Of a partition its members. By host name, then port: hosts are sorted, and so are the ports of
// each.
absl::StatusOr<std::vector<Guid>> AllEndpoints(const Snapshot& snapshot, PartitionNum partition,
                                               uint32_t limit) {
  const Fabric& fabric = *snapshot.fabric;
  if (fabric.endpoint_count() == 0) {
    return absl::FailedPreconditionError("all_endpoints: the fabric has no endpoints");
  }
  std::vector<Guid> guids;
  guids.reserve(fabric.endpoint_count());
  for (uint32_t h = 0; h < fabric.host_count(); ++h) {
    for (const EndpointIndex e : fabric.endpoints_of_host(HostIndex(h))) {
      const Guid port = fabric.endpoint(e).port_guid;
      const bool is_meant = partition == PartitionNum() || snapshot.partitions->empty() ||
                            snapshot.partitions->Of(port, partition) != Membership::kNone;
      if (is_meant) guids.push_back(port);
    }
  }
  if (guids.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("all_endpoints: partition ", ToString(partition),
                     " has no member; `coppicectl fabric partitions` lists those that have some"));
  }
  if (guids.size() > limit) return TooManyRanks(guids.size(), limit);
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
    if (!endpoint.ok()) return Annotate(endpoint.status(), absl::StrCat("rank ", rank));
    guids.push_back(fabric.endpoint(*endpoint).port_guid);
  }
  return guids;
}

}  // namespace

void Jobs::Restore(std::vector<JobRecord> jobs, JobId last) {
  const absl::Duration now = clock_->Monotonic();
  std::lock_guard lock(tables_->mu);
  tables_->jobs.set_last(last);
  for (JobRecord& record : jobs) {
    auto job = std::make_shared<Job>();
    tables_->jobs.registrations.Restore(OwnName(record.owner, record.request_id),
                                        record.request_fingerprint, record.id);
    tables_->quotas.Count(PayerOf(record), AmountsOf(record));
    job->deadline = now + record.lease;
    job->record = std::make_shared<const JobRecord>(std::move(record));
    tables_->jobs.Add(std::move(job));
  }
}

JobView Jobs::ViewOf(const Job& job) const {
  const absl::Duration left = job.deadline - clock_->Monotonic();
  return {job.record, std::max(left, absl::ZeroDuration()), static_cast<uint32_t>(job.trees.size()),
          job.lost_ranks};
}

absl::StatusOr<JobRecord> Jobs::FromStore(JobId id) {
  JobId last;
  {
    std::lock_guard lock(tables_->mu);
    last = tables_->jobs.last();
  }
  if (id < JobId(1) || id > last) {
    return absl::NotFoundError(absl::StrCat("job ", id.value(), " was never registered"));
  }
  absl::StatusOr<JobRecord> record = calls_->store().GetJob(id);
  if (!absl::IsNotFound(record.status())) return record;
  return absl::NotFoundError(absl::StrCat(
      "job ", id.value(), " ended so long ago that it is forgotten: the daemon keeps the ",
      options_->kept_ended_jobs, " that ended last (limits.ended_jobs) for ",
      absl::FormatDuration(options_->kept_ended_job_age), " (limits.ended_job_age)"));
}

absl::Status Jobs::WhyNotActive(JobId id) {
  ASSIGN_OR_RETURN(const JobRecord record, FromStore(id));
  RETURN_IF_ERROR(CheckActive(record));
  // The store is a step ahead of the table: it has the job, but its callback has not run yet.
  return absl::FailedPreconditionError(
      absl::StrCat("job ", id.value(), " is being registered; wait for that answer"));
}

absl::Status JobIsEnding(JobId id) {
  return absl::FailedPreconditionError(absl::StrCat(
      "job ", id.value(), " is ending; no tree can be granted to it, register a new job"));
}

absl::StatusOr<std::shared_ptr<Job>> Jobs::FindActive(JobId id) {
  {
    std::lock_guard lock(tables_->mu);
    std::shared_ptr<Job> job = tables_->jobs.Find(id);
    if (job != nullptr && job->ending) return JobIsEnding(id);
    if (job != nullptr) return job;
  }
  return WhyNotActive(id);
}

absl::StatusOr<JobView> Jobs::Get(JobId id) {
  {
    std::lock_guard lock(tables_->mu);
    if (const std::shared_ptr<Job> job = tables_->jobs.Find(id)) return ViewOf(*job);
  }
  ASSIGN_OR_RETURN(JobRecord record, FromStore(id));
  return JobView{std::make_shared<const JobRecord>(std::move(record)), absl::ZeroDuration(), 0};
}

std::vector<JobView> Jobs::List(JobId after, size_t limit) const {
  std::vector<JobView> views;
  std::lock_guard lock(tables_->mu);
  for (const std::shared_ptr<Job>& job : tables_->jobs.List(after, limit)) {
    views.push_back(ViewOf(*job));
  }
  return views;
}

absl::StatusOr<JobView> Jobs::KeepAlive(JobId id) {
  {
    std::lock_guard lock(tables_->mu);
    if (const std::shared_ptr<Job> job = tables_->jobs.Find(id)) {
      // A renewal that comes late but before the end was begun still counts.
      if (!job->ending) job->deadline = clock_->Monotonic() + job->record->lease;
      return ViewOf(*job);
    }
  }
  return Get(id);
}

void Jobs::End(JobId id, Callback<uint32_t> done, const Actor& actor) {
  std::unique_lock lock(tables_->mu);
  std::shared_ptr<Job> job = tables_->jobs.Find(id);
  if (job == nullptr) {
    lock.unlock();
    const absl::StatusOr<JobRecord> record = FromStore(id);
    if (!record.ok()) return done(record.status());
    if (record->state == JobState::kActive) return done(WhyNotActive(id));
    return done(0u);
  }
  job->end_waiters.push_back(std::move(done));
  if (job->ending) return;  // answered together with the one that came first
  job->ending = true;
  lock.unlock();
  SubmitEnd(std::move(job), JobState::kEnded, actor);
}

absl::Duration Jobs::ExpireLeases(absl::Duration now) {
  std::vector<std::shared_ptr<Job>> expired;
  absl::Duration next;
  {
    std::lock_guard lock(tables_->mu);
    expired = tables_->jobs.TakeExpired(now);
    next = tables_->jobs.NextDeadline();
  }
  // All handed over at once, so the store ends them in one group.
  for (std::shared_ptr<Job>& job : expired) SubmitEnd(std::move(job), JobState::kExpired, {});
  return next - now;
}

void Jobs::ForgiveStall(absl::Duration stalled) {
  std::lock_guard lock(tables_->mu);
  const absl::Duration now = clock_->Monotonic();
  for (const std::shared_ptr<Job>& job : tables_->jobs.List(JobId(), tables_->jobs.size())) {
    if (!IsForgiven(stalled, job->record->lease)) continue;
    job->deadline = std::max(job->deadline, now + job->record->lease);
  }
}

void Jobs::SubmitEnd(std::shared_ptr<Job> job, JobState state, const Actor& actor) {
  const JobRecord& record = *job->record;
  EndJob end{record.id, state, clock_->Now(), {}, nullptr};
  end.keep.all = tables_->quotas.AllKeptBytes();
  if (!record.by_administrator) end.keep.per_owner = tables_->quotas.KeptBytes(record.owner);
  end.deed = DeedOf(actor, absl::StrCat("job:", record.id.value()), end.time);
  calls_->Submit(std::move(end), [this, job = std::move(job), state, by = NameOf(actor)](
                                     absl::Status status) { OnEnded(*job, state, by, status); });
}

void Jobs::OnEnded(Job& job, JobState state, const std::string& by, const absl::Status& status) {
  // NOT_FOUND: the store has ended it before, by a write that it reported as failed.
  const bool ended = status.ok() || absl::IsNotFound(status);
  std::vector<Callback<uint32_t>> waiters;
  uint32_t released = 0;
  {
    std::lock_guard lock(tables_->mu);
    waiters = std::exchange(job.end_waiters, {});
    if (ended) {
      const std::vector<TreeId> trees(job.trees.begin(), job.trees.end());
      released = static_cast<uint32_t>(trees.size());
      for (const TreeId id : trees) {
        const std::shared_ptr<GrantedTree> tree = tables_->trees.Find(id);
        // Before the ledger has its entries for others.
        installer_->Remove({id, tree->record->revision});
        tables_->RemoveTree(*tree);
      }
      job.ended = true;
      tables_->feed.PushEndOf(job.record->id);
      tables_->jobs.Remove(job);
      tables_->quotas.Give(PayerOf(*job.record), AmountsOf(*job.record));
    } else {
      job.ending = false;
      for (const TreeId id : job.trees) tables_->NoteUnjudged(id);  // repairs passed them over
      tables_->jobs.Requeue(job, std::max(job.deadline, clock_->Monotonic() + kEndRetry));
    }
  }
  if (ended) {
    const bool expired = state == JobState::kExpired;
    events_->Append(expired ? "job.expired" : "job.ended",
                    absl::StrCat("job:", job.record->id.value()),
                    absl::StrCat(expired ? "its lease ran out; " : "", released, " trees released"),
                    {by, job.record->owner});
  } else {
    spdlog::warn("job {} could not be ended: {}", job.record->id.value(), status.ToString());
    on_deadline_();
  }
  AnswerAll(std::move(waiters), ended ? absl::StatusOr<uint32_t>(released) : status);
}

// Jobs::Register: the one use case of jobs that reads the fabric.

absl::Status Jobs::CheckArgs(const RegisterJobArgs& args) const {
  RETURN_IF_ERROR(CheckLength("request_id", args.request_id, kMaxRequestIdBytes));
  RETURN_IF_ERROR(CheckLength("display_name", args.display_name, kMaxNameBytes));
  RETURN_IF_ERROR(CheckLength("owner", args.owner, kMaxNameBytes));
  RETURN_IF_ERROR(CheckLength("account", args.account, kMaxNameBytes));
  if (args.all_endpoints && !args.endpoints.empty()) {
    return absl::InvalidArgumentError("endpoints: give a list or all_endpoints, not both");
  }
  if (!args.all_endpoints && args.endpoints.empty()) {
    return absl::InvalidArgumentError("endpoints: none; name one per rank or set all_endpoints");
  }
  if (args.endpoints.size() > options_->max_job_ranks) {
    return TooManyRanks(args.endpoints.size(), options_->max_job_ranks);
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> Jobs::LeaseOf(const Payer& payer,
                                             std::optional<absl::Duration> asked) const {
  const absl::Duration lease =
      asked.value_or(std::min(options_->default_lease, tables_->quotas.LongestLease(payer)));
  if (lease >= options_->min_lease && lease <= options_->max_lease) {
    RETURN_IF_ERROR(tables_->quotas.CheckLease(payer, lease, "lease"));
    return lease;
  }
  return absl::InvalidArgumentError(absl::StrCat("lease: ", absl::FormatDuration(lease),
                                                 " must be between ",
                                                 absl::FormatDuration(options_->min_lease), " and ",
                                                 absl::FormatDuration(options_->max_lease)));
}

absl::StatusOr<JobRecord> Jobs::MakeRecord(RegisterJobArgs& args, const FabricView& view,
                                           uint64_t fingerprint) const {
  const Snapshot& snapshot = *view.snapshot;
  JobRecord record;
  const std::shared_ptr<const Accounts> accounts = tables_->quotas.accounts();
  ASSIGN_OR_RETURN(record.account,
                   accounts->Choose(args.owner, args.account, MayNameAnyAccount(args.actor)));
  PartitionNum wanted = args.partition;
  if (!snapshot.partitions->empty()) {
    ASSIGN_OR_RETURN(wanted, accounts->PartitionFor(record.account, wanted));
  }
  ASSIGN_OR_RETURN(record.endpoints,
                   args.all_endpoints
                       ? AllEndpoints(snapshot, wanted, options_->max_job_ranks)
                       : NamedEndpoints(*snapshot.fabric, args.endpoints, options_->max_job_ranks));
  ASSIGN_OR_RETURN(record.partition, ChoosePartition(snapshot, record.endpoints, wanted));
  record.request_id = std::move(args.request_id);
  record.request_fingerprint = fingerprint;
  record.name = std::move(args.display_name);
  record.owner = std::move(args.owner);
  record.by_administrator = args.actor.is_administrator;
  ASSIGN_OR_RETURN(record.lease, LeaseOf(PayerOf(record), args.lease));
  record.created = clock_->Now();
  record.ended = absl::InfiniteFuture();
  return record;
}

bool Jobs::BeginRegistration(const std::string& owner, const std::string& request_id,
                             uint64_t fingerprint, Callback<JobView>& done) {
  using Ids = std::vector<JobId>;
  return tables_->jobs.registrations.Begin(
      std::unique_lock(tables_->mu), {{OwnName(owner, request_id), request_id, fingerprint}},
      [this](const Ids& ids) { return ViewOf(*tables_->jobs.Find(ids.front())); },
      [this] { return tables_->view == nullptr ? NoFabricError() : absl::OkStatus(); }, done);
}

void Jobs::SubmitRegistration(JobRecord made, const RegistrationMutation& mutation,
                              const Actor& actor, Callback<JobView> done) {
  auto record = std::make_shared<JobRecord>(std::move(made));
  // The nodes are the placement's, which has been allowed them.
  QuotaAmounts asked = AmountsOf(*record), placed;
  std::swap(asked[Quota::kNodes], placed[Quota::kNodes]);
  if (absl::Status room = tables_->quotas.Take(PayerOf(*record), asked); !room.ok()) {
    return FailRegistration(OwnName(record->owner, record->request_id), room, std::move(done));
  }
  tables_->quotas.Count(PayerOf(*record), placed);
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
                      Callback<JobView> done) {
  const uint64_t fingerprint = record.request_fingerprint;
  if (!BeginRegistration(record.owner, record.request_id, fingerprint, done)) return;
  SubmitRegistration(std::move(record), mutation, actor, std::move(done));
}

void Jobs::Register(RegisterJobArgs args, Callback<JobView> done) {
  if (absl::Status status = CheckArgs(args); !status.ok()) return done(std::move(status));
  const uint64_t fingerprint = FingerprintOf(args);
  const std::string name = OwnName(args.owner, args.request_id);
  const Actor actor = args.actor;
  if (!BeginRegistration(args.owner, args.request_id, fingerprint, done)) return;
  // There is a view, and it does not go.
  absl::StatusOr<JobRecord> made = MakeRecord(args, *tables_->Published(), fingerprint);
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
                        absl::Status status, Callback<JobView> done) {
  const std::string name = OwnName(record->owner, record->request_id);
  if (!status.ok()) {
    tables_->quotas.Give(PayerOf(*record), AmountsOf(*record));
    if (absl::IsAlreadyExists(status) && !record->request_id.empty()) {
      status = Annotate(status, absl::StrCat("request_id ", record->request_id,
                                             " belongs to a job that is over; take a new one"));
    }
    return FailRegistration(name, status, std::move(done));
  }
  auto job = std::make_shared<Job>();
  job->record = record;
  job->deadline = clock_->Monotonic() + record->lease;
  std::vector<Callback<JobView>> waiters;
  JobView view;
  {
    std::lock_guard lock(tables_->mu);
    view = ViewOf(*job);
    tables_->jobs.Add(std::move(job));
    waiters = tables_->jobs.registrations.Succeed(name, record->id);
  }
  on_deadline_();
  events_->Append("job.registered", absl::StrCat("job:", record->id.value()),
                  absl::StrCat("\"", record->name, "\" of ", record->owner, " with ",
                               record->endpoints.size(), " ranks"),
                  {by, record->owner});
  JobTable::Registrations::Tell(std::move(waiters), std::move(view), std::move(done));
}

void Jobs::FailRegistration(const std::string& name, const absl::Status& status,
                            Callback<JobView> done) {
  std::vector<Callback<JobView>> waiters;
  {
    std::lock_guard lock(tables_->mu);
    waiters = tables_->jobs.registrations.Fail(name);
  }
  JobTable::Registrations::Tell(std::move(waiters), status, std::move(done));
}

}  // namespace coppice
