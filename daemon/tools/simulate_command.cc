// coppice-plan simulate: what every builder's trees take packet by packet, under noise, beside what
// the cost model predicts for them. Several communicators run at once, each with a tree of its own;
// a row then tells of the one that is done last in the first run.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/routes.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/simulation/channels.h"
#include "daemon/simulation/simulator.h"
#include "daemon/tools/command.h"
#include "daemon/tools/tree_inputs.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/batch/grid.h"
#include "daemon/tree/planner.h"
#include "proto/text/byte_size.h"
#include "proto/text/command_line.h"
#include "proto/text/names.h"
#include "proto/text/option_words.h"
#include "proto/text/rank_ranges.h"
#include "proto/text/text_file.h"
#include "proto/text/text_table.h"

namespace coppice {
namespace {

// --- The communicators: lines of a process grid, a file that lists them, random groups ---

// Ranks are positions in the members.
struct CommunicatorOptions {
  std::string grid, list, random, axes;
  std::string order = "last";
  std::optional<uint32_t> seed;  // of `random`
};

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
  CLI::App* const what = command.add_option_group("communicators");
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

// --- A comparison of simulated trees as it is printed ---

struct SimulateOptions {
  TreeOptions tree;
  SimulationOptions simulation;
  CommunicatorOptions communicators;
  double skew_us = 0;
  std::optional<uint32_t> seed, runs, header_bytes;
  std::string pattern = "poisson";
  bool links = false, is_wide = false;

