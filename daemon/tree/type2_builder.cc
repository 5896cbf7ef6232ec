// One candidate root after the other: physical tree, who must serve, who hangs below whom, what it
// costs (Chen 2024, 4.1-4.2; spec: trees, 4).
//
//   nearest roots --> least it can take --> probe: physical tree of --> whole tree --> prediction
//     idle first      (root_choice)         the leaf switches alone,    of all ranks   with queues
//        |                 |                who must serve                  |
//        |                 +-- not sooner --+-- none, or more switches -----+-- the best stays
//        v                                                                  v
//   all others, by the least that they can take: none if the best is proven, or enough was tried

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/contended_metrics.h"
#include "daemon/tree/root_choice.h"
#include "daemon/tree/type2_candidate.h"

namespace coppice {
namespace {

// A root that could win less than this is not looked at, and one farther away not taken.
constexpr double kWorthIt = 1.01;

// What a search may spend once it has a tree; an unfinished search keeps the best so far. Fabrics
// of some hundred switches and communicators of some hundred ranks stay far below.
constexpr uint64_t kMaxRanks = 8192;                      // hung below roots, in sum
constexpr uint64_t kMaxPackets = kMaxPacketsJudged / 16;  // of long messages, followed, in sum
constexpr uint64_t kMaxLeaves = 16384;             // leaf switches whose routes were walked, in sum
constexpr uint64_t kMaxLeavesUntilOne = 1u << 18;  // as long as no root works
constexpr uint64_t kMaxBounds = 1u << 17;  // classes of switches times those of leaf switches
constexpr int kMaxDearer = 16;             // roots that work but take more entries than they might

class Type2Search {
 public:
  explicit Type2Search(const PlanInput& input) : in_(input), fabric_(*input.snapshot.fabric) {
    for (const SwitchCapacity& c : input.capacity) highest_ = std::max(highest_, c.degree_limit);
  }

  Type2Result Run() {
    if (in_.request.members.size() == 1) {
      TakeSingle();
      return std::move(result_);
    }
    const std::vector<SwitchIndex> nearest = Roots();
    reachable_ = nearest.size();
    for (const SwitchIndex root : nearest) {
      if (!Consider(root, kNoBound)) break;
    }
    if (!in_.request.root_switch && !nearest.empty()) SearchFarther(nearest);
    Finish();
    return std::move(result_);
  }

 private:
  void TakeSingle() {
    TimedTree tree;
    tree.tree = RanksOnly(fabric_, in_.request.members);
    tree.tree.parents = {AggregationTree::kNoParent};
    tree.edges.resize(1);
    const VertexIndex root = tree.tree.vertices[0];
    tree.physical = std::make_shared<PhysicalTree>(PhysicalTree{root, {root}, {-1}, {kNoChannel}});
    tree.predicted = EvaluateMix(in_.profile, tree.tree, tree.edges, in_.request);
    result_.best = std::move(tree);
  }

  std::vector<SwitchIndex> Roots() const {
    if (!in_.places.all_on_switches) return {};
    if (in_.request.root_switch) return {*fabric_.FindSwitch(*in_.request.root_switch)};
    std::vector<SwitchIndex> roots = NearestSwitches(in_.snapshot, in_.places.leaf_switches);
    SortRoots(in_.snapshot, in_.capacity, roots);
    return roots;
  }

  const SwitchCapacity& CapacityOf(VertexIndex v) const {
    return in_.capacity[fabric_.AsSwitch(v).value()];
  }

  // --- The order of roots

