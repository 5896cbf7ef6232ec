#include "daemon/tree/type1_postal.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/postal_groups.h"
#include "daemon/tree/postal_shape.h"
#include "daemon/tree/tree_metrics.h"
#include "daemon/tree/type1_ranks.h"

namespace coppice {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kBetter = 1 - 1e-9;

// Most children tried where messages are pipelined: then the busiest rank's children count once
// per packet, and a deeper tree of few children may be faster.
constexpr uint32_t kPipelinedDegrees[] = {2, 3, 4, 6, 8, 12, 16, 24};

struct Best {
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

void TryLevels(const PostalGroups& groups, uint32_t degree, TimeOfParents time_of, Best& best) {
  const size_t levels = std::max<size_t>(groups.levels.size(), 1);
  for (size_t near = 0; near < levels; ++near) {
    std::vector<int32_t> parents = PostalParents(groups, near, degree);
    const bool is_small = parents.size() <= kMostRanksSearchedFully;
    double us = time_of(parents, is_small ? kInfinity : best.us);
    if (is_small) us = ImprovePostal(groups, degree, time_of, us, parents);
    if (!best.parents.empty() && !(us < best.us * kBetter)) continue;
    best = {us, std::move(parents)};
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

absl::StatusOr<AggregationTree> BuildPostal(const Snapshot& snapshot, const CostProfile& profile,
                                            const TreeRequest& request, uint32_t nic_degree,
                                            TimeOfParents time_of) {
  AggregationTree tree;
  ASSIGN_OR_RETURN(tree, BareTypeITree(*snapshot.fabric, request.members, TreeBuilder::kPostal,
                                       request.width.value_or(2)));
  if (tree.rank_count <= 2) {
    HangOnRoot(tree);
    tree.width = 2;
    RETURN_IF_ERROR(CheckNicDegree(tree, nic_degree));
    return tree;
  }
  if (nic_degree < 2) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a postal tree of ", tree.rank_count, " ranks needs NICs that serve 2 ",
                     "children, theirs serve ", nic_degree, "; ask for a NIC degree of 2 or more"));
  }
  const uint32_t degree = std::min(nic_degree, request.width.value_or(nic_degree));
  PostalGroups groups;
  Best best;
  for (const uint32_t most : DegreesToTry(profile, request, degree)) {
    groups = FindPostalGroups(snapshot, profile, request, most);
    TryLevels(groups, most, time_of, best);
  }
  if (tree.rank_count > kMostRanksSearchedFully) {
    ImprovePostal(groups, degree, time_of, best.us, best.parents);
  }
  tree.parents = std::move(best.parents);
  tree.width = std::max(2U, MostChildren(tree));
  return tree;
}

absl::StatusOr<AggregationTree> BuildPostal(const Snapshot& snapshot, const CostProfile& profile,
                                            const TreeRequest& request, uint32_t nic_degree) {
  AggregationTree tree;
  ASSIGN_OR_RETURN(tree, BareTypeITree(*snapshot.fabric, request.members, TreeBuilder::kPostal, 2));
  std::vector<ChannelIndex> path;
  std::vector<EdgeCost> edges;
  return BuildPostal(
      snapshot, profile, request, nic_degree, [&](absl::Span<const int32_t> parents, double) {
        tree.parents.assign(parents.begin(), parents.end());
        if (!EdgeCosts(snapshot, profile, tree, path, edges).ok()) return kInfinity;
        return EvaluateMix(profile, tree, edges, request.operation, request.sizes).total_us;
      });
}

}  // namespace coppice
