#include "daemon/manager/placement/placement_snapshot.h"

#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/placement/placement_metrics.h"

namespace coppice {
namespace {

// Between two questions whether to wait on: nobody tells us that a caller has gone.
constexpr std::chrono::milliseconds kAskAgain(20);

template <class Name>
std::vector<HostIndex> Distinct(const Fabric& fabric, size_t count, Name host_of) {
  std::vector<HostIndex> hosts;
  std::vector<bool> seen(fabric.host_count(), false);
  for (size_t i = 0; i < count; ++i) {
    const std::optional<HostIndex> host = host_of(i);
    if (!host || seen[host->value()]) continue;
    seen[host->value()] = true;
    hosts.push_back(*host);
  }
  return hosts;
}

// Nobody else gets what is left on the leaf switches of these hosts.
void Guard(const PlacementIndex& index, absl::Span<const HostIndex> hosts, Occupancy& occupancy) {
  for (const HostIndex host : hosts) {
    const uint32_t leaf = index.leaf_of(host);
    if (leaf == PlacementIndex::kNone) continue;
    for (const HostIndex beside : index.hosts(leaf)) occupancy.is_placed[beside.value()] = true;
  }
}

}  // namespace

bool NodeHolds::MayTake(const Wish& wish, uint64_t since) const {
  for (const std::string& name : wish.nodes) {
    const auto node = nodes_.find(name);
    if (node != nodes_.end() && (node->second.is_held || node->second.taken > since)) return false;
  }
  for (const Guid guid : wish.leaves) {
    const auto found = leaves_.find(guid);
    if (found == leaves_.end()) continue;
    const Leaf& leaf = found->second;
    if (leaf.exclusive_users > 0 || leaf.used_alone > since) return false;
    if (wish.is_exclusive && (leaf.users > 0 || leaf.used > since)) return false;
  }
  return true;
}

void NodeHolds::Hold(const Wish& wish) {
  for (const std::string& name : wish.nodes) nodes_[name].is_held = true;
  for (const Guid guid : wish.leaves) {
    Leaf& leaf = leaves_[guid];
    ++leaf.users;
    if (wish.is_exclusive) ++leaf.exclusive_users;
  }
  count_ += wish.nodes.size();
}

void NodeHolds::Stamp(const Wish& wish) {
  for (const std::string& name : wish.nodes) nodes_[name].taken = generation_;
  for (const Guid guid : wish.leaves) {
    Leaf& leaf = leaves_[guid];
    leaf.used = generation_;
    if (wish.is_exclusive) leaf.used_alone = generation_;
  }
}

bool NodeHolds::TakeAll(const std::vector<const Wish*>& wishes, uint64_t since) {
  for (size_t i = 0; i < wishes.size(); ++i) {
    if (MayTake(*wishes[i], since)) {
      Hold(*wishes[i]);
      continue;
    }
    while (i-- > 0) Free(*wishes[i]);
    return false;
  }
  ++generation_;
  for (const Wish* const wish : wishes) Stamp(*wish);
  return true;
}

void NodeHolds::Restore(const Wish& wish) {
  Hold(wish);
  Stamp(wish);
}

void NodeHolds::Free(const Wish& wish) {
  for (const std::string& name : wish.nodes) nodes_[name].is_held = false;
  for (const Guid guid : wish.leaves) {
    Leaf& leaf = leaves_[guid];
    --leaf.users;
    if (wish.is_exclusive) --leaf.exclusive_users;
  }
  count_ -= wish.nodes.size();
}

absl::Status PlacementTurns::WaitUntil(std::unique_lock<std::mutex>& lock, const MayWait& may_wait,
                                       absl::FunctionRef<bool()> is_due) {
  absl::Status status;
  ++waiting_;
  while (status.ok() && !is_due()) {
    changed_.wait_for(lock, kAskAgain);
    lock.unlock();
    status = may_wait();
    lock.lock();
  }
  --waiting_;
  return status;
}

absl::StatusOr<PlacementTurns::Turn> PlacementTurns::Begin(const MayWait& may_wait) {
  std::unique_lock lock(mu_);
  const uint64_t own = ++last_;
  asked_.push_back(own);
  const absl::Status status = WaitUntil(lock, may_wait, [&] { return asked_.front() == own; });
  if (status.ok()) return Turn(this);
  std::erase(asked_, own);
  changed_.notify_all();
  return status;
}

void PlacementTurns::End() {
  std::lock_guard lock(mu_);
  asked_.pop_front();
  changed_.notify_all();
}

absl::StatusOr<bool> PlacementTurns::Take(bool has_turn, const MayWait& may_wait,
                                          absl::FunctionRef<bool()> take) {
  std::unique_lock lock(mu_);
  if (!has_turn) {
    RETURN_IF_ERROR(WaitUntil(lock, may_wait, [&] { return asked_.empty(); }));
  }
  return take();
}

uint32_t PlacementTurns::waiting() const {
  std::lock_guard lock(mu_);
  return waiting_;
}

std::vector<HostIndex> HostsOfJob(const Fabric& fabric, const JobRecord& job) {
  return Distinct(fabric, job.endpoints.size(), [&](size_t i) -> std::optional<HostIndex> {
    const std::optional<EndpointIndex> endpoint = fabric.FindEndpoint(job.endpoints[i]);
    if (!endpoint) return std::nullopt;
    return fabric.host(*endpoint);
  });
}

std::vector<HostIndex> HostsOfPlacement(const Fabric& fabric, const PlacementRecord& placement) {
  return Distinct(fabric, placement.nodes.size(),
                  [&](size_t i) { return fabric.FindHost(placement.nodes[i]); });
}

std::vector<Guid> LeavesOf(const PlacementIndex& index, absl::Span<const HostIndex> hosts) {
  absl::flat_hash_set<uint32_t> leaves;
  for (const HostIndex host : hosts) leaves.insert(index.leaf_of(host));
  std::vector<Guid> guids;
  for (const uint32_t leaf : leaves) {
    if (leaf == PlacementIndex::kNone) continue;
    const std::optional<SwitchIndex> at = index.switch_of(leaf);
    if (at) guids.push_back(index.fabric().switch_info(*at).guid);
  }
  return guids;
}

void PlacementSnapshot::Add(absl::Span<const HostIndex> hosts, bool is_exclusive,
                            std::string holder) {
  const uint32_t number = holders.empty() ? 1 : holders.rbegin()->first + 1;
  for (const HostIndex host : hosts) {
    if (occupancy.holder[host.value()] == Occupancy::kFree) {
      occupancy.holder[host.value()] = number;
    }
    occupancy.is_placed[host.value()] = true;
  }
  if (is_exclusive) Guard(*index, hosts, occupancy);
  AddHolder(snapshot, *index, hosts, occupancy.channel_users);
  holders.emplace(number, std::move(holder));
}

void PlacementSnapshotKeeper::MarkExclusive(JobId job) {
  std::lock_guard lock(mu_);
  exclusive_jobs_.insert(job);
}

void PlacementSnapshotKeeper::Begin(const FabricView& view) {
  fabric_ = view.snapshot->fabric;
  routes_ = view.snapshot->routes;
  index_ = PlacementIndex::Make(*view.snapshot);
  partitions_ = FindHostPartitions(*view.snapshot);
  holders_.clear();
  labels_.clear();
  numbers_of_.assign(fabric_->host_count(), {});
  channel_users_.assign(fabric_->channel_count(), 0);
  last_number_ = 0;
}

void PlacementSnapshotKeeper::Add(Key key, Holder holder) {
  if (holders_.contains(key)) return;
  holder.number = ++last_number_;
  Snapshot snapshot = *view_->snapshot;
  holder.channels = JobChannels(snapshot, *index_, holder.hosts);
  for (const ChannelIndex c : holder.channels) ++channel_users_[c.value()];
  for (const HostIndex host : holder.hosts) numbers_of_[host.value()].push_back(holder.number);
  labels_.emplace(holder.number, holder.label);
  holders_.emplace(key, std::move(holder));
}

void PlacementSnapshotKeeper::Remove(Key key) {
  const auto found = holders_.find(key);
  if (found == holders_.end()) return;
  const Holder& holder = found->second;
  for (const ChannelIndex c : holder.channels) --channel_users_[c.value()];
  for (const HostIndex host : holder.hosts) std::erase(numbers_of_[host.value()], holder.number);
  labels_.erase(holder.number);
  holders_.erase(found);
}

void PlacementSnapshotKeeper::RemoveBut(bool are_placements,
                                        const absl::flat_hash_set<int64_t>& kept) {
  std::vector<Key> gone;
  for (const auto& [key, holder] : holders_) {
    if (key.first == are_placements && !kept.contains(key.second)) gone.push_back(key);
  }
  for (const Key& key : gone) Remove(key);
}

void PlacementSnapshotKeeper::AddJob(const JobRecord& job) {
  Holder holder;
  holder.label = absl::StrCat("job:", job.id.value(), " of ", job.owner);
  holder.hosts = HostsOfJob(*fabric_, job);
  holder.is_exclusive = exclusive_jobs_.contains(job.id);
  Add({false, job.id.value()}, std::move(holder));
}

void PlacementSnapshotKeeper::AddPlacement(const PlacementRecord& placement) {
  Holder holder;
  holder.label = absl::StrCat("placement:", placement.id.value(), " of ", placement.owner);
  holder.hosts = HostsOfPlacement(*fabric_, placement);
  holder.is_exclusive = placement.is_exclusive;
  Add({true, placement.id.value()}, std::move(holder));
}

// Takes the view, and follows the jobs since the last call, or lists them all.
absl::Status PlacementSnapshotKeeper::Follow(PlacementSnapshot& placing) {
  JobTable::Changes changes;
  bool begins = false;
  {
    std::lock_guard lock(tables_->mu);
    if (tables_->view == nullptr) return NoFabricError();
    placing.view = tables_->view;
    placing.snapshot.load = tables_->load.Current();
    for (const SwitchCapacity& capacity : tables_->entries.capacity()) {
      placing.occupancy.entries_left.push_back(capacity.entries_free);
    }
    const Snapshot& snapshot = *placing.view->snapshot;
    begins = snapshot.fabric != fabric_ || snapshot.routes != routes_;
    changes = tables_->jobs.TakeChanges(begins);
  }
  view_ = placing.view;
  if (begins) Begin(*view_);
  for (const JobId job : changes.removed) {
    Remove({false, job.value()});
    exclusive_jobs_.erase(job);
  }
  if (changes.is_all) {
    absl::flat_hash_set<int64_t> active;
    for (const auto& [id, job] : changes.added) active.insert(id.value());
    RemoveBut(/*are_placements=*/false, active);
  }
  for (const auto& [id, job] : changes.added) AddJob(*job);
  return absl::OkStatus();
}

absl::StatusOr<PlacementSnapshot> PlacementSnapshotKeeper::Compose(Holding holding) {
  PlacementSnapshot placing;
  RETURN_IF_ERROR(Follow(placing));
  std::shared_ptr<const LinkLoad> load = std::move(placing.snapshot.load);
  placing.snapshot = *view_->snapshot;
  placing.snapshot.load = std::move(load);
  absl::flat_hash_set<int64_t> holds;
  for (const auto& placement : holding.placements) holds.insert(placement->id.value());
  RemoveBut(/*are_placements=*/true, holds);
  for (const auto& placement : holding.placements) {
    if (!holders_.contains(Key(true, placement->id.value()))) AddPlacement(*placement);
  }
  placing.index = index_;
  placing.partitions = partitions_;
  placing.generation = holding.generation;
  placing.holders = labels_;
  Occupancy& occupancy = placing.occupancy;
  occupancy.holder.resize(fabric_->host_count(), Occupancy::kFree);
  for (uint32_t h = 0; h < fabric_->host_count(); ++h) {
    if (!numbers_of_[h].empty()) occupancy.holder[h] = numbers_of_[h].front();
  }
  occupancy.is_placed.resize(fabric_->host_count(), false);
  occupancy.is_out.resize(fabric_->host_count(), false);
  for (const auto& [key, holder] : holders_) {
    if (key.first) {
      for (const HostIndex host : holder.hosts) occupancy.is_placed[host.value()] = true;
    }
    if (holder.is_exclusive) Guard(*index_, holder.hosts, occupancy);
  }
  occupancy.channel_users = channel_users_;
  return placing;
}

bool PlacementSnapshotKeeper::IsStillFree(const PlacementSnapshot& placing,
                                          absl::Span<const Chosen> plan) {
  std::lock_guard lock(mu_);
  PlacementSnapshot now;
  if (!Follow(now).ok() || fabric_->version() != placing.snapshot.fabric->version()) return false;
  for (const Chosen& chosen : plan) {
    for (const HostIndex host : chosen.hosts) {
      if (!chosen.is_named && !numbers_of_[host.value()].empty()) return false;
      const uint32_t leaf = index_->leaf_of(host);
      if (!chosen.is_exclusive || leaf == PlacementIndex::kNone) continue;
      for (const HostIndex beside : index_->hosts(leaf)) {
        const bool was_free = placing.occupancy.holder[beside.value()] == Occupancy::kFree;
        if (was_free && !numbers_of_[beside.value()].empty()) return false;
      }
    }
  }
  return true;
}

absl::StatusOr<std::shared_ptr<const PlacementIndex>> PlacementSnapshotKeeper::Index() {
  std::lock_guard lock(mu_);
  PlacementSnapshot placing;
  RETURN_IF_ERROR(Follow(placing));
  return index_;
}

}  // namespace coppice
