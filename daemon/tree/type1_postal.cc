#include "daemon/tree/type1_postal.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/postal_groups.h"
#include "daemon/tree/postal_search.h"
#include "daemon/tree/postal_shape.h"
#include "daemon/tree/type1_ranks.h"

namespace coppice {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kClearlyBetter = 1 - 1e-9;

// Most children tried where messages are pipelined: then the busiest rank's children count once
// per packet, and a deeper tree of few children may be faster.
constexpr uint32_t kPipelinedDegrees[] = {2, 3, 4, 6, 8, 12, 16, 24};

struct Tried {
  double us = kInfinity;
  std::vector<int32_t> parents;
};

// In ascending order; `degree` last.
std::vector<uint32_t> DegreesToTry(const CostProfile& profile, const TreeRequest& request,
                                   uint32_t degree) {
  const bool is_pipelined =
      profile.mtu_bytes > 0 &&
      std::any_of(request.sizes.begin(), request.sizes.end(),
                  [&](const SizeShare& share) { return share.bytes > profile.mtu_bytes; });
  std::vector<uint32_t> degrees;
  for (const uint32_t few : kPipelinedDegrees) {
    if (is_pipelined && few < std::min<size_t>(degree, request.members.size() - 1)) {
      degrees.push_back(few);
    }
  }
  degrees.push_back(degree);
  return degrees;
}

// Appends what is not there yet; `best` is the place of the fastest.
void TryLevels(const PostalGroups& groups, uint32_t degree, TimeOfParents time_of,
               std::vector<Tried>& tried, size_t& best) {
  const size_t levels = std::max<size_t>(groups.levels.size(), 1);
  for (size_t near = 0; near < levels; ++near) {
    std::vector<int32_t> parents = PostalParents(groups, near, degree);
    const bool is_small = parents.size() <= kMaxRanksSearchedFully;
    const bool is_new = std::none_of(tried.begin(), tried.end(),
                                     [&](const Tried& other) { return other.parents == parents; });
    if (!is_new && !is_small) continue;  // a small one is improved with more children than before
    double us = time_of(parents, tried.empty() || is_small ? kInfinity : tried[best].us);
    if (is_small) us = ImprovePostal(groups, degree, time_of, us, parents);
    tried.push_back({us, std::move(parents)});
    if (us < tried[best].us * kClearlyBetter) best = tried.size() - 1;
  }
}

// Of two ranks, or one.
void HangOnRoot(AggregationTree& tree) {
  for (uint32_t rank = 1; rank < tree.rank_count; ++rank) tree.parents[rank] = 0;
}

uint32_t MostChildren(const AggregationTree& tree) {
  std::vector<uint32_t> children(tree.rank_count, 0);
  for (const int32_t parent : tree.parents) {
    if (parent >= 0) ++children[parent];
  }
  return *std::max_element(children.begin(), children.end());
}

}  // namespace

absl::StatusOr<std::vector<PostalTree>> PostalTrees(const Snapshot& snapshot,
                                                    const CostProfile& profile,
                                                    const TreeRequest& request, uint32_t nic_degree,
                                                    TimeOfParents time_of) {
  AggregationTree tree;
  ASSIGN_OR_RETURN(tree, BareTypeITree(*snapshot.fabric, request.members, TreeBuilder::kPostal,
                                       request.width.value_or(2)));
  if (tree.rank_count <= 2) {
    HangOnRoot(tree);
    tree.width = 2;
    RETURN_IF_ERROR(CheckNicDegree(tree, nic_degree));
    const double us = time_of(tree.parents, kInfinity);
    return std::vector<PostalTree>{{std::move(tree), us}};
  }
  if (nic_degree < 2) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a postal tree of ", tree.rank_count, " ranks needs NICs that serve 2 ",
                     "children, theirs serve ", nic_degree, "; ask for a NIC degree of 2 or more"));
  }
  const uint32_t degree = std::min(nic_degree, request.width.value_or(nic_degree));
  PostalGroups groups;
  std::vector<Tried> tried;
  size_t best = 0;
  for (const uint32_t most : DegreesToTry(profile, request, degree)) {
    groups = FindPostalGroups(snapshot, profile, request, most);
    TryLevels(groups, most, time_of, tried, best);
  }
  if (tree.rank_count > kMaxRanksSearchedFully) {
    tried[best].us = ImprovePostal(groups, degree, time_of, tried[best].us, tried[best].parents);
  }
  std::rotate(tried.begin(), tried.begin() + static_cast<std::ptrdiff_t>(best),
              tried.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  std::vector<PostalTree> trees(tried.size(), {tree, 0});
  for (size_t i = 0; i < trees.size(); ++i) {
    trees[i].us = tried[i].us;
    trees[i].tree.parents = std::move(tried[i].parents);
    trees[i].tree.width = std::max(2U, MostChildren(trees[i].tree));
  }
  return trees;
}

absl::StatusOr<AggregationTree> BuildPostal(const Snapshot& snapshot, const CostProfile& profile,
                                            const TreeRequest& request, uint32_t nic_degree) {
  AggregationTree tree;
  ASSIGN_OR_RETURN(tree, BareTypeITree(*snapshot.fabric, request.members, TreeBuilder::kPostal, 2));
  PostalJudge judge(snapshot, profile, request, std::move(tree), nullptr);
  std::vector<PostalTree> trees;
  ASSIGN_OR_RETURN(trees, PostalTrees(snapshot, profile, request, nic_degree,
                                      [&](absl::Span<const int32_t> parents, double cutoff_us) {
                                        return judge.Of(parents, cutoff_us);
                                      }));
  return std::move(trees.front().tree);
}

PostalJudge::PostalJudge(const Snapshot& snapshot, const CostProfile& profile,
                         const TreeRequest& request, AggregationTree tree, Type1Bound* bound)
    : snapshot_(snapshot),
      profile_(profile),
      request_(request),
      bound_(bound != nullptr && bound->is_exact() ? bound : nullptr),
      tree_(std::move(tree)) {
  if (bound_ != nullptr || tree_.rank_count > kMaxRanksSearched) return;
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
