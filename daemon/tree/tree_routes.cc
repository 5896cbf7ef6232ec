// The routes of a tree's edges, link by link, and which of them share links.
#include "daemon/tree/tree_routes.h"

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/even_routes.h"
#include "daemon/tree/pipelining.h"

namespace coppice {
namespace {

constexpr uint32_t kNobody = UINT32_MAX, kSeveral = UINT32_MAX - 1;

class Finder {
 public:
  Finder(const Snapshot& snapshot, const CostProfile& profile, const AggregationTree& tree)
      : snapshot_(snapshot), profile_(profile), tree_(tree) {}

  absl::StatusOr<TreeRoutes> Run() {
    routes_.begin.reserve(2 * tree_.node_count() + 1);
    for (uint32_t node = 0; node < tree_.node_count(); ++node) {
      for (const bool down : {false, true}) {
        routes_.begin.push_back(static_cast<uint32_t>(routes_.hops.size()));
        if (tree_.parents[node] != AggregationTree::kNoParent) {
          RETURN_IF_ERROR(Walk(node, down));
        }
      }
    }
    routes_.begin.push_back(static_cast<uint32_t>(routes_.hops.size()));
    for (uint32_t node = 0; node < tree_.node_count(); ++node) {
      for (const bool down : {false, true}) Classify(2 * node + (down ? 1 : 0), down);
    }
    return std::move(routes_);
  }

 private:
  absl::Status Walk(uint32_t node, bool down) {
    const auto parent = static_cast<uint32_t>(tree_.parents[node]);
    const VertexIndex child = tree_.vertices[node], above = tree_.vertices[parent];
    path_.clear();
    RETURN_IF_ERROR(snapshot_.routes->Append(down ? above : child, down ? child : above, path_));
    for (const ChannelIndex channel : path_) {
      const uint32_t link = LinkOf(channel);
      ++(down ? routes_.links[link].down : routes_.links[link].up);
      uint32_t& parents = (down ? parent_down_ : parent_up_)[link];
      parents = parents == kNobody || parents == parent ? parent : kSeveral;
      routes_.hops.push_back({.link = link});
    }
    return absl::OkStatus();
  }

  uint32_t LinkOf(ChannelIndex channel) {
    const auto [at, is_new] =
        number_.try_emplace(channel.value(), static_cast<uint32_t>(routes_.links.size()));
    if (is_new) {
      routes_.links.push_back(
          {.us_per_byte = SerialisationUs(1, KnownCapacity(snapshot_, profile_, channel)),
           .pass_us = profile_.link_us + WaitUs(snapshot_, profile_, channel)});
      parent_up_.push_back(kNobody);
      parent_down_.push_back(kNobody);
    }
    return at->second;
  }

  // At its parent's own port an edge meets siblings that the parent takes, or sends to, one after
  // another anyway.
  void Classify(uint32_t way, bool down) {
    const uint32_t first = routes_.begin[way], end = routes_.begin[way + 1];
    for (uint32_t h = first; h < end; ++h) {
      TreeRoutes::Hop& hop = routes_.hops[h];
      const TreeRoutes::Link& link = routes_.links[hop.link];
      if ((down ? link.down : link.up) < 2) continue;
      const bool at_parent = down ? h == first : h + 1 == end;
      const uint32_t parent = (down ? parent_down_ : parent_up_)[hop.link];
      const bool siblings = at_parent && parent != kSeveral;
      hop.sharing = siblings ? TreeRoutes::Sharing::kSiblings : TreeRoutes::Sharing::kOthers;
      routes_.shares = routes_.shares || !siblings;
    }
  }

  const Snapshot& snapshot_;
  const CostProfile& profile_;
  const AggregationTree& tree_;
  TreeRoutes routes_;
  std::vector<ChannelIndex> path_;
  absl::flat_hash_map<uint32_t, uint32_t> number_;  // channel -> position in links
  std::vector<uint32_t> parent_up_, parent_down_;   // [link] whose children's packets cross it
};

}  // namespace

absl::StatusOr<TreeRoutes> FindRoutes(const Snapshot& snapshot, const CostProfile& profile,
                                      const AggregationTree& tree) {
  return Finder(snapshot, profile, tree).Run();
}

}  // namespace coppice
