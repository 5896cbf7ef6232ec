#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/even_routes.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_metrics.h"
#include "daemon/tree/type1_postal.h"

namespace coppice {
namespace {

constexpr uint32_t kMaxInUnit = 4;
constexpr uint32_t kPairsLookedAt = 8;  // to know how far apart the groups of a level are

// One packet up and one down, as the mean over the mix.
struct PacketCost {
  double head_us = 0;     // from the begin of a slot to the packet's leaving
  double gap_us = 0;      // between slots
  double forward_us = 0;  // at the node that forwards, and through the slowest link
};

// Of a longer message the first packet; what follows it is the evaluation's to judge.
PacketCost MeanPacket(const CostProfile& profile, const CollectiveMix& mix, double gbps) {
  PacketCost mean;
  const NodeCost& nic = profile.nic;
  ForEachPayload(mix, [&](const Payload& payload, double weight) {
    const Payload packet = PipelineOf(profile, payload).packet;
    const uint64_t both_bytes = packet.up_bytes + packet.down_bytes;
    const double match = nic.MatchUs(packet.reduced_bytes);
    mean.head_us += weight * (match + nic.send_us);
    mean.gap_us += weight * (std::max(match, WireUs(profile, packet.up_bytes, gbps)) +
                             std::max(nic.send_us, WireUs(profile, packet.down_bytes, gbps)));
    mean.forward_us += weight * (nic.forward_us + nic.ForwardUs(both_bytes));
    if (!profile.forward_includes_serialisation) {
      mean.forward_us += weight * SerialisationUs(both_bytes, gbps);
    }
  });
  return mean;
}

class GroupFinder {
 public:
  GroupFinder(const Snapshot& snapshot, const CostProfile& profile, const TreeRequest& request,
              uint32_t degree)
      : snapshot_(snapshot), profile_(profile), members_(request.members) {
    packet_ =
        MeanPacket(profile, request, CapacityOf(snapshot.fabric->uplink(request.members.front())));
    groups_.gap_us = packet_.gap_us;
    groups_.host_lag_us = packet_.head_us + 2 * profile.same_host_us;
    SortRanks();
    MakeUnits(degree);
    MakeLevels();
    if (!snapshot.load->empty()) FindWaits();
  }

  PostalGroups Take() { return std::move(groups_); }

 private:
  double CapacityOf(ChannelIndex channel) const {
    return channel == kNoChannel ? profile_.port_gbps : KnownCapacity(snapshot_, profile_, channel);
  }

  uint32_t GroupOf(size_t level, uint32_t rank) const {
    return snapshot_.hierarchy->levels[level].group[members_[rank].value()];
  }

  // Groups of every level side by side; ranks ascending in the innermost.
  void SortRanks() {
    std::vector<uint32_t>& ranks = groups_.ranks;
    ranks.resize(members_.size());
    absl::c_iota(ranks, 0U);
    const size_t levels = snapshot_.hierarchy->levels.size();
    const auto before = [&](uint32_t a, uint32_t b) {
      if (members_[a] == members_[b]) return a < b;
      for (size_t level = levels; level-- > 0;) {
        const uint32_t of_a = GroupOf(level, a), of_b = GroupOf(level, b);
        if (of_a != of_b) return of_a < of_b;
      }
      return a < b;
    };
    if (!absl::c_is_sorted(ranks, before)) {
      absl::c_sort(ranks, before);
    }
  }

  // Bundles, if a NIC of `degree` can serve them.
  void MakeUnits(uint32_t degree) {
    const auto count = static_cast<uint32_t>(members_.size());
    std::vector<uint32_t>& begin = groups_.unit_begin;
    begin.reserve(count + 1);
    uint32_t most = 1;
    for (uint32_t i = 0; i < count; ++i) {
      if (i == 0 || GroupOf(0, groups_.ranks[i]) != GroupOf(0, groups_.ranks[i - 1])) {
        begin.push_back(i);
      }
      most = std::max(most, i + 1 - begin.back());
    }
    begin.push_back(count);
    if (most <= kMaxInUnit && degree > most) {
      groups_.most_in_unit = most;
      return;
    }
    begin.resize(count + 1);
    absl::c_iota(begin, 0U);
  }

