// Walks from every endpoint towards the root until it meets a switch that is in the tree already:
//
//        root                 a: walks a1, a2, root                 vertices: root a2 a1 | a b
//       /                     b: walks a1, which is known           (unwound, so parents come
//       first)
//      a2 -- a1 -- a, b
//
// Each switch is walked once, so the whole costs one routing step per vertex of the tree.
#include "daemon/tree/physical_tree.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace coppice {
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
