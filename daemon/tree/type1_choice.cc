// Best first over (builder, width). A candidate has a least time, found in up to three steps, each
// dearer than the last and never less; whoever has the least takes the next step, until all others
// are known to take as long as the best whose time is known.
//
//   counted        O(P / k) a tree, nothing built        type1_bound.h     the time itself where
//   edge by edge   O(P), edges without their routes      type1_bound.h     these two are exact
//   evaluated      every route walked                    tree_metrics.h    always the time
//
// Where links' queues slow the best one down, some of the others are judged with queues, too
// (contended_metrics.h): without them is the least that they could take.
//
// Long messages have steps of their own: a bound from the first and last packet of each edge
// (contended_metrics.h), then every packet followed (packet_metrics.cc).
//
// Hierarchical trees start at the second step; mostly they need no arranging (group_slots.h). There
// are a few postal trees, the first of which is improved.
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/contended_metrics.h"
#include "daemon/tree/group_slots.h"
#include "daemon/tree/type1.h"
#include "daemon/tree/type1_bound.h"
#include "daemon/tree/type1_postal.h"

namespace coppice {
namespace {

constexpr std::array kBuilders = {TreeBuilder::kKary, TreeBuilder::kKnomial,
                                  TreeBuilder::kHierarchical, TreeBuilder::kPostal};
constexpr double kAlikeTimes = 1 + 1e-9;  // sums in another order differ by less

// Ranks of all trees that are judged with links' queues, in sum: 16 trees of 512 ranks.
constexpr size_t kMaxRanksLookedAt = 8192;

struct Candidate {
  TreeBuilder builder = TreeBuilder::kKary;
  uint32_t width = 0;
  double least_us = 0;
  uint32_t postal = 0;      // which of the postal trees
  bool is_counted = false;  // and nothing more
  bool is_known = false;    // least_us is its time
  bool is_refused = false;  // it has no route
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
        widths_to_try_(WidthsToTry(profile, request, nic_degree_)),
        follows_packets_(
            FollowsPackets(profile, request, static_cast<uint32_t>(request.members.size()))) {
    bound_.emplace(snapshot, profile, request, places);
    if (!places.all_on_switches || follows_packets_) return;
    if (request.builder == TreeBuilder::kHierarchical || request.builder == TreeBuilder::kPostal) {
      return;
    }
    count_.emplace(snapshot, profile, request, places, bound_->is_exact(), bound_->between_gbps());
  }

  absl::StatusOr<Type1Result> Run(double limit_us) {
    for (const TreeBuilder builder : kBuilders) {
      if (builder == TreeBuilder::kHierarchical) count_.reset();  // room for what is built now
      if (request_.builder && *request_.builder != builder) continue;
      if (builder == TreeBuilder::kPostal) {
        AdmitPostal();
      } else {
        AdmitAll(builder);
      }
    }
    if (candidates_.empty()) return NothingFits();
    if (follows_packets_) return FollowPackets();
    RefineBestFirst();
    bound_.reset();
    Candidate* quickest = nullptr;  // the first of those alike
    for (Candidate& candidate : candidates_) {
      if (!candidate.is_known || candidate.least_us > least_us_ * kAlikeTimes) continue;
      if (quickest == nullptr) quickest = &candidate;
    }
    if (quickest == nullptr) return absl::FailedPreconditionError(route_error_.message());
    const bool is_large = request_.members.size() > kMaxRanksContended;
    if (is_large && !best_ && quickest->least_us > limit_us) return Take(*quickest);
    if (is_large && quickest->builder != TreeBuilder::kHierarchical) {
      flat_.reset();  // room for what is evaluated now
      groups_.reset();
    }
    if (!best_ || best_of_ != static_cast<size_t>(quickest - candidates_.data())) {
      absl::StatusOr<TimedTree> tree = Evaluate(*quickest);
      if (!tree.ok()) return absl::FailedPreconditionError(tree.status().message());
      best_ = *std::move(tree);
    }
    return Take(*Contend(quickest));
  }

