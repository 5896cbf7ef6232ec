#include "daemon/placement/placement_metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "daemon/placement/placement_index.h"
#include "daemon/placement/placement_request.h"

namespace coppice {
namespace {

// The routes to one destination form a tree, because forwarding knows nothing but the destination:
// a walk ends where an earlier one to the same host has been.
class ChannelCollector {
 public:
  explicit ChannelCollector(const Snapshot& snapshot)
      : fabric_(*snapshot.fabric),
        routes_(*snapshot.routes),
        seen_at_(fabric_.switch_count(), 0),
        used_(fabric_.channel_count(), false) {}

  void BeginDestination() { ++destination_; }

  // From a leaf switch to a host's endpoint; the walk of a broken route ends where it breaks off.
  void Walk(SwitchIndex from, VertexIndex to) {
    for (VertexIndex here = fabric_.Vertex(from); fabric_.IsSwitch(here);) {
      uint32_t& seen = seen_at_[here.value()];
      if (seen == destination_) return;
      seen = destination_;
      const ChannelIndex channel = routes_.NextChannel(fabric_.AsSwitch(here), to);
      if (channel == kNoChannel) return;
      here = fabric_.channel_to(channel);
      if (!fabric_.IsSwitch(here) || used_[channel.value()]) continue;
      used_[channel.value()] = true;
      channels_.push_back(channel);
    }
  }

  std::vector<ChannelIndex> Take() {
    absl::c_sort(channels_);
    return std::move(channels_);
  }

 private:
  const Fabric& fabric_;
  const Routes& routes_;
  std::vector<uint32_t> seen_at_;  // [switch] the last destination whose walks met it
  std::vector<bool> used_;         // [channel]
  std::vector<ChannelIndex> channels_;
  uint32_t destination_ = 0;
};

// The job's hosts sorted by leaf switch, those without one left out: (leaf, host).
std::vector<std::pair<uint32_t, HostIndex>> ByLeaf(const PlacementIndex& index,
                                                   absl::Span<const HostIndex> hosts) {
  std::vector<std::pair<uint32_t, HostIndex>> sorted;
  sorted.reserve(hosts.size());
  for (const HostIndex h : hosts) {
    if (index.leaf_of(h) != PlacementIndex::kNone && index.switch_of(index.leaf_of(h))) {
      sorted.emplace_back(index.leaf_of(h), h);
    }
  }
  absl::c_sort(sorted);
  return sorted;
}

// (leaf switch, hosts on it), by number.
using Shares = std::vector<std::pair<uint32_t, uint32_t>>;

Shares SharesOf(const PlacementIndex& index, absl::Span<const HostIndex> hosts) {
  std::vector<uint32_t> leaves;
  for (const HostIndex h : hosts) leaves.push_back(index.leaf_of(h));
  absl::c_sort(leaves);
  Shares shares;
  for (const uint32_t leaf : leaves) {
    if (shares.empty() || shares.back().first != leaf) shares.emplace_back(leaf, 0);
    ++shares.back().second;
  }
  return shares;
}

uint32_t CountPods(const PlacementIndex& index, const Shares& shares) {
  uint32_t pods = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    pods += i == 0 || index.pod_of(shares[i].first) != index.pod_of(shares[i - 1].first) ? 1 : 0;
  }
  return pods;
}

double TotalDistance(const PlacementIndex& index, const Shares& shares) {
  double total = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    const auto [leaf, count] = shares[i];
    total += 0.5 * count * (count - 1.0) * index.hops_within(leaf);
    for (size_t j = i + 1; j < shares.size(); ++j) {
      total += double{1} * count * shares[j].second * index.Hops(leaf, shares[j].first);
    }
  }
  return total;
}

