#include "daemon/tools/builder_comparison.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/routes.h"
#include "daemon/simulation/channels.h"
#include "proto/text/names.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

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

}  // namespace

absl::StatusOr<std::vector<SimulatedRow>> CompareBuilders(
    const SimulateOptions& options, const Snapshot& snapshot, const CostProfile& profile,
    const std::vector<SwitchCapacity>& capacity, const TreeRequest& request,
    const std::vector<BatchCommunicator>& communicators) {
  const Comparison comparison(options, snapshot, profile, capacity, request, communicators);
  std::vector<SimulatedRow> rows;
  const std::vector<uint64_t> sizes = *ParseByteSizes(options.tree.bytes);
  for (const uint64_t bytes : sizes) {
    for (const Candidate& candidate : Candidates()) {
      ASSIGN_OR_RETURN(rows.emplace_back(), comparison.Row(candidate, bytes));
    }
  }
  return rows;
}

}  // namespace coppice
