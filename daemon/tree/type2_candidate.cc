#include "daemon/tree/type2_candidate.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace coppice {

Type2Candidate MakeType2Candidate(const Fabric& fabric, absl::Span<const SwitchCapacity> capacity,
                                  const MemberPlaces& places, uint32_t highest,
                                  PhysicalTree physical) {
  Type2Candidate candidate;
  const size_t n = physical.vertices.size();
  const size_t switches = n - places.endpoints.size();
  candidate.members.resize(n, 0);
  candidate.degrees.resize(n, 0);
  std::copy(places.ranks_at.begin(), places.ranks_at.end(),
            candidate.members.begin() + static_cast<int64_t>(switches));
  candidate.members_on.resize(switches, 0);
  for (size_t v = switches; v < n; ++v) {
    candidate.members_on[static_cast<size_t>(physical.parents[v])] += candidate.members[v];
  }
  for (size_t v = 0; v < switches; ++v) {
    const SwitchCapacity& c = capacity[fabric.AsSwitch(physical.vertices[v]).value()];
    candidate.degrees[v] = c.entries_free > 0 ? c.degree_limit : 0;
    candidate.has_weaker |= candidate.degrees[v] < highest;
  }
  candidate.physical = std::make_shared<const PhysicalTree>(std::move(physical));
  return candidate;
}

std::vector<uint32_t> ServingPreference(const Snapshot& snapshot, const Type2Candidate& candidate,
                                        bool deepest_first) {
  constexpr uint32_t kLoadSteps = 1 << 20;
  const PhysicalTree& physical = *candidate.physical;
  const size_t n = candidate.switch_count();
  std::vector<uint32_t> depth(n, 0), preference(n, 0);
  for (size_t v = 1; v < n; ++v) depth[v] = depth[static_cast<size_t>(physical.parents[v])] + 1;
  for (size_t v = 0; v < n; ++v) {
    uint32_t load = 0;
    if (v > 0) {
      const float up = snapshot.utilisation(physical.up[v]);
      const float down = snapshot.utilisation(Fabric::Reverse(physical.up[v]));
      load = static_cast<uint32_t>(std::clamp(std::max(up, down), 0.0F, 1.0F) * kLoadSteps);
    }
    const uint32_t rank = deepest_first ? 255 - std::min(depth[v], 255U) : depth[v];
    preference[v] = rank * (kLoadSteps + 1) + load;
  }
  return preference;
}

AggregationTree RanksOnly(const Fabric& fabric, Members members) {
  AggregationTree tree;
  tree.type = TreeType::kTypeII;
  tree.builder = TreeBuilder::kMinimumCost;
  tree.rank_count = static_cast<uint32_t>(members.size());
  tree.vertices.reserve(members.size() + 16);
  for (const EndpointIndex e : members) tree.vertices.push_back(fabric.Vertex(e));
  return tree;
}

// Numbers the nodes: ranks, then serving switches by index.
AggregationTree HangRanks(const Fabric& fabric, Members ranks, const MemberPlaces& places,
                          const PhysicalTree& physical, absl::Span<const uint32_t> members,
                          absl::Span<const uint32_t> degrees, absl::Span<const uint32_t> serving) {
  const ReductionTree hung = HangItems({physical.parents, members, degrees, {}}, serving);
  AggregationTree tree = RanksOnly(fabric, ranks);
  std::vector<uint32_t> order(serving.begin(), serving.end());
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return physical.vertices[a] < physical.vertices[b]; });
  std::vector<int32_t> node(degrees.size(), AggregationTree::kNoParent);
  for (const uint32_t v : order) {
    node[v] = static_cast<int32_t>(tree.vertices.size());
    tree.vertices.push_back(physical.vertices[v]);
  }
  const auto node_of = [&](int32_t vertex) {
    return vertex < 0 ? AggregationTree::kNoParent : node[static_cast<size_t>(vertex)];
  };
  const size_t first = degrees.size() - places.endpoints.size();
  std::vector<uint32_t> next(hung.first_member.begin() + static_cast<int64_t>(first),
                             hung.first_member.end());
  tree.parents.reserve(tree.vertices.size());
  for (uint32_t rank = 0; rank < tree.rank_count; ++rank) {
    tree.parents.push_back(node_of(hung.member_parents[next[places.endpoint_of_rank[rank]]++]));
  }
  for (const uint32_t v : order) tree.parents.push_back(node_of(hung.serving_parents[v]));
  return tree;
}

// Walks from every endpoint towards the root until it meets a switch that is in the tree already:
//
//        root                 a: walks a1, a2, root                 vertices: root a2 a1 | a b
//       /                     b: walks a1, which is known           (unwound, so parents come
//       first)
//      a2 -- a1 -- a, b
//
// Each switch is walked once, so the whole costs one routing step per vertex of the tree.

