// Type I trees some of whose ranks serve no children: limited members of a partition, which speak
// with full members only (IBA vol. 1, 10.9). The others make a tree, and the leaves are hung below.
//
//   others:  0 --+-- 1          leaves 3, 4, 5:   0 --+-- 1 --+-- 3
//                +-- 2                                |       +-- 4
//                                                     +-- 2 ----- 5
//
// One leaf after another goes to the rank where it makes the tree the least slower, as far as that
// is seen from one edge: of all ranks of its leaf switch, and of all others, the one whose way from
// the root, with one child more, is the shortest. Every builder's tree is then judged with its
// leaves as any other tree is. O(P log P) for each.
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/contended_metrics.h"
#include "daemon/tree/type1.h"

namespace coppice {
namespace {

constexpr std::array kInnerBuilders = {TreeBuilder::kKary, TreeBuilder::kKnomial,
                                       TreeBuilder::kHierarchical, TreeBuilder::kPostal};

// Ranks that may serve children, by how late a further child of theirs would be.
class Servers {
 public:
  // `inner` is the tree of the ranks `inner_ranks`, which `edges` belong to.
  Servers(const AggregationTree& inner, absl::Span<const EdgeCost> edges,
          absl::Span<const uint32_t> inner_ranks, const MemberPlaces& places,
          const LevelCost& level, uint32_t nic_degree)
      : places_(places),
        inner_ranks_(inner_ranks),
        edge_us_(level.once_us),
        per_child_us_(level.per_child_us + level.stage_per_child_us),
        children_(ChildCounts(inner.parents)),
        way_us_(inner.node_count(), 0),
        deepest_us_(inner.node_count(), 0),
        nic_degree_(nic_degree),
        on_leaf_(places.leaf_switches.size() + 1) {
    hung_.resize(inner.node_count());
    MeasureWays(inner, edges);
    for (uint32_t node = 0; node < inner.node_count(); ++node) Enter(node);
  }

  bool empty() const { return all_.empty(); }

  // The first of the leaf switch and the first of all; they may be the same. Not if empty.
  std::pair<uint32_t, uint32_t> Nearest(uint32_t rank) const {
    const Queue& near = on_leaf_[LeafOf(rank)];
    return {near.empty() ? all_.begin()->second : near.begin()->second, all_.begin()->second};
  }
  // Of the tree, as far as one further leaf of the node is concerned.
  double UsWith(uint32_t node, const EdgeCost& edge) const {
    return UsWith(node, edge.time_up_us + edge.time_down_us);
  }
  void Hang(uint32_t node) {
    const std::pair<double, uint32_t> key = KeyOf(node);
    all_.erase(key);
    on_leaf_[LeafOf(inner_ranks_[node])].erase(key);
    ++hung_[node];
    Enter(node);
  }

 private:
  using Queue = std::set<std::pair<double, uint32_t>>;

  // way_us_: from the root to the node and back, with all that its ancestors do for their children;
  // deepest_us_: of the longest way that leads through the node.
  void MeasureWays(const AggregationTree& inner, absl::Span<const EdgeCost> edges) {
    const ChildLists lists = ChildrenOf(inner.parents);
    std::vector<uint32_t> order = {inner.root()};
    for (size_t i = 0; i < order.size(); ++i) {
      for (const uint32_t child : lists.of(order[i])) {
        way_us_[child] = way_us_[order[i]] + per_child_us_ * children_[order[i]] +
                         edges[child].time_up_us + edges[child].time_down_us;
        order.push_back(child);
      }
    }
    for (size_t i = order.size(); i-- > 0;) {
      const uint32_t node = order[i];
      deepest_us_[node] = std::max(deepest_us_[node], way_us_[node]);
      if (i == 0) break;
      double& above = deepest_us_[static_cast<uint32_t>(inner.parents[node])];
      above = std::max(above, deepest_us_[node]);
    }
  }

  double UsWith(uint32_t node, double edge_us) const {
    const double way = way_us_[node] + per_child_us_ * (children_[node] + hung_[node] + 1);
    return std::max(way + edge_us, deepest_us_[node] + per_child_us_ * (hung_[node] + 1));
  }
  std::pair<double, uint32_t> KeyOf(uint32_t node) const { return {UsWith(node, edge_us_), node}; }
  uint32_t LeafOf(uint32_t rank) const {
    return places_.leaf_of_endpoint[places_.endpoint_of_rank[rank]];
  }
  void Enter(uint32_t node) {
    if (children_[node] + hung_[node] >= nic_degree_) return;
    all_.insert(KeyOf(node));
    on_leaf_[LeafOf(inner_ranks_[node])].insert(KeyOf(node));
  }

  const MemberPlaces& places_;
  const absl::Span<const uint32_t> inner_ranks_;
  const double edge_us_;  // of one that is not known yet
  const double per_child_us_;
  const std::vector<uint32_t> children_;     // [node] in the inner tree
  std::vector<uint32_t> hung_;               // [node] leaves
  std::vector<double> way_us_, deepest_us_;  // [node]
  const uint32_t nic_degree_;
  std::vector<Queue> on_leaf_;  // [leaf switch]; the last: on none
  Queue all_;
};

class LeafHanger {
 public:
  LeafHanger(const Snapshot& snapshot, const CostProfile& profile, const TreeRequest& request,
             const MemberPlaces& places)
      : snapshot_(snapshot),
        profile_(profile),
        request_(request),
        places_(places),
        nic_degree_(request.nic_degree.value_or(profile.nic_degree)),
        level_(BothWays(profile, TreeType::kTypeI, request)),
        inner_request_(request) {
    inner_request_.leaf_ranks.clear();
    inner_request_.members.clear();
    auto leaf = request.leaf_ranks.begin();
    for (uint32_t rank = 0; rank < request.members.size(); ++rank) {
      if (leaf != request.leaf_ranks.end() && *leaf == rank) {
        ++leaf;
      } else {
        inner_ranks_.push_back(rank);
        inner_request_.members.push_back(request.members[rank]);
      }
    }
  }

