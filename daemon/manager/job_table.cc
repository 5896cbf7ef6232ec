#include "daemon/manager/job_table.h"

#include <utility>

namespace coppice {

std::shared_ptr<Job> JobTable::Find(JobId id) const {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : it->second;
}

void JobTable::Add(std::shared_ptr<Job> job) {
  job->queued_deadline = job->deadline;
  queue_.insert({job->queued_deadline, job->record->id});
  if (is_followed_) changes_.added.emplace(job->record->id, job->record);
  StopFollowingIfLong();
  jobs_.emplace(job->record->id, std::move(job));
}

void JobTable::Remove(Job& job) {
  Unqueue(job);
  registrations.Forget(OwnName(job.record->owner, job.record->request_id));
  if (is_followed_) {
    changes_.added.erase(job.record->id);  // its ranks may be many: nobody keeps them for this
    changes_.removed.push_back(job.record->id);
  }
  StopFollowingIfLong();
  jobs_.erase(job.record->id);
}

std::vector<std::shared_ptr<Job>> JobTable::List(JobId after, size_t limit) const {
  std::vector<std::shared_ptr<Job>> jobs;
  for (auto it = jobs_.upper_bound(after); it != jobs_.end() && jobs.size() < limit; ++it) {
    jobs.push_back(it->second);
  }
  return jobs;
}

std::vector<std::shared_ptr<Job>> JobTable::TakeExpired(absl::Duration now) {
  std::vector<std::shared_ptr<Job>> expired;
  while (!queue_.empty() && queue_.begin()->first <= now) {
    const std::shared_ptr<Job> job = jobs_.at(queue_.begin()->second);
    queue_.erase(queue_.begin());
    if (job->deadline > now) {  // renewed since it was queued
      job->queued_deadline = job->deadline;
      queue_.insert({job->queued_deadline, job->record->id});
    } else if (!job->ending) {
      job->ending = true;
      expired.push_back(job);
    }
    // One that is ending already is off the queue until Requeue.
  }
  return expired;
}

void JobTable::Requeue(Job& job, absl::Duration deadline) {
  Unqueue(job);
  job.queued_deadline = deadline;
  queue_.insert({deadline, job.record->id});
}

void JobTable::StopFollowingIfLong() {
  if (changes_.added.size() + changes_.removed.size() < kMostChanges) return;
  is_followed_ = false;
  changes_ = {};
}

JobTable::Changes JobTable::TakeChanges(bool all) {
  Changes changes = std::exchange(changes_, {});
  if (is_followed_ && !all) return changes;
  is_followed_ = true;
  changes = {};
  changes.is_all = true;
  for (const auto& [id, job] : jobs_) changes.added.emplace(id, job->record);
  return changes;
}

absl::Duration JobTable::NextDeadline() const {
  return queue_.empty() ? absl::InfiniteDuration() : queue_.begin()->first;
}

}  // namespace coppice