  // Every root but the nearest ones that may be sooner or, if none of those works, work.
  void SearchFarther(absl::Span<const SwitchIndex> nearest) {
    if (!result_.best && EntriesAreTooFew()) return;
    if (result_.best && !CanAfford()) return;
    const TwinClasses& twins = in_.snapshot.routes->distances().classes();
    if (result_.best && twins.class_count() * Bound().leaf_class_count() > kMaxBounds) return;
    nearest_hops_ = Bound().Farthest(nearest.front());
    std::vector<bool> holds_ranks(fabric_.switch_count());
    for (const SwitchIndex leaf : in_.places.leaf_switches) holds_ranks[leaf.value()] = true;
    std::vector<std::optional<Farther>> of_class(twins.class_count());  // without ranks
    std::vector<SwitchIndex> roots;
    std::vector<Farther> farther;
    for (uint32_t s = 0; s < fabric_.switch_count(); ++s) {
      std::optional<Farther> own;
      std::optional<Farther>& known =
          holds_ranks[s] ? own : of_class[twins.class_of(SwitchIndex(s))];
      if (!known) known = Measure(SwitchIndex(s));
      if (known->hops <= nearest_hops_ || known->hops == RootBound::kUnreachable) continue;
      ++reachable_;
      if (result_.best && !MayBeSooner(known->least_us)) continue;
      roots.emplace_back(s);
      farther.push_back({SwitchIndex(s), known->hops, known->least_us});
    }
    if (roots.empty()) return;
    SortRoots(in_.snapshot, in_.capacity, roots);
    std::vector<uint32_t> place(fabric_.switch_count(), 0);
    for (uint32_t i = 0; i < roots.size(); ++i) place[roots[i].value()] = i;
    const bool by_hops = !result_.best;
    absl::c_sort(farther, [&](const Farther& a, const Farther& b) {
      return std::make_tuple(by_hops ? a.hops : 0, a.least_us, place[a.root.value()]) <
             std::make_tuple(by_hops ? b.hops : 0, b.least_us, place[b.root.value()]);
    });
    if (result_.best) home_hops_ = nearest_hops_;
    for (const Farther& candidate : farther) {
      hops_ = candidate.hops;
      if (!Consider(candidate.root, candidate.least_us)) break;
    }
  }

  struct Farther {
    SwitchIndex root;
    uint32_t hops = 0;  // to the farthest member's switch
    double least_us = 0;
  };

  Farther Measure(SwitchIndex root) {
    Farther measured{root, Bound().Farthest(root), kNoBound};
    if (!result_.best || measured.hops == RootBound::kUnreachable) return measured;
    measured.least_us = LeastUs(root);
    return measured;
  }

  // Of a tree that is taken for this root: with one serving switch that is some root, which is
  // looked at itself; with more the topmost may be another than a root that no rank is on.
  double LeastUs(SwitchIndex root) {
    if (home_entries_ == 1 || Bound().ranks_on(root) > 0) {
      return Bound().LeastUs(root, home_entries_);
    }
    return Bound().LeastUsAnywhere(nearest_hops_, home_entries_);
  }

  bool MayBeSooner(double least_us) const {
    return least_us * kWorthIt < result_.best->predicted.total_us;
  }

  // Not even all of them together could serve.
  bool EntriesAreTooFew() const {
    uint64_t absorbed = 1;
    for (const SwitchCapacity& c : in_.capacity) {
      if (c.entries_free > 0 && c.degree_limit >= 2) absorbed += c.degree_limit - uint64_t{1};
    }
    return absorbed < in_.request.members.size();
  }

  RootBound& Bound() {
    if (!bound_) bound_.emplace(in_.snapshot, in_.profile, in_.request, in_.places);
    return *bound_;
  }

  // --- One root

  static constexpr double kNoBound = 0;

  bool CanAfford() const {
    return ranks_tried_ + in_.request.members.size() <= kMaxRanks &&
           leaves_walked_ + in_.places.leaf_switches.size() <= kMaxLeaves &&
           packets_followed_ <= kMaxPackets;
  }

  // Whether the roots as near as the first one that worked are still being compared by entries.
  bool IsHome() const { return hops_ == home_hops_; }

  // False: no further root is to be looked at.
  bool Consider(SwitchIndex root, double least_us) {
    if (!result_.best) return TryFirst(root);
    if (!CanAfford()) {
      const bool may_save = has_weaker_ && can_improve_ && IsHome();
      if (!may_save || ++dearer_tried_ >= kMaxDearer) return false;
    }
    const uint32_t entries = home_entries_;
    if (entries <= LeastEntries() || !IsHome()) {
      if (!MayBeSooner(least_us == kNoBound ? LeastUs(root) : least_us)) return true;
    }
    if (IsTwinOfTried(root)) return true;
    const std::optional<Probe> probe = ProbeRoot(root);
    if (!probe || probe->entries > entries) return true;
    const bool may_save = probe->entries < entries && IsHome();
    const bool may_serve_alone = probe->entries == 1 && probe->top != root;
    if (!may_save && !may_serve_alone) {
      if (!probe->is_new || !MayBeSooner(Bound().LeastUs(probe->top, probe->entries))) return true;
    }
    TryWhole(root);
    return true;
  }