namespace {

constexpr int32_t kUnseen = -1;
constexpr int32_t kOnThisWalk = -2;

class PhysicalWalker {
 public:
  PhysicalWalker(const Snapshot& snapshot, SwitchIndex root)
      : snapshot_(snapshot),
        fabric_(*snapshot.fabric),
        root_(root),
        least_loaded_(snapshot.routes->kind() == RouteKind::kShortestPath &&
                      !snapshot.load->empty()),
        positions_(fabric_.switch_count(), kUnseen) {
    tree_.root = fabric_.Vertex(root);
    Append(tree_.root, -1, kNoChannel);
    positions_[root.value()] = 0;
  }

  absl::Status AddSwitches(EndpointIndex endpoint) {
    const std::optional<SwitchIndex> attached = fabric_.attached_switch(endpoint);
    if (!attached) {
      return absl::FailedPreconditionError(
          absl::StrCat(Name(fabric_.Vertex(endpoint)), " is cabled to no switch"));
    }
    attached_.push_back(*attached);
    walk_.clear();
    SwitchIndex at = *attached;
    while (positions_[at.value()] == kUnseen) {
      positions_[at.value()] = kOnThisWalk;
      const ChannelIndex next = Next(at);
      walk_.push_back({at, next});
      if (next == kNoChannel || !fabric_.IsSwitch(fabric_.channel_to(next))) {
        return RouteError(endpoint, at, "breaks off at");
      }
      at = fabric_.AsSwitch(fabric_.channel_to(next));
    }
    if (positions_[at.value()] == kOnThisWalk) return RouteError(endpoint, at, "loops through");
    int32_t parent = positions_[at.value()];
    for (size_t i = walk_.size(); i-- > 0;) {
      parent = Append(fabric_.Vertex(walk_[i].at), parent, walk_[i].next);
      positions_[walk_[i].at.value()] = parent;
    }
    return absl::OkStatus();
  }

  // The endpoints whose switches were added, in that order.
  void AddEndpoints(absl::Span<const EndpointIndex> endpoints) {
    for (size_t i = 0; i < endpoints.size(); ++i) {
      Append(fabric_.Vertex(endpoints[i]), positions_[attached_[i].value()],
             fabric_.uplink(endpoints[i]));
    }
  }

  void Reserve(size_t endpoints) {
    attached_.reserve(endpoints);
    tree_.vertices.reserve(endpoints + 64);
    tree_.parents.reserve(endpoints + 64);
    tree_.up.reserve(endpoints + 64);
  }
  PhysicalTree Take() { return std::move(tree_); }

 private:
  struct Step {
    SwitchIndex at;
    ChannelIndex next;
  };

  int32_t Append(VertexIndex vertex, int32_t parent, ChannelIndex up) {
    tree_.vertices.push_back(vertex);
    tree_.parents.push_back(parent);
    tree_.up.push_back(up);
    return static_cast<int32_t>(tree_.vertices.size() - 1);
  }

  ChannelIndex Next(SwitchIndex at) const {
    const ChannelIndex routed = snapshot_.routes->NextChannel(at, tree_.root);
    if (!least_loaded_ || routed == kNoChannel) return routed;
    const absl::Span<const uint8_t> hops = snapshot_.routes->distances().RowTo(root_);
    ChannelIndex best = routed;
    float load = snapshot_.utilisation(routed);
    for (const Channel& channel : fabric_.switch_channels(at)) {
      if (hops[channel.to.value()] + 1 != hops[at.value()]) continue;
      if (snapshot_.utilisation(channel.index) < load) {
        best = channel.index;
        load = snapshot_.utilisation(channel.index);
      }
    }
    return best;
  }

  std::string Name(VertexIndex vertex) const { return Describe(fabric_, vertex); }

  absl::Status RouteError(EndpointIndex endpoint, SwitchIndex at, const char* what) const {
    const bool by_table = snapshot_.routes->kind() == RouteKind::kForwardingTables;
    return absl::FailedPreconditionError(
        absl::StrCat("the route from ", Name(fabric_.Vertex(endpoint)), " to ", Name(tree_.root),
                     " ", what, " ", Name(fabric_.Vertex(at)),
                     by_table ? absl::StrCat(": check that switch's forwarding table for LID ",
                                             fabric_.lid(tree_.root).value())
                              : ": check that switch's cables"));
  }

  const Snapshot& snapshot_;
  const Fabric& fabric_;
  const SwitchIndex root_;
  const bool least_loaded_;
  PhysicalTree tree_;
  std::vector<int32_t> positions_;     // [switch] position in the tree, or a mark
  std::vector<SwitchIndex> attached_;  // of the endpoints added so far
  std::vector<Step> walk_;
};

}  // namespace

absl::StatusOr<PhysicalTree> BuildPhysicalTree(const Snapshot& snapshot,
                                               absl::Span<const EndpointIndex> endpoints,
                                               SwitchIndex root) {
  PhysicalWalker walker(snapshot, root);
  walker.Reserve(endpoints.size());
  for (const EndpointIndex endpoint : endpoints) {
    if (absl::Status status = walker.AddSwitches(endpoint); !status.ok()) return status;
  }
  walker.AddEndpoints(endpoints);
  return walker.Take();
}

}  // namespace coppice
