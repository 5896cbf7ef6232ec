// Checks the request, lets both types make their best tree, and chooses: Chen 2024, 3.3 with the
// exact evaluation in place of formula (9).
#include "daemon/tree/planner.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/link_use.h"
#include "daemon/tree/trade.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/type1_choice.h"
#include "daemon/tree/type2_builder.h"

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
    return absl::NotFoundError(absl::StrCat("root_switch: no switch ",
                                            ToString(*request.root_switch), " is in the fabric; ",
                                            "`coppicectl fabric switches` lists them"));
  }
  if (request.type == TreeType::kTypeII) return absl::OkStatus();
  if (request.width && *request.width < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("width ", *request.width, ": a tree needs a width of 2 or more"));
  }
  if (request.nic_degree.value_or(profile.nic_degree) < 1) {
    return absl::InvalidArgumentError("nic_degree 0: a NIC must serve one child at least");
  }
  return absl::OkStatus();
}

void AddAlternatives(Type1Result&& result, TreePlan& plan) {
  plan.alternatives.insert(plan.alternatives.end(),
                           std::make_move_iterator(result.alternatives.begin()),
                           std::make_move_iterator(result.alternatives.end()));
}

void TakeType1(Type1Result&& result, TreePlan& plan) {
  static_cast<TimedTree&>(plan) = std::move(result);
  AddAlternatives(std::move(result), plan);
}

void TakeType2(TimedTree&& best, TreePlan& plan) {
  static_cast<TimedTree&>(plan) = std::move(best);
}

Alternative AsAlternative(const AggregationTree& tree, const Prediction& predicted,
                          std::string why_not) {
  return {tree.type, tree.builder, tree.width, predicted.total_us, std::move(why_not)};
}

// "3.40 us for type I (...)" without the words that the sentence has already said.
std::string Bare(std::string_view figure) {
  const size_t for_type = figure.find(" for type ");
  return absl::StrCat(std::string(figure.substr(0, for_type)),
                      std::string(figure.substr(figure.find(" (", for_type))));
}

// Of the tree that takes the fewest entries: a policy may find a faster one that takes more.
std::string FigureOfFewest(const Type2Result& type2) {
  return Figure(type2.best->tree, type2.best->predicted, type2.may_serve_more);
}

// Type I and, if it exists, type II: the faster one. Equally fast: type I, which takes no entries.
void Choose(const Fabric& fabric, Type1Result&& type1, Type2Result&& type2, TreePlan& plan) {
  const std::string figure1 = Figure(type1.tree, type1.predicted);
  const std::string figure2 = FigureOfFewest(type2);
  const std::string dearer = DearerBecause(fabric, type2.full_switches);
  if (type2.best->predicted.total_us < type1.predicted.total_us) {
    plan.reason = absl::StrCat("type II: ", Bare(figure2), " against ", figure1, dearer);
    plan.alternatives.push_back(AsAlternative(type1.tree, type1.predicted, "slower than type II"));
    AddAlternatives(std::move(type1), plan);
    TakeType2(*std::move(type2.best), plan);
  } else {
    plan.reason = absl::StrCat("type I: ", Bare(figure1), " against ", figure2, dearer);
    plan.alternatives.push_back(
        AsAlternative(type2.best->tree, type2.best->predicted, "not faster than type I"));
    TakeType1(std::move(type1), plan);
  }
}

// Type II was not asked for or does not exist.
void FallBack(const Fabric& fabric, const TreeRequest& request, bool tried_type2,
              Type1Result&& type1, const Type2Result& type2, TreePlan& plan) {
  const std::string figure = Bare(Figure(type1.tree, type1.predicted));
  if (!tried_type2) {
    plan.reason =
        absl::StrCat("type I: ", figure, "; ",
                     request.type ? "the type was asked for" : "the builder was asked for");
  } else {
    plan.reason = absl::StrCat("type I: ", figure, "; no type II tree: ", type2.why_not);
    if (!type2.full_switches.empty()) {
      absl::StrAppend(&plan.reason, ": ", NameSwitches(fabric, type2.full_switches));
    }
    plan.alternatives.push_back(
        {TreeType::kTypeII, TreeBuilder::kMinimumCost, 0, std::nullopt, type2.why_not});
  }
  TakeType1(std::move(type1), plan);
}

