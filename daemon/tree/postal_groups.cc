#include "daemon/tree/postal_groups.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "daemon/tree/cost_profile.h"
#include "daemon/tree/even_routes.h"
#include "daemon/tree/pipelining.h"

namespace coppice {
namespace {

constexpr uint32_t kMaxInUnit = 4;
constexpr uint32_t kPairsLookedAt = 8;  // to know how far apart the groups of a level are

double TransferUs(double bytes, double gbps) { return gbps > 0 ? bytes * 8e-3 / gbps : 0; }

// One packet up and one down, as the mean over the mix.
struct PacketCost {
  double head_us = 0;     // from the begin of a slot to the packet's leaving
  double gap_us = 0;      // between slots
  double forward_us = 0;  // at the node that forwards, and through the slowest link
};

PacketCost MeanPacket(const CostProfile& profile, const TreeRequest& request, double gbps) {
  PacketCost mean;
  double total_weight = 0;
  for (const SizeShare& share : request.sizes) total_weight += share.weight;
  for (const SizeShare& share : request.sizes) {
    const double weight = total_weight > 0 ? share.weight / total_weight
                                           : 1.0 / static_cast<double>(request.sizes.size());
    // Of a longer message the first packet; what follows it is the evaluation's to judge.
    const uint64_t bytes =
        profile.mtu_bytes > 0 ? std::min<uint64_t>(share.bytes, profile.mtu_bytes) : share.bytes;
    const Payload payload = PayloadOf(request.operation, bytes);
    const auto up = static_cast<double>(payload.up_bytes);
    const auto down = static_cast<double>(payload.down_bytes);
    const NodeCost& nic = profile.nic;
    const double match =
        nic.match_us + static_cast<double>(payload.reduced_bytes) * nic.reduce_us_per_byte;
    mean.head_us += weight * (match + nic.send_us);
    mean.gap_us += weight * (std::max(match, WireUs(profile, payload.up_bytes, gbps)) +
                             std::max(nic.send_us, WireUs(profile, payload.down_bytes, gbps)));
    mean.forward_us += weight * (2 * nic.forward_us + (up + down) * nic.forward_us_per_byte);
    if (!profile.forward_includes_serialisation) {
      mean.forward_us += weight * TransferUs(up + down, gbps);
    }
  }
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
    std::iota(ranks.begin(), ranks.end(), 0U);
    const size_t levels = snapshot_.hierarchy->levels.size();
    const auto before = [&](uint32_t a, uint32_t b) {
      if (members_[a] == members_[b]) return a < b;
      for (size_t level = levels; level-- > 0;) {
        const uint32_t of_a = GroupOf(level, a), of_b = GroupOf(level, b);
        if (of_a != of_b) return of_a < of_b;
      }
      return a < b;
    };
    if (!std::is_sorted(ranks.begin(), ranks.end(), before)) {
      std::sort(ranks.begin(), ranks.end(), before);
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
    std::iota(begin.begin(), begin.end(), 0U);
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
    const auto after = std::upper_bound(begin.begin(), begin.end(), a);
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
        const double busy = std::clamp<double>(snapshot_.utilisation(channel), 0, kMaxUtilisation);
        wait += TransferUs(profile_.mtu_bytes, CapacityOf(channel)) * busy / (2 * (1 - busy));
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

}  // namespace coppice
