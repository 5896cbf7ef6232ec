// Placements in memory, as sqlite_placements.h keeps them in the database.
#ifndef COPPICE_DB_MEMORY_PLACEMENTS_H_
#define COPPICE_DB_MEMORY_PLACEMENTS_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/placement_records.h"
#include "db/refusals.h"

namespace coppice {

// Contracts as of the mutations and of Store.
class MemoryPlacements {
 public:
  absl::Status Put(PutPlacements& put) {
    std::vector<PlacementId> entered;
    for (const PlacementRecord& placement : put.placements) {
      if (absl::Status refusal = Check(placement); !refusal.ok()) {
        for (const PlacementId id : entered) TakeOut(id);
        return refusal;
      }
      Enter(placement);
      entered.push_back(placement.id);
    }
    for (const PlacementId id : entered) last_ = std::max(last_, id);
    return absl::OkStatus();
  }
  absl::Status End(PlacementId id, PlacementState state, absl::Time time, JobId job = JobId()) {
    if (!IsHeld(id)) return NoHeldPlacement(id);
    PlacementRecord& placement = placements_.at(id);
    placement.state = state;
    placement.job = job;
    placement.ended = time;
    ended_.emplace(time, id);
    for (const std::string& node : placement.nodes) nodes_.erase(node);
    return absl::OkStatus();
  }
  template <class IsActive>
  void Prune(const PrunePlacements& prune, IsActive is_active) {
    uint32_t rows = 0;
    for (auto it = ended_.begin(); rows < prune.rows && it != ended_.end();) {
      const auto [time, id] = *it;
      const bool is_kept = static_cast<int64_t>(ended_.size()) <= prune.keep;
      if (is_kept && time >= prune.before) break;
      if (Guards(placements_.at(id), is_active)) {
        ++it;
        continue;
      }
      requests_.erase(RequestOf(placements_.at(id)));
      placements_.erase(id);
      it = ended_.erase(it);
      ++rows;
    }
  }

  bool IsHeld(PlacementId id) const {
    const auto found = placements_.find(id);
    return found != placements_.end() && found->second.state == PlacementState::kHeld;
  }
  template <class IsActive>
  std::vector<PlacementRecord> Holding(IsActive is_active) const {
    std::vector<PlacementRecord> holding;
    for (const auto& [id, placement] : placements_) {
      const bool is_held = placement.state == PlacementState::kHeld;
      if (is_held || Guards(placement, is_active)) holding.push_back(placement);
    }
    return holding;
  }
  absl::StatusOr<PlacementRecord> Get(PlacementId id) const {
    const auto found = placements_.find(id);
    if (found == placements_.end()) return NoSuchPlacement(id);
    return found->second;
  }
  int64_t Ended(absl::Time before) const {
    return std::distance(ended_.begin(), ended_.lower_bound({before, PlacementId()}));
  }
  PlacementId last() const { return last_; }

 private:
  static std::pair<std::string, std::string> RequestOf(const PlacementRecord& placement) {
    return {placement.owner, placement.request_id};
  }
  // Its job's leaf switches are nobody else's.
  template <class IsActive>
  static bool Guards(const PlacementRecord& placement, IsActive is_active) {
    return placement.state == PlacementState::kStarted && placement.is_exclusive &&
           is_active(placement.job);
  }
  absl::Status Check(const PlacementRecord& placement) const {
    if (placements_.contains(placement.id)) return PlacementIdTaken(placement.id);
    if (const auto same = requests_.find(RequestOf(placement)); same != requests_.end()) {
      return PlacementRequestTaken(placement.request_id, same->second);
    }
    for (const std::string& node : placement.nodes) {
      const auto holder = nodes_.find(node);
      if (holder != nodes_.end()) return NodeHeld(node, holder->second);
    }
    return absl::OkStatus();
  }
  void Enter(const PlacementRecord& placement) {
    for (const std::string& node : placement.nodes) nodes_[node] = placement.id;
    if (!placement.request_id.empty()) requests_[RequestOf(placement)] = placement.id;
    PlacementRecord& entered = placements_[placement.id] = placement;
    entered.job = JobId();
    entered.ended = absl::InfiniteFuture();
  }
  void TakeOut(PlacementId id) {
    for (const std::string& node : placements_.at(id).nodes) nodes_.erase(node);
    requests_.erase(RequestOf(placements_.at(id)));
    placements_.erase(id);
  }

  std::map<PlacementId, PlacementRecord> placements_;
  std::set<std::pair<absl::Time, PlacementId>> ended_;
  absl::flat_hash_map<std::pair<std::string, std::string>, PlacementId> requests_;
  absl::flat_hash_map<std::string, PlacementId> nodes_;  // of those held
  PlacementId last_;
};

}  // namespace coppice

#endif  // COPPICE_DB_MEMORY_PLACEMENTS_H_
