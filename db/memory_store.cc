#include "db/memory_store.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/group_writer.h"
#include "db/kept_deeds.h"
#include "db/kept_ranks.h"
#include "db/memory_distances.h"
#include "db/memory_measurements.h"
#include "db/memory_orders.h"
#include "db/memory_patterns.h"
#include "db/memory_placements.h"
#include "db/record_check.h"
#include "db/refusals.h"

namespace coppice {
namespace {

// What the database file would hold. Each Do checks everything before it changes anything.
class Contents {
 public:
  absl::Status Apply(Mutation& mutation) {
    return std::visit(
        [this](auto& what) -> absl::Status {
          RETURN_IF_ERROR(CheckShape(what));
          DeedPtr deed;
          if constexpr (requires { what.deed; }) deed = what.deed;
          RETURN_IF_ERROR(Do(what));
          if (deed != nullptr) Enter(*deed, DeedLimits());
          return absl::OkStatus();
        },
        mutation);
  }

  StoredState Load() const;
  std::vector<EntryUse> Entries() const;
  std::vector<EventRecord> Events(const EventFilter& filter) const;
  EventRange KeptEvents() const {
    return {events_.empty() ? last_event_ + 1 : events_.begin()->first, last_event_};
  }
  std::vector<DeedRecord> Deeds(const DeedFilter& filter) const;
  absl::StatusOr<JobRecord> GetJob(JobId id) const;
  int64_t EndedJobs(absl::Time before) const;
  std::vector<OwnedJobs> EndedJobsOfOwners() const;
  absl::StatusOr<std::vector<int64_t>> LinkIds(const std::vector<LinkRecord>& links) const;
  const MemoryMeasurements& measurements() const { return measurements_; }
  const MemoryPatterns& patterns() const { return patterns_; }
  const MemoryDistances& distances() const { return distances_; }
  const MemoryPlacements& placements() const { return placements_; }
  const MemoryOrders& orders() const { return orders_; }

 private:
  using LinkKey = std::tuple<Guid, uint8_t, Guid, uint8_t>;

  static LinkKey KeyOf(const LinkRecord& link) {
    const LinkRecord ordered = Ordered(link);
    return {ordered.node_a, ordered.port_a, ordered.node_b, ordered.port_b};
  }
  bool IsActive(JobId id) const {
    auto job = jobs_.find(id);
    return job != jobs_.end() && job->second.state == JobState::kActive;
  }
  void Release(const TreeRecord& tree) {
    for (const TreeSwitchRecord& serving : tree.switches) --taken_[serving.guid];
  }
  // What forbids this tree now.
  absl::Status CheckGrant(const TreeRecord& tree);
  // Both whatever the rules say.
  void Enter(std::shared_ptr<const TreeRecord> tree);
  std::shared_ptr<const TreeRecord> TakeOut(TreeId id);
  absl::Status CheckLeaving(const ChangeTrees& change) const;
  absl::Status CheckNode(Guid guid, const absl::flat_hash_set<Guid>& added,
                         const std::string& user) const {
    const bool known = added.contains(guid) || nodes_.contains(guid);
    return known ? absl::OkStatus() : NodeNotInInventory(guid, user);
  }

  void Enter(DeedRecord deed, const DeedLimits& limits);
  using RequestKey = std::pair<std::string, std::string>;  // owner and request_id
  static RequestKey RequestOf(const JobRecord& job) { return {job.owner, job.request_id}; }

