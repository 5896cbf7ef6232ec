// Branch and bound over (builder, width): build all, bound all, evaluate exactly in order of the
// bounds until the next bound is no better than the best so far. Exact: the bound never exceeds the
// prediction, because a route has at least as many links as hops, and load and serialisation only
// add. Without load the bound is nearly the prediction, so few trees have their routes walked.
#include "daemon/tree/type1_choice.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/tree/type1.h"
#include "daemon/tree/type1_hierarchical.h"
#include "daemon/tree/width_candidates.h"

namespace coppice {
namespace {

constexpr std::array kBuilders = {TreeBuilder::kKary, TreeBuilder::kKnomial,
                                  TreeBuilder::kHierarchical};

struct Candidate {
  AggregationTree tree;
  double bound_us = 0;
};

class Type1Search {
 public:
  Type1Search(const Snapshot& snapshot, const CostProfile& profile, const TreeRequest& request,
              const MemberPlaces& places)
      : snapshot_(snapshot),
        fabric_(*snapshot.fabric),
        profile_(profile),
        request_(request),
        places_(places),
        nic_degree_(request.nic_degree.value_or(profile.nic_degree)) {
    sites_.reserve(request.members.size());
    for (size_t rank = 0; rank < request.members.size(); ++rank) {
      sites_.push_back({fabric_.host(request.members[rank]),
                        places.leaf_of_endpoint[places.endpoint_of_rank[rank]]});
    }
  }

  absl::StatusOr<Type1Result> Run() {
    BuildAll();
    if (candidates_.empty()) return build_error_;
    std::stable_sort(
        candidates_.begin(), candidates_.end(),
        [](const Candidate& a, const Candidate& b) { return a.bound_us < b.bound_us; });
    std::optional<Type1Result> best;
    std::vector<Alternative> alternatives;
    for (Candidate& candidate : candidates_) {
      const TreeBuilder builder = candidate.tree.builder;
      const uint32_t width = candidate.tree.width;
      if (best && candidate.bound_us >= best->predicted.total_us) {
        alternatives.push_back({TreeType::kTypeI, builder, width, std::nullopt,
                                absl::StrFormat("takes at least %.2f us", candidate.bound_us)});
        continue;
      }
      absl::StatusOr<std::vector<EdgeCost>> edges = EdgeCosts(snapshot_, profile_, candidate.tree);
      if (!edges.ok()) {
        route_error_ = edges.status();
        alternatives.push_back({TreeType::kTypeI, builder, width, std::nullopt,
                                std::string(edges.status().message())});
        continue;
      }
      const Prediction predicted =
          EvaluateMix(profile_, candidate.tree, *edges, request_.operation, request_.sizes);
      if (best && !Better(predicted, candidate.tree, *best)) {
        alternatives.push_back(Slower(candidate.tree, predicted));
        continue;
      }
      if (best) alternatives.push_back(Slower(best->tree, best->predicted));
      best = Type1Result{std::move(candidate.tree), *std::move(edges), predicted, {}};
    }
    if (!best) return absl::FailedPreconditionError(std::string(route_error_.message()));
    best->alternatives = std::move(alternatives);
    for (Alternative& refused : refused_) best->alternatives.push_back(std::move(refused));
    return *std::move(best);
  }

 private:
  static bool Better(const Prediction& predicted, const AggregationTree& tree,
                     const Type1Result& best) {
    if (predicted.total_us != best.predicted.total_us) {
      return predicted.total_us < best.predicted.total_us;
    }
    return std::pair(tree.builder, tree.width) < std::pair(best.tree.builder, best.tree.width);
  }

  static Alternative Slower(const AggregationTree& tree, const Prediction& predicted) {
    return {TreeType::kTypeI, tree.builder, tree.width, predicted.total_us, "not faster"};
  }