 private:
  // --- Candidates: by builder, then by width.

  void AdmitAll(TreeBuilder builder) {
    const size_t before = candidates_.size();
    const bool only_best = TriesOnlyBest(builder);
    for (const uint32_t width : widths_to_try_) {
      if (!only_best || width == widths_.best) Admit(builder, width);
    }
    if (candidates_.size() > before) return;
    // A k-nomial root has (k - 1) * digits children, so its widest admissible k may lie below the
    // interval: the first one that works, halving.
    uint32_t width = widths_.min;
    while (!request_.width && width > 2 && candidates_.size() == before) {
      width = std::max(2U, width / 2);
      Admit(builder, width);
    }
    if (candidates_.size() == before) {
      Refuse(builder, width, Build(builder, width).status());
    }
  }

  bool TriesOnlyBest(TreeBuilder builder) const {
    return builder == TreeBuilder::kHierarchical &&
           request_.members.size() > kMaxRanksForAllHierarchical;
  }

  void Admit(TreeBuilder builder, uint32_t width) {
    if (builder == TreeBuilder::kHierarchical) {
      AdmitHierarchical(width);
    } else if (MostChildren(builder, width) <= nic_degree_) {
      Candidate candidate = {.builder = builder, .width = width};
      if (count_) {
        candidate.least_us = builder == TreeBuilder::kKary
                                 ? count_->Kary(width, least_us_ * kAlikeTimes)
                                 : count_->Knomial(width, least_us_ * kAlikeTimes);
        candidate.is_counted = true;
        if (count_->is_exact()) Know(candidate);
      }
      candidates_.push_back(candidate);
    }
  }

  // Those of the root: no other rank has more.
  uint64_t MostChildren(TreeBuilder builder, uint32_t width) const {
    const uint64_t others = request_.members.size() - 1;
    if (builder != TreeBuilder::kKnomial) return std::min<uint64_t>(width, others);
    uint64_t children = 0;
    for (uint64_t unit = 1; unit <= others; unit *= width) {
      children += std::min<uint64_t>(width - 1, others / unit);
    }
    return children;
  }

  // Of widths that give one tree the lowest. Flat groups with roots seen before need no building.
  void AdmitHierarchical(uint32_t width) {
    if (FindFlat(width)) {
      std::vector<uint32_t> roots(flat_->roots().begin(), flat_->roots().end());
      if (absl::c_linear_search(flat_roots_, roots)) return;
      flat_roots_.push_back(std::move(roots));
    }
    absl::StatusOr<AggregationTree> tree = Build(TreeBuilder::kHierarchical, width);
    if (!tree.ok() || absl::c_linear_search(hierarchical_, tree->parents)) return;
    Candidate candidate = {.builder = TreeBuilder::kHierarchical, .width = width};
    if (!follows_packets_) BoundEdges(candidate, tree->parents);
    candidates_.push_back(candidate);
    hierarchical_.push_back(std::move(tree->parents));
  }

  // Auto with a width asks for a k-ary or k-nomial shape.
  void AdmitPostal() {
    if (!request_.builder && request_.width) return;
    if (!request_.builder && request_.members.size() > kMaxRanksForPostal) {
      return Refuse(TreeBuilder::kPostal, 0,
                    absl::ResourceExhaustedError(absl::StrCat(
                        "not tried: the communicator has more than ", kMaxRanksForPostal,
                        " members; ask for the builder to have one")));
    }
    absl::StatusOr<std::vector<PostalTree>> trees = BuildPostals();
    if (!trees.ok()) return Refuse(TreeBuilder::kPostal, 2, trees.status());
    postal_ = *std::move(trees);
    // Contention is not looked at among more ranks: then the first one is the best.
    if (request_.members.size() > kMaxRanksContended) postal_.resize(1);
    for (uint32_t i = 0; i < postal_.size(); ++i) {
      const PostalTree& postal = postal_[i];
      Candidate candidate = {
          .builder = TreeBuilder::kPostal, .width = postal.tree.width, .postal = i};
      if (follows_packets_) {           // how it was judged says little of many packets
      } else if (bound_->is_exact()) {  // by which it was judged
        candidate.least_us = postal.us;
        Know(candidate);
      } else {
        BoundEdges(candidate, postal.tree.parents);
      }
      candidates_.push_back(candidate);
    }
  }

