// coppice-plan tree-batch: the communicators of one job planned together, as the daemon would.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/tools/command.h"
#include "daemon/tools/communicators.h"
#include "daemon/tools/profile_option.h"
#include "daemon/tools/tree_batch_report.h"
#include "daemon/tools/tree_inputs.h"
#include "daemon/tools/tree_options.h"
#include "daemon/tree/batch/baseline.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/batch/trees.h"
#include "daemon/tree/planner.h"

namespace coppice {
namespace {

struct BatchCommandOptions {
  TreeOptions tree;
  CommunicatorOptions communicators;
  std::string reach = "any", goal = "both";
};

absl::StatusOr<std::vector<EndpointIndex>> LoadMembers(const BatchCommandOptions& options,
                                                       const Fabric& fabric) {
  if (!options.tree.members.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.tree.members));
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

void RegisterTreeBatchCommand(CLI::App& app, CommandOutcome& outcome) {
  CLI::App* const command =
      app.add_subcommand("tree-batch", "Trees of many communicators planned together");
  const auto options = std::make_shared<BatchCommandOptions>();
  AddBatchOptions(*command, *options);
  AddPayloadOptions(*command, options->tree);
  AddHardwareOptions(*command, options->tree);
  command->add_flag("--json", options->tree.json, "print JSON");
  command->footer(absl::StrCat(kTreeFilesHelp, kCommunicatorListHelp));
  command->callback([options, &outcome] { outcome.status = RunTreeBatch(*options); });
}

}  // namespace coppice