  absl::Status Do(PutQuota& put);
  absl::Status Do(AppendDeeds& append);
  absl::Status Do(const PutJob& put);
  absl::Status Do(EndJob& end);
  absl::Status Do(GrantTree& grant);
  absl::Status Do(ReleaseTree& release);
  absl::Status Do(ChangeTrees& change);
  absl::Status Do(PutCapabilities& put);
  absl::Status Do(PutProfile& put);
  absl::Status Do(PutInventory& put);
  absl::Status Do(AppendEvents& append);
  absl::Status Do(PutCounters& put);
  absl::Status Do(PruneHistory& prune) {
    measurements_.Prune(prune);
    return absl::OkStatus();
  }
  absl::Status Do(PruneEvents& prune);
  absl::Status Do(PruneJobs& prune);
  absl::Status Do(PutPatternPart& put) { return patterns_.Put(put); }
  absl::Status Do(PutPattern& put) { return patterns_.Put(put); }
  absl::Status Do(DropPatternParts& drop) { return patterns_.Drop(drop); }
  absl::Status Do(DropPattern& drop) { return patterns_.Drop(drop); }
  absl::Status Do(PutDistances& put) {
    distances_.Put(put);
    return absl::OkStatus();
  }
  absl::Status Do(PutPlacements& put) { return placements_.Put(put); }
  absl::Status Do(EndPlacement& end) { return placements_.End(end.placement, end.state, end.time); }
  absl::Status Do(StartPlacement& start);
  absl::Status Do(PrunePlacements& prune) {
    placements_.Prune(prune, [this](JobId job) { return IsActive(job); });
    return absl::OkStatus();
  }
  absl::Status Do(PutOrder& put) {
    return IsActive(put.order.job) ? orders_.Put(put) : OrderOfNoActiveJob(put.order.job);
  }

