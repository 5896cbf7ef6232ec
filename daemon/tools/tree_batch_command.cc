// coppice-plan tree-batch: the communicators of one job planned together, as the daemon would.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/base/status_macros.h"
#include "daemon/tools/command.h"
#include "daemon/tools/profile_option.h"
#include "daemon/tools/tree_batch_report.h"
#include "daemon/tools/tree_inputs.h"
#include "daemon/tools/tree_options.h"
#include "daemon/tree/batch/baseline.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/batch/grid.h"
#include "daemon/tree/batch/trees.h"
#include "daemon/tree/planner.h"

namespace coppice {
namespace {

constexpr char kListHelp[] =
    "\n  --list           one communicator a line: ranks (lines of --members, from 0) as numbers, "
    "\n                   ranges 0-15 or ranges with a stride 0-240:16, between blanks";

struct BatchCommandOptions {
  TreeOptions tree;
  std::string grid, list, random, axes;
  std::string order = "last", reach = "any";
  std::optional<uint32_t> seed;
};

struct RankRange {
  uint32_t first = 0, last = 0, stride = 1;
};

// "4", "0-15" or "0-240:16"; nullopt if it is none of them.
std::optional<RankRange> ParseRange(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(text, absl::MaxSplits('-', 1));
  const std::pair<absl::string_view, absl::string_view> end =
      absl::StrSplit(ends.second, absl::MaxSplits(':', 1));
  RankRange range;
  if (!absl::SimpleAtoi(ends.first, &range.first)) return std::nullopt;
  range.last = range.first;
  if (!absl::StrContains(text, '-')) return range;
  if (!absl::SimpleAtoi(end.first, &range.last) || range.last < range.first) return std::nullopt;
  if (absl::StrContains(text, ':') &&
      (!absl::SimpleAtoi(end.second, &range.stride) || range.stride == 0)) {
    return std::nullopt;
  }
  return range;
}

absl::StatusOr<BatchCommunicator> ReadCommunicator(absl::string_view line,
                                                   absl::Span<const EndpointIndex> members) {
  BatchCommunicator communicator;
  for (const absl::string_view word :
       absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty())) {
    const std::optional<RankRange> range = ParseRange(word);
    if (!range) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", word, "\" is no rank or range of ranks, such as 4, 0-15 or 0-240:16"));
    }
    if (range->last >= members.size()) {
      return absl::InvalidArgumentError(absl::StrCat("rank ", range->last, ", but there are ",
                                                     members.size(), " members, from 0"));
    }
    for (uint64_t rank = range->first; rank <= range->last; rank += range->stride) {
      communicator.members.push_back(members[rank]);
    }
  }
  return communicator;
}

absl::StatusOr<std::vector<BatchCommunicator>> ReadList(absl::string_view text,
                                                        absl::string_view origin,
                                                        absl::Span<const EndpointIndex> members) {
  std::vector<BatchCommunicator> batch;
  uint32_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view bare = line.substr(0, line.find('#'));
    absl::StatusOr<BatchCommunicator> communicator = ReadCommunicator(bare, members);
    if (!communicator.ok()) {
      return Annotate(communicator.status(), absl::StrCat(origin, ":", number));
    }
    if (!communicator->members.empty()) batch.push_back(*std::move(communicator));
  }
  if (!batch.empty()) return batch;
  return absl::InvalidArgumentError(
      absl::StrCat(origin, ": no communicators; write the ranks of one on each line"));
}

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

absl::StatusOr<std::vector<BatchCommunicator>> GridOf(const BatchCommandOptions& options,
                                                      absl::Span<const EndpointIndex> members) {
  ProcessGrid grid;
  ASSIGN_OR_RETURN(grid.sizes, ParseGridSizes(options.grid));
  grid.order =
      options.order == "first" ? GridOrder::kFirstAxisFastest : GridOrder::kLastAxisFastest;
  for (const absl::string_view word : absl::StrSplit(options.axes, ',', absl::SkipEmpty())) {
    uint32_t axis = 0;
    if (!absl::SimpleAtoi(word, &axis)) {
      return absl::InvalidArgumentError(absl::StrCat("--axes: \"", word, "\" is no axis"));
    }
    grid.axes.push_back(axis);
  }
  return GridLines(grid, members);
}

absl::StatusOr<std::vector<BatchCommunicator>> LoadBatch(const BatchCommandOptions& options,
                                                         const Fabric& fabric) {
  ASSIGN_OR_RETURN(const std::vector<EndpointIndex> members, LoadMembers(options, fabric));
  if (!options.grid.empty()) return GridOf(options, members);
  if (!options.list.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.list));
    return ReadList(text, options.list, members);
  }
  ASSIGN_OR_RETURN(const std::vector<uint32_t> sizes, ParseGridSizes(options.random));
  if (sizes.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--random ", options.random, " is not COUNTxSIZE, such as 512x128"));
  }
  return RandomGroups(sizes[0], sizes[1], options.seed.value_or(1), members);
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
  request.sizes = *ParseSizes(options.tree.bytes);
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
  ASSIGN_OR_RETURN(std::vector<BatchCommunicator> batch, LoadBatch(options, *snapshot.fabric));
  for (BatchCommunicator& c : batch) c.accepts_type1 = options.tree.type == "auto";
  BatchOptions how;
  how.reach = kReaches.at(options.reach);
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
  auto* const what = command.add_option_group("communicators");
  AddText(*what, "--grid", options.grid, "every line of a process grid, such as 256x160");
  AddText(*what, "--list", options.list, "communicators, one a line");
  AddText(*what, "--random", options.random, "COUNTxSIZE groups of random members");
  what->require_option(1);
  AddText(command, "--axes", options.axes, "axes of the grid along which lines run, as 0,2");
  command.add_option("--order", options.order, "the grid's axis that runs fastest; default last")
      ->check(CLI::IsMember({"first", "last"}));
  AddCount(command, "--seed", options.seed, "of --random; default 1");
  command
      .add_option("--reach", options.reach,
                  "roots: nearest only, farther ones to admit more, or any that save entries; "
                  "default any")
      ->check(CLI::IsMember({"nearest", "admit", "any"}));
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
  command->footer(absl::StrCat(kTreeFilesHelp, kListHelp));
  command->callback([options, &outcome] { outcome.status = RunTreeBatch(*options); });
}

}  // namespace coppice
