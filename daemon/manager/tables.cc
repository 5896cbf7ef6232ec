#include "daemon/manager/tables.h"

#include <algorithm>

#include "daemon/base/status_macros.h"
#include "daemon/manager/event_kinds.h"

namespace coppice {

void Activity::Refused(absl::Span<const RefusedSwitch> switches) {
  ++now_.refused;
  for (const RefusedSwitch& full : switches) {
    if (full.entries_total == 0) continue;  // it cannot aggregate at all: no entry went
    Refusals& refusals = by_switch_[full.guid];
    refusals.entries_total = full.entries_total;
    ++refusals.count;
  }
}

std::vector<EventRecord> Activity::Take(absl::Time now) {
  std::vector<EventRecord> events;
  const uint64_t granted = now_.granted - before_.granted;
  const uint64_t released = now_.released - before_.released;
  const uint64_t refused = now_.refused - before_.refused;
  if (granted + released + refused > 0) {
    events.push_back(
        EventOf("trees.changed", now, "trees",
                absl::StrCat("since the last such event ", granted,
                             granted == 1 ? " tree was" : " trees were", " granted, ", released,
                             " released, ", refused, " refused for want of entries")));
  }
  size_t named = 0;
  for (const auto& [guid, refusals] : by_switch_) {
    if (++named > kMaxSwitches) {
      events.push_back(EventOf("entries.exhausted", now, "fabric",
                               absl::StrCat(by_switch_.size() - kMaxSwitches,
                                            " more switches had no entry left; see `entries`")));
      break;
    }
    events.push_back(
        EventOf("entries.exhausted", now, absl::StrCat("switch:", ToString(guid)),
                absl::StrCat("none of its ", refusals.entries_total, " entries was free for ",
                             refusals.count, " trees that asked for one")));
  }
  before_ = now_;
  by_switch_.clear();
  return events;
}

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
  if (changes_.added.size() + changes_.removed.size() < kMaxChanges) return;
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

std::shared_ptr<GrantedTree> TreeTable::Find(TreeId id) const {
  const auto it = trees_.find(id);
  return it == trees_.end() ? nullptr : it->second;
}

void TreeTable::Add(std::shared_ptr<GrantedTree> tree) {
  const TreeId id = tree->record->id;
  if (const auto part = BatchPartOf(*tree->record)) {
    tree->job->batches[part->batch].trees[part->communicator] = id;
  }
  tree->job->trees.insert(tree->job->trees.end(), id);
  trees_.insert(trees_.end(), {id, std::move(tree)});
}

void TreeTable::Remove(const GrantedTree& tree) {
  tree.job->trees.erase(tree.record->id);
  tree.job->tree_requests.Forget(tree.record->request_id);
  LeaveBatch(tree);
  trees_.erase(tree.record->id);
}

void TreeTable::LeaveBatch(const GrantedTree& tree) {
  const auto part = BatchPartOf(*tree.record);
  if (!part) return;
  Job& job = *tree.job;
  const auto batch = job.batches.find(part->batch);
  if (batch == job.batches.end()) return;
  batch->second.trees.erase(part->communicator);
  if (!batch->second.trees.empty()) return;
  job.batches.erase(batch);
  job.batch_requests.Forget(std::string(part->batch));
}

std::vector<std::shared_ptr<GrantedTree>> TreeTable::List(const Job* job, TreeId after,
                                                          size_t limit) const {
  std::vector<std::shared_ptr<GrantedTree>> trees;
  if (job != nullptr) {
    for (auto it = job->trees.upper_bound(after); it != job->trees.end() && trees.size() < limit;
         ++it) {
      trees.push_back(trees_.at(*it));
    }
    return trees;
  }
  for (auto it = trees_.upper_bound(after); it != trees_.end() && trees.size() < limit; ++it) {
    trees.push_back(it->second);
  }
  return trees;
}

std::vector<TreeId> Tables::CallBack(Guid guid, const KeptEntries::Share& share, int64_t most) {
  std::vector<TreeId> called;
  absl::flat_hash_map<std::string, int64_t> called_of;  // tenants
  const absl::Span<const EntryLedger::Holder> there = entries.TreesOf(guid);
  for (auto holder = there.rbegin(); holder != there.rend(); ++holder) {
    if (static_cast<int64_t>(called.size()) >= most) break;
    const std::shared_ptr<GrantedTree> tree = trees.Find(holder->tree);
    if (tree == nullptr || holder->came <= share.created) continue;
    const std::string tenant = quotas.TenantOf(PayerOf(*tree->job->record));
    if (tenant == share.tenant) continue;
    // What is within its tenant's own reservation nobody has lent it.
    const KeptEntries::Share* const own = kept->ShareOf(tenant, guid);
    const int64_t reserved = own == nullptr ? 0 : own->kept + own->lent;
    if (quotas.EntriesOf(tenant, guid) - called_of[tenant] <= reserved) continue;
    ++called_of[tenant];
    called.push_back(holder->tree);
    if (tree->releasing) continue;  // it goes by itself
    const bool is_new =
        called_back
            .emplace(holder->tree,
                     absl::StrCat("switch ", ToString(guid), ": its entry was lent by reservation ",
                                  ToString(share), ", which takes it back"))
            .second;
    if (is_new) NoteUnjudged(holder->tree);
  }
  return called;
}

bool Tables::IsGivingWay(TreeId tree) const {
  const std::shared_ptr<GrantedTree> found = trees.Find(tree);
  return found != nullptr && (found->releasing || called_back.contains(tree));
}

bool Tables::LeavesKept(const Payer& payer, absl::Span<const TreeSwitchRecord> wanted,
                        LentEntries& lent) {
  if (kept->switches().empty()) return true;
  const std::string tenant = quotas.TenantOf(payer);
  absl::flat_hash_map<Guid, int64_t> by_switch;
  for (const TreeSwitchRecord& entry : wanted) ++by_switch[entry.guid];
  bool is_enough = true;
  for (const auto& [guid, more] : by_switch) {
    const int64_t lacking = more +
                            kept->KeptFrom(tenant, guid, quotas, KeptEntries::Asker::kGrant) -
                            entries.FreeOf(guid);
    if (lacking <= 0) continue;
    is_enough = false;
    const KeptEntries::Share* const own = kept->ShareOf(tenant, guid);
    if (own == nullptr) continue;
    const int64_t owed = std::min(lacking, KeptEntries::Unused(*own, guid, quotas));
    if (owed > 0) lent[guid] = CallBack(guid, *own, owed);
  }
  return is_enough;
}

absl::StatusOr<PartitionNum> PartitionOfJob(Tables& tables, Job& job, const Snapshot& snapshot) {
  const JobRecord& record = *job.record;
  if (snapshot.partitions->empty() || record.partition != PartitionNum()) {
    return snapshot.partitions->empty() ? PartitionNum() : record.partition;
  }
  {
    std::lock_guard lock(tables.mu);
    if (job.kept_partition != PartitionNum()) return job.kept_partition;
  }
  ASSIGN_OR_RETURN(const PartitionNum chosen, PartitionOfOldJob(snapshot, record));
  const bool are_all_known =
      std::all_of(record.endpoints.begin(), record.endpoints.end(),
                  [&](Guid port) { return snapshot.partitions->IsKnown(port); });
  std::lock_guard lock(tables.mu);
  if (are_all_known && job.kept_partition == PartitionNum()) job.kept_partition = chosen;
  return job.kept_partition == PartitionNum() ? chosen : job.kept_partition;
}

}  // namespace coppice