  // Those that divide the level above and join something of the level below.
  void MakeLevels() {
    const uint32_t units = groups_.unit_count();
    size_t parts = units;
    for (size_t level = 0; level < snapshot_.hierarchy->levels.size(); ++level) {
      PostalGroups::Level found;
      for (uint32_t u = 0; u < units; ++u) {
        const uint32_t rank = groups_.first_rank(u);
        if (u == 0 || GroupOf(level, rank) != GroupOf(level, groups_.first_rank(u - 1))) {
          found.begin.push_back(u);
        }
      }
      found.begin.push_back(units);
      if (found.groups() == parts) continue;
      parts = found.groups();
      AddLevel(std::move(found));
    }
    if (parts > 1) AddLevel({.begin = {0, units}, .lag_us = 0});
    for (size_t l = 1; l < groups_.levels.size(); ++l) {
      groups_.levels[l].lag_us = std::max(groups_.levels[l].lag_us, groups_.levels[l - 1].lag_us);
    }
  }

  void AddLevel(PostalGroups::Level level) {
    level.lag_us = LagOf(level);
    groups_.levels.push_back(std::move(level));
  }

  // The mean over the first neighbours that meet at `level` and no lower.
  double LagOf(const PostalGroups::Level& level) const {
    double sum_us = 0;
    uint32_t pairs = 0;
    for (uint32_t g = 0; g < level.groups() && pairs < kPairsLookedAt; ++g) {
      const uint32_t first = level.begin[g];
      for (uint32_t u = first + 1; u < level.begin[g + 1] && pairs < kPairsLookedAt; ++u) {
        if (MeetLower(first, u)) continue;
        sum_us += LagBetween(groups_.first_rank(first), groups_.first_rank(u));
        ++pairs;
      }
    }
    return packet_.head_us + (pairs > 0 ? sum_us / pairs : 0);
  }

  bool MeetLower(uint32_t a, uint32_t b) const {
    if (groups_.levels.empty()) return false;
    const std::vector<uint32_t>& begin = groups_.levels.back().begin;
    const auto after = absl::c_upper_bound(begin, a);
    return b < *after;  // a < b
  }

  double LagBetween(uint32_t a, uint32_t b) const {
    const Fabric& fabric = *snapshot_.fabric;
    if (fabric.bundle(members_[a]) == fabric.bundle(members_[b])) return 2 * profile_.same_host_us;
    const auto from = fabric.attached_switch(members_[a]), to = fabric.attached_switch(members_[b]);
    uint32_t links = 1;  // back to back
    if (from && to) {
      const uint8_t hops = snapshot_.routes->distances().Between(*from, *to);
      links = 2 + (hops == SwitchDistances::kUnreachable ? 0 : hops);
    }
    return packet_.forward_us + 2 * links * profile_.link_us;
  }

  void FindWaits() {
    for (uint32_t u = 0; u < groups_.unit_count(); ++u) {
      const ChannelIndex up = snapshot_.fabric->uplink(members_[groups_.first_rank(u)]);
      double wait = 0;
      if (up == kNoChannel) {
        groups_.wait_us.push_back(wait);
        continue;
      }
      for (const ChannelIndex channel : {up, Fabric::Reverse(up)}) {
        wait += WaitUs(snapshot_, profile_, channel);
      }
      groups_.wait_us.push_back(wait);
    }
  }

