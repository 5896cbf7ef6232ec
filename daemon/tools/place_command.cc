// coppice-plan place: which nodes to give a job, from files alone.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/node_list.h"
#include "daemon/placement/placer.h"
#include "daemon/tools/command.h"
#include "daemon/tools/map_options.h"
#include "daemon/tools/place_inputs.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

// A placement as coppice-plan prints it: JSON with the names that the service's messages have, and
// lines for people. Decides nothing.

using Json = nlohmann::ordered_json;

std::vector<std::string> NamesOf(const Fabric& fabric, const PlacementPlan& plan) {
  std::vector<std::string> names;
  for (const HostIndex h : plan.hosts) names.emplace_back(fabric.host_name(h));
  return names;
}

std::string NodeListOf(std::vector<std::string> names) {
  SortNodeNames(names);
  return FormatNodeList(names);
}

std::string PlacementToJson(const Fabric& fabric, const PlacementPlan& plan) {
  const PlacementMeasures& m = plan.measures;
  const std::vector<std::string> names = NamesOf(fabric, plan);
  const Json json = {{"nodes", names},
                     {"node_list", NodeListOf(names)},
                     {"permutation", plan.permutation},
                     {"measures",
                      {{"leaf_switches", m.leaf_switches},
                       {"least_leaf_switches", m.least_leaf_switches},
                       {"pods", m.pods},
                       {"total_distance", m.total_distance},
                       {"mean_distance", m.mean_distance},
                       {"shared_links", m.shared_links},
                       {"mean_load", m.mean_load},
                       {"most_load", m.most_load},
                       {"switches_without_entries", m.switches_without_entries},
                       {"fragmentation", m.fragmentation},
                       {"max_congestion", m.max_congestion},
                       {"cost", m.cost}}},
                     {"is_optimal", plan.is_optimal},
                     {"reason", plan.reason}};
  return absl::StrCat(json.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

std::string PlacementToText(const Fabric& fabric, const PlacementPlan& plan) {
  const PlacementMeasures& m = plan.measures;
  std::string text = absl::StrCat("nodes          ", NodeListOf(NamesOf(fabric, plan)), "\n");
  absl::StrAppend(&text, "leaf switches  ", m.leaf_switches, ", at least ", m.least_leaf_switches,
                  "\npods           ", m.pods, "\n");
  absl::StrAppendFormat(&text, "distance       %.4g links in the mean, %.12g in all\n",
                        m.mean_distance, m.total_distance);
  absl::StrAppendFormat(&text, "shared links   %d\nload           %.3g in the mean, %.3g at most\n",
                        m.shared_links, m.mean_load, m.most_load);
  absl::StrAppendFormat(&text, "entries        %d switches without\nfragmentation  %+d\n",
                        m.switches_without_entries, m.fragmentation);
  if (!plan.permutation.empty()) {
    absl::StrAppendFormat(&text, "congestion     %.6g\norder          %s\n", m.max_congestion,
                          absl::StrJoin(plan.permutation, " "));
  }
  absl::StrAppendFormat(&text, "cost           %.6g, %s\nreason         %s\n", m.cost,
                        plan.is_optimal ? "proven" : "heuristic", plan.reason);
  return text;
}

constexpr char kPlaceHelp[] =
    "Lists are written n[001-128,130],login1. Files (- is standard input; # begins a comment "
    "line):\n"
    "  --held      NODES HOLDER a line: who has the same holder communicates\n"
    "  --candidates, --include, --avoid, --down: a list a line, where a file of that name is "
    "there\n"
    "The cost is the sum of weight times term.";

absl::Status RunPlace(const PlaceOptions& options) {
  ASSIGN_OR_RETURN(const PlaceQuestion question, LoadPlaceQuestion(options));
  const absl::Duration end = SystemClock().Monotonic() + *ParseBudget(options.budget);
  const SearchControl control(
      [end] { return SystemClock().Monotonic() >= end; }, nullptr,
      [end] { return absl::ToDoubleSeconds(end - SystemClock().Monotonic()); });
  ASSIGN_OR_RETURN(const PlacementPlan plan, Place(*question.snapshot, *question.index,
                                                   question.occupancy, question.request, control));
  const Fabric& fabric = *question.snapshot->fabric;
  return PrintText(options.json ? PlacementToJson(fabric, plan) : PlacementToText(fabric, plan));
}

}  // namespace

void RegisterPlaceCommand(CLI::App& app, CommandOutcome& outcome) {
  CLI::App* const command = app.add_subcommand("place", "Which nodes to give a job");
  const auto options = std::make_shared<PlaceOptions>();
  AddPlacementOptions(*command, *options);
  command->footer(kPlaceHelp);
  command->callback([options, &outcome] { outcome.status = RunPlace(*options); });
}

}  // namespace coppice
