// coppice-plan simulate: its options, and the communicators that they name: lines of a process
// grid, a file that lists them, random groups.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "daemon/tools/builder_comparison.h"
#include "daemon/tools/command.h"
#include "daemon/tools/simulation_report.h"
#include "daemon/tools/tree_inputs.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/batch/grid.h"
#include "proto/text/byte_size.h"
#include "proto/text/command_line.h"
#include "proto/text/names.h"
#include "proto/text/option_words.h"
#include "proto/text/rank_ranges.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

absl::StatusOr<std::vector<BatchCommunicator>> ReadList(absl::string_view text,
                                                        absl::string_view origin,
                                                        absl::Span<const EndpointIndex> members) {
  ASSIGN_OR_RETURN(const std::vector<CommunicatorLine> lines, ParseCommunicators(text, origin));
  std::vector<BatchCommunicator> batch;
  for (const CommunicatorLine& line : lines) {
    BatchCommunicator& communicator = batch.emplace_back();
    for (const RankRange& range : line.ranges) {
      if (range.last >= members.size()) {
        return absl::InvalidArgumentError(absl::StrCat(origin, ":", line.number, ": rank ",
                                                       range.last, ", but there are ",
                                                       members.size(), " members, from 0"));
      }
      for (uint64_t rank = range.first; rank <= range.last; rank += range.stride) {
        communicator.members.push_back(members[rank]);
      }
    }
  }
  return batch;
}

absl::StatusOr<std::vector<BatchCommunicator>> GridOf(const CommunicatorOptions& options,
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

constexpr char kCommunicatorListHelp[] =
    "\n  --list           one communicator a line: ranks (lines of --members, from 0) as"
    "\n                   numbers, ranges 0-15 or ranges with a stride 0-240:16,"
    "\n                   between blanks";

// --grid, --list and --random in a group of their own, which is returned. The seed has no option
// here: the command draws other things, too.
CLI::App* AddCommunicatorOptions(CLI::App& command, CommunicatorOptions& options) {
  CLI::App* const what = command.add_option_group("communicators", "at most one of them");
  AddText(*what, "--grid", options.grid, "Every line of a process grid, such as 256x160");
  AddText(*what, "--list", options.list, "Communicators, one a line");
  AddText(*what, "--random", options.random, "COUNTxSIZE groups of random members");
  AddText(command, "--axes", options.axes, "Axes of the grid along which lines run, as 0,2");
  command.add_option("--order", options.order, "The grid's axis that runs fastest; default last")
      ->check(CLI::IsMember({"first", "last"}));
  return what;
}

// None of grid, list and random: one communicator of all members. INVALID_ARGUMENT names the
// option, or file and line.
absl::StatusOr<std::vector<BatchCommunicator>> LoadCommunicators(
    const CommunicatorOptions& options, absl::Span<const EndpointIndex> members) {
  if (!options.grid.empty()) return GridOf(options, members);
  if (!options.list.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.list));
    return ReadList(text, options.list, members);
  }
  if (options.random.empty()) {
    return std::vector<BatchCommunicator>{{{members.begin(), members.end()}, false}};
  }
  ASSIGN_OR_RETURN(const std::vector<uint32_t> sizes, ParseGridSizes(options.random));
  if (sizes.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--random ", options.random, " is not COUNTxSIZE, such as 512x128"));
  }
  return RandomGroups(sizes[0], sizes[1], options.seed.value_or(1), members);
}

std::vector<SwitchCapacity> CapacityOf(const TreeOptions& options, const Fabric& fabric,
                                       const std::vector<SwitchIndex>& full) {
  const uint32_t entries = options.entries.value_or(kDefaultEntries);
  std::vector<SwitchCapacity> capacity(
      fabric.switch_count(),
      {entries, entries, options.switch_degree.value_or(kDefaultSwitchDegree)});
  for (const SwitchIndex s : full) capacity[s.value()].entries_free = 0;
  return capacity;
}

// Without the size, which each row has of its own.
absl::StatusOr<TreeRequest> RequestOf(const TreeOptions& options, const Fabric& fabric) {
  TreeRequest request;
  ASSIGN_OR_RETURN(const std::string text, ReadNodesText(options.members));
  ASSIGN_OR_RETURN(request.members, ReadMembers(fabric, text, options.members));
  request.operation = *ParseOperation(options.operation);
  request.width = options.width;
  request.nic_degree = options.nic_degree;
  if (!options.root.empty()) {
    ASSIGN_OR_RETURN(const SwitchIndex root, ResolveSwitch(fabric, options.root));
    request.root_switch = fabric.switch_info(root).guid;
  }
  return request;
}