  absl::StatusOr<std::vector<PostalTree>> BuildPostals() {
    AggregationTree bare;
    ASSIGN_OR_RETURN(bare, BareTypeITree(fabric_, request_.members, TreeBuilder::kPostal, 2));
    PostalJudge judge(snapshot_, profile_, request_, std::move(bare), &*bound_);
    return PostalTrees(snapshot_, profile_, request_, nic_degree_,
                       [&](absl::Span<const int32_t> parents, double cutoff_us) {
                         return judge.Of(parents, cutoff_us);
                       });
  }

  // --- Steps.

  void RefineBestFirst() {
    using Entry = std::pair<double, size_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    for (size_t c = 0; c < candidates_.size(); ++c) {
      if (!candidates_[c].is_known) open.emplace(candidates_[c].least_us, c);
    }
    while (!open.empty() && open.top().first <= least_us_ * kAlikeTimes) {
      const size_t c = open.top().second;
      open.pop();
      Candidate& candidate = candidates_[c];
      Refine(candidate);
      if (!candidate.is_known && !candidate.is_refused) open.emplace(candidate.least_us, c);
    }
  }

  void Refine(Candidate& candidate) {
    if (candidate.is_counted) {
      candidate.is_counted = false;
      const absl::StatusOr<AggregationTree> tree = Build(candidate);
      if (tree.ok()) BoundEdges(candidate, tree->parents);
      return;
    }
    absl::StatusOr<TimedTree> tree = Evaluate(candidate);
    if (!tree.ok()) return RefuseForRoute(candidate, tree.status());
    candidate.least_us = tree->predicted.total_us;
    if (!best_ || candidate.least_us < best_->predicted.total_us) {
      best_ = *std::move(tree);
      best_of_ = static_cast<size_t>(&candidate - candidates_.data());
    }
    Know(candidate);
  }

  void BoundEdges(Candidate& candidate, absl::Span<const int32_t> parents) {
    const double bound_us = bound_->Of(parents, least_us_ * kAlikeTimes);
    candidate.least_us = std::max(candidate.least_us, bound_us);
    if (bound_->is_exact()) Know(candidate);
  }

  // --- Long messages: the candidates' bounds say in which order packets are followed, and when all
  // others are known to take longer.

  absl::StatusOr<Type1Result> FollowPackets() {
    bound_.reset();
    std::vector<size_t> order;
    for (size_t c = 0; c < candidates_.size(); ++c) {
      if (BoundPackets(candidates_[c])) order.push_back(c);
    }
    if (order.empty()) return absl::FailedPreconditionError(route_error_.message());
    absl::c_stable_sort(order, [&](size_t a, size_t b) {
      return candidates_[a].least_us < candidates_[b].least_us;
    });
    uint64_t left = kMaxPacketsJudged;
    const uint64_t each = PacketsToFollow(profile_, request_, request_.members.size());
    for (const size_t c : order) {
      if (best_ && (candidates_[c].least_us > least_us_ * kAlikeTimes || left < each)) break;
      left -= std::min(left, each);
      RETURN_IF_ERROR(Follow(c));
    }
    return Take(candidates_[best_of_]);
  }

  struct Routed {
    TimedTree tree;  // not predicted
    TreeRoutes routes;
  };