  absl::StatusOr<AggregationTree> Build(TreeBuilder builder, uint32_t width) {
    switch (builder) {
      case TreeBuilder::kKary:
        return BuildKary(fabric_, request_.members, width, nic_degree_);
      case TreeBuilder::kKnomial:
        return BuildKnomial(fabric_, request_.members, width, nic_degree_);
      default:
        if (!groups_) groups_ = GroupMembers(*snapshot_.hierarchy, request_.members);
        return BuildHierarchicalFrom(fabric_, *groups_, request_.members, width, nic_degree_);
    }
  }

  void BuildAll() {
    const std::vector<uint32_t> widths = WidthCandidates(profile_, request_, places_, nic_degree_);
    for (const TreeBuilder builder : kBuilders) {
      if (request_.builder && *request_.builder != builder) continue;
      const size_t first = candidates_.size();
      for (const uint32_t width : widths) BuildOne(builder, width, first);
      if (candidates_.size() == first && !request_.width) BuildNarrower(builder, widths.front());
    }
  }

  // `first` is where this builder's candidates begin: a tree that one of them equals is left out.
  bool BuildOne(TreeBuilder builder, uint32_t width, size_t first) {
    absl::StatusOr<AggregationTree> tree = Build(builder, width);
    if (!tree.ok()) {
      build_error_ = tree.status();
      if (request_.width) {
        refused_.push_back(
            {TreeType::kTypeI, builder, width, std::nullopt, std::string(tree.status().message())});
      }
      return false;
    }
    for (size_t i = first; i < candidates_.size(); ++i) {
      if (candidates_[i].tree.parents == tree->parents) return true;
    }
    const double bound = LowerBound(*tree);
    candidates_.push_back({*std::move(tree), bound});
    return true;
  }

  // A k-nomial root has (k - 1) * digits children, so its widest admissible k may lie below the
  // interval: the first one that works, halving.
  void BuildNarrower(TreeBuilder builder, uint32_t width) {
    const size_t first = candidates_.size();
    while (width > 2) {
      width = std::max(2U, width / 2);
      if (BuildOne(builder, width, first)) return;
    }
    refused_.push_back(
        {TreeType::kTypeI, builder, 2, std::nullopt, std::string(build_error_.message())});
  }

  double LowerBound(const AggregationTree& tree) {
    bound_edges_.assign(tree.node_count(), EdgeCost{});
    for (uint32_t node = 0; node < tree.node_count(); ++node) {
      if (tree.parents[node] == AggregationTree::kNoParent) continue;
      EdgeCost& edge = bound_edges_[node];
      edge.time_up_us = edge.time_down_us =
          LeastRouteTime(node, static_cast<uint32_t>(tree.parents[node]));
    }
    return EvaluateMix(profile_, tree, bound_edges_, request_.operation, request_.sizes).total_us;
  }

  float LeastRouteTime(uint32_t rank, uint32_t parent) const {
    const Site& from = sites_[rank];
    const Site& to = sites_[parent];
    if (from.host == to.host) return static_cast<float>(profile_.same_host_us);
    uint32_t links = 2;
    if (!places_.all_on_switches) {
      links = 1;
    } else if (from.leaf != to.leaf) {
      links = 2U + snapshot_.routes->distances().Between(places_.leaf_switches[from.leaf],
                                                         places_.leaf_switches[to.leaf]);
    }
    return static_cast<float>(links * profile_.link_us);
  }

  struct Site {
    HostIndex host;
    uint32_t leaf = 0;  // in places_.leaf_switches
  };

  const Snapshot& snapshot_;
  const Fabric& fabric_;
  const CostProfile& profile_;
  const TreeRequest& request_;
  const MemberPlaces& places_;
  const uint32_t nic_degree_;
  std::vector<Site> sites_;             // [rank]
  std::optional<NestedGroups> groups_;  // of the members, once a builder asks
  std::vector<Candidate> candidates_;
  std::vector<Alternative> refused_;
  std::vector<EdgeCost> bound_edges_;
  absl::Status build_error_, route_error_;
};

}  // namespace

absl::StatusOr<Type1Result> ChooseType1(const Snapshot& snapshot, const CostProfile& profile,
                                        const TreeRequest& request, const MemberPlaces& places) {
  return Type1Search(snapshot, profile, request, places).Run();
}

}  // namespace coppice
