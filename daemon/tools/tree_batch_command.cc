// coppice-plan tree-batch: the communicators of one job planned together, as the daemon would.
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tools/command.h"
#include "daemon/tools/communicators.h"
#include "daemon/tools/tree_inputs.h"
#include "daemon/tools/tree_options.h"
#include "daemon/tree/batch/baseline.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/planner.h"

namespace coppice {
namespace {

// A planned batch as coppice-plan prints it: one line a communicator, then what all take together
// beside what one by one would take and the bounds. Decides nothing.

// What is printed of one communicator.
struct BatchLine {
  uint32_t ranks = 0;
  std::optional<TreeType> type;  // nullopt: refused
  uint32_t switches = 0, extra_hops = 0, height = 0, radius = 0;
  std::optional<SwitchIndex> root;  // type II with switches
  double total_us = 0;
  std::string reason;  // why it is refused or has no type II tree; empty otherwise
};

struct BatchReport {
  std::vector<BatchLine> lines;
  BatchTotals batch, one_by_one, unreduced;
  BatchBounds bounds;
};

using Json = nlohmann::ordered_json;

std::string SwitchId(const Fabric& fabric, SwitchIndex s) {
  return absl::StrCat("switch:", ToString(fabric.switch_info(s).guid));
}

Json LineJson(const Fabric& fabric, size_t number, const BatchLine& line) {
  Json json;
  json["communicator"] = number;
  json["ranks"] = line.ranks;
  json["type"] = line.type ? Json(std::string(ToString(*line.type))) : Json();
  json["switches"] = line.switches;
  json["root"] = line.root ? Json(SwitchId(fabric, *line.root)) : Json();
  json["extra_hops"] = line.extra_hops;
  json["height"] = line.height;
  json["radius"] = line.radius;
  json["total_us"] = line.type ? Json(line.total_us) : Json();
  json["reason"] = line.reason;
  return json;
}

Json MostLoadedJson(const Fabric& fabric, const BatchTotals& totals) {
  if (totals.most_loaded == kNoChannel) return {};
  const ChannelIndex c = totals.most_loaded;
  return {{"packets", totals.most_packets},
          {"from", SwitchId(fabric, fabric.AsSwitch(fabric.channel_from(c)))},
          {"port", fabric.channel_from_port(c).value()},
          {"to", SwitchId(fabric, fabric.AsSwitch(fabric.channel_to(c)))}};
}

Json TotalsJson(const Fabric& fabric, const BatchTotals& totals) {
  return {{"admitted", totals.admitted},
          {"failures", totals.failures},
          {"entries", totals.entries},
          {"farther_roots", totals.farther_roots},
          {"most_loaded", MostLoadedJson(fabric, totals)}};
}

std::string LineText(const Fabric& fabric, size_t number, const BatchLine& line) {
  if (!line.type) return absl::StrFormat("%6d %6d  refused: %s\n", number, line.ranks, line.reason);
  std::string root = "-";
  if (line.root) {
    const SwitchInfo& info = fabric.switch_info(*line.root);
    root = absl::StrCat(ToString(info.guid), " \"", info.description, "\"");
  }
  return absl::StrFormat("%6d %6d  %-4s %8d %6d %6d %5d %9.2f  %s%s%s\n", number, line.ranks,
                         std::string(ToString(*line.type)), line.switches, line.height, line.radius,
                         line.extra_hops, line.total_us, root, line.reason.empty() ? "" : "  ",
                         line.reason);
}

std::string TotalsText(const Fabric& fabric, absl::string_view name, const BatchTotals& totals) {
  std::string most = "none";
  if (totals.most_loaded != kNoChannel) {
    const ChannelIndex c = totals.most_loaded;
    most = absl::StrCat(totals.most_packets, " packets, ", Describe(fabric, fabric.channel_from(c)),
                        " port ", fabric.channel_from_port(c).value());
  }
  return absl::StrFormat("%-28s %9d %9d %9d %14d  %s\n", std::string(name), totals.admitted,
                         totals.failures, totals.entries, totals.farther_roots, most);
}

std::string BatchToJson(const Snapshot& snapshot, const BatchReport& report) {
  const Fabric& fabric = *snapshot.fabric;
  Json json;
  json["routes"] = std::string(ToString(snapshot.routes->kind()));
  json["communicators"] = Json::array();
  for (size_t c = 0; c < report.lines.size(); ++c) {
    json["communicators"].push_back(LineJson(fabric, c, report.lines[c]));
  }
  json["totals"] = TotalsJson(fabric, report.batch);
  json["one_by_one"] = TotalsJson(fabric, report.one_by_one);
  json["unreduced"] = TotalsJson(fabric, report.unreduced);
  json["bounds"] = {{"entries_alone", report.bounds.alone},
                    {"entries_counting", report.bounds.counting},
                    {"no_nearest_root", report.bounds.no_nearest_root},
                    {"failures", report.bounds.failures},
                    {"most_packets", report.bounds.most_packets}};
  return absl::StrCat(json.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

std::string BatchToText(const Snapshot& snapshot, const BatchReport& report) {
  const Fabric& fabric = *snapshot.fabric;
  std::string text = absl::StrFormat("%6s %6s  %-4s %8s %6s %6s %5s %9s  root (%s)\n", "number",
                                     "ranks", "type", "switches", "height", "radius", "extra", "us",
                                     std::string(ToString(snapshot.routes->kind())));
  for (size_t c = 0; c < report.lines.size(); ++c) {
    text += LineText(fabric, c, report.lines[c]);
  }
  absl::StrAppendFormat(&text, "\n%-28s %9s %9s %9s %14s  %s\n", "", "admitted", "refused",
                        "entries", "farther roots", "most loaded link");
  text += TotalsText(fabric, "this batch", report.batch);
  text += TotalsText(fabric, "one by one, minimum cost", report.one_by_one);
  text += TotalsText(fabric, "one by one, unreduced trees", report.unreduced);
  absl::StrAppendFormat(&text,
                        "bounds: %d entries if each were alone, %d by counting; %d refused; %d "
                        "without any nearest root that works; %d packets on the most loaded link "
                        "with a twentieth more entries\n",
                        report.bounds.alone, report.bounds.counting, report.bounds.failures,
                        report.bounds.no_nearest_root, report.bounds.most_packets);
  return text;
}

struct BatchCommandOptions {
  TreeOptions tree;
  CommunicatorOptions communicators;
  std::string reach = "any", goal = "both";
};

absl::StatusOr<std::vector<EndpointIndex>> LoadMembers(const BatchCommandOptions& options,
                                                       const Fabric& fabric) {
  if (!options.tree.members.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadNodesText(options.tree.members));
    return ReadMembers(fabric, text, options.tree.members);
  }
  std::vector<EndpointIndex> members;
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) members.emplace_back(e);
  return members;
}

// The tree that the communicator gets: the batch's or, if it may be, one of type I.
absl::StatusOr<BatchLine> LineOf(const Snapshot& snapshot, const CostProfile& profile,
                                 absl::Span<const SwitchCapacity> capacity,
                                 const BatchCommandOptions& options,
                                 const BatchCommunicator& communicator,
                                 const CommunicatorResult& result) {
  BatchLine line;
  line.ranks = static_cast<uint32_t>(communicator.members.size());
  line.reason = result.why_not;
  if (!result.tree && !communicator.accepts_type1) return line;
  TreeRequest request;
  request.members = communicator.members;
  request.operation = *ParseOperation(options.tree.operation);
  request.sizes = SizesOf(options.tree);
  request.nic_degree = options.tree.nic_degree;
  request.type = result.tree ? TreeType::kTypeII : TreeType::kTypeI;
  absl::StatusOr<TreePlan> plan =
      result.tree ? PlanOfBatchTree(snapshot, profile, capacity, request, *result.tree)
                  : PlanTree(snapshot, profile, capacity, request);
  if (!plan.ok() && !result.tree) {
    line.reason = absl::StrCat(line.reason, "; no type I tree: ", plan.status().message());
    return line;
  }
  RETURN_IF_ERROR(plan.status());
  line.type = plan->tree.type;
  line.switches = plan->tree.serving_switch_count();
  line.height = plan->height;
  line.radius = plan->radius;
  line.total_us = plan->predicted.total_us;
  if (result.tree && line.switches > 0) {
    line.extra_hops = result.tree->extra_hops;
    line.root = result.tree->physical.root();
  }
  return line;
}

absl::Status RunTreeBatch(const BatchCommandOptions& options) {
  static const std::map<std::string, RootReach> kReaches = {
      {"nearest", RootReach::kNearest}, {"admit", RootReach::kToAdmit}, {"any", RootReach::kAny}};
  ASSIGN_OR_RETURN(const CostProfile profile, LoadProfile(options.tree.profile));
  ASSIGN_OR_RETURN(const Snapshot snapshot, LoadSnapshot(options.tree));
  ASSIGN_OR_RETURN(const std::vector<SwitchCapacity> capacity,
                   LoadCapacity(options.tree, *snapshot.fabric));
  ASSIGN_OR_RETURN(const std::vector<EndpointIndex> members,
                   LoadMembers(options, *snapshot.fabric));
  ASSIGN_OR_RETURN(std::vector<BatchCommunicator> batch,
                   LoadCommunicators(options.communicators, members));
  for (BatchCommunicator& c : batch) c.accepts_type1 = options.tree.type == "auto";
  BatchOptions how;
  how.reach = kReaches.at(options.reach);
  how.goal = options.goal == "links"  ? BatchGoal::kLinks
             : options.goal == "both" ? BatchGoal::kBoth
                                      : BatchGoal::kEntries;
  ASSIGN_OR_RETURN(const BatchPlan plan, PlanBatch(snapshot, capacity, batch, how));
  BatchReport report;
  report.batch = plan.totals;
  for (size_t c = 0; c < batch.size(); ++c) {
    ASSIGN_OR_RETURN(report.lines.emplace_back(),
                     LineOf(snapshot, profile, capacity, options, batch[c], plan.communicators[c]));
  }
  ASSIGN_OR_RETURN(report.one_by_one,
                   PlanOneByOne(snapshot, capacity, batch, BaselineMethod::kMinimumCost, how));
  ASSIGN_OR_RETURN(report.unreduced,
                   PlanOneByOne(snapshot, capacity, batch, BaselineMethod::kUnreduced, how));
  ASSIGN_OR_RETURN(report.bounds, BoundBatch(snapshot, capacity, batch));
  return PrintText(options.tree.json ? BatchToJson(snapshot, report)
                                     : BatchToText(snapshot, report));
}

void AddBatchOptions(CLI::App& command, BatchCommandOptions& options) {
  AddText(command, "--fabric", options.tree.fabric, "file:PATH or model:NAME(ARGUMENT=VALUE,...)")
      ->required();
  AddText(command, "--members", options.tree.members,
          "endpoints in rank order; default every port of the fabric");
  AddCommunicatorOptions(command, options.communicators)->require_option(1);
  AddCount(command, "--seed", options.communicators.seed, "of --random; default 1");
  command
      .add_option("--reach", options.reach,
                  "roots: nearest only, farther ones to admit more, or any that save entries; "
                  "default any")
      ->check(CLI::IsMember({"nearest", "admit", "any"}));
  command
      .add_option("--goal", options.goal,
                  "what comes first of those that are admitted: entries, the most loaded links, or "
                  "both: links, within a twentieth more entries than the fewest; default both")
      ->check(CLI::IsMember({"entries", "both", "links"}));
  command
      .add_option("--type", options.tree.type, "2: switches aggregate; default auto, 1 if not 2")
      ->check(CLI::IsMember({"auto", "2"}));
}

}  // namespace

void RegisterTreeBatchCommand(CLI::App& app, PlanCommand& chosen) {
  CLI::App* const command =
      app.add_subcommand("tree-batch", "Trees of many communicators planned together");
  const auto options = std::make_shared<BatchCommandOptions>();
  AddBatchOptions(*command, *options);
  AddPayloadOptions(*command, options->tree);
  AddHardwareOptions(*command, options->tree);
  command->add_flag("--json", options->tree.json, "print JSON");
  command->footer(absl::StrCat(kTreeFilesHelp, kCommunicatorListHelp));
  command->callback(
      [options, &chosen] { chosen.run = [options] { return RunTreeBatch(*options); }; });
}

}  // namespace coppice