  absl::StatusOr<Routed> Route(const Candidate& candidate) {
    Routed routed;
    ASSIGN_OR_RETURN(routed.tree, BuildWithEdges(candidate));
    ASSIGN_OR_RETURN(routed.routes, FindRoutes(snapshot_, profile_, routed.tree.tree));
    return routed;
  }

  // False if it has no route.
  bool BoundPackets(Candidate& candidate) {
    const absl::StatusOr<Routed> routed = Route(candidate);
    if (!routed.ok()) {
      RefuseForRoute(candidate, routed.status());
      return false;
    }
    candidate.least_us =
        LeastContendedUs(profile_, routed->tree.tree, routed->tree.edges, routed->routes, request_);
    return true;
  }

  // `best_` becomes the first of those that take the least.
  absl::Status Follow(size_t c) {
    Candidate& candidate = candidates_[c];
    ASSIGN_OR_RETURN(Routed routed, Route(candidate));
    TimedTree& tree = routed.tree;
    const double cutoff_us = least_us_ * kAlikeTimes;
    tree.predicted =
        EvaluateContendedMix(profile_, tree.tree, tree.edges, routed.routes, request_, cutoff_us);
    candidate.least_us = std::max(candidate.least_us, tree.predicted.total_us);
    const bool is_better = !best_ || tree.predicted.total_us * kAlikeTimes < least_us_;
    const bool is_first = best_ && c < best_of_ && tree.predicted.total_us <= cutoff_us;
    Know(candidate);
    if (!is_better && !is_first) return absl::OkStatus();
    best_ = std::move(tree);
    best_of_ = c;
    return absl::OkStatus();
  }

  // --- Contention: the best so far may be slower than others where its packets share links.

  // The winner, now that links have queues. `best_` is of `quickest` and becomes the winner's.
  // Looks at each builder's quickest other candidate in turn, while some might still win.
  const Candidate* Contend(Candidate* quickest) {
    const double alone_us = best_->predicted.total_us;
    AddContentionTo(*best_);
    quickest->least_us = best_->predicted.total_us;
    if (best_->predicted.total_us <= alone_us * kAlikeTimes) return quickest;
    std::vector<bool> looked(candidates_.size(), false);
    looked[static_cast<size_t>(quickest - candidates_.data())] = true;
    const Candidate* winner = quickest;
    size_t left = kMaxRanksLookedAt / request_.members.size();
    for (bool found = true; found;) {
      found = false;
      for (const TreeBuilder builder : kBuilders) {
        Candidate* next = left > 0 ? QuickestOf(builder, looked) : nullptr;
        if (next == nullptr) continue;
        found = true;
        --left;
        absl::StatusOr<TimedTree> tree = Evaluate(*next);
        if (!tree.ok()) continue;
        AddContentionTo(*tree);
        next->least_us = tree->predicted.total_us;
        next->is_known = true;
        if (next->least_us * kAlikeTimes >= best_->predicted.total_us) continue;
        best_ = *std::move(tree);
        winner = next;
      }
    }
    return winner;
  }

  // The one of `builder` that could be quickest of those not looked at, if it could still win.
  Candidate* QuickestOf(TreeBuilder builder, std::vector<bool>& looked) {
    Candidate* quickest = nullptr;
    for (size_t c = 0; c < candidates_.size(); ++c) {
      Candidate& candidate = candidates_[c];
      if (looked[c] || candidate.builder != builder || candidate.is_refused) continue;
      if (candidate.least_us * kAlikeTimes >= best_->predicted.total_us) continue;
      if (quickest == nullptr || candidate.least_us < quickest->least_us) quickest = &candidate;
    }
    if (quickest != nullptr) looked[static_cast<size_t>(quickest - candidates_.data())] = true;
    return quickest;
  }

  // A tree whose edges have routes.
  void AddContentionTo(TimedTree& tree) {
    const absl::Status status =
        AddContention(snapshot_, profile_, tree.tree, tree.edges, request_, tree.predicted);
    if (!status.ok()) route_error_ = status;
  }

