#include "daemon/manager/jobs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/log.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

// How long a job whose end could not be written waits for the next try.
constexpr absl::Duration kEndRetry = absl::Seconds(1);

}  // namespace

Jobs::Jobs(StoreCalls* calls, EventLog* events, const Clock* clock, Tables* tables,
           LiveOptions options, std::function<void()> on_deadline)
    : calls_(calls),
      events_(events),
      clock_(clock),
      tables_(tables),
      options_(std::move(options)),
      on_deadline_(std::move(on_deadline)) {}

void Jobs::Restore(std::vector<JobRecord> jobs, JobId last) {
  const absl::Duration now = clock_->Monotonic();
  std::lock_guard lock(tables_->mu);
  tables_->jobs.set_last(last);
  for (JobRecord& record : jobs) {
    auto job = std::make_shared<Job>();
    tables_->jobs.registrations.Restore(OwnName(record.owner, record.request_id),
                                        record.request_fingerprint, record.id);
    tables_->quotas.Count(AccountOf(record), AmountsOf(record));
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
  if (record.state == JobState::kActive) {
    // The store is a step ahead of the table: it has the job, but its callback has not run yet.
    return absl::FailedPreconditionError(
        absl::StrCat("job ", id.value(), " is being registered; wait for that answer"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "job ", id.value(), record.state == JobState::kEnded ? " has ended" : "'s lease has expired",
      "; register a new job"));
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

void Jobs::End(JobId id, Manager::Callback<uint32_t> done, const Actor& actor) {
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
  std::vector<Manager::Callback<uint32_t>> waiters;
  uint32_t released = 0;
  {
    std::lock_guard lock(tables_->mu);
    waiters = std::exchange(job.end_waiters, {});
    if (ended) {
      const std::vector<TreeId> trees(job.trees.begin(), job.trees.end());
      released = static_cast<uint32_t>(trees.size());
      for (const TreeId id : trees) tables_->RemoveTree(*tables_->trees.Find(id));
      job.ended = true;
      tables_->feed.PushEndOf(job.record->id);
      tables_->jobs.Remove(job);
      tables_->quotas.Give(AccountOf(*job.record), AmountsOf(*job.record));
    } else {
      job.ending = false;
      for (const TreeId id : job.trees) tables_->NoteUnjudged(id);  // repairs passed them over
      tables_->jobs.Requeue(job, std::max(job.deadline, clock_->Monotonic() + kEndRetry));
    }
  }
  if (ended) {
    const bool expired = state == JobState::kExpired;
    events_->Append(expired ? "warning" : "info", expired ? "job.expired" : "job.ended",
                    absl::StrCat("job:", job.record->id.value()),
                    absl::StrCat(expired ? "its lease ran out; " : "", released, " trees released"),
                    {by, job.record->owner});
  } else {
    spdlog::warn("job {} could not be ended: {}", job.record->id.value(), status.ToString());
    on_deadline_();
  }
  for (Manager::Callback<uint32_t>& done : waiters) {
    if (ended) {
      done(released);
    } else {
      done(status);
    }
  }
}

}  // namespace coppice
