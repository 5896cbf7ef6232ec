// Branch and bound over (builder, width). Every candidate is bounded (type1_bound.h), which is
// exact where hops say everything about a route; then trees are built and evaluated in order of the
// bounds until the next bound is no better than the best so far. k-ary and k-nomial trees are
// bounded without being built; hierarchical ones that are alike are bounded once (flat_groups.h).
#include "daemon/tree/type1_choice.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/flat_groups.h"
#include "daemon/tree/type1.h"
#include "daemon/tree/type1_bound.h"
#include "daemon/tree/type1_hierarchical.h"
#include "daemon/tree/width_candidates.h"

namespace coppice {
namespace {

constexpr std::array kBuilders = {TreeBuilder::kKary, TreeBuilder::kKnomial,
                                  TreeBuilder::kHierarchical};

struct Candidate {
  double bound_us = 0;
  TreeBuilder builder = TreeBuilder::kKary;
  uint32_t width = 0;
  std::optional<double> total_us;  // once it is known
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return std::tuple(a.bound_us, a.builder, a.width) < std::tuple(b.bound_us, b.builder, b.width);
  }
};

class Type1Search {
 public:
  Type1Search(const Snapshot& snapshot, const CostProfile& profile, const TreeRequest& request,
              const MemberPlaces& places)
      : snapshot_(snapshot),
        fabric_(*snapshot.fabric),
        profile_(profile),
        request_(request),
        nic_degree_(request.nic_degree.value_or(profile.nic_degree)),
        widths_(WidthCandidates(profile, request, nic_degree_)),
        bound_(snapshot, profile, request, places) {}

  absl::StatusOr<Type1Result> Run() {
    // Hierarchical first: usually the least, which spares the others their second walk.
    for (auto builder = kBuilders.rbegin(); builder != kBuilders.rend(); ++builder) {
      if (!request_.builder || *request_.builder == *builder) BoundAll(*builder);
    }
    if (candidates_.empty()) return build_error_;
    std::sort(candidates_.begin(), candidates_.end());
    std::optional<Type1Result> best;
    for (Candidate& candidate : candidates_) {
      if (best && !MayBeBetter(candidate.bound_us, candidate, best->predicted, best->tree)) {
        continue;
      }
      absl::StatusOr<Type1Result> result = Evaluate(candidate);
      if (!result.ok()) {
        route_error_ = result.status();
        Refuse(candidate.builder, candidate.width, route_error_);
        continue;
      }
      candidate.total_us = result->predicted.total_us;
      if (!best || MayBeBetter(*candidate.total_us, candidate, best->predicted, best->tree)) {
        best = *std::move(result);
      }
    }
    if (!best) return absl::FailedPreconditionError(std::string(route_error_.message()));
    ListAlternatives(*best);
    return *std::move(best);
  }

 private:
  static bool MayBeBetter(double us, const Candidate& candidate, const Prediction& best,
                          const AggregationTree& tree) {
    if (us != best.total_us) return us < best.total_us;
    return std::pair(candidate.builder, candidate.width) < std::pair(tree.builder, tree.width);
  }

  absl::StatusOr<AggregationTree> Build(TreeBuilder builder, uint32_t width) {
    switch (builder) {
      case TreeBuilder::kKary:
        return BuildKary(fabric_, request_.members, width, nic_degree_);
      case TreeBuilder::kKnomial:
        return BuildKnomial(fabric_, request_.members, width, nic_degree_);
      default:
        return BuildHierarchicalFrom(fabric_, Groups(), request_.members, width, nic_degree_);
    }
  }

  absl::StatusOr<Type1Result> Evaluate(const Candidate& candidate) {
    Type1Result result;
    ASSIGN_OR_RETURN(result.tree, Build(candidate.builder, candidate.width));
    ASSIGN_OR_RETURN(result.edges, EdgeCosts(snapshot_, profile_, result.tree));
    result.predicted =
        EvaluateMix(profile_, result.tree, result.edges, request_.operation, request_.sizes);
    return result;
  }

  const NestedGroups& Groups() {
    if (!groups_) groups_ = GroupMembers(*snapshot_.hierarchy, request_.members);
    return *groups_;
  }

  // Every width of the interval, the closed form's best first: it is likely good, and what exceeds
  // the least so far need not be bounded to the end.
  void BoundAll(TreeBuilder builder) {
    const size_t first = candidates_.size();
    BoundOne(builder, widths_.best);
    if (!IsTooLarge()) {
      for (uint64_t width = widths_.min; width <= widths_.max; ++width) {
        if (width != widths_.best) BoundOne(builder, static_cast<uint32_t>(width));
      }
    }
    if (candidates_.size() > first) return;
    if (request_.width) {
      Refuse(builder, *request_.width, build_error_);
    } else {
      BoundNarrower(builder);
    }
  }

  bool IsTooLarge() const { return request_.members.size() > kMostRanksForAllWidths; }

  // A k-nomial root has (k - 1) * digits children, so its widest admissible k may lie below the
  // interval: the first one that works, halving.
  void BoundNarrower(TreeBuilder builder) {
    uint32_t width = widths_.min;
    while (width > 2) {
      width = std::max(2U, width / 2);
      if (BoundOne(builder, width)) return;
    }
    Refuse(builder, 2, build_error_);
  }

