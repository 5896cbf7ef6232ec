// coppice-plan simulate: what every builder's tree takes packet by packet, under noise, beside what
// the cost model predicts for it.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "daemon/base/status_macros.h"
#include "daemon/simulation/simulator.h"
#include "daemon/tools/command.h"
#include "daemon/tools/profile_option.h"
#include "daemon/tools/simulation_report.h"
#include "daemon/tools/tree_options.h"
#include "daemon/tree/planner.h"

namespace coppice {
namespace {

struct SimulateOptions {
  TreeOptions tree;
  SimulationOptions simulation;
  std::optional<uint32_t> seed, runs, header_bytes;
  std::string pattern = "poisson";
  bool links = false;
};

struct Candidate {
  std::string name;
  std::optional<TreeType> type;
  std::optional<TreeBuilder> builder;
};

const std::vector<Candidate>& Candidates() {
  static const auto* const candidates =
      new std::vector<Candidate>{{"kary", TreeType::kTypeI, TreeBuilder::kKary},
                                 {"knomial", TreeType::kTypeI, TreeBuilder::kKnomial},
                                 {"hierarchical", TreeType::kTypeI, TreeBuilder::kHierarchical},
                                 {"type II", TreeType::kTypeII, std::nullopt},
                                 {"auto", std::nullopt, std::nullopt}};
  return *candidates;
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
             std::vector<SwitchCapacity> capacity, TreeRequest request)
      : options_(options),
        snapshot_(std::move(snapshot)),
        planned_on_(WithNoise(snapshot_, options.simulation.noise)),
        profile_(std::move(profile)),
        capacity_(std::move(capacity)),
        request_(std::move(request)) {}

  // A tree that cannot be built is a row that says why; anything else is an error.
  absl::StatusOr<SimulatedRow> Row(const Candidate& candidate, uint64_t bytes) const {
    SimulatedRow row;
    row.builder = candidate.name;
    row.bytes = bytes;
    TreeRequest request = request_;
    request.sizes = {{bytes, 1}};
    request.type = candidate.type;
    request.builder = candidate.builder;
    if (!candidate.builder) request.width.reset();
    if (candidate.type == TreeType::kTypeI) request.root.reset();
    absl::StatusOr<TreePlan> plan = PlanTree(planned_on_, profile_, capacity_, request);
    if (!plan.ok()) {
      if (plan.status().code() != absl::StatusCode::kResourceExhausted) return plan.status();
      row.why_not = std::string(plan.status().message());
      return row;
    }
    row.plan = *std::move(plan);
    RETURN_IF_ERROR(Run(row));
    return row;
  }

  const Snapshot& snapshot() const { return snapshot_; }

 private:
  absl::Status Run(SimulatedRow& row) const {
    SimulatedCollective collective;
    collective.tree = row.plan->tree;
    collective.payload = PayloadOf(request_.operation, row.bytes);
    ASSIGN_OR_RETURN(const Simulator simulator,
                     Simulator::Prepare(snapshot_, profile_, {collective}, options_.simulation));
    const uint64_t seed = options_.seed.value_or(1);
    for (uint64_t run = 0; run < options_.runs.value_or(1); ++run) {
      SimulationResult result = simulator.Run(seed + run);
      row.total_us.push_back(result.collectives[0].total_us);
      if (run == 0) row.channels = std::move(result.channels);
    }
    std::sort(row.total_us.begin(), row.total_us.end());
    return absl::OkStatus();
  }

  const SimulateOptions& options_;
  const Snapshot snapshot_, planned_on_;
  const CostProfile profile_;
  const std::vector<SwitchCapacity> capacity_;
  const TreeRequest request_;
};

absl::Status RunSimulate(SimulateOptions options) {
  options.simulation.pattern =
      options.pattern == "periodic" ? NoisePattern::kPeriodic : NoisePattern::kPoisson;
  options.simulation.header_bytes = options.header_bytes.value_or(0);
  ASSIGN_OR_RETURN(CostProfile profile, LoadProfile(options.tree.profile));
  ASSIGN_OR_RETURN(Snapshot snapshot, LoadSnapshot(options.tree));
  ASSIGN_OR_RETURN(std::vector<SwitchCapacity> capacity,
                   LoadCapacity(options.tree, *snapshot.fabric));
  ASSIGN_OR_RETURN(TreeRequest request, MakeRequest(options.tree, *snapshot.fabric));
  const std::vector<SizeShare> sizes = request.sizes;
  const SimulationHeading heading = {.operation = options.tree.operation,
                                     .members = static_cast<uint32_t>(request.members.size()),
                                     .noise = options.simulation.noise,
                                     .pattern = options.pattern,
                                     .seed = options.seed.value_or(1),
                                     .runs = options.runs.value_or(1),
                                     .links = options.links};
  const Comparison comparison(options, std::move(snapshot), std::move(profile), std::move(capacity),
                              std::move(request));
  std::vector<SimulatedRow> rows;
  for (const SizeShare& size : sizes) {
    for (const Candidate& candidate : Candidates()) {
      ASSIGN_OR_RETURN(SimulatedRow row, comparison.Row(candidate, size.bytes));
      rows.push_back(std::move(row));
    }
  }
  return PrintText(options.tree.json ? SimulationToJson(comparison.snapshot(), heading, rows)
                                     : SimulationToText(comparison.snapshot(), heading, rows));
}

void AddSimulationOptions(CLI::App& command, SimulateOptions& options) {
  command
      .add_option("--noise", options.simulation.noise,
                  "share of every link's bandwidth that others take, beside --load; default 0")
      ->check(CLI::Range(0.0, 0.999));
  command.add_option("--pattern", options.pattern, "how noise arrives; default poisson")
      ->check(CLI::IsMember({"poisson", "periodic"}));
  AddCount(command, "--seed", options.seed, "of the first run's noise; default 1");
  AddCount(command, "--runs", options.runs, "runs with seeds from --seed on; default 1")
      ->check(CLI::Range(1, 1'000'000));
  AddCount(command, "--header-bytes", options.header_bytes,
           "what a packet carries beside its payload; default 0");
  command.add_flag("--links", options.links, "print what every link carried in the first run");
}

}  // namespace

void RegisterSimulateCommand(CLI::App& app, CommandOutcome& outcome) {
  CLI::App* const command =
      app.add_subcommand("simulate", "Simulated and predicted time of every builder's tree");
  const auto options = std::make_shared<SimulateOptions>();
  AddPlaceOptions(*command, options->tree);
  AddPayloadOptions(*command, options->tree);
  AddShapeOptions(*command, options->tree);
  AddHardwareOptions(*command, options->tree);
  AddSimulationOptions(*command, *options);
  command->add_flag("--json", options->tree.json, "print JSON");
  command->footer(kTreeFilesHelp);
  command->callback([options, &outcome] { outcome.status = RunSimulate(*options); });
}

}  // namespace coppice
