#include "daemon/tree/postal_judge.h"

#include <limits>
#include <utility>

#include "daemon/tree/postal_search.h"

namespace coppice {

PostalJudge::PostalJudge(const Snapshot& snapshot, const CostProfile& profile,
                         const TreeRequest& request, AggregationTree tree, Type1Bound* bound)
    : snapshot_(snapshot),
      profile_(profile),
      request_(request),
      bound_(bound != nullptr && bound->is_exact() ? bound : nullptr),
      tree_(std::move(tree)) {
  if (bound_ != nullptr || tree_.rank_count > kMostRanksSearched) return;
  pairs_.resize(size_t{tree_.rank_count} * tree_.rank_count);
  is_known_.resize(pairs_.size());
}

double PostalJudge::Of(absl::Span<const int32_t> parents, double cutoff_us) {
  if (bound_ != nullptr) return bound_->Of(parents, cutoff_us);
  tree_.parents.assign(parents.begin(), parents.end());
  if (!(pairs_.empty() ? FindEdges() : FindEdgesOfPairs())) {
    return std::numeric_limits<double>::infinity();
  }
  return EvaluateMix(profile_, tree_, edges_, request_.operation, request_.sizes).total_us;
}

// Both are false if an edge has no route.

bool PostalJudge::FindEdges() { return EdgeCosts(snapshot_, profile_, tree_, path_, edges_).ok(); }

bool PostalJudge::FindEdgesOfPairs() {
  edges_.assign(tree_.rank_count, EdgeCost{});
  for (uint32_t rank = 0; rank < tree_.rank_count; ++rank) {
    const int32_t parent = tree_.parents[rank];
    if (parent == AggregationTree::kNoParent) continue;
    const size_t pair = size_t{rank} * tree_.rank_count + static_cast<size_t>(parent);
    if (!is_known_[pair]) {
      if (!WalkEdge(snapshot_, profile_, tree_.vertices[rank], tree_.vertices[parent], path_,
                    pairs_[pair])
               .ok()) {
        return false;
      }
      is_known_[pair] = true;
    }
    edges_[rank] = pairs_[pair];
  }
  return true;
}

}  // namespace coppice