absl::Status RunSimulate(SimulateOptions options) {
  options.simulation.pattern =
      options.pattern == "periodic" ? NoisePattern::kPeriodic : NoisePattern::kPoisson;
  options.simulation.header_bytes = options.header_bytes;
  options.communicators.seed = options.seed;
  ASSIGN_OR_RETURN(const CostProfile profile, LoadProfile(options.tree.profile));
  ASSIGN_OR_RETURN(const Snapshot snapshot, LoadSnapshot(options.tree));
  ASSIGN_OR_RETURN(const std::vector<SwitchIndex> full,
                   LoadFullSwitches(options.tree, *snapshot.fabric));
  const std::vector<SwitchCapacity> capacity = CapacityOf(options.tree, *snapshot.fabric, full);
  ASSIGN_OR_RETURN(const TreeRequest request, RequestOf(options.tree, *snapshot.fabric));
  ASSIGN_OR_RETURN(const std::vector<BatchCommunicator> communicators,
                   LoadCommunicators(options.communicators, request.members));
  const SimulatedSize size = {request.members.size(), communicators.size()};
  ASSIGN_OR_RETURN(const std::vector<SimulatedRow> rows,
                   CompareBuilders(options, snapshot, profile, capacity, request, communicators));
  const Fabric& fabric = *snapshot.fabric;
  return PrintText(options.tree.json ? SimulationToJson(options, size, fabric, rows)
                                     : SimulationToText(options, size, fabric, rows));
}

void AddTreeOptions(CLI::App& command, TreeOptions& options) {
  AddText(command, "--fabric", options.fabric, "file:PATH or model:NAME(ARGUMENT=VALUE,...)")
      ->required();
  AddText(command, "--members", options.members, "Endpoints in rank order")->required();
  command.add_option("--op", options.operation, "Operation; default allreduce")
      ->check(CLI::IsMember(ListOf(kOperationNames)));
  command
      .add_option("--bytes", options.bytes,
                  "Message sizes, such as 8,4K,1M, equally frequent; default 8")
      ->check(Understood(ParseByteSizes, kByteSizesMeant));
  AddCount(command, "--width", options.width, "Wanted children per node of a type I tree");
  AddText(command, "--root", options.root, "Wanted root of a type II tree: GUID or description");
  AddCount(command, "--nic-degree", options.nic_degree,
           "Most children of a NIC; default the profile's");
  AddFabricOptions(command, options);
}

void AddSimulationOptions(CLI::App& command, SimulateOptions& options) {
  command
      .add_option("--noise", options.simulation.noise,
                  "Share of every link's bandwidth that others take, beside --load; default 0")
      ->check(CLI::Range(0.0, 0.999));
  command.add_option("--pattern", options.pattern, "How noise arrives; default poisson")
      ->check(CLI::IsMember({"poisson", "periodic"}));
  AddCount(command, "--seed", options.seed,
           "Of the first run's noise, of --skew and of --random; default 1");
  AddCount(command, "--runs", options.runs, "Runs with seeds from --seed on; default 1", 1,
           1'000'000);
  AddCount(command, "--header-bytes", options.header_bytes,
           "What a packet carries beside its payload; default what the profile says")
      ->transform(PlainBytes);
  AddCommunicatorOptions(command, options.communicators)->require_option(0, 1);
  command
      .add_option("--skew", options.skew_us,
                  "us by which ranks are late, each by a random share of it; default 0")
      ->check(CLI::Range(0.0, 1e9));
  command.add_flag("--shared-units", options.simulation.shared_units,
                   "Trees at one switch or port match and copy by turns");
  command.add_flag("--links", options.links, "Print what every link carried in the first run");
}

// Throws what CLI11 throws.
void CheckSimulateUsage(const CLI::App& command, const SimulateOptions& options) {
  for (const char* const of_grid : {"--axes", "--order"})
    CheckNeedsOneOf(command, of_grid, {"--grid"});
  CheckNeedsOneOf(command, "--shared-units", {"--grid", "--list", "--random"});
  CheckNeedsOneOf(command, "--pattern", {"--noise", "--load"});
  if (options.run_count() > 1) CheckNeedsOneOf(command, "--runs", {"--noise", "--load"});
  CheckNeedsOneOf(command, "--seed", {"--noise", "--load", "--skew", "--random"});
  if (options.tree.operation == "barrier") CheckNoneOf(command, "--op barrier", {"--bytes"});
}

}  // namespace

void RegisterSimulateCommand(CLI::App& app, PlanCommand& chosen) {
  CLI::App* const command =
      app.add_subcommand("simulate", "Simulated and predicted time of every builder's tree");
  const auto options = std::make_shared<SimulateOptions>();
  AddTreeOptions(*command, options->tree);
  AddSimulationOptions(*command, *options);
  command->add_flag("--json", options->tree.json, "Print JSON");
  command
      ->add_option_function<std::string>(
          "-o,--output", [options](const std::string&) { options->is_wide = true; },
          "wide: all columns")
      ->check(CLI::IsMember({"wide"}))
      ->excludes("--json");
  command->footer(absl::StrCat(kTreeFilesHelp, kCommunicatorListHelp));
  command->callback([options, command, &chosen] {
    CheckSimulateUsage(*command, *options);
    chosen.json = options->tree.json;
    chosen.run = [options] { return RunSimulate(*options); };
  });
}

}  // namespace coppice
