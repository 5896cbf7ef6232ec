// What auto's choice costs beside the best there was, in the simulator: for every case the time of
// the tree that the planner chose over the least of what it chooses from, less one: the three
// builders with a width at every width that it tries (of a closed form's interval of more than
// kMostOfInterval widths so many of them, its ends included), the postal tree, and type II. So a
// regret is of the choice alone, but where the planner itself leaves a width to its bounds.
//
//   coppice_regret_benchmark [SEED]
//
// Second table: the standard 2-level fat tree of hosts with two ports, two processes each; how many
// cases auto of type I is above the least of the three builders (each at its own best width), and
// in how many it is not below hierarchical where that is above another.
//
// "off": how far the predicted time of what was chosen is from the simulated one; 1: messages of
// one packet, n: longer ones.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "daemon/fabric/fabric_source.h"
#include "daemon/simulation/simulator.h"
#include "daemon/tree/planner.h"
#include "daemon/tree/width_candidates.h"

namespace coppice {
namespace {

constexpr uint32_t kRanks[] = {2, 4, 8, 16, 32, 64, 128, 256, 512};
constexpr uint32_t kMostOfInterval = 6;
constexpr uint64_t kSizes[] = {8, 64, 256, 1024, 2048, 4096, 16384, 65536};

template <class T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", std::string(value.status().message()).c_str());
    std::exit(1);
  }
  return *std::move(value);
}

double SimulatedUs(const Snapshot& snapshot, const CostProfile& profile,
                   const AggregationTree& tree, const Payload& payload) {
  const SimulatedCollective one = {.tree = tree, .payload = payload, .skew_us = {}};
  return Must(Simulator::Prepare(snapshot, profile, {&one, 1}, {})).Run(1).collectives[0].total_us;
}

class Case {
 public:
  Case(const Snapshot& snapshot, const CostProfile& profile, TreeRequest request)
      : snapshot_(snapshot),
        profile_(profile),
        request_(std::move(request)),
        capacity_(snapshot.fabric->switch_count(), {16, 16, 64}) {}

  // Simulated time of what the planner gives; infinite if it gives none.
  double Us(std::optional<TreeType> type, std::optional<TreeBuilder> builder,
            std::optional<uint32_t> width, double* predicted_us = nullptr) const {
    TreeRequest request = request_;
    request.type = type;
    request.builder = builder;
    request.width = width;
    const absl::StatusOr<TreePlan> plan = PlanTree(snapshot_, profile_, capacity_, request);
    if (!plan.ok()) return std::numeric_limits<double>::infinity();
    if (predicted_us != nullptr) *predicted_us = plan->predicted.total_us;
    return SimulatedUs(snapshot_, profile_, plan->tree,
                       PayloadOf(request.operation, request.sizes[0].bytes));
  }

  // The least over widths.
  double BestUs(TreeBuilder builder) const {
    double least = std::numeric_limits<double>::infinity();
    for (const uint32_t width : Widths()) {
      least = std::min(least, Us(TreeType::kTypeI, builder, width));
    }
    return least;
  }

  double PostalUs() const { return Us(TreeType::kTypeI, TreeBuilder::kPostal, std::nullopt); }

 private:
  std::vector<uint32_t> Widths() const {
    const WidthInterval interval = WidthCandidates(profile_, request_, profile_.nic_degree);
    const uint32_t step = std::max(1U, (interval.max - interval.min) / kMostOfInterval);
    std::vector<uint32_t> widths;
    for (const uint32_t w : WidthsToTry(profile_, request_, profile_.nic_degree)) {
      const bool inside = w > interval.min && w < interval.max;
      if (!inside || (w - interval.min) % step == 0) widths.push_back(w);
    }
    return widths;
  }

  const Snapshot& snapshot_;
  const CostProfile& profile_;
  TreeRequest request_;
  std::vector<SwitchCapacity> capacity_;
};

// Of predicted and simulated time of what was chosen.
struct Agreement {
  double sum = 0, worst = 0;
  int count = 0;
  void Add(double difference) {
    sum += difference;
    worst = std::max(worst, difference);
    ++count;
  }
  double mean() const { return count > 0 ? sum / count : 0; }
};

struct Tally {
  double sum = 0, worst = 0;
  int count = 0;
  std::string worst_case;
  Agreement one_packet, pipelined;
  void Add(double regret, double difference, bool is_one_packet, const std::string& what) {
    sum += regret;
    (is_one_packet ? one_packet : pipelined).Add(difference);
    ++count;
    if (regret < worst) return;
    worst = regret;
    worst_case = what;
  }
};

TreeRequest Request(const Fabric& fabric, uint32_t ranks, bool random, uint64_t bytes,
                    Operation operation, std::mt19937_64& generator) {
  TreeRequest request;
  std::vector<EndpointIndex> all;
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) all.emplace_back(e);
  if (random) std::shuffle(all.begin(), all.end(), generator);
  request.members.assign(all.begin(), all.begin() + std::min<size_t>(ranks, all.size()));
  request.operation = operation;
  request.sizes = {{bytes, 1}};
  return request;
}