// How many more leaf switches have held and free hosts after the placement than before.
int32_t Fragmentation(const PlacementIndex& index, const Occupancy& occupancy,
                      const PlacementRequest& request, const Shares& shares) {
  std::vector<bool> named;
  if (!request.constraints.candidates.empty()) {
    named.resize(index.host_count(), false);
    for (const HostIndex h : request.constraints.candidates) named[h.value()] = true;
  }
  int32_t more = 0;
  for (const auto& [leaf, count] : shares) {
    uint32_t held = 0, free = 0;
    for (const HostIndex h : index.hosts(leaf)) {
      const uint32_t i = h.value();
      if (!occupancy.is_out.empty() && occupancy.is_out[i]) continue;
      const bool placed = !occupancy.is_placed.empty() && occupancy.is_placed[i];
      const bool unheld = occupancy.holder[i] == Occupancy::kFree || (!named.empty() && named[i]);
      ++(unheld && !placed ? free : held);
    }
    more += free > count ? 1 : 0;
    more -= held > 0 && free > 0 ? 1 : 0;
  }
  return more;
}

void MeasureLinks(const Snapshot& snapshot, const PlacementIndex& index, const Occupancy& occupancy,
                  absl::Span<const HostIndex> hosts, PlacementMeasures& m) {
  const bool users_known = !occupancy.channel_users.empty();
  if (!users_known && snapshot.load->empty()) return;
  const std::vector<ChannelIndex> channels = JobChannels(snapshot, index, hosts);
  LinkIndex last_shared(UINT32_MAX);
  double load = 0;
  for (const ChannelIndex c : channels) {  // both directions of a link follow each other
    const double utilisation = snapshot.utilisation(c);
    load += utilisation;
    m.most_load = std::max(m.most_load, utilisation);
    if (!users_known || occupancy.channel_users[c.value()] == 0) continue;
    const LinkIndex link = Fabric::link_of(c);
    m.shared_links += link == last_shared ? 0 : 1;
    last_shared = link;
  }
  m.mean_load = channels.empty() ? 0 : load / static_cast<double>(channels.size());
}

// The switch nearest to all of `leaves`, by its greatest distance to any, that has most entries
// left: how many these are. Rows are those of classes, among which a leaf switch itself is 0 and
// another one of its class 2 away.
uint32_t MostEntriesOfRoots(const Snapshot& snapshot, const PlacementIndex& index,
                            const Occupancy& occupancy, absl::Span<const uint32_t> leaves) {
  const SwitchDistances& distances = snapshot.routes->distances();
  const TwinClasses& twins = distances.classes();
  std::vector<uint32_t> members(twins.class_count(), 0);  // leaves of each class
  std::vector<uint32_t> classes;
  for (const uint32_t leaf : leaves) {
    const auto s = index.switch_of(leaf);
    if (s && members[twins.class_of(*s)]++ == 0) classes.push_back(twins.class_of(*s));
  }
  std::vector<uint8_t> farthest(twins.class_count(), 0);
  for (const uint32_t c : classes) {
    const absl::Span<const uint8_t> row = distances.ClassRowTo(c);
    for (uint32_t i = 0; i < farthest.size(); ++i) farthest[i] = std::max(farthest[i], row[i]);
    farthest[c] = std::max<uint8_t>(farthest[c], 2);  // from all members but itself
  }
  uint8_t least = SwitchDistances::kUnreachable;
  uint32_t most = 0;
  for (uint32_t s = 0; s < snapshot.fabric->switch_count(); ++s) {
    const uint8_t far = farthest[twins.class_of(SwitchIndex(s))];
    if (far > least) continue;
    most = far < least ? occupancy.entries_left[s] : std::max(most, occupancy.entries_left[s]);
    least = far;
  }
  return most;
}

}  // namespace

PlacementObjective DefaultObjective() {
  PlacementObjective objective;
  for (const PlacementTerm& term : kPlacementTerms) objective.*term.weight = term.preset;
  return objective;
}