  // As long as none works: whole at once if it is the first, which mostly works.
  bool TryFirst(SwitchIndex root) {
    if (tried_ == 0) {
      first_ = root;
    } else {
      if (leaves_walked_ > kMaxLeavesUntilOne) return false;
      if (IsTwinOfTried(root)) {
        if (Serves(root) < 2) blamed_.push_back(root);  // as its twin was
        return true;
      }
      if (!ProbeRoot(root)) return true;
    }
    home_hops_ = hops_;
    TryWhole(root);
    return true;
  }

  void TryWhole(SwitchIndex root) {
    ++tried_;
    absl::StatusOr<PhysicalTree> physical =
        BuildPhysicalTree(in_.snapshot, in_.places.endpoints, root);
    if (!physical.ok()) {
      route_trouble_ = std::string(physical.status().message());
      return;
    }
    ranks_tried_ += in_.request.members.size();
    const Type2Candidate candidate =
        MakeType2Candidate(fabric_, in_.capacity, in_.places, highest_, *std::move(physical));
    has_weaker_ |= candidate.has_weaker;
    Try(candidate);
    can_improve_ = !CannotImprove(candidate);
  }

  // What a root's tree would be, found for one endpoint of each leaf switch.
  struct Probe {
    uint32_t entries = 0;
    SwitchIndex top;      // of those that serve
    bool is_new = false;  // may take another time than a tree that was tried
  };

  // Nothing: no tree from there.
  std::optional<Probe> ProbeRoot(SwitchIndex root) {
    if (leaf_places_.endpoints.empty()) FillLeafPlaces();
    leaves_walked_ += in_.places.leaf_switches.size();
    absl::StatusOr<PhysicalTree> physical =
        BuildPhysicalTree(in_.snapshot, leaf_places_.endpoints, root);
    if (!physical.ok()) {
      ++tried_;
      route_trouble_ = std::string(physical.status().message());
      return std::nullopt;
    }
    const Type2Candidate candidate =
        MakeType2Candidate(fabric_, in_.capacity, leaf_places_, highest_, *std::move(physical));
    has_weaker_ |= candidate.has_weaker;
    const ReductionChoice choice = ChooseServing(candidate.switches(candidate.degrees, {}));
    if (!choice.feasible) {
      ++tried_;
      Blame(candidate, choice);
      return std::nullopt;
    }
    const uint32_t top = choice.serving.front();
    return Probe{static_cast<uint32_t>(choice.serving.size()),
                 fabric_.AsSwitch(candidate.physical->vertices[top]),
                 !LinksAreAlike() || shapes_.insert(ShapeOf(candidate, top)).second};
  }

  void FillLeafPlaces() {
    std::vector<uint32_t> at(in_.places.leaf_switches.size(), UINT32_MAX);
    for (size_t e = 0; e < in_.places.endpoints.size(); ++e) {
      uint32_t& place = at[in_.places.leaf_of_endpoint[e]];
      if (place == UINT32_MAX) {
        place = static_cast<uint32_t>(leaf_places_.endpoints.size());
        leaf_places_.endpoints.push_back(in_.places.endpoints[e]);
        leaf_places_.ranks_at.push_back(0);
      }
      leaf_places_.ranks_at[place] += in_.places.ranks_at[e];
    }
  }

  // --- Roots that are alike: where nothing is loaded and all links are of one capacity, only hops
  // and degree limits tell two trees apart.

  bool LinksAreAlike() {
    if (links_are_alike_) return *links_are_alike_;
    links_are_alike_ = in_.predicting.load->empty();
    float gbps = -1;
    for (uint32_t i = 0; *links_are_alike_ && i < fabric_.link_count(); ++i) {
      const float capacity = fabric_.link(LinkIndex(i)).capacity_gbps;
      if (gbps < 0) gbps = capacity;
      links_are_alike_ = capacity == gbps;
    }
    return *links_are_alike_;
  }

