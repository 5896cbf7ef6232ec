// One candidate root after the other: physical tree, who must serve, who hangs below whom, what it
// costs (Chen 2024, 4.1-4.2; spec: trees, 4).
//
//   roots, best first --> physical tree --> fewest serving switches --> exact prediction
//        ^                                       |
//        +---------- next, if there is no set ---+
#include "daemon/tree/type2_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/tree/minimum_cost.h"
#include "daemon/tree/physical_tree.h"
#include "daemon/tree/root_choice.h"
#include "daemon/tree/type2_candidate.h"
#include "daemon/tree/type2_ranks.h"

namespace coppice {
namespace {

constexpr int kMostCompared = 16;  // candidates that work but might be beaten

class Type2Search {
 public:
  Type2Search(const Snapshot& snapshot, const Snapshot& predicting, const CostProfile& profile,
              absl::Span<const SwitchCapacity> capacity, const TreeRequest& request,
              const MemberPlaces& places)
      : snapshot_(snapshot),
        predicting_(predicting),
        fabric_(*snapshot.fabric),
        profile_(profile),
        capacity_(capacity),
        request_(request),
        places_(places) {
    for (const SwitchCapacity& c : capacity) highest_ = std::max(highest_, c.degree_limit);
  }

  Type2Result Run() {
    if (request_.members.size() == 1) {
      TakeSingle();
      return std::move(result_);
    }
    const std::vector<SwitchIndex> roots = Roots();
    int compared = 0;
    for (const SwitchIndex root : roots) {
      absl::StatusOr<PhysicalTree> physical = BuildPhysicalTree(snapshot_, places_.endpoints, root);
      if (!physical.ok()) {
        route_trouble_ = std::string(physical.status().message());
        continue;
      }
      const Type2Candidate candidate =
          MakeType2Candidate(fabric_, capacity_, places_, highest_, *std::move(physical));
      if (!Try(candidate)) continue;
      if (!candidate.has_weaker || ++compared == kMostCompared || CannotImprove(candidate)) break;
    }
    Finish(roots);
    return std::move(result_);
  }

 private:
  using Tree = Type2Result::Tree;

  void TakeSingle() {
    Tree tree;
    tree.tree = RanksOnly(fabric_, request_.members);
    tree.tree.parents = {AggregationTree::kNoParent};
    tree.edges.resize(1);
    tree.physical.root = tree.tree.vertices[0];
    tree.physical.vertices = {tree.physical.root};
    tree.physical.parents = {-1};
    tree.physical.up = {kNoChannel};
    tree.predicted =
        EvaluateMix(profile_, tree.tree, tree.edges, request_.operation, request_.sizes);
    result_.best = std::move(tree);
  }

  std::vector<SwitchIndex> Roots() const {
    if (!places_.all_on_switches) return {};
    if (request_.root) return {*request_.root};
    std::vector<SwitchIndex> roots = NearestSwitches(snapshot_, places_.leaf_switches);
    SortRoots(snapshot_, capacity_, roots);
    return roots;
  }

  const SwitchCapacity& CapacityOf(VertexIndex v) const {
    return capacity_[fabric_.AsSwitch(v).value()];
  }

  // True if the candidate works; keeps its best tree if that beats what was found before.
  bool Try(const Type2Candidate& candidate) {
    const std::vector<uint32_t> upper = ServingPreference(snapshot_, candidate, false);
    ReductionChoice choice = ChooseServing(candidate.switches(candidate.degrees, upper));
    if (!choice.feasible) {
      for (const uint32_t v : choice.in_the_way) Blame(candidate.physical->vertices[v]);
      if (choice.in_the_way.empty()) limits_too_low_ = true;
      return false;
    }
    const std::vector<uint32_t> lower = ServingPreference(snapshot_, candidate, true);
    ReductionChoice other = ChooseServing(candidate.switches(candidate.degrees, lower));
    if (other.serving != choice.serving) Offer(candidate, other.serving);
    Offer(candidate, choice.serving);
    return result_.best.has_value();
  }