  uint64_t first_seed() const { return seed.value_or(1); }
  uint64_t run_count() const { return runs.value_or(1); }
};

// One builder's trees for one size.
struct SimulatedRow {
  std::string builder;
  uint64_t bytes = 0;
  // Of the communicator done last in the first run; nullopt: some tree could not be built.
  std::optional<TreePlan> plan;
  std::string why_not;
  std::vector<double> total_us;          // until all are done, of every run, sorted
  std::vector<ChannelTraffic> channels;  // of the first run
};

using Json = nlohmann::ordered_json;

// Of sorted values.
double Median(const std::vector<double>& values) {
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Most packets first, then by index.
std::vector<ChannelTraffic> ByPackets(std::vector<ChannelTraffic> channels) {
  std::stable_sort(
      channels.begin(), channels.end(),
      [](const ChannelTraffic& a, const ChannelTraffic& b) { return a.packets > b.packets; });
  return channels;
}

Json LinksJson(const Fabric& fabric, const std::vector<ChannelTraffic>& channels) {
  Json json = Json::array();
  for (const ChannelTraffic& use : ByPackets(channels)) {
    json.push_back({{"from", Describe(fabric, fabric.channel_from(use.channel))},
                    {"from_port", fabric.channel_from_port(use.channel).value()},
                    {"to", Describe(fabric, fabric.channel_to(use.channel))},
                    {"packets", use.packets},
                    {"up_packets", use.up_packets},
                    {"bytes", use.bytes},
                    {"busy_us", use.busy_us},
                    {"noise_packets", use.noise_packets},
                    {"longest_queue", use.longest_queue}});
  }
  return json;
}

Json RowJson(const Fabric& fabric, const SimulatedRow& row, bool links) {
  Json json = {{"bytes", row.bytes}, {"builder", row.builder}};
  if (!row.plan) {
    json["why_not"] = row.why_not;
    return json;
  }
  json["type"] = absl::StrCat("TREE_TYPE_", ToString(row.plan->tree.type));  // as of coppice.v1
  json["tree"] = std::string(ToString(row.plan->tree.builder));
  json["width"] = row.plan->tree.width;
  json["height"] = row.plan->height;
  json["predicted_us"] = row.plan->predicted.total_us;
  json["simulated"] = {{"median_us", Median(row.total_us)},
                       {"min_us", row.total_us.front()},
                       {"max_us", row.total_us.back()}};
  if (links) json["links"] = LinksJson(fabric, row.channels);
  return json;
}

// "switch 00ff00000000000a \"leaf 3\" port 4 -> endpoint n0001/1".
std::string LinkText(const Fabric& fabric, ChannelIndex channel) {
  return absl::StrCat(Describe(fabric, fabric.channel_from(channel)), " port ",
                      fabric.channel_from_port(channel).value(), " -> ",
                      Describe(fabric, fabric.channel_to(channel)));
}

void Append(const TextTable& table, std::string& text) {
  absl::StrAppend(&text, absl::StrJoin(table.Lines(IsForPeople()), "\n"), "\n");
}

void AppendLinks(const Fabric& fabric, const SimulatedRow& row, std::string& text) {
  absl::StrAppendFormat(&text, "\n%s, %u B: %u links\n", row.builder, row.bytes,
                        row.channels.size());
  TextTable table({"PACKETS", "UP", "BYTES", "BUSY US", "QUEUE", "LINK"});
  for (const ChannelTraffic& use : ByPackets(row.channels)) {
    table.Add({absl::StrCat(use.packets), absl::StrCat(use.up_packets), absl::StrCat(use.bytes),
               absl::StrFormat("%.3f", use.busy_us), absl::StrCat(use.longest_queue),
               LinkText(fabric, use.channel)});
  }
  Append(table, text);
}

struct SimulatedSize {
  size_t members = 0, communicators = 1;
};

// {"operation","members","communicators","skew_us","noise","pattern","seed","runs","rows":[{"bytes","builder","type","width",
// "height","predicted_us","simulated":{"median_us","min_us","max_us"},"links":[...]}]}; a tree that
// could not be built has "why_not" instead.
std::string SimulationToJson(const SimulateOptions& options, const SimulatedSize& size,
                             const Fabric& fabric, const std::vector<SimulatedRow>& rows) {
  Json json = {{"operation", options.tree.operation},
               {"members", size.members},
               {"communicators", size.communicators},
               {"skew_us", options.skew_us},
               {"noise", options.simulation.noise},
               {"pattern", options.pattern},
               {"seed", options.first_seed()},
               {"runs", options.run_count()},
               {"rows", Json::array()}};
  for (const SimulatedRow& row : rows) {
    json["rows"].push_back(RowJson(fabric, row, options.links));
  }
  return absl::StrCat(json.dump(1, ' ', false, Json::error_handler_t::replace), "\n");
}

// A line for each row; with links, then a table of channels for each, most packets first.
std::string SimulationToText(const SimulateOptions& options, const SimulatedSize& size,
                             const Fabric& fabric, const std::vector<SimulatedRow>& rows) {
  const uint64_t runs = options.run_count();
  std::string text = absl::StrFormat(
      "%s, %u ranks, noise %g (%s), %u run%s from seed %u\n", options.tree.operation, size.members,
      options.simulation.noise, options.pattern, runs, runs == 1 ? "" : "s", options.first_seed());
  if (size.communicators > 1) {
    absl::StrAppendFormat(&text, "%u communicators at once; times until the last is done\n",
                          size.communicators);
  }
  if (options.skew_us > 0) {
    absl::StrAppendFormat(&text, "ranks up to %g us late\n", options.skew_us);
  }
  // The times of one run are alike.
  std::vector<size_t> rest = {4};
  if (runs == 1) rest.insert(rest.end(), {7, 8});
  TextTable table(
      {"BYTES", "BUILDER", "TYPE", "WIDTH", "HEIGHT", "PREDICTED US", "SIMULATED US", "MIN", "MAX"},
      rest, options.is_wide);
  std::string none;
  const auto us = [](double time) { return absl::StrFormat("%.2f", time); };
  for (const SimulatedRow& row : rows) {
    if (!row.plan) {
      table.Add({absl::StrCat(row.bytes), row.builder, "none", "-", "-", "-", "-", "-", "-"});
      const std::string why = absl::StrCat(row.builder, ", ", row.bytes, " B: ", row.why_not);
      absl::StrAppend(&none, "none: ", IsForPeople() ? Wrapped(why, 6) : why, "\n");
      continue;
    }
    const TreePlan& plan = *row.plan;
    table.Add({absl::StrCat(row.bytes), row.builder, std::string(ToString(plan.tree.type)),
               absl::StrCat(plan.tree.width), absl::StrCat(plan.height),
               us(plan.predicted.total_us), us(Median(row.total_us)), us(row.total_us.front()),
               us(row.total_us.back())});
  }
  Append(table, text);
  text += none;
  if (!options.links) return text;
  for (const SimulatedRow& row : rows) {
    if (row.plan) AppendLinks(fabric, row, text);
  }
  return text;
}

struct Candidate {
  absl::string_view name;
  std::optional<TreeType> type;
  std::optional<TreeBuilder> builder;
};

// Every builder of type I, type II, and the planner's choice.
std::vector<Candidate> Candidates() {
  std::vector<Candidate> candidates;
  for (const absl::string_view name : kBuilderNames) {
    const auto builder = EnumNamed<TreeBuilder>(kBuilderNames, name);
    if (builder == TreeBuilder::kMinimumCost) continue;
    candidates.push_back({name, TreeType::kTypeI, builder});
  }
  candidates.push_back({"type II", TreeType::kTypeII, std::nullopt});
  candidates.push_back({"auto", std::nullopt, std::nullopt});
  return candidates;
}

// The snapshot as a planner with measurements sees it: the noise is load, too.
Snapshot WithNoise(const Snapshot& snapshot, double noise) {
  if (noise == 0) return snapshot;
  std::vector<float> load;
  for (uint32_t c = 0; c < snapshot.fabric->channel_count(); ++c) {
    load.push_back(
        std::min(1.0F, snapshot.utilisation(ChannelIndex(c)) + static_cast<float>(noise)));
  }
  Snapshot with = snapshot;
  with.load = std::make_shared<const LinkLoad>(load);
  return with;
}

class Comparison {
 public:
  Comparison(const SimulateOptions& options, Snapshot snapshot, CostProfile profile,
             std::vector<SwitchCapacity> capacity, TreeRequest request,
             std::vector<BatchCommunicator> communicators)
      : options_(options),
        snapshot_(std::move(snapshot)),
        planned_on_(WithNoise(snapshot_, options.simulation.noise)),
        profile_(std::move(profile)),
        capacity_(std::move(capacity)),
        request_(std::move(request)),
        communicators_(std::move(communicators)) {}

  // Trees that cannot be built are a row that says why; anything else is an error.
  absl::StatusOr<SimulatedRow> Row(const Candidate& candidate, uint64_t bytes) const {
    SimulatedRow row;
    row.builder = std::string(candidate.name);
    row.bytes = bytes;
    absl::StatusOr<std::vector<TreePlan>> plans =
        communicators_.size() == 1 ? PlanAlone(candidate, bytes) : PlanTogether(candidate, bytes);
    if (!plans.ok()) {
      if (plans.status().code() != absl::StatusCode::kResourceExhausted) return plans.status();
      row.why_not = std::string(plans.status().message());
      return row;
    }
    ASSIGN_OR_RETURN(const size_t last, Run(*plans, row));
    row.plan = std::move((*plans)[last]);
    return row;
  }

 private:
  TreeRequest RequestFor(const Candidate& candidate, uint64_t bytes,
                         const BatchCommunicator& communicator) const {
    TreeRequest request = request_;
    request.members = communicator.members;
    request.sizes = {{bytes, 1}};
    request.type = candidate.type;
    request.builder = candidate.builder;
    if (!candidate.builder || candidate.builder == TreeBuilder::kPostal) request.width.reset();
    if (candidate.type == TreeType::kTypeI) request.root_switch.reset();
    return request;
  }

  absl::StatusOr<std::vector<TreePlan>> PlanAlone(const Candidate& candidate,
                                                  uint64_t bytes) const {
    std::vector<TreePlan> plans;
    for (const BatchCommunicator& communicator : communicators_) {
      ASSIGN_OR_RETURN(plans.emplace_back(), PlanTree(planned_on_, profile_, capacity_,
                                                      RequestFor(candidate, bytes, communicator)));
    }
    return plans;
  }

  // Type I trees share nothing; type II trees share entries and are planned as a batch.
  absl::StatusOr<std::vector<TreePlan>> PlanTogether(const Candidate& candidate,
                                                     uint64_t bytes) const {
    if (candidate.type == TreeType::kTypeI) return PlanAlone(candidate, bytes);
    const bool any_type = !candidate.type;
    ASSIGN_OR_RETURN(const BatchPlan batch, PlanBatch(planned_on_, capacity_, communicators_));
    std::vector<TreePlan> plans;
    for (size_t c = 0; c < communicators_.size(); ++c) {
      const CommunicatorResult& result = batch.communicators[c];
      std::optional<TreePlan> plan;
      if (any_type) {
        const Candidate type1 = {"", TreeType::kTypeI, std::nullopt};
        ASSIGN_OR_RETURN(plan, PlanTree(planned_on_, profile_, capacity_,
                                        RequestFor(type1, bytes, communicators_[c])));
      }
      if (result.tree) {
        ASSIGN_OR_RETURN(
            TreePlan type2,
            PlanOfBatchTree(planned_on_, profile_, capacity_,
                            RequestFor(candidate, bytes, communicators_[c]), *result.tree));
        if (!plan || type2.predicted.total_us < plan->predicted.total_us) plan = std::move(type2);
      }
      if (!plan) {
        return absl::ResourceExhaustedError(absl::StrCat("communicator ", c, ": ", result.why_not));
      }
      plans.push_back(*std::move(plan));
    }
    return plans;
  }

  // Each rank's data is late by a share of the skew that the seed draws.
  std::vector<double> Skew(uint64_t communicator, size_t ranks) const {
    if (options_.skew_us == 0) return {};
    RandomStream random(options_.first_seed(), UINT64_MAX - communicator);
    std::vector<double> skew;
    for (size_t rank = 0; rank < ranks; ++rank) {
      skew.push_back(options_.skew_us * random.Uniform());
    }
    return skew;
  }

  // Fills in what was simulated; returns the communicator that is done last in the first run.
  absl::StatusOr<size_t> Run(const std::vector<TreePlan>& plans, SimulatedRow& row) const {
    std::vector<SimulatedCollective> collectives;
    for (size_t c = 0; c < plans.size(); ++c) {
      SimulatedCollective& collective = collectives.emplace_back();
      collective.tree = plans[c].tree;
      collective.payload = PayloadOf(request_.operation, row.bytes);
      collective.skew_us = Skew(c, plans[c].tree.rank_count);
    }
    ASSIGN_OR_RETURN(const Simulator simulator,
                     Simulator::Prepare(snapshot_, profile_, collectives, options_.simulation));
    const uint64_t seed = options_.first_seed();
    size_t last = 0;
    for (uint64_t run = 0; run < options_.run_count(); ++run) {
      SimulationResult result = simulator.Run(seed + run);
      const auto done_last =
          std::max_element(result.collectives.begin(), result.collectives.end(),
                           [](const auto& a, const auto& b) { return a.total_us < b.total_us; });
      row.total_us.push_back(done_last->total_us);
      if (run > 0) continue;
      last = static_cast<size_t>(done_last - result.collectives.begin());
      row.channels = std::move(result.channels);
    }
    std::sort(row.total_us.begin(), row.total_us.end());
    return last;
  }

  const SimulateOptions& options_;
  const Snapshot snapshot_, planned_on_;
  const CostProfile profile_;
  const std::vector<SwitchCapacity> capacity_;
  const TreeRequest request_;
  const std::vector<BatchCommunicator> communicators_;
};

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
  ASSIGN_OR_RETURN(CostProfile profile, LoadProfile(options.tree.profile));
  ASSIGN_OR_RETURN(Snapshot snapshot, LoadSnapshot(options.tree));
  ASSIGN_OR_RETURN(const std::vector<SwitchIndex> full,
                   LoadFullSwitches(options.tree, *snapshot.fabric));
  std::vector<SwitchCapacity> capacity = CapacityOf(options.tree, *snapshot.fabric, full);
  ASSIGN_OR_RETURN(TreeRequest request, RequestOf(options.tree, *snapshot.fabric));
  ASSIGN_OR_RETURN(std::vector<BatchCommunicator> communicators,
                   LoadCommunicators(options.communicators, request.members));
  const SimulatedSize size = {request.members.size(), communicators.size()};
  const std::shared_ptr<const Fabric> fabric = snapshot.fabric;
  const Comparison comparison(options, std::move(snapshot), std::move(profile), std::move(capacity),
                              std::move(request), std::move(communicators));
  std::vector<SimulatedRow> rows;
  const std::vector<uint64_t> sizes = *ParseByteSizes(options.tree.bytes);
  for (const uint64_t bytes : sizes) {
    for (const Candidate& candidate : Candidates()) {
      ASSIGN_OR_RETURN(rows.emplace_back(), comparison.Row(candidate, bytes));
    }
  }
  return PrintText(options.tree.json ? SimulationToJson(options, size, *fabric, rows)
                                     : SimulationToText(options, size, *fabric, rows));
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
  command->callback([options, &chosen] {
    chosen.json = options->tree.json;
    chosen.run = [options] { return RunSimulate(*options); };
  });
}

}  // namespace coppice
