// What auto's choice costs beside the best there was, in the simulator: for every case the time of
// the tree that the planner chose over the least of what it chooses from, less one: the three
// builders with a width at every width that it tries (of a closed form's interval of more than
// kMaxOfInterval widths so many of them, its ends included), the postal tree, and type II. So a
// regret is of the choice alone, but where the planner itself leaves a width to its bounds.
//
//   coppice_regret_benchmark [SEED]
//
// Second table: the standard 2-level fat tree of hosts with two ports, two processes each, by
// operation and by placement; how many cases auto of type I is above the least of the three
// builders (each at its own best width), and in how many it is not below hierarchical where that is
// above another. Third: the same and the regret for any ranks, sizes, operations and placements on
// any of many fabrics.
//
// "off": how far the predicted time of what was chosen is from the simulated one, mean and worst;
// 1: messages of one packet, n: longer ones.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "daemon/fabric/fabric_source.h"
#include "daemon/simulation/simulator.h"
#include "daemon/tree/planner.h"
#include "daemon/tree/type1.h"

namespace coppice {
namespace {

constexpr uint32_t kRanks[] = {2, 4, 8, 16, 32, 64, 128, 256, 512};
constexpr uint32_t kMaxOfInterval = 6;
constexpr uint64_t kSizes[] = {8, 64, 256, 1024, 2048, 4096, 16384, 65536};
constexpr int kAnyCases = 500;

// The first ports in order; first one of two ports each, then the other; dealt out over all ports;
// any ports.
enum class Placement { kHostByHost, kRoundByRound, kFarApart, kRandom };
constexpr Placement kPlacements[] = {Placement::kHostByHost, Placement::kRoundByRound,
                                     Placement::kFarApart, Placement::kRandom};
const char* NameOf(Placement placement) {
  switch (placement) {
    case Placement::kHostByHost:
      return "host by host";
    case Placement::kRoundByRound:
      return "round by round";
    case Placement::kFarApart:
      return "far apart";
    default:
      return "random";
  }
}

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
    const uint32_t step = std::max(1U, (interval.max - interval.min) / kMaxOfInterval);
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
  void Print(const std::string& name) const {
    std::printf("%-66s %5d %8.3f %8.2f %8.3f %8.2f %8.3f %8.2f  %s\n", name.c_str(), count,
                100 * sum / count, 100 * worst, 100 * one_packet.mean(), 100 * one_packet.worst,
                100 * pipelined.mean(), 100 * pipelined.worst, worst > 0 ? worst_case.c_str() : "");
    std::fflush(stdout);
  }
};

void PrintTallyHead() {
  std::printf("%-66s %5s %8s %8s %8s %8s %8s %8s  %s\n", "fabric", "cases", "mean %", "worst %",
              "off 1 %", "worst %", "off n %", "worst %", "worst case");
}

// Every `step`-th of `from`, then those after them, and so on.
std::vector<EndpointIndex> Dealt(const std::vector<EndpointIndex>& from, size_t step) {
  std::vector<EndpointIndex> dealt;
  for (size_t first = 0; first < step; ++first) {
    for (size_t e = first; e < from.size(); e += step) dealt.push_back(from[e]);
  }
  return dealt;
}

std::vector<EndpointIndex> Places(const Fabric& fabric, uint32_t ranks, Placement placement,
                                  std::mt19937_64& generator) {
  std::vector<EndpointIndex> all;
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) all.emplace_back(e);
  if (placement == Placement::kRandom) std::shuffle(all.begin(), all.end(), generator);
  if (placement == Placement::kFarApart) {
    all = Dealt(all, static_cast<size_t>(std::sqrt(all.size())));
  }
  all.resize(std::min<size_t>(all.size(), ranks));
  return placement == Placement::kRoundByRound ? Dealt(all, 2) : all;
}

TreeRequest Request(const Fabric& fabric, uint32_t ranks, Placement placement, uint64_t bytes,
                    Operation operation, std::mt19937_64& generator) {
  TreeRequest request;
  request.members = Places(fabric, ranks, placement, generator);
  request.operation = operation;
  request.sizes = {{bytes, 1}};
  return request;
}

// Auto against the best of what it chooses from.
void AddRegret(const Case& one, bool is_one_packet, const std::string& what,
               std::initializer_list<Tally*> tallies) {
  double predicted = 0;
  const double chosen = one.Us(std::nullopt, std::nullopt, std::nullopt, &predicted);
  double least = std::min(chosen, one.Us(TreeType::kTypeII, std::nullopt, std::nullopt));
  for (const TreeBuilder builder :
       {TreeBuilder::kKary, TreeBuilder::kKnomial, TreeBuilder::kHierarchical}) {
    least = std::min(least, one.BestUs(builder));
  }
  least = std::min(least, one.PostalUs());
  for (Tally* tally : tallies) {
    tally->Add(chosen / least - 1, std::abs(predicted / chosen - 1), is_one_packet, what);
  }
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
      const Placement placement = random ? Placement::kRandom : Placement::kHostByHost;
      const Case one(*snapshot, profile,
                     Request(*snapshot->fabric, ranks, placement, bytes, operation, generator));
      const std::string what = std::to_string(ranks) + " " + NameOf(placement) + ", " +
                               std::string(ToString(operation)) + " " + std::to_string(bytes) +
                               " B";
      AddRegret(one, bytes <= profile.mtu_bytes, what, {&here, &all});
    }
  }
  here.Print(spec);
}