  void Offer(const Type2Candidate& candidate, absl::Span<const uint32_t> serving) {
    if (result_.best && serving.size() > result_.best->tree.serving_switch_count()) return;
    Tree offer;
    offer.tree = HangRanks(fabric_, request_.members, places_, *candidate.physical,
                           candidate.members, candidate.degrees, serving);
    absl::StatusOr<std::vector<EdgeCost>> edges = EdgeCosts(predicting_, profile_, offer.tree);
    if (!edges.ok()) {
      route_trouble_ = std::string(edges.status().message());
      return;
    }
    offer.edges = *std::move(edges);
    offer.predicted =
        EvaluateMix(profile_, offer.tree, offer.edges, request_.operation, request_.sizes);
    if (result_.best && serving.size() == result_.best->tree.serving_switch_count() &&
        offer.predicted.total_us >= result_.best->predicted.total_us) {
      return;
    }
    offer.physical = *candidate.physical;
    NoteWhatMadeItDearer(candidate, serving.size());
    result_.best = std::move(offer);
  }

  // The fewest serving switches of this physical tree if entries were free wherever there are any.
  void NoteWhatMadeItDearer(const Type2Candidate& candidate, size_t count) {
    dearer_.clear();
    std::vector<uint32_t> relaxed;
    for (size_t v = 0; v < candidate.switch_count(); ++v) {
      const SwitchCapacity& c = CapacityOf(candidate.physical->vertices[v]);
      if (c.entries_free > 0 || c.degree_limit < 2) continue;
      if (relaxed.empty()) relaxed = candidate.degrees;
      relaxed[v] = c.degree_limit;
    }
    if (relaxed.empty()) return;
    const ReductionChoice choice = ChooseServing(candidate.switches(relaxed, {}));
    if (choice.serving.size() >= count) return;
    for (const uint32_t v : choice.serving) {
      const VertexIndex vertex = candidate.physical->vertices[v];
      if (CapacityOf(vertex).entries_free == 0) dearer_.push_back(fabric_.AsSwitch(vertex));
    }
  }

  // True if this physical tree would need as many switches if all were as good as the best one.
  bool CannotImprove(const Type2Candidate& candidate) const {
    if (!result_.best) return false;
    const std::vector<uint32_t> alike(candidate.switch_count(), highest_);
    return ChooseServing(candidate.switches(alike, {})).serving.size() >=
           result_.best->tree.serving_switch_count();
  }

  void Blame(VertexIndex v) {
    if (CapacityOf(v).entries_free == 0 || CapacityOf(v).degree_limit < 2) {
      blamed_.push_back(fabric_.AsSwitch(v));
    } else {
      limits_too_low_ = true;
    }
  }

  void Finish(absl::Span<const SwitchIndex> roots) {
    std::vector<SwitchIndex>& full = result_.best ? dearer_ : blamed_;
    std::sort(full.begin(), full.end());
    full.erase(std::unique(full.begin(), full.end()), full.end());
    for (const SwitchIndex s : full) {
      result_.full_switches.push_back({s, capacity_[s.value()].entries_total});
    }
    if (result_.best) return;
    if (!places_.all_on_switches) {
      result_.routes_are_wrong = true;
      result_.why_not = "a member's port is not cabled to a switch";
    } else if (roots.empty()) {
      result_.routes_are_wrong = true;
      result_.why_not = "no switch reaches all members";
    } else if (!result_.full_switches.empty()) {
      result_.why_not =
          absl::StrCat("none of ", roots.size(), " candidate root(s) works: ", full.size(),
                       " switch(es) on the way have no free entry or cannot aggregate");
    } else if (limits_too_low_) {
      result_.why_not = absl::StrCat("the switches' degree limits (at most ", highest_,
                                     ") are too low for ", request_.members.size(), " members");
    } else {
      result_.routes_are_wrong = true;
      result_.why_not = route_trouble_;
    }
  }

  const Snapshot& snapshot_;
  const Snapshot& predicting_;
  const Fabric& fabric_;
  const CostProfile& profile_;
  const absl::Span<const SwitchCapacity> capacity_;
  const TreeRequest& request_;
  const MemberPlaces& places_;
  uint32_t highest_ = 0;  // highest degree limit of any switch
  Type2Result result_;
  std::vector<SwitchIndex> blamed_, dearer_;
  std::string route_trouble_;
  bool limits_too_low_ = false;
};

}  // namespace

Type2Result BuildType2(const Snapshot& snapshot, const Snapshot& predicting,
                       const CostProfile& profile, absl::Span<const SwitchCapacity> capacity,
                       const TreeRequest& request, const MemberPlaces& places) {
  return Type2Search(snapshot, predicting, profile, capacity, request, places).Run();
}

}  // namespace coppice
