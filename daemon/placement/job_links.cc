// The routes to one destination form a tree, because forwarding knows nothing but the destination:
// a walk ends where an earlier one to the same host has been.
#include "daemon/placement/job_links.h"

#include <algorithm>
#include <utility>

namespace coppice {
namespace {

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
    std::sort(channels_.begin(), channels_.end());
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

EndpointIndex FirstEndpoint(const Fabric& fabric, HostIndex h) {
  const auto endpoints = fabric.endpoints_of_host(h);
  return *std::min_element(endpoints.begin(), endpoints.end());
}

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
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

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
    const VertexIndex to =
        snapshot.fabric->Vertex(FirstEndpoint(*snapshot.fabric, sorted[i].second));
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

}  // namespace coppice