// Auto of type I beside the three builders, each at its own best width.
struct BesideThree {
  int cases = 0, above = 0, not_below = 0;
  double worst = 0;
  void Add(const Case& one, const std::string& what) {
    const double chosen = one.Us(TreeType::kTypeI, std::nullopt, std::nullopt);
    const double kary = one.BestUs(TreeBuilder::kKary);
    const double knomial = one.BestUs(TreeBuilder::kKnomial);
    const double hierarchical = one.BestUs(TreeBuilder::kHierarchical);
    const double least = std::min({kary, knomial, hierarchical});
    ++cases;
    if (hierarchical > least * (1 + 1e-9) && chosen >= hierarchical) ++not_below;
    if (chosen <= least * (1 + 1e-9)) return;
    ++above;
    worst = std::max(worst, chosen / least - 1);
    std::printf("  %s: auto %.4f us; k-ary %.4f, k-nomial %.4f, hierarchical %.4f\n", what.c_str(),
                chosen, kary, knomial, hierarchical);
  }
  void Print(const std::string& what) const {
    std::printf("%-40s %5d %7d %8.2f %7d\n", what.c_str(), cases, above, 100 * worst, not_below);
    std::fflush(stdout);
  }
};

void BelowAllThree(const CostProfile& profile, std::mt19937_64& generator) {
  const auto snapshot = Must(MakeSnapshot(
      Must(LoadFabric("model:fat-tree(leaves=32,spines=16,hosts-per-leaf=8,ports-per-host=2)")),
      nullptr));
  for (const Operation operation :
       {Operation::kBarrier, Operation::kBcast, Operation::kReduce, Operation::kAllreduce}) {
    for (const Placement placement : kPlacements) {
      BesideThree all;
      const std::string name =
          profile.name + ", " + std::string(ToString(operation)) + ", " + NameOf(placement);
      for (const uint32_t ranks : kRanks) {
        for (uint64_t bytes = 8; bytes <= 65536; bytes *= 2) {
          if (operation == Operation::kBarrier && bytes > 8) break;  // has no size
          const Case one(*snapshot, profile,
                         Request(*snapshot->fabric, ranks, placement, bytes, operation, generator));
          all.Add(one, std::to_string(ranks) + " ranks, " + std::to_string(bytes) + " B");
        }
      }
      all.Print(name);
    }
  }
}

void Anything(std::mt19937_64& generator) {
  constexpr const char* kFabrics[] = {
      "model:fat-tree(leaves=32,spines=16,hosts-per-leaf=16)",
      "model:fat-tree(leaves=24,spines=6,hosts-per-leaf=12,ports-per-host=2)",
      "model:fat-tree(leaves=12,spines=3,hosts-per-leaf=31)",
      "model:fat-tree(leaves=40,spines=1,hosts-per-leaf=9)",
      "model:fat-tree(supernodes=4,leaves=8,spines=4,hosts-per-leaf=16,tops=4)",
      "model:fat-tree(supernodes=9,leaves=5,spines=3,hosts-per-leaf=7,tops=2)",
      "model:torus(dims=5x4x3,hosts=4)",
      "model:dragonfly"};
  Tally regret;
  BesideThree three;
  for (int i = 0; i < kAnyCases; ++i) {
    const std::string spec = kFabrics[generator() % std::size(kFabrics)];
    const auto snapshot = Must(MakeSnapshot(Must(LoadFabric(spec)), nullptr));
    const CostProfile profile = Must(BuiltInProfile(generator() % 2 == 0 ? "paper" : "hdr"));
    const uint32_t most = std::min(512U, snapshot->fabric->endpoint_count());
    const auto ranks = static_cast<uint32_t>(2 + generator() % (most - 1));
    const auto bytes =
        static_cast<uint64_t>(std::exp2(std::uniform_real_distribution<double>(3, 16)(generator)));
    const auto operation = static_cast<Operation>(generator() % 4);
    const Placement placement = kPlacements[generator() % std::size(kPlacements)];
    const Case one(*snapshot, profile,
                   Request(*snapshot->fabric, ranks, placement, bytes, operation, generator));
    const std::string what = spec + ", " + profile.name + ", " + std::to_string(ranks) + " ranks " +
                             NameOf(placement) + ", " + std::string(ToString(operation)) + " " +
                             std::to_string(bytes) + " B";
    three.Add(one, what);
    AddRegret(one, bytes <= profile.mtu_bytes, what, {&regret});
  }
  three.Print("any");
  PrintTallyHead();
  regret.Print("any");
}

int Main(int argc, char** argv) {
  const uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  std::mt19937_64 generator(seed);
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  PrintTallyHead();
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
  all.Print("all");
  std::printf("%-40s %5s %7s %8s %7s\n", "auto I beside the three", "cases", "above", "worst %",
              "not below hierarchical");
  for (const char* name : {"paper", "hdr"}) BelowAllThree(Must(BuiltInProfile(name)), generator);
  Anything(generator);
  return 0;
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) { return coppice::Main(argc, argv); }