  std::map<JobId, JobRecord> jobs_;
  std::set<std::pair<absl::Time, JobId>> ended_jobs_;
  KeptRanks kept_ranks_;
  absl::flat_hash_map<RequestKey, JobId> job_requests_;
  std::map<std::tuple<QuotaHolder, std::string, std::string>, QuotaRecord> quotas_;
  std::map<int64_t, DeedRecord> deeds_;
  KeptDeeds kept_deeds_;
  std::map<TreeId, std::shared_ptr<const TreeRecord>> trees_;
  std::map<std::pair<JobId, std::string>, TreeId> tree_requests_;
  absl::btree_map<Guid, CapabilityRecord> capabilities_;
  absl::flat_hash_map<Guid, uint32_t> taken_;
  absl::flat_hash_set<Guid> nodes_;
  std::map<LinkKey, int64_t> links_;
  std::map<int64_t, EventRecord> events_;
  JobId last_job_;
  TreeId last_tree_;
  int64_t last_event_ = 0;
  uint64_t last_fabric_version_ = 0;
  std::string profile_toml_;
  MemoryMeasurements measurements_;
  MemoryPatterns patterns_;
  MemoryDistances distances_;
  MemoryPlacements placements_;
  MemoryOrders orders_;
};

absl::Status Contents::Do(const PutJob& put) {
  const JobRecord& job = *put.job;
  if (jobs_.contains(job.id)) return JobIdTaken(job.id);
  if (auto same = job_requests_.find(RequestOf(job)); same != job_requests_.end()) {
    return JobRequestTaken(job.request_id, same->second);
  }
  if (!job.request_id.empty()) job_requests_[RequestOf(job)] = job.id;
  last_job_ = std::max(last_job_, job.id);
  jobs_.emplace(job.id, job).first->second.ended = absl::InfiniteFuture();
  return absl::OkStatus();
}

absl::Status Contents::Do(EndJob& end) {
  if (!IsActive(end.job)) return NoActiveJob(end.job);
  JobRecord& job = jobs_.at(end.job);
  job.state = end.state;
  job.ended = end.time;
  ended_jobs_.emplace(end.time, end.job);
  kept_ranks_.Enter(job.owner, end.time, end.job, BytesOfRanks(job.endpoints.size()));
  for (const JobId id : kept_ranks_.TakeSurplus(job.owner, end.keep)) {
    JobRecord& dropped = jobs_.at(id);
    dropped.dropped_ranks = static_cast<uint32_t>(dropped.endpoints.size());
    dropped.endpoints = {};
  }
  orders_.Drop(end.job);
  std::erase_if(trees_, [&](const auto& item) {
    if (item.second->job != end.job) return false;
    Release(*item.second);
    return true;
  });
  tree_requests_.erase(tree_requests_.lower_bound({end.job, ""}),
                       tree_requests_.lower_bound({JobId(end.job.value() + 1), ""}));
  return absl::OkStatus();
}

absl::Status Contents::Do(StartPlacement& start) {
  if (!placements_.IsHeld(start.placement)) return NoHeldPlacement(start.placement);
  const JobId job = start.job->id;
  const absl::Time time = start.job->created;
  RETURN_IF_ERROR(Do(PutJob(start.job)));
  return placements_.End(start.placement, PlacementState::kStarted, time, job);
}

absl::Status Contents::CheckGrant(const TreeRecord& tree) {
  if (!IsActive(tree.job)) return JobNotActive(tree.job);
  if (trees_.contains(tree.id)) return TreeIdTaken(tree.id);
  if (auto same = tree_requests_.find({tree.job, tree.request_id}); same != tree_requests_.end()) {
    return TreeRequestTaken(tree.request_id, tree.job, same->second);
  }
  for (const TreeSwitchRecord& serving : tree.switches) {
    auto found = capabilities_.find(serving.guid);
    if (found == capabilities_.end()) return NoCapability(serving.guid);
    const CapabilityRecord& capability = found->second;
    const EntryUse use{capability, taken_[serving.guid]};
    if (uint64_t{use.entries_taken} + capability.entries_reserved >= capability.entries_total) {
      return NoEntryLeft(use);
    }
  }
  return absl::OkStatus();
}

void Contents::Enter(std::shared_ptr<const TreeRecord> tree) {
  for (const TreeSwitchRecord& serving : tree->switches) ++taken_[serving.guid];
  if (!tree->request_id.empty()) tree_requests_[{tree->job, tree->request_id}] = tree->id;
  const TreeId id = tree->id;
  trees_.emplace(id, std::move(tree));
}

std::shared_ptr<const TreeRecord> Contents::TakeOut(TreeId id) {
  const auto it = trees_.find(id);
  std::shared_ptr<const TreeRecord> tree = std::move(it->second);
  trees_.erase(it);
  tree_requests_.erase({tree->job, tree->request_id});
  Release(*tree);
  return tree;
}

absl::Status Contents::Do(GrantTree& grant) {
  RETURN_IF_ERROR(CheckGrant(*grant.tree));
  last_tree_ = std::max(last_tree_, grant.tree->id);
  Enter(std::move(grant.tree));
  return absl::OkStatus();
}

absl::Status Contents::Do(ReleaseTree& release) {
  auto tree = trees_.find(release.tree);
  if (tree == trees_.end() || tree->second->job != release.job) {
    return NoSuchTree(release.tree, release.job);
  }
  TakeOut(release.tree);
  return absl::OkStatus();
}

absl::Status Contents::CheckLeaving(const ChangeTrees& change) const {
  for (const auto& [id, job] : change.revoked) {
    const auto tree = trees_.find(id);
    if (tree == trees_.end() || tree->second->job != job) return NoSuchTree(id, job);
  }
  for (const std::shared_ptr<const TreeRecord>& next : change.revised) {
    const auto tree = trees_.find(next->id);
    if (tree == trees_.end()) return NoSuchTree(next->id, next->job);
    const TreeRecord& stored = *tree->second;
    if (std::tie(stored.job, stored.request_id, stored.request_fingerprint, stored.created) !=
        std::tie(next->job, next->request_id, next->request_fingerprint, next->created)) {
      return NotTheSameTree(next->id);
    }
    if (next->revision != stored.revision + 1) return NotTheNextRevision(*next, stored.revision);
  }
  return absl::OkStatus();
}

absl::Status Contents::Do(ChangeTrees& change) {
  RETURN_IF_ERROR(CheckLeaving(change));
  std::vector<std::shared_ptr<const TreeRecord>> left;
  for (const auto& [id, job] : change.revoked) left.push_back(TakeOut(id));
  for (const auto& next : change.revised) left.push_back(TakeOut(next->id));
  std::vector<TreeId> entered;
  absl::Status status;
  TreeId last = last_tree_;
  for (const auto* trees : {&change.revised, &change.granted}) {
    for (const std::shared_ptr<const TreeRecord>& tree : *trees) {
      if (status.ok()) status = CheckGrant(*tree);
      if (!status.ok()) break;
      Enter(tree);
      entered.push_back(tree->id);
      last = std::max(last, tree->id);
    }
  }
  if (status.ok()) {
    last_tree_ = last;
    return status;
  }
  for (const TreeId id : entered) TakeOut(id);
  for (std::shared_ptr<const TreeRecord>& tree : left) Enter(std::move(tree));
  return status;
}

absl::Status Contents::Do(PutCapabilities& put) {
  absl::btree_map<Guid, CapabilityRecord> replaced;
  for (CapabilityRecord record : put.capabilities) {
    const uint32_t taken = taken_[record.guid];
    if (taken > 0) {
      record.entries_total = std::max(record.entries_total, record.entries_reserved + taken);
    }
    replaced[record.guid] = record;
  }
  for (const auto& [guid, record] : capabilities_) {
    if (taken_[guid] > 0) replaced.emplace(guid, record);
  }
  capabilities_ = std::move(replaced);
  return absl::OkStatus();
}

absl::Status Contents::Do(PutProfile& put) {
  profile_toml_ = std::move(put.toml);
  return absl::OkStatus();
}

absl::Status Contents::Do(PutQuota& put) {
  const auto key = std::tuple(put.quota.kind, put.quota.holder, put.quota.limit);
  quotas_.erase(key);
  if (!put.drop) quotas_.emplace(key, std::move(put.quota));
  return absl::OkStatus();
}

void Contents::Enter(DeedRecord deed, const DeedLimits& limits) {
  KeptDeeds::Changes changes;
  deed.id = kept_deeds_.last() + 1;
  deed.first = std::min(deed.first, deed.time);
  kept_deeds_.Enter(deed, limits, changes);
  deeds_.emplace(deed.id, std::move(deed));
  for (const KeptDeeds::Changes::Folded& folded : changes.folded) {
    DeedRecord& row = deeds_.at(folded.id);
    row.count = folded.count;
    row.first = folded.first;
  }
  for (const int64_t id : changes.gone) deeds_.erase(id);
}

absl::Status Contents::Do(AppendDeeds& append) {
  for (DeedRecord& deed : append.deeds) Enter(std::move(deed), append.limits);
  return absl::OkStatus();
}

absl::Status Contents::Do(PutInventory& put) {
  absl::flat_hash_set<Guid> added;
  for (const NodeRecord& node : put.nodes) added.insert(node.guid);
  for (const PortRecord& port : put.ports) {
    RETURN_IF_ERROR(CheckNode(port.node, added, absl::StrCat("port ", port.port)));
  }
  for (const LinkRecord& given : put.links) {
    const LinkRecord link = Ordered(given);
    const std::string name = absl::StrCat("link ", LinkName(link));
    RETURN_IF_ERROR(CheckNode(link.node_a, added, name));
    RETURN_IF_ERROR(CheckNode(link.node_b, added, name));
  }
  nodes_.insert(added.begin(), added.end());
  for (const LinkRecord& link : put.links) {
    links_.emplace(KeyOf(link), static_cast<int64_t>(links_.size()) + 1);
  }
  last_fabric_version_ = std::max(last_fabric_version_, put.fabric_version);
  return absl::OkStatus();
}

absl::Status Contents::Do(AppendEvents& append) {
  std::map<int64_t, EventRecord> added;
  int64_t last = last_event_;
  for (EventRecord& event : append.events) {
    if (event.id == 0) event.id = last + 1;
    last = std::max(last, event.id);
    const int64_t id = event.id;
    if (events_.contains(id) || !added.emplace(id, std::move(event)).second) {
      return EventIdTaken(id);
    }
  }
  last_event_ = last;
  events_.merge(added);
  for (size_t i = 0; i < 2 * append.events.size() && !events_.empty(); ++i) {
    if (events_.begin()->first > last_event_ - append.keep) break;
    events_.erase(events_.begin());
  }
  return absl::OkStatus();
}

absl::Status Contents::Do(PutCounters& put) {
  for (const LinkLoadRecord& load : put.loads) {
    // Ids are given from 1 on, and links stay.
    const bool is_known = load.link >= 1 && load.link <= static_cast<int64_t>(links_.size());
    if (!is_known) return NoSuchLinkId(load.link);
  }
  return measurements_.Put(put);
}

absl::Status Contents::Do(PruneEvents& prune) {
  for (uint32_t i = 0; i < prune.rows && !events_.empty(); ++i) {
    const auto oldest = events_.begin();
    const bool is_kept = oldest->first > last_event_ - prune.keep;
    if (is_kept && oldest->second.time >= prune.before) break;
    events_.erase(oldest);
  }
  return absl::OkStatus();
}

absl::Status Contents::Do(PruneJobs& prune) {
  const auto counts = [&](const std::pair<absl::Time, JobId>& row) {
    return !prune.owner.has_value() || jobs_.at(row.second).owner == prune.owner;
  };
  int64_t count = std::count_if(ended_jobs_.begin(), ended_jobs_.end(), counts);
  uint32_t dropped = 0;
  for (auto row = ended_jobs_.begin(); row != ended_jobs_.end() && dropped < prune.rows;) {
    if (!counts(*row)) {
      ++row;
      continue;
    }
    const auto [ended, id] = *row;
    if (count <= prune.keep && ended >= prune.before) break;
    const JobRecord& job = jobs_.at(id);
    kept_ranks_.Leave(job.owner, ended, id, BytesOfRanks(job.endpoints.size()));
    job_requests_.erase(RequestOf(job));
    jobs_.erase(id);
    row = ended_jobs_.erase(row);
    --count;
    ++dropped;
  }
  return absl::OkStatus();
}

StoredState Contents::Load() const {
  StoredState state;
  for (const auto& [id, job] : jobs_) {
    if (job.state == JobState::kActive) state.jobs.push_back(job);
  }
  for (const auto& [id, tree] : trees_) state.trees.push_back(*tree);
  state.entries = Entries();
  state.placements = placements_.Holding([this](JobId job) { return IsActive(job); });
  state.last_placement = placements_.last();
  state.last_job = last_job_;
  state.last_tree = last_tree_;
  state.last_fabric_version = last_fabric_version_;
  state.profile_toml = profile_toml_;
  for (const auto& [key, quota] : quotas_) state.quotas.push_back(quota);
  return state;
}

std::vector<EntryUse> Contents::Entries() const {
  std::vector<EntryUse> entries;
  for (const auto& [guid, capability] : capabilities_) {
    auto taken = taken_.find(guid);
    entries.push_back({capability, taken == taken_.end() ? 0 : taken->second});
  }
  return entries;
}

std::vector<EventRecord> Contents::Events(const EventFilter& filter) const {
  std::vector<EventRecord> found;
  for (auto event = events_.upper_bound(filter.after_id);
       event != events_.end() && found.size() < filter.limit; ++event) {
    if (Matches(filter, event->second)) found.push_back(event->second);
  }
  return found;
}

std::vector<DeedRecord> Contents::Deeds(const DeedFilter& filter) const {
  std::vector<DeedRecord> found;
  for (auto deed = deeds_.upper_bound(filter.after_id);
       deed != deeds_.end() && found.size() < filter.limit; ++deed) {
    if (Matches(filter, deed->second)) found.push_back(deed->second);
  }
  return found;
}

absl::StatusOr<JobRecord> Contents::GetJob(JobId id) const {
  auto job = jobs_.find(id);
  if (job == jobs_.end()) return NoSuchJob(id);
  return job->second;
}

std::vector<OwnedJobs> Contents::EndedJobsOfOwners() const {
  std::map<std::string, int64_t> count;
  for (const auto& [ended, id] : ended_jobs_) ++count[jobs_.at(id).owner];
  std::vector<OwnedJobs> owners;
  for (const auto& [owner, jobs] : count) owners.push_back({owner, jobs});
  return owners;
}

int64_t Contents::EndedJobs(absl::Time before) const {
  return std::distance(ended_jobs_.begin(), ended_jobs_.lower_bound({before, JobId()}));
}

absl::StatusOr<std::vector<int64_t>> Contents::LinkIds(const std::vector<LinkRecord>& links) const {
  std::vector<int64_t> ids;
  for (const LinkRecord& link : links) {
    auto found = links_.find(KeyOf(link));
    if (found == links_.end()) return NoSuchLink(link);
    ids.push_back(found->second);
  }
  return ids;
}

}  // namespace

class MemoryStore::Impl {
 public:
  Impl() : writer_([this](absl::Span<PendingMutation> group) { return Apply(group); }) {}