  const Snapshot& snapshot_;
  const CostProfile& profile_;
  const Members members_;
  PacketCost packet_;
  PostalGroups groups_;
};

}  // namespace

PostalGroups FindPostalGroups(const Snapshot& snapshot, const CostProfile& profile,
                              const TreeRequest& request, uint32_t degree) {
  return GroupFinder(snapshot, profile, request, degree).Take();
}

namespace {

constexpr double kBetter = 1 - 1e-9;  // sums in another order differ by less
constexpr size_t kTargets = 4;        // parents tried for one rank
constexpr size_t kAncestors = 3;      // of the last rank, itself included

class Search {
 public:
  Search(const PostalGroups& groups, uint32_t degree, TimeOfParents time_of, double us,
         std::vector<int32_t>& parents)
      : groups_(groups),
        degree_(degree),
        time_of_(time_of),
        us_(us),
        parents_(parents),
        ranks_(static_cast<uint32_t>(parents.size())),
        left_((ranks_ <= kMaxRanksSearchedFully ? kMaxPostalStepsOfFew : kMaxPostalSteps) /
              ranks_) {
    children_ = ChildCounts(parents_);
  }

  double Run() {
    if (ranks_ <= kMaxRanksSearchedFully) {
      while (TryAll()) {
      }
    } else {
      FindPlaces();
      while (TryLast()) {
      }
    }
    return us_;
  }

 private:
  // --- Steps; each true if it made the tree faster.

  bool Try() {
    if (left_ == 0) return false;
    --left_;
    const double us = time_of_(tried_, us_);
    if (!(us < us_ * kBetter)) return false;
    us_ = us;
    parents_ = tried_;
    children_ = ChildCounts(parents_);
    return true;
  }

  bool Move(uint32_t rank, uint32_t parent) {
    if (parents_[rank] < 0 || parents_[rank] == static_cast<int32_t>(parent)) return false;
    if (children_[parent] >= degree_ || IsBelow(parent, rank)) return false;
    tried_ = parents_;
    tried_[rank] = static_cast<int32_t>(parent);
    return Try();
  }

  bool Exchange(uint32_t a, uint32_t b) {
    const auto renamed = [&](uint32_t rank) { return rank == a ? b : rank == b ? a : rank; };
    tried_.resize(ranks_);
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      const int32_t parent = parents_[rank];
      tried_[renamed(rank)] =
          parent < 0 ? parent : static_cast<int32_t>(renamed(static_cast<uint32_t>(parent)));
    }
    return Try();
  }

  bool ReRoot(uint32_t child) {
    const int32_t root = parents_[child];
    if (root < 0 || parents_[root] >= 0 || children_[child] >= degree_) return false;
    tried_ = parents_;
    tried_[child] = -1;
    tried_[root] = static_cast<int32_t>(child);
    return Try();
  }

  // --- Few ranks: the whole neighbourhood.

  bool TryAll() {
    bool better = false;
    for (uint32_t a = 0; a < ranks_; ++a) {
      for (uint32_t b = 0; b < ranks_; ++b) {
        if (a == b) continue;
        better = Move(a, b) || better;
        if (a < b) better = Exchange(a, b) || better;
      }
      better = ReRoot(a) || better;
    }
    return better && left_ > 0;
  }

  // --- More ranks: what the postal model expects to help.

  bool TryLast() {
    Reach();
    const auto last = absl::c_max_element(reached_us_);
    auto rank = static_cast<uint32_t>(last - reached_us_.begin());
    for (size_t i = 0; i < kAncestors && parents_[rank] >= 0; ++i) {
      const auto parent = static_cast<uint32_t>(parents_[rank]);
      if (TryTargets(rank) || TrySiblings(rank, parent)) return true;
      rank = parent;
    }
    return false;
  }

  // The parents that would reach `rank` soonest.
  bool TryTargets(uint32_t rank) {
    targets_.clear();
    for (uint32_t u = 0; u < ranks_; ++u) {
      if (free_us_[u] + least_lag_us_ >= reached_us_[rank] || u == rank) continue;
      const double us = free_us_[u] + Lag(u, rank);
      if (us >= reached_us_[rank] || children_[u] >= degree_ || IsBelow(u, rank)) continue;
      targets_.emplace_back(us, u);
    }
    const size_t some = std::min(kTargets, targets_.size());
    std::partial_sort(targets_.begin(), targets_.begin() + some, targets_.end());
    for (size_t i = 0; i < some; ++i) {
      if (Move(rank, targets_[i].second)) return true;
    }
    return false;
  }