  absl::StatusOr<Type1Result> Run() {
    RETURN_IF_ERROR(CheckRoom());
    ASSIGN_OR_RETURN(const MemberPlaces inner_places,
                     FindMemberPlaces(snapshot_, inner_request_.members));
    for (const TreeBuilder builder : kInnerBuilders) {
      if (request_.builder.value_or(builder) != builder) continue;
      if (builder == TreeBuilder::kPostal && request_.width && !request_.builder) continue;
      inner_request_.builder = builder;
      absl::StatusOr<Type1Result> inner =
          ChooseType1(snapshot_, profile_, inner_request_, inner_places);
      if (absl::IsResourceExhausted(inner.status())) {
        refused_.push_back({TreeType::kTypeI, builder, request_.width.value_or(0), std::nullopt,
                            std::string(inner.status().message())});
        why_not_ = inner.status();
        continue;
      }
      RETURN_IF_ERROR(inner.status());
      RETURN_IF_ERROR(Judge(*std::move(inner->best)));
    }
    if (trees_.empty()) return why_not_;
    return Take();
  }

 private:
  // Of P ranks all but the root are somebody's child.
  absl::Status CheckRoom() const {
    if (inner_ranks_.empty()) {
      return absl::InvalidArgumentError(
          "every rank is to be a leaf; one at least must serve children");
    }
    const uint64_t slots = uint64_t{inner_ranks_.size()} * nic_degree_;
    if (slots >= request_.members.size() - 1) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat(inner_ranks_.size(), " of ", request_.members.size(),
                     " ranks may serve children, at most ", nic_degree_,
                     " each: too few for all others; "
                     "ask for a higher NIC degree or for fewer members"));
  }

  absl::Status Judge(TimedTree inner) {
    TimedTree timed;
    AggregationTree& tree = timed.tree;
    ASSIGN_OR_RETURN(tree, BareTypeITree(*snapshot_.fabric, request_.members, inner.tree.builder,
                                         std::max(inner.tree.width, 2u)));
    tree.width = inner.tree.width;
    for (uint32_t node = 0; node < inner_ranks_.size(); ++node) {
      const int32_t parent = inner.tree.parents[node];
      if (parent != AggregationTree::kNoParent) {
        tree.parents[inner_ranks_[node]] =
            static_cast<int32_t>(inner_ranks_[static_cast<size_t>(parent)]);
      }
    }
    RETURN_IF_ERROR(HangLeaves(inner, tree));
    RETURN_IF_ERROR(EdgeCosts(snapshot_, profile_, tree, path_, timed.edges));
    timed.predicted = EvaluateMix(profile_, tree, timed.edges, request_);
    RETURN_IF_ERROR(
        AddContention(snapshot_, profile_, tree, timed.edges, request_, timed.predicted));
    trees_.push_back(std::move(timed));
    return absl::OkStatus();
  }

  absl::Status HangLeaves(const TimedTree& inner, AggregationTree& tree) {
    Servers servers(inner.tree, inner.edges, inner_ranks_, places_, level_, nic_degree_);
    for (const uint32_t rank : request_.leaf_ranks) {
      const auto [near, first] = servers.Nearest(rank);
      EdgeCost near_edge, first_edge;
      RETURN_IF_ERROR(Walk(rank, near, tree, near_edge));
      uint32_t parent = near;
      if (first != near) {
        RETURN_IF_ERROR(Walk(rank, first, tree, first_edge));
        if (servers.UsWith(first, first_edge) < servers.UsWith(near, near_edge)) parent = first;
      }
      tree.parents[rank] = static_cast<int32_t>(inner_ranks_[parent]);
      servers.Hang(parent);
    }
    return absl::OkStatus();
  }

  absl::Status Walk(uint32_t rank, uint32_t node, const AggregationTree& tree, EdgeCost& edge) {
    return WalkEdge(snapshot_, profile_, tree.vertices[rank], tree.vertices[inner_ranks_[node]],
                    path_, edge);
  }

  Type1Result Take() {
    absl::c_stable_sort(trees_, [](const TimedTree& a, const TimedTree& b) {
      return a.predicted.total_us < b.predicted.total_us;
    });
    Type1Result result;
    const auto alternative = [](const TimedTree& timed) {
      return Alternative{TreeType::kTypeI, timed.tree.builder, timed.tree.width,
                         timed.predicted.total_us, "not faster"};
    };
    result.quickest = alternative(trees_.front());
    result.quickest.why_not.clear();
    for (size_t i = 1; i < trees_.size(); ++i) {
      result.alternatives.push_back(alternative(trees_[i]));
    }
    absl::c_move(refused_, std::back_inserter(result.alternatives));
    result.best = std::move(trees_.front());
    return result;
  }

  const Snapshot& snapshot_;
  const CostProfile& profile_;
  const TreeRequest& request_;
  const MemberPlaces& places_;
  const uint32_t nic_degree_;
  const LevelCost level_;
  TreeRequest inner_request_;
  std::vector<uint32_t> inner_ranks_;  // that may serve children
  std::vector<ChannelIndex> path_;
  std::vector<TimedTree> trees_;
  std::vector<Alternative> refused_;
  absl::Status why_not_;
};

}  // namespace

absl::StatusOr<Type1Result> ChooseAroundLeaves(const Snapshot& snapshot, const CostProfile& profile,
                                               const TreeRequest& request,
                                               const MemberPlaces& places) {
  return LeafHanger(snapshot, profile, request, places).Run();
}

}  // namespace coppice