  // A twin of a root that was tried, without ranks on either. Notes it.
  bool IsTwinOfTried(SwitchIndex root) {
    if (in_.snapshot.routes->kind() != RouteKind::kShortestPath || !LinksAreAlike()) return false;
    if (first_) NoteTwin(*std::exchange(first_, std::nullopt));
    return !NoteTwin(root);
  }

  // False: one was noted before.
  bool NoteTwin(SwitchIndex root) {
    if (Bound().ranks_on(root) > 0) return true;
    return twins_tried_
        .insert({in_.snapshot.routes->distances().classes().class_of(root), Serves(root),
                 fabric_.switch_channels(root).size()})
        .second;
  }

  // Most children in a new tree.
  uint32_t Serves(SwitchIndex s) const {
    const SwitchCapacity& c = in_.capacity[s.value()];
    return c.entries_free > 0 ? c.degree_limit : 0;
  }

  // Parents, ranks and limits of the switches from the topmost serving one on.
  static std::vector<uint32_t> ShapeOf(const Type2Candidate& candidate, uint32_t top) {
    std::vector<uint32_t> shape;
    shape.reserve(3 * (candidate.switch_count() - top));
    for (size_t v = top; v < candidate.switch_count(); ++v) {
      shape.push_back(v == top ? 0 : static_cast<uint32_t>(candidate.physical->parents[v]) - top);
      shape.push_back(candidate.members_on[v]);
      shape.push_back(candidate.degrees[v]);
    }
    return shape;
  }

  // --- One physical tree

  // No tree takes fewer entries.
  uint32_t LeastEntries() const {
    return static_cast<uint32_t>((in_.request.members.size() - 1 + highest_ - 2) / (highest_ - 1));
  }

  // Keeps its best tree if that beats what was found before.
  void Try(const Type2Candidate& candidate) {
    const std::vector<uint32_t> upper = ServingPreference(in_.snapshot, candidate, false);
    ReductionChoice choice = ChooseServing(candidate.switches(candidate.degrees, upper));
    if (!choice.feasible) {
      Blame(candidate, choice);
      return;
    }
    if (!result_.best && CanAfford()) shapes_.insert(ShapeOf(candidate, choice.serving.front()));
    const std::vector<uint32_t> lower = ServingPreference(in_.snapshot, candidate, true);
    ReductionChoice other = ChooseServing(candidate.switches(candidate.degrees, lower));
    if (other.serving != choice.serving) Offer(candidate, other.serving);
    Offer(candidate, choice.serving);
    // Where one switch serves, a root that others are behind may do so, too.
    const std::vector<uint32_t> root_alone = {0};
    if (choice.serving.size() == 1 && choice.serving != root_alone && !in_.request.root_switch &&
        candidate.degrees[0] >= in_.request.members.size()) {
      Offer(candidate, root_alone);
    }
  }

  // Near roots: fewest serving switches, then the sooner one. Farther ones: sooner with no more.
  void Offer(const Type2Candidate& candidate, absl::Span<const uint32_t> serving) {
    double cutoff_us = kNoCutoff;
    if (result_.best) {
      if (serving.size() > home_entries_) return;
      const double best_us = result_.best->predicted.total_us;
      if (!IsHome()) {
        cutoff_us = best_us / kWorthIt;
      } else if (serving.size() == home_entries_) {
        cutoff_us = best_us;
      }
    }
    TimedTree offer;
    offer.tree = HangRanks(fabric_, in_.request.members, in_.places, *candidate.physical,
                           candidate.members, candidate.degrees, serving);
    if (const absl::Status status = Predict(offer, cutoff_us); !status.ok()) {
      route_trouble_ = std::string(status.message());
      return;
    }
    if (offer.predicted.total_us >= cutoff_us) return;
    offer.physical = candidate.physical;
    NoteWhatMadeItDearer(candidate, serving.size());
    result_.may_serve_more = serving.size() < Helpers(candidate).size();
    result_.best = std::move(offer);
    if (IsHome()) home_entries_ = static_cast<uint32_t>(serving.size());
  }

