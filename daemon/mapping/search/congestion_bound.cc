#include "daemon/mapping/search/congestion_bound.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "daemon/mapping/link_traffic.h"

namespace coppice {
namespace {

enum class Direction : uint8_t { kOut, kIn };

// Hosts of one kind: how many ranks sit on one, and what a port of theirs carries. A host with
// several ports counts each as a place of its own, beside which all of the host's ranks sit.
using HostKind = std::pair<uint32_t, double>;

struct Hosts {
  std::set<HostKind> kinds;
  double capacity = 0;  // of all ports
  uint32_t most_room = 0;
};

Hosts FindHosts(const MappingProblem& problem, absl::Span<const double> capacities,
                Direction direction) {
  const Fabric& fabric = *problem.snapshot->fabric;
  const Places& places = *problem.places;
  absl::flat_hash_map<uint32_t, uint32_t> room;
  for (uint32_t p = 0; p < places.count(); ++p) {
    room[fabric.host(places.endpoint(PlaceIndex(p))).value()] += places.capacity(PlaceIndex(p));
  }
  Hosts hosts;
  for (uint32_t p = 0; p < places.count(); ++p) {
    const EndpointIndex e = places.endpoint(PlaceIndex(p));
    const ChannelIndex out = fabric.channels(fabric.Vertex(e)).front().index;
    const ChannelIndex c = direction == Direction::kOut ? out : Fabric::Reverse(out);
    const uint32_t ranks = room[fabric.host(e).value()];
    hosts.kinds.insert({ranks, capacities[c.value()]});
    hosts.capacity += capacities[c.value()];
    hosts.most_room = std::max(hosts.most_room, ranks);
  }
  return hosts;
}

CongestionBound BoundOf(const MappingProblem& problem, absl::Span<const double> capacities,
                        Direction direction) {
  const Hosts hosts = FindHosts(problem, capacities, direction);
  const absl::string_view verb = direction == Direction::kOut ? "sends" : "receives";
  CongestionBound bound;
  double sum = 0;
  std::vector<double> bytes;
  for (uint32_t r = 0; r < problem.rank_count(); ++r) {
    bytes.clear();
    for (const Exchange& exchange : problem.pattern->exchanges(r)) {
      bytes.push_back(direction == Direction::kOut ? exchange.out_bytes : exchange.in_bytes);
    }
    std::sort(bytes.begin(), bytes.end());  // leaving[n]: of all but the n heaviest
    std::vector<double> leaving(bytes.size() + 1, 0.0);
    for (size_t i = 0; i < bytes.size(); ++i) {
      leaving[bytes.size() - i - 1] = leaving[bytes.size() - i] + bytes[i];
    }
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [ranks, capacity] : hosts.kinds) {
      least = std::min(least, leaving[std::min<size_t>(ranks - 1, bytes.size())] / capacity);
    }
    sum += leaving[std::min<size_t>(hosts.most_room - 1, bytes.size())];
    if (least > bound.value) {
      bound = {least, absl::StrFormat("what rank %d %s over its own port", r, verb)};
    }
  }
  if (sum / hosts.capacity > bound.value) {
    bound = {sum / hosts.capacity,
             absl::StrFormat("what all ranks %s over all ports",
                             direction == Direction::kOut ? "send" : "receive")};
  }
  return bound;
}

}  // namespace

CongestionBound FindCongestionBound(const MappingProblem& problem) {
  const std::vector<double> capacities = ChannelCapacities(problem);
  CongestionBound out = BoundOf(problem, capacities, Direction::kOut);
  CongestionBound in = BoundOf(problem, capacities, Direction::kIn);
  return in.value > out.value ? in : out;
}

}  // namespace coppice