absl::Status CheckObjective(const PlacementObjective& objective) {
  for (const PlacementTerm& term : kPlacementTerms) {
    const double weight = objective.*term.weight;
    if (!std::isfinite(weight) || weight < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the weight ", weight, " of ", term.name, " is not a number from 0 up"));
    }
  }
  return absl::OkStatus();
}

double Cost(const PlacementObjective& objective, const PlacementMeasures& measures) {
  double cost = 0;
  for (const PlacementTerm& term : kPlacementTerms) {
    cost += objective.*term.weight * term.measure.Of(measures);
  }
  return cost;
}

std::vector<ChannelIndex> JobChannels(const Snapshot& snapshot, const PlacementIndex& index,
                                      absl::Span<const HostIndex> hosts) {
  const std::vector<std::pair<uint32_t, HostIndex>> sorted = ByLeaf(index, hosts);
  std::vector<SwitchIndex> switches;  // of the leaf switches used
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || sorted[i].first != sorted[i - 1].first) {
      switches.push_back(*index.switch_of(sorted[i].first));
    }
  }
  if (switches.size() < 2) return {};
  ChannelCollector collector(snapshot);
  const auto leaf_count = static_cast<uint32_t>(switches.size());
  uint32_t leaf = 0, position = 0;
  for (size_t i = 0; i < sorted.size(); ++i, ++position) {
    if (i > 0 && sorted[i].first != sorted[i - 1].first) {
      ++leaf;
      position = 0;
    }
    const Fabric& fabric = *snapshot.fabric;
    const VertexIndex to = fabric.Vertex(fabric.endpoints_of_host(sorted[i].second).front());
    collector.BeginDestination();
    ForEachSource(leaf, position, leaf_count, static_cast<uint32_t>(sorted.size()),
                  [&](uint32_t other) { collector.Walk(switches[other], to); });
  }
  return collector.Take();
}

void AddHolder(const Snapshot& snapshot, const PlacementIndex& index,
               absl::Span<const HostIndex> hosts, std::vector<uint32_t>& users) {
  if (users.empty()) users.assign(snapshot.fabric->channel_count(), 0);
  for (const ChannelIndex c : JobChannels(snapshot, index, hosts)) ++users[c.value()];
}

uint32_t SwitchesWithoutEntries(const Snapshot& snapshot, const PlacementIndex& index,
                                const Occupancy& occupancy, uint32_t trees,
                                absl::Span<const uint32_t> leaves) {
  if (trees == 0 || occupancy.entries_left.empty()) return 0;
  uint32_t without = 0;
  for (const uint32_t leaf : leaves) {
    const auto s = index.switch_of(leaf);
    without += s && occupancy.entries_left[s->value()] < trees ? 1 : 0;
  }
  if (leaves.size() < 2) return without;
  return without + (MostEntriesOfRoots(snapshot, index, occupancy, leaves) < trees ? 1 : 0);
}

PlacementMeasures MeasurePlacement(const Snapshot& snapshot, const PlacementIndex& index,
                                   const Occupancy& occupancy, const PlacementRequest& request,
                                   absl::Span<const HostIndex> hosts) {
  PlacementMeasures m;
  const Shares shares = SharesOf(index, hosts);
  m.leaf_switches = static_cast<uint32_t>(shares.size());
  m.pods = CountPods(index, shares);
  m.total_distance = TotalDistance(index, shares);
  const double n = static_cast<double>(hosts.size());
  m.mean_distance = n > 1 ? m.total_distance / (n * (n - 1) / 2) : 0;
  MeasureLinks(snapshot, index, occupancy, hosts, m);
  std::vector<uint32_t> leaves;
  for (const auto& [leaf, count] : shares) leaves.push_back(leaf);
  m.switches_without_entries =
      SwitchesWithoutEntries(snapshot, index, occupancy, request.trees, leaves);
  m.fragmentation = Fragmentation(index, occupancy, request, shares);
  m.cost = Cost(request.objective, m);
  return m;
}

}  // namespace coppice