absl::Status FillAuto(const Snapshot& snapshot, const CostProfile& profile,
                      const TreeRequest& request, const MemberPlaces& places, bool tried_type2,
                      Type2Result&& type2, TreePlan& plan) {
  const double limit_us =
      type2.best ? type2.best->predicted.total_us : std::numeric_limits<double>::infinity();
  absl::StatusOr<Type1Result> type1 = ChooseType1(snapshot, profile, request, places, limit_us);
  if (type1.ok() && type2.best) {
    Choose(*snapshot.fabric, *std::move(type1), std::move(type2), plan);
  } else if (type1.ok()) {
    FallBack(*snapshot.fabric, request, tried_type2, *std::move(type1), type2, plan);
  } else if (type2.best && absl::IsResourceExhausted(type1.status())) {
    const std::string why_not(type1.status().message());
    plan.alternatives.push_back(
        {TreeType::kTypeI, TreeBuilder::kKary, request.width.value_or(0), std::nullopt, why_not});
    plan.reason =
        absl::StrCat("type II: ", Bare(FigureOfFewest(type2)), "; no type I tree: ", why_not);
    TakeType2(*std::move(type2.best), plan);
  } else {
    return type1.status();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TreePlan> PlanTree(const Snapshot& snapshot, const CostProfile& profile,
                                  absl::Span<const SwitchCapacity> capacity,
                                  const TreeRequest& request) {
  RETURN_IF_ERROR(CheckRequest(snapshot, profile, capacity, request));
  ASSIGN_OR_RETURN(const MemberPlaces places, FindMemberPlaces(snapshot, request.members));
  // A builder of type I says which type is wanted as clearly as the type itself.
  const bool try_type2 = request.type == TreeType::kTypeII || (!request.type && !request.builder);
  const Snapshot predicting = ForPrediction(snapshot, profile);
  TreePlan plan;
  Type2Result type2;
  if (try_type2) {
    type2 = BuildType2(snapshot, predicting, profile, capacity, request, places);
    plan.full_switches = type2.full_switches;
  }
  if (request.type != TreeType::kTypeII) {
    RETURN_IF_ERROR(
        FillAuto(predicting, profile, request, places, try_type2, std::move(type2), plan));
  } else if (type2.best) {
    plan.reason = absl::StrCat("type II: ", Bare(FigureOfFewest(type2)), "; the type was asked for",
                               DearerBecause(*snapshot.fabric, plan.full_switches));
    TakeType2(*std::move(type2.best), plan);
  } else {
    return RefuseType2(*snapshot.fabric, type2.why_not, type2.routes_are_wrong, plan.full_switches);
  }
  if (request.policy || request.list_tradeoffs) {
    ASSIGN_OR_RETURN(Trade trade,
                     FindTrade(snapshot, predicting, profile, capacity, request, places, plan));
    RETURN_IF_ERROR(ApplyTrade(request, std::move(trade), plan));
  }
  plan.height = Height(plan.tree);
  plan.radius = Radius(plan.tree, plan.edges);
  return plan;
}

absl::Status MeasureLinks(const Snapshot& snapshot, const CostProfile& profile,
                          const TreeRequest& request, LinkUseCounter& counter, TreePlan& plan) {
  counter.Begin(snapshot);
  RETURN_IF_ERROR(counter.AddTree(plan.tree, plan.physical ? &*plan.physical : nullptr));
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
  return absl::StrFormat("%.2f us for type I (%s, k = %d)", predicted.total_us,
                         std::string(ToString(tree.builder)), tree.width);
}

std::string NameSwitches(const Fabric& fabric, absl::Span<const FullSwitch> switches) {
  constexpr size_t kMaxNamed = 8;
  std::string names;
  for (const FullSwitch& full : switches.first(std::min(switches.size(), kMaxNamed))) {
    const SwitchInfo& info = fabric.switch_info(full.index);
    absl::StrAppend(&names, names.empty() ? "" : ", ", ToString(info.guid), " \"", info.description,
                    "\" (", full.entries_total, " entries)");
  }
  if (switches.size() > kMaxNamed) {
    absl::StrAppend(&names, " and ", switches.size() - kMaxNamed, " more");
  }
  return names;
}

std::string DearerBecause(const Fabric& fabric, absl::Span<const FullSwitch> switches) {
  if (switches.empty()) return "";
  return absl::StrCat("; type II takes more switches than it could, because these are full: ",
                      NameSwitches(fabric, switches));
}

absl::Status RefuseType2(const Fabric& fabric, std::string_view why_not, bool routes_are_wrong,
                         absl::Span<const FullSwitch> full_switches) {
  std::string message = absl::StrCat("no type II tree: ", std::string(why_not));
  if (routes_are_wrong) return absl::FailedPreconditionError(message);
  if (!full_switches.empty()) {
    absl::StrAppend(&message, ": ", NameSwitches(fabric, full_switches),
                    "; release a tree there, or let the type be chosen");
  } else {
    absl::StrAppend(&message, "; ask for fewer members, or let the type be chosen");
  }
  return absl::ResourceExhaustedError(message);
}

}  // namespace coppice