  // `least_us` is exact, if it is not cut off.
  void Know(Candidate& candidate) {
    candidate.is_known = candidate.least_us <= least_us_ * kAlikeTimes;
    least_us_ = std::min(least_us_, candidate.least_us);
  }

  absl::StatusOr<TimedTree> BuildWithEdges(const Candidate& candidate) {
    TimedTree tree;
    ASSIGN_OR_RETURN(tree.tree, Build(candidate));
    RETURN_IF_ERROR(EdgeCosts(snapshot_, profile_, tree.tree, path_, tree.edges));
    return tree;
  }

  absl::StatusOr<TimedTree> Evaluate(const Candidate& candidate) {
    ASSIGN_OR_RETURN(TimedTree tree, BuildWithEdges(candidate));
    tree.predicted = EvaluateMix(profile_, tree.tree, tree.edges, request_);
    return tree;
  }

  absl::StatusOr<AggregationTree> Build(const Candidate& candidate) {
    if (candidate.builder == TreeBuilder::kPostal) return postal_[candidate.postal].tree;
    return Build(candidate.builder, candidate.width);
  }

  absl::StatusOr<AggregationTree> Build(TreeBuilder builder, uint32_t width) {
    switch (builder) {
      case TreeBuilder::kKary:
        return BuildKary(fabric_, request_.members, width, nic_degree_);
      case TreeBuilder::kKnomial:
        return BuildKnomial(fabric_, request_.members, width, nic_degree_);
      default:
        return BuildHierarchicalAt(width);
    }
  }

  bool FindFlat(uint32_t width) {
    if (!flat_) {
      groups_ = GroupMembers(*snapshot_.hierarchy, request_.members);
      flat_.emplace(*groups_);
    }
    return flat_->Find(width, nic_degree_);
  }

  absl::StatusOr<AggregationTree> BuildHierarchicalAt(uint32_t width) {
    if (!FindFlat(width)) {
      return BuildHierarchical(fabric_, *groups_, request_.members, width, nic_degree_);
    }
    AggregationTree tree;
    ASSIGN_OR_RETURN(tree,
                     BareTypeITree(fabric_, request_.members, TreeBuilder::kHierarchical, width));
    flat_->Parents(tree.parents);
    return tree;
  }

  // --- Words.

  void Refuse(TreeBuilder builder, uint32_t width, const absl::Status& why) {
    refused_.push_back(
        {TreeType::kTypeI, builder, width, std::nullopt, std::string(why.message())});
  }

  void RefuseForRoute(Candidate& candidate, const absl::Status& why) {
    route_error_ = why;
    candidate.is_refused = true;
    Refuse(candidate.builder, candidate.width, why);
  }

  // Every builder's last words are about its least width; a wider NIC is what helps, then.
  absl::Status NothingFits() const {
    const Alternative& last = refused_.back();
    if (last.width > 2) return absl::ResourceExhaustedError(last.why_not);
    const size_t members = request_.members.size();
    const TreeBuilder builder = request_.builder.value_or(TreeBuilder::kKary);
    const std::string who =
        request_.builder ? absl::StrCat(ToString(builder), " tree") : "type I tree";
    const std::string advice =
        builder == TreeBuilder::kHierarchical
            ? "ask for a larger NIC degree, or for another builder"
            : absl::StrCat("ask for a NIC degree of ", MostChildren(builder, 2), " or more");
    return absl::ResourceExhaustedError(absl::StrCat(
        "no ", who, " of ", members, " members was found in which every NIC serves at ", "most ",
        nic_degree_, nic_degree_ == 1 ? " child" : " children",
        ", not even at width 2, the least; ", advice));
  }