void Regret(const std::string& spec, const CostProfile& profile, std::mt19937_64& generator,
            Tally& all) {
  const auto snapshot = Must(MakeSnapshot(Must(LoadFabric(spec)), nullptr));
  Tally here;
  for (const uint32_t ranks : kRanks) {
    if (ranks > snapshot->fabric->endpoint_count()) continue;
    for (const uint64_t bytes : kSizes) {
      const auto operation = static_cast<Operation>(1 + generator() % 3);
      const bool random = generator() % 2 == 0;
      const Case one(*snapshot, profile,
                     Request(*snapshot->fabric, ranks, random, bytes, operation, generator));
      double predicted = 0;
      const double chosen = one.Us(std::nullopt, std::nullopt, std::nullopt, &predicted);
      double least = std::min(chosen, one.Us(TreeType::kTypeII, std::nullopt, std::nullopt));
      for (const TreeBuilder builder :
           {TreeBuilder::kKary, TreeBuilder::kKnomial, TreeBuilder::kHierarchical}) {
        least = std::min(least, one.BestUs(builder));
      }
      least = std::min(least, one.PostalUs());
      const std::string what = std::to_string(ranks) + (random ? " random" : " first") +
                               " ranks, " + std::string(ToString(operation)) + " " +
                               std::to_string(bytes) + " B";
      const double off = std::abs(predicted / chosen - 1);
      const bool is_one_packet = bytes <= profile.mtu_bytes;
      here.Add(chosen / least - 1, off, is_one_packet, what);
      all.Add(chosen / least - 1, off, is_one_packet, spec + ", " + what);
    }
  }
  std::printf("%-66s %5d %8.2f %8.2f %8.2f %8.2f  %s\n", spec.c_str(), here.count,
              100 * here.sum / here.count, 100 * here.worst, 100 * here.one_packet.mean(),
              100 * here.pipelined.mean(), here.worst_case.c_str());
  std::fflush(stdout);
}

void BelowAllThree(const CostProfile& profile) {
  const auto snapshot = Must(MakeSnapshot(
      Must(LoadFabric("model:fat-tree(leaves=32,spines=16,hosts-per-leaf=8,ports-per-host=2)")),
      nullptr));
  std::mt19937_64 unused(1);
  int cases = 0, above = 0, not_below = 0;
  double worst = 0;
  for (const uint32_t ranks : kRanks) {
    for (uint64_t bytes = 8; bytes <= 65536; bytes *= 2) {
      const Case one(
          *snapshot, profile,
          Request(*snapshot->fabric, ranks, false, bytes, Operation::kAllreduce, unused));
      const double chosen = one.Us(TreeType::kTypeI, std::nullopt, std::nullopt);
      const double kary = one.BestUs(TreeBuilder::kKary);
      const double knomial = one.BestUs(TreeBuilder::kKnomial);
      const double hierarchical = one.BestUs(TreeBuilder::kHierarchical);
      const double least = std::min({kary, knomial, hierarchical});
      ++cases;
      if (chosen > least * (1 + 1e-9)) {
        ++above;
        worst = std::max(worst, chosen / least - 1);
        std::printf("  %u ranks, %llu B: auto %.4f us; k-ary %.4f, k-nomial %.4f, hier %.4f\n",
                    ranks, static_cast<unsigned long long>(bytes), chosen, kary, knomial,
                    hierarchical);
      }
      if (hierarchical > least * (1 + 1e-9) && chosen >= hierarchical) ++not_below;
    }
  }
  std::printf(
      "%d cases: auto above the least of three in %d (at most %.2f %%); not below "
      "hierarchical where another is: %d\n",
      cases, above, 100 * worst, not_below);
}

int Main(int argc, char** argv) {
  const uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  std::mt19937_64 generator(seed);
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::printf("%-66s %5s %8s %8s %8s %8s  %s\n", "fabric", "cases", "mean %", "worst %", "off 1 %",
              "off n %", "worst case");
  Tally all;
  for (const char* name : {"paper", "hdr"}) {
    const CostProfile profile = Must(BuiltInProfile(name));
    for (const char* spec :
         {"model:fat-tree(leaves=32,spines=16,hosts-per-leaf=16)",
          "model:fat-tree(leaves=32,spines=16,hosts-per-leaf=8,ports-per-host=2)",
          "model:fat-tree(leaves=32,spines=2,hosts-per-leaf=16)",
          "model:fat-tree(leaves=32,spines=1,hosts-per-leaf=16)",
          "model:fat-tree(supernodes=4,leaves=8,spines=4,hosts-per-leaf=16,tops=4)",
          "model:torus(dims=4x4x4,hosts=8)", "model:dragonfly"}) {
      Regret(spec, profile, generator, all);
    }
  }
  std::printf("all: %d cases, mean %.3f %%, worst %.2f %% (%s)\n", all.count,
              100 * all.sum / all.count, 100 * all.worst, all.worst_case.c_str());
  std::printf(
      "predicted against simulated: one packet, %d cases, mean %.3f %%, worst %.2f %%; "
      "pipelined, %d cases, mean %.2f %%, worst %.2f %%\n",
      all.one_packet.count, 100 * all.one_packet.mean(), 100 * all.one_packet.worst,
      all.pipelined.count, 100 * all.pipelined.mean(), 100 * all.pipelined.worst);
  for (const char* name : {"paper", "hdr"}) {
    std::printf("standard 2-level fat tree, profile %s\n", name);
    BelowAllThree(Must(BuiltInProfile(name)));
  }
  return 0;
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) { return coppice::Main(argc, argv); }