  bool BoundOne(TreeBuilder builder, uint32_t width) {
    double bound = 0;
    const double cutoff = bound_.is_exact() ? least_us_ : std::numeric_limits<double>::infinity();
    if (builder == TreeBuilder::kHierarchical) {
      if (!BoundHierarchical(width, cutoff, bound)) return false;
    } else {
      if (MostChildren(builder, width) > nic_degree_ || width < 2) {
        build_error_ = Build(builder, width).status();
        return false;
      }
      bound = builder == TreeBuilder::kKary ? bound_.Kary(width, cutoff)
                                            : bound_.Knomial(width, cutoff);
    }
    candidates_.push_back({bound, builder, width, std::nullopt});
    if (bound_.is_exact() && bound <= cutoff) candidates_.back().total_us = bound;
    least_us_ = std::min(least_us_, bound);
    return true;
  }

  // Those of the root: no other rank has more.
  uint64_t MostChildren(TreeBuilder builder, uint32_t width) const {
    const uint64_t others = request_.members.size() - 1;
    if (builder == TreeBuilder::kKary) return std::min<uint64_t>(width, others);
    uint64_t children = 0;
    for (uint64_t unit = 1; unit <= others; unit *= width) {
      children += std::min<uint64_t>(width - 1, others / unit);
    }
    return children;
  }

  // Of widths that give one tree each is a candidate with that tree's bound.
  bool BoundHierarchical(uint32_t width, double cutoff, double& bound) {
    std::vector<int32_t> parents;
    if (width >= 2 && flat_.Find(Groups(), width, nic_degree_)) {
      for (const Flat& known : flats_) {
        if (known.roots == flat_.roots()) {
          bound = known.bound_us;
          return true;
        }
      }
      flat_.Parents(Groups(), parents);
      bound = bound_.Of(parents, cutoff);
      flats_.push_back({{flat_.roots().begin(), flat_.roots().end()}, bound});
      return true;
    }
    absl::StatusOr<AggregationTree> tree = Build(TreeBuilder::kHierarchical, width);
    if (!tree.ok()) {
      build_error_ = tree.status();
      return false;
    }
    if (tree->parents != last_parents_) {
      last_bound_us_ = bound_.Of(tree->parents, cutoff);
      last_parents_ = std::move(tree->parents);
    }
    bound = last_bound_us_;
    return true;
  }

  void Refuse(TreeBuilder builder, uint32_t width, const absl::Status& why) {
    refused_.push_back(
        {TreeType::kTypeI, builder, width, std::nullopt, std::string(why.message())});
  }

  // The best other candidate of each builder, best first, then what could not be had.
  void ListAlternatives(Type1Result& best) const {
    std::vector<Candidate> others;
    for (const TreeBuilder builder : kBuilders) {
      const Candidate* least = nullptr;
      for (const Candidate& candidate : candidates_) {
        if (candidate.builder != builder ||
            (builder == best.tree.builder && candidate.width == best.tree.width)) {
          continue;
        }
        if (least == nullptr || Known(candidate) < Known(*least)) least = &candidate;
      }
      if (least != nullptr) others.push_back(*least);
    }
    std::stable_sort(others.begin(), others.end(),
                     [](const Candidate& a, const Candidate& b) { return Known(a) < Known(b); });
    for (const Candidate& other : others) {
      std::string why_not =
          other.total_us ? "not faster" : absl::StrFormat("takes at least %.2f us", other.bound_us);
      absl::StrAppend(&why_not, WidthsTried());
      best.alternatives.push_back(
          {TreeType::kTypeI, other.builder, other.width, other.total_us, std::move(why_not)});
    }
    best.alternatives.insert(best.alternatives.end(), refused_.begin(), refused_.end());
  }

  static double Known(const Candidate& candidate) {
    return candidate.total_us.value_or(candidate.bound_us);
  }

  std::string WidthsTried() const {
    if (widths_.min == widths_.max) return "";
    if (IsTooLarge()) {
      return absl::StrCat(
          "; of the widths ", widths_.min, " to ", widths_.max,
          " one was tried for each builder, because the communicator has more than ",
          kMostRanksForAllWidths, " members");
    }
    return absl::StrCat("; widths ", widths_.min, " to ", widths_.max, " were considered");
  }

  struct Flat {
    std::vector<uint32_t> roots;
    double bound_us = 0;
  };

  const Snapshot& snapshot_;
  const Fabric& fabric_;
  const CostProfile& profile_;
  const TreeRequest& request_;
  const uint32_t nic_degree_;
  const WidthInterval widths_;
  Type1Bound bound_;
  std::optional<NestedGroups> groups_;  // of the members, once a builder asks
  FlatGroups flat_;
  std::vector<Flat> flats_;            // flat hierarchical trees so far, distinct
  std::vector<int32_t> last_parents_;  // of the last hierarchical tree that is not flat
  double last_bound_us_ = 0;
  std::vector<Candidate> candidates_;
  double least_us_ = std::numeric_limits<double>::infinity();
  std::vector<Alternative> refused_;
  absl::Status build_error_, route_error_;
};

}  // namespace

absl::StatusOr<Type1Result> ChooseType1(const Snapshot& snapshot, const CostProfile& profile,
                                        const TreeRequest& request, const MemberPlaces& places) {
  return Type1Search(snapshot, profile, request, places).Run();
}

}  // namespace coppice