  Type1Result Take(const Candidate& winner) {
    Type1Result result;
    const double us = best_ ? best_->predicted.total_us : winner.least_us;
    result.quickest = {TreeType::kTypeI, winner.builder, winner.width, us, ""};
    result.best = std::move(best_);
    for (const Candidate* other : BestOthers(winner)) {
      result.alternatives.push_back(AsAlternative(*other, us));
    }
    result.alternatives.insert(result.alternatives.end(), refused_.begin(), refused_.end());
    return result;
  }

  // The best other candidate of each builder, best first.
  std::vector<const Candidate*> BestOthers(const Candidate& winner) const {
    std::vector<const Candidate*> others;
    for (const TreeBuilder builder : kBuilders) {
      const Candidate* least = nullptr;
      for (const Candidate& candidate : candidates_) {
        if (candidate.builder != builder || candidate.is_refused || &candidate == &winner) continue;
        if (least == nullptr || candidate.least_us < least->least_us) least = &candidate;
      }
      if (least != nullptr) others.push_back(least);
    }
    absl::c_stable_sort(
        others, [](const Candidate* a, const Candidate* b) { return a->least_us < b->least_us; });
    return others;
  }

  Alternative AsAlternative(const Candidate& other, double best_us) const {
    Alternative alternative = {TreeType::kTypeI, other.builder, other.width, std::nullopt, ""};
    const double us = other.least_us;
    if (us * kAlikeTimes < best_us) {
      alternative.why_not =
          follows_packets_
              ? absl::StrFormat("its packets were not followed, takes at least %.2f us", us)
              : absl::StrFormat("not judged with links' queues, without them it takes %.2f us", us);
    } else if (other.is_known) {
      alternative.total_us = std::max(us, best_us);
      alternative.why_not = "not faster";
    } else {
      alternative.why_not = absl::StrFormat("takes at least %.2f us", us);
    }
    alternative.why_not += WidthsTried(other.builder);
    return alternative;
  }

  std::string WidthsTried(TreeBuilder builder) const {
    if (widths_to_try_.size() < 2 || builder == TreeBuilder::kPostal) return "";
    const std::string widths =
        absl::StrCat("; widths ", widths_to_try_.front(), " to ", widths_to_try_.back());
    if (!TriesOnlyBest(builder)) return absl::StrCat(widths, " were considered");
    return absl::StrCat(widths, " are admissible, of which the closed form's best was tried: the ",
                        "communicator has more than ", kMaxRanksForAllHierarchical, " members");
  }

  const Snapshot& snapshot_;
  const Fabric& fabric_;
  const CostProfile& profile_;
  const TreeRequest& request_;
  const uint32_t nic_degree_;
  const WidthInterval widths_;
  const std::vector<uint32_t> widths_to_try_;
  const bool follows_packets_;          // long messages of few enough ranks
  std::optional<Type1Bound> bound_;     // until all are refined
  std::optional<Type1Count> count_;     // until all are admitted, if they can be counted
  std::optional<NestedGroups> groups_;  // of the members, once hierarchical trees are asked for
  std::optional<FlatGroups> flat_;      // with them
  std::vector<std::vector<int32_t>> hierarchical_;  // parents of those candidates
  std::vector<std::vector<uint32_t>> flat_roots_;   // of those that are flat
  std::vector<ChannelIndex> path_;                  // of the edge at hand
  std::vector<PostalTree> postal_;                  // once they are candidates

  std::vector<Candidate> candidates_;
  double least_us_ = kNoCutoff;    // known so far
  std::optional<TimedTree> best_;  // evaluated so far
  size_t best_of_ = 0;             // its candidate
  std::vector<Alternative> refused_;
  absl::Status route_error_;
};

}  // namespace

absl::StatusOr<Type1Result> ChooseType1(const Snapshot& snapshot, const CostProfile& profile,
                                        const TreeRequest& request, const MemberPlaces& places,
                                        double limit_us) {
  if (!request.leaf_ranks.empty()) return ChooseAroundLeaves(snapshot, profile, request, places);
  return Type1Search(snapshot, profile, request, places).Run(limit_us);
}

}  // namespace coppice
