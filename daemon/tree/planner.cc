// Checks the request, lets both types make their best tree, and chooses: Chen 2024, 3.3 with the
// exact evaluation in place of formula (9).
#include "daemon/tree/planner.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/link_use.h"
#include "daemon/tree/trade.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/type1.h"
#include "daemon/tree/type2_candidate.h"

namespace coppice {
namespace {

absl::Status CheckSizes(const TreeRequest& request) {
  if (request.sizes.empty()) {
    return absl::InvalidArgumentError("the request names no message size; give at least one");
  }
  double weights = 0;
  for (const SizeShare& share : request.sizes) {
    if (!(share.weight >= 0) || !std::isfinite(share.weight)) {
      return absl::InvalidArgumentError(absl::StrCat("the weight of ", share.bytes, " bytes is ",
                                                     share.weight, "; it must be 0 or more"));
    }
    weights += share.weight;
  }
  if (weights > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("the weights of all message sizes are 0; give one above 0");
}

absl::Status CheckRequest(const Snapshot& snapshot, const CostProfile& profile,
                          absl::Span<const SwitchCapacity> capacity, const TreeRequest& request) {
  RETURN_IF_ERROR(CheckSizes(request));
  if (request.policy) RETURN_IF_ERROR(CheckPolicy(*request.policy));
  const uint32_t switches = snapshot.fabric->switch_count();
  if (capacity.size() != switches) {
    return absl::InvalidArgumentError(
        absl::StrCat("capacities of ", capacity.size(), " switches for a fabric of ", switches));
  }
  if (request.builder) {
    const bool is_type2 = *request.builder == TreeBuilder::kMinimumCost;
    if (is_type2 != (request.type == TreeType::kTypeII)) {
      return absl::InvalidArgumentError(
          absl::StrCat("builder ", std::string(ToString(*request.builder)), " makes trees of type ",
                       is_type2 ? "II" : "I", "; ask for that type, or for no builder"));
    }
  }
  if (request.root_switch && !snapshot.fabric->FindSwitch(*request.root_switch)) {
    return absl::NotFoundError(absl::StrCat("root: no switch ", ToString(*request.root_switch),
                                            " is in the fabric; `fabric switches` lists them"));
  }
  if (request.type == TreeType::kTypeII) return absl::OkStatus();
  if (request.width && *request.width < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("width ", *request.width, ": a tree needs a width of 2 or more"));
  }
  if (request.nic_degree.value_or(profile.nic_degree) < 1) {
    return absl::InvalidArgumentError("NIC degree 0: a NIC must serve one child at least");
  }
  return absl::OkStatus();
}

std::string FigureOfType1(TreeBuilder builder, uint32_t width, double total_us) {
  return absl::StrFormat("%.2f us for type I (%s, k = %d)", total_us, ToString(builder), width);
}

// "3.40 us (...)": without the words that the sentence has already said.
std::string Bare(std::string_view figure) {
  const size_t for_type = figure.find(" for type ");
  return absl::StrCat(std::string(figure.substr(0, for_type)),
                      std::string(figure.substr(figure.find(" (", for_type))));
}

// Of the tree that takes the fewest entries: a policy may find a faster one that takes more.
std::string FigureOfFewest(const Type2Result& type2) {
  return Figure(type2.best->tree, type2.best->predicted, type2.may_serve_more);
}

// "; 2 full switches made type II dearer: ..." or "".
std::string DearerBecause(const Fabric& fabric, const TreeRequest& request,
                          absl::Span<const FullSwitch> switches) {
  if (switches.empty()) return "";
  return absl::StrCat("; type II takes more switches than it could, because these are full",
                      request.carried ? " or do not speak: " : ": ",
                      NameSwitches(fabric, switches));
}

constexpr char kLacksCosts[] =
    "what the switches that carry trees take is not measured: coppicectl calibrate";

// A request that wants to be carried uses no others; empty where it need not be.
std::vector<SwitchCapacity> OfThoseThatSpeak(absl::Span<const SwitchCapacity> capacity,
                                             const TreeRequest& request) {
  std::vector<SwitchCapacity> speaking;
  if (!request.carried) return speaking;
  speaking.assign(capacity.begin(), capacity.end());
  for (SwitchCapacity& one : speaking) {
    if (!one.speaks) one = {.is_barred = one.is_barred};
  }
  return speaking;
}

// What a request that wants to be carried is refused for if nobody can: nobody is full then.
void BlameSilence(Type2Result& type2) {
  if (type2.best || type2.routes_are_wrong) return;
  type2.full_switches.clear();
  type2.why_not = "no switch speaks, so that none can carry it";
}

// Type II was demanded and there is none: RESOURCE_EXHAUSTED that names the full switches, or
// FAILED_PRECONDITION if the members' routes are what is wrong.
absl::Status RefuseType2(const Fabric& fabric, const TreeRequest& request, bool is_silent,
                         const Type2Result& type2) {
  std::string message = absl::StrCat("no type II tree: ", type2.why_not);
  if (type2.routes_are_wrong) return absl::FailedPreconditionError(message);
  if (!type2.full_switches.empty()) {
    const bool is_any_full =
        absl::c_any_of(type2.full_switches, [](const FullSwitch& full) { return !full.is_barred; });
    absl::StrAppend(&message, ": ", NameSwitches(fabric, type2.full_switches),
                    is_any_full ? "; release a tree there, " : "; ");
  } else {
    absl::StrAppend(&message, is_silent ? "; " : "; ask for fewer members, ");
  }
  if (request.carried) {
    absl::StrAppend(&message,
                    "have more switches speak (coppicectl agent switches lists those that do), ");
  }
  return absl::ResourceExhaustedError(absl::StrCat(message, "or let the type be chosen"));
}

// Both types have a tree: the faster one. Equally fast: type I, which takes no entries.
void ChooseFaster(const Fabric& fabric, const TreeRequest& request, const std::string& figure1,
                  Type1Result& type1, Type2Result& type2, TreePlan& plan) {
  const std::string figure2 = FigureOfFewest(type2);
  const std::string dearer = DearerBecause(fabric, request, type2.full_switches);
  if (type2.best->predicted.total_us < *type1.quickest.total_us) {
    plan.reason = absl::StrCat("type II: ", Bare(figure2), " against ", figure1, dearer);
    plan.alternatives.push_back(std::move(type1.quickest));
    plan.alternatives.back().why_not = "slower than type II";
    static_cast<TimedTree&>(plan) = *std::move(type2.best);
  } else {
    plan.reason = absl::StrCat("type I: ", Bare(figure1), " against ", figure2, dearer);
    const AggregationTree& tree = type2.best->tree;
    plan.alternatives.push_back({tree.type, tree.builder, tree.width,
                                 type2.best->predicted.total_us, "not faster than type I"});
    static_cast<TimedTree&>(plan) = *std::move(type1.best);
  }
}

// There is a tree of type I, and one of type II, if that was tried and exists.
void ChooseType(const Fabric& fabric, const TreeRequest& request, bool tried_type2,
                Type1Result type1, Type2Result type2, TreePlan& plan) {
  const Alternative& quickest = type1.quickest;
  const std::string figure = FigureOfType1(quickest.builder, quickest.width, *quickest.total_us);
  if (type2.best) {
    ChooseFaster(fabric, request, figure, type1, type2, plan);
  } else {
    plan.reason = absl::StrCat("type I: ", Bare(figure), "; ");
    if (!tried_type2) {
      absl::StrAppend(&plan.reason, request.type      ? "the type was asked for"
                                    : request.builder ? "the builder was asked for"
                                                      : kLacksCosts);
    } else {
      absl::StrAppend(&plan.reason, "no type II tree: ", type2.why_not,
                      type2.full_switches.empty() ? "" : ": ",
                      NameSwitches(fabric, type2.full_switches));
      plan.alternatives.push_back(
          {TreeType::kTypeII, TreeBuilder::kMinimumCost, 0, std::nullopt, type2.why_not});
    }
    static_cast<TimedTree&>(plan) = *std::move(type1.best);
  }
  absl::c_move(type1.alternatives, std::back_inserter(plan.alternatives));
}

// Only type II has a tree, or neither has: `why_not` is type I's.
absl::Status TakeType2Alone(const TreeRequest& request, const absl::Status& why_not,
                            Type2Result type2, TreePlan& plan) {
  if (!type2.best || !absl::IsResourceExhausted(why_not)) return why_not;
  const std::string words(why_not.message());
  plan.alternatives.push_back(
      {TreeType::kTypeI, TreeBuilder::kKary, request.width.value_or(0), std::nullopt, words});
  plan.reason = absl::StrCat("type II: ", Bare(FigureOfFewest(type2)), "; no type I tree: ", words);
  static_cast<TimedTree&>(plan) = *std::move(type2.best);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TreePlan> PlanTree(const Snapshot& snapshot, const CostProfile& profile,
                                  absl::Span<const SwitchCapacity> capacity,
                                  const TreeRequest& request) {
  RETURN_IF_ERROR(CheckRequest(snapshot, profile, capacity, request));
  ASSIGN_OR_RETURN(const MemberPlaces places, FindMemberPlaces(snapshot, request.members));
  const bool try_type2 = TriesType2(request, profile);
  const Snapshot predicting = ForPrediction(snapshot, profile);
  const std::vector<SwitchCapacity> speaking = OfThoseThatSpeak(capacity, request);
  const bool is_silent =
      request.carried &&
      absl::c_none_of(speaking, [](const SwitchCapacity& one) { return one.speaks; });
  const PlanInput input = {snapshot, predicting,
                           profile,  request.carried ? absl::MakeConstSpan(speaking) : capacity,
                           request,  places};
  TreePlan plan;
  Type2Result type2;
  if (try_type2) {
    type2 = BuildType2(input);
    if (is_silent) BlameSilence(type2);
    plan.full_switches = type2.full_switches;
  }
  if (request.type != TreeType::kTypeII) {
    absl::StatusOr<Type1Result> type1 =
        ChooseType1(predicting, profile, request, places,
                    type2.best ? type2.best->predicted.total_us : kNoCutoff);
    if (type1.ok()) {
      ChooseType(*snapshot.fabric, request, try_type2, *std::move(type1), std::move(type2), plan);
    } else {
      RETURN_IF_ERROR(TakeType2Alone(request, type1.status(), std::move(type2), plan));
    }
  } else if (type2.best) {
    plan.reason = absl::StrCat("type II: ", Bare(FigureOfFewest(type2)), "; the type was asked for",
                               DearerBecause(*snapshot.fabric, request, plan.full_switches));
    static_cast<TimedTree&>(plan) = *std::move(type2.best);
  } else {
    return RefuseType2(*snapshot.fabric, request, is_silent, type2);
  }
  if (request.policy || request.list_tradeoffs) {
    ASSIGN_OR_RETURN(Trade trade, FindTrade(input, plan));
    RETURN_IF_ERROR(ApplyTrade(request, std::move(trade), plan));
  }
  plan.height = Height(plan.tree);
  plan.radius = Radius(plan.tree, plan.edges);
  return plan;
}

absl::Status MeasureLinks(const Snapshot& snapshot, const CostProfile& profile,
                          const TreeRequest& request, LinkUseCounter& counter, TreePlan& plan) {
  counter.Begin(snapshot);
  RETURN_IF_ERROR(counter.AddTree(plan.tree, plan.physical.get()));
  counter.Take(plan.uses);
  plan.busiest = FindBusiestLink(snapshot, profile, BytesOfMessages(profile, request), plan.uses);
  return absl::OkStatus();
}

std::string Figure(const AggregationTree& tree, const Prediction& predicted, bool is_fewest) {
  if (tree.type == TreeType::kTypeII) {
    const uint32_t switches = tree.serving_switch_count();
    return absl::StrFormat("%.2f us for type II (%d switch%s%s)", predicted.total_us, switches,
                           switches == 1 ? "" : "es", is_fewest ? ", the fewest" : "");
  }
  return FigureOfType1(tree.builder, tree.width, predicted.total_us);
}

std::string NameSwitches(const Fabric& fabric, absl::Span<const FullSwitch> switches) {
  constexpr size_t kMaxNamed = 8;
  std::string names;
  for (const FullSwitch& full : switches.first(std::min(switches.size(), kMaxNamed))) {
    const SwitchInfo& info = fabric.switch_info(full.index);
    absl::StrAppend(&names, names.empty() ? "" : ", ", ToString(info.guid), " \"", info.description,
                    "\" (",
                    full.is_barred ? "barred" : absl::StrCat(full.entries_total, " entries"), ")");
  }
  if (switches.size() > kMaxNamed) {
    absl::StrAppend(&names, " and ", switches.size() - kMaxNamed, " more");
  }
  return names;
}

}  // namespace coppice