  // Siblings that are served before `rank`, though they have less to serve themselves.
  bool TrySiblings(uint32_t rank, uint32_t parent) {
    size_t tried = 0;
    for (uint32_t other = 0; other < rank && tried < kTargets; ++other) {
      if (parents_[other] != static_cast<int32_t>(parent)) continue;
      if (children_[other] >= children_[rank]) continue;
      ++tried;
      if (Exchange(other, rank)) return true;
    }
    return false;
  }

  // --- The tree at hand in the postal model.

  void Reach() {
    const ChildLists lists = ChildrenOf(parents_);
    reached_us_.assign(ranks_, 0);
    free_us_.assign(ranks_, 0);
    const auto root = absl::c_find(parents_, -1);
    order_.assign(1, static_cast<uint32_t>(root - parents_.begin()));
    for (size_t i = 0; i < order_.size(); ++i) {
      const uint32_t rank = order_[i];
      free_us_[rank] = reached_us_[rank];
      for (const uint32_t child : lists.of(rank)) {
        reached_us_[child] = free_us_[rank] + Lag(rank, child);
        free_us_[rank] += groups_.gap_us;
        order_.push_back(child);
      }
    }
  }

  double Lag(uint32_t a, uint32_t b) const {
    const uint32_t of_a = unit_of_[a], of_b = unit_of_[b];
    if (of_a == of_b) return groups_.host_lag_us;
    const uint32_t* group_of = group_of_.data();
    for (const PostalGroups::Level& level : groups_.levels) {
      if (group_of[of_a] == group_of[of_b]) return level.lag_us;
      group_of += groups_.unit_count();
    }
    return groups_.levels.back().lag_us;
  }

  void FindPlaces() {
    least_lag_us_ = groups_.host_lag_us;
    for (const PostalGroups::Level& level : groups_.levels) {
      least_lag_us_ = std::min(least_lag_us_, level.lag_us);
      for (uint32_t g = 0; g < level.groups(); ++g) {
        group_of_.insert(group_of_.end(), level.begin[g + 1] - level.begin[g], g);
      }
    }
    unit_of_.resize(ranks_);
    for (uint32_t u = 0; u < groups_.unit_count(); ++u) {
      for (uint32_t i = groups_.unit_begin[u]; i < groups_.unit_begin[u + 1]; ++i) {
        unit_of_[groups_.ranks[i]] = u;
      }
    }
  }

  bool IsBelow(uint32_t rank, uint32_t above) const {
    for (auto r = static_cast<int32_t>(rank); r >= 0; r = parents_[r]) {
      if (r == static_cast<int32_t>(above)) return true;
    }
    return false;
  }

  const PostalGroups& groups_;
  const uint32_t degree_;
  const TimeOfParents time_of_;
  double us_;
  std::vector<int32_t>& parents_;  // the best so far
  const uint32_t ranks_;
  uint32_t left_;  // evaluations
  std::vector<int32_t> tried_;
  std::vector<uint32_t> children_;                    // [rank] how many
  std::vector<uint32_t> unit_of_;                     // [rank]
  std::vector<uint32_t> group_of_;                    // [level * units + unit]
  std::vector<double> reached_us_, free_us_;          // [rank] reached; may serve one more
  std::vector<uint32_t> order_;                       // parents before children
  std::vector<std::pair<double, uint32_t>> targets_;  // of the rank at hand: when, from where
  double least_lag_us_ = 0;
};

}  // namespace

double ImprovePostal(const PostalGroups& groups, uint32_t degree, TimeOfParents time_of, double us,
                     std::vector<int32_t>& parents) {
  if (parents.size() < 3 || parents.size() > kMaxRanksSearched) return us;
  return Search(groups, degree, time_of, us, parents).Run();
}

}  // namespace coppice