  // Exact unless it is not below the cutoff.
  absl::Status Predict(TimedTree& offer, double cutoff_us) {
    RETURN_IF_ERROR(EdgeCosts(in_.predicting, in_.profile, offer.tree, path_, offer.edges));
    offer.predicted = EvaluateMix(in_.profile, offer.tree, offer.edges, in_.request);
    const bool is_long = AnyIsLong(in_.profile, in_.request);
    if (!is_long && offer.predicted.total_us >= cutoff_us) return absl::OkStatus();
    if (is_long) {
      packets_followed_ += PacketsToFollow(in_.profile, in_.request, in_.request.members.size());
    }
    return AddContention(in_.predicting, in_.profile, offer.tree, offer.edges, in_.request,
                         offer.predicted, cutoff_us);
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

  void Blame(const Type2Candidate& candidate, const ReductionChoice& choice) {
    if (choice.in_the_way.empty()) limits_too_low_ = true;
    for (const uint32_t v : choice.in_the_way) {
      blamed_.push_back(fabric_.AsSwitch(candidate.physical->vertices[v]));
    }
  }

  void Finish() {
    std::vector<SwitchIndex>& full = result_.best ? dearer_ : blamed_;
    absl::c_sort(full);
    full.erase(std::unique(full.begin(), full.end()), full.end());
    for (const SwitchIndex s : full) {
      const SwitchCapacity& capacity = in_.capacity[s.value()];
      result_.full_switches.push_back({s, capacity.entries_total, capacity.is_barred});
    }
    if (result_.best) return;
    if (!in_.places.all_on_switches) {
      result_.routes_are_wrong = true;
      result_.why_not = "a member's port is not cabled to a switch";
    } else if (reachable_ == 0) {
      result_.routes_are_wrong = true;
      result_.why_not = "no switch reaches all members";
    } else if (!result_.full_switches.empty()) {
      result_.why_not = absl::StrCat(WhoDoesNotWork(), ": ", full.size(),
                                     " switch(es) on the way have no free entry or ",
                                     in_.request.carried ? "do not speak" : "cannot aggregate");
    } else if (limits_too_low_) {
      result_.why_not =
          absl::StrCat("the switches' degree limits (at most ", highest_, ") are too low for ",
                       in_.request.members.size(), " members: ", WhoDoesNotWork());
    } else {
      result_.routes_are_wrong = true;
      result_.why_not = route_trouble_;
    }
  }

  // Roots that are alike count as tried.
  std::string WhoDoesNotWork() const {
    if (in_.request.root_switch) return "the root that was asked for does not work";
    if (leaves_walked_ <= kMaxLeavesUntilOne) return "no switch works as the root";
    return absl::StrCat("none of the ", tried_, " switches that were tried as the root works, of ",
                        reachable_, ", the nearest to the members first");
  }

  const PlanInput in_;
  const Fabric& fabric_;
  uint32_t highest_ = 0;  // highest degree limit of any switch
  Type2Result result_;
  std::vector<SwitchIndex> blamed_, dearer_;
  std::string route_trouble_;
  bool limits_too_low_ = false;

  std::optional<RootBound> bound_;
  MemberPlaces leaf_places_;   // one endpoint of each leaf switch, with the ranks of all of them
  uint32_t nearest_hops_ = 0;  // of the nearest roots to the farthest member
  uint32_t home_entries_ = 0;  // the fewest of those as near as the first that worked
  uint32_t hops_ = 0, home_hops_ = 0;  // of the root at hand; of the first that worked
  size_t reachable_ = 0, tried_ = 0;   // roots
  uint64_t ranks_tried_ = 0, leaves_walked_ = 0, packets_followed_ = 0;
  int dearer_tried_ = 0;
  bool has_weaker_ = false, can_improve_ = false;
  std::optional<bool> links_are_alike_;
  std::optional<SwitchIndex> first_;  // that was tried and is in neither of these
  std::set<std::tuple<uint32_t, uint32_t, size_t>> twins_tried_;  // class, limit, cables
  std::set<std::vector<uint32_t>> shapes_;
  std::vector<ChannelIndex> path_;
};

}  // namespace

bool TriesType2(const TreeRequest& request, const CostProfile& profile) {
  if (request.type || request.builder) return request.type == TreeType::kTypeII;
  return !request.carried || profile.switch_is_measured;
}

Type2Result BuildType2(const PlanInput& input) { return Type2Search(input).Run(); }

}  // namespace coppice