  void Submit(Mutation mutation, Done done) {
    writer_.Submit(std::move(mutation), std::move(done));
  }

  StoreStatistics Statistics() const { return writer_.Statistics(); }

  template <class Question>
  auto Ask(Question question) {
    std::lock_guard lock(mutex_);
    return question(contents_);
  }

 private:
  absl::Status Apply(absl::Span<PendingMutation> group) {
    std::lock_guard lock(mutex_);
    for (PendingMutation& pending : group) pending.status = contents_.Apply(pending.mutation);
    return absl::OkStatus();
  }

  std::mutex mutex_;
  Contents contents_;   // guarded by mutex_
  GroupWriter writer_;  // last: its thread uses the above
};

MemoryStore::MemoryStore() : impl_(std::make_unique<Impl>()) {}
MemoryStore::~MemoryStore() = default;

void MemoryStore::Submit(Mutation mutation, Done done) {
  impl_->Submit(std::move(mutation), std::move(done));
}

absl::StatusOr<StoredState> MemoryStore::Load() {
  return impl_->Ask([](const Contents& contents) { return contents.Load(); });
}

absl::StatusOr<std::vector<EntryUse>> MemoryStore::Entries() {
  return impl_->Ask([](const Contents& contents) { return contents.Entries(); });
}

absl::StatusOr<std::vector<EventRecord>> MemoryStore::Events(const EventFilter& filter) {
  RETURN_IF_ERROR(CheckFilter(filter));
  return impl_->Ask([&](const Contents& contents) { return contents.Events(filter); });
}

absl::StatusOr<EventRange> MemoryStore::KeptEvents() {
  return impl_->Ask([](const Contents& contents) { return contents.KeptEvents(); });
}

absl::StatusOr<JobRecord> MemoryStore::GetJob(JobId id) {
  return impl_->Ask([&](const Contents& contents) { return contents.GetJob(id); });
}

absl::StatusOr<int64_t> MemoryStore::EndedJobs(absl::Time before) {
  return impl_->Ask([&](const Contents& contents) { return contents.EndedJobs(before); });
}

absl::StatusOr<std::vector<OwnedJobs>> MemoryStore::EndedJobsOfOwners() {
  return impl_->Ask([](const Contents& contents) { return contents.EndedJobsOfOwners(); });
}

absl::StatusOr<PlacementRecord> MemoryStore::GetPlacement(PlacementId id) {
  return impl_->Ask([&](const Contents& contents) { return contents.placements().Get(id); });
}

absl::StatusOr<int64_t> MemoryStore::EndedPlacements(absl::Time before) {
  return impl_->Ask([&](const Contents& contents) { return contents.placements().Ended(before); });
}

absl::StatusOr<std::vector<int64_t>> MemoryStore::LinkIds(const std::vector<LinkRecord>& links) {
  return impl_->Ask([&](const Contents& contents) { return contents.LinkIds(links); });
}

absl::StatusOr<StoredLoad> MemoryStore::LoadMeasurements() {
  return impl_->Ask([](const Contents& contents) { return contents.measurements().Load(); });
}

absl::StatusOr<std::vector<PortCounterRecord>> MemoryStore::Counters(Guid node) {
  return impl_->Ask(
      [&](const Contents& contents) { return contents.measurements().Counters(node); });
}

absl::StatusOr<std::vector<HistoryPoint>> MemoryStore::History(const HistoryQuery& query) {
  return impl_->Ask(
      [&](const Contents& contents) { return contents.measurements().History(query); });
}

absl::StatusOr<std::vector<PatternRecord>> MemoryStore::Patterns() {
  return impl_->Ask([](const Contents& contents) { return contents.patterns().List(); });
}

absl::StatusOr<std::string> MemoryStore::PatternData(int64_t id) {
  return impl_->Ask([&](const Contents& contents) { return contents.patterns().Data(id); });
}

absl::StatusOr<std::vector<DistanceRecord>> MemoryStore::Distances() {
  return impl_->Ask([](const Contents& contents) { return contents.distances().List(); });
}

absl::StatusOr<OrderRecord> MemoryStore::GetOrder(JobId job) {
  return impl_->Ask([&](const Contents& contents) { return contents.orders().Get(job); });
}

absl::StatusOr<std::vector<DeedRecord>> MemoryStore::Deeds(const DeedFilter& filter) {
  return impl_->Ask([&](const Contents& contents) { return contents.Deeds(filter); });
}

StoreStatistics MemoryStore::Statistics() { return impl_->Statistics(); }

}  // namespace coppice
