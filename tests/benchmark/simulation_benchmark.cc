// The experiments of Chen 2024 in the simulator, as tables beside the paper's own figures: figures
// 12, 13, 16 and 18 and table 4; and what a simulation costs.
//
// The profile is "paper", its links 100 Gb/s as it assumes. Times are medians over seeds where
// there is noise. Bcast as the paper measures it: everybody reports to the root, the data comes
// down.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/simulation/simulator.h"
#include "daemon/tree/planner.h"
#include "daemon/tree/type1.h"
#include "tests/support/trees.h"

namespace coppice {
namespace {

constexpr uint32_t kWidth = 32, kDegree = 64;
// InfiniBand's headers (LRH 8, BTH 12, ICRC 4, VCRC 2), and what a packet of the paper's fabric
// would have to take of a link for its table 4: the paper says nothing of its packets.
constexpr uint32_t kInfiniBandHeader = 26, kPaperHeader = 256;
constexpr double kNoise = 0.8;

template <class T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}

// How ranks are placed on hosts of two ports: rank 2h and 2h + 1 on host h, or round by round over
// all hosts.
enum class Placement : uint8_t { kBlock, kCyclic };

struct Bench {
  explicit Bench(const std::string& spec, Placement placed = Placement::kBlock)
      : placement(placed) {
    snapshot.fabric = Must(LoadFabric(absl::StrCat("model:fat-tree(", spec, ",speeds=edr)")));
    snapshot.hierarchy = DeriveHierarchy(*snapshot.fabric);
    snapshot.routes = Routes::ShortestPaths(snapshot.fabric);
    snapshot.load = std::make_shared<const LinkLoad>();
    for (uint32_t e = 0; e < snapshot.fabric->endpoint_count(); ++e) everyone.emplace_back(e);
  }
  // On the first ranks / 2 hosts.
  std::vector<EndpointIndex> First(uint32_t ranks) const {
    std::vector<EndpointIndex> members(everyone.begin(), everyone.begin() + ranks);
    if (placement == Placement::kBlock) return members;
    for (uint32_t r = 0; r < ranks; ++r) {
      const uint32_t hosts = ranks / 2;
      members[r] = everyone[2 * (r % hosts) + r / hosts];
    }
    return members;
  }
  // The noise as load: on the links between switches alone (endpoints are their owners'), or on
  // all.
  Snapshot Noisy(bool between_switches) const {
    std::vector<float> load(snapshot.fabric->channel_count(), 0.0F);
    for (uint32_t l = 0; l < snapshot.fabric->link_count(); ++l) {
      const LinkInfo& link = snapshot.fabric->link(LinkIndex(l));
      if (between_switches &&
          (!snapshot.fabric->IsSwitch(link.a) || !snapshot.fabric->IsSwitch(link.b))) {
        continue;
      }
      load[2 * l] = load[2 * l + 1] = static_cast<float>(kNoise);
    }
    Snapshot noisy = snapshot;
    noisy.load = std::make_shared<const LinkLoad>(load);
    return noisy;
  }

  Snapshot snapshot;
  Placement placement;
  std::vector<EndpointIndex> everyone;
  CostProfile profile = Must(BuiltInProfile("paper"));
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double Simulate(const Bench& bench, const Snapshot& snapshot, const AggregationTree& tree,
                uint64_t bytes, const SimulationOptions& options, int runs) {
  SimulatedCollective collective;
  collective.tree = tree;
  collective.payload = PayloadOf(Operation::kBcast, bytes);
  const Simulator simulator =
      Must(Simulator::Prepare(snapshot, bench.profile, {collective}, options));
  std::vector<double> totals;
  for (int run = 0; run < runs; ++run) {
    totals.push_back(simulator.Run(static_cast<uint64_t>(run)).collectives[0].total_us);
  }
  return Median(std::move(totals));
}

double Simulate(const Bench& bench, const AggregationTree& tree, uint64_t bytes) {
  return Simulate(bench, bench.snapshot, tree, bytes, {.header_bytes = kInfiniBandHeader}, 1);
}

// The paper's three trees, k = 32.
std::vector<AggregationTree> ThreeTrees(const Bench& bench, uint32_t ranks,
                                        uint32_t degree = kDegree) {
  const std::vector<EndpointIndex> members = bench.First(ranks);
  const Fabric& fabric = *bench.snapshot.fabric;
  return {Must(BuildKary(fabric, members, kWidth, degree)),
          Must(BuildKnomial(fabric, members, kWidth, degree)),
          Must(BuildHierarchical(fabric, *bench.snapshot.hierarchy, members, kWidth, degree))};
}

// Planned with the packets that are simulated: `header_bytes` are theirs.
AggregationTree Planned(const Bench& bench, const Snapshot& snapshot, uint32_t ranks,
                        uint64_t bytes, std::optional<TreeType> type,
                        uint32_t header_bytes = kInfiniBandHeader) {
  CostProfile profile = bench.profile;
  profile.header_bytes = header_bytes;
  TreeRequest request;
  request.members = bench.First(ranks);
  request.operation = Operation::kBcast;
  request.sizes = {{bytes, 1}};
  request.type = type;
  const std::vector<SwitchCapacity> capacity(bench.snapshot.fabric->switch_count(),
                                             {16, 16, kDegree});
  return Must(PlanTree(snapshot, profile, capacity, request)).tree;
}

struct ShapeCounts {
  int cases = 0, behind = 0, behind_of_any = 0, hierarchical_wins = 0;
  int hierarchical_behind = 0, not_below = 0;  // hierarchical takes longer than another
  int hierarchical_taller = 0, not_below_where_taller = 0;  // its tree is higher than another
  double worst = 0;
};

// One line, if it is shown, and what it adds to the counts.
void CompareShapes(const Bench& bench, const std::vector<AggregationTree>& trees, uint32_t ranks,
                   uint64_t bytes, ShapeCounts& counts) {
  std::vector<double> us;
  for (const AggregationTree& tree : trees) us.push_back(Simulate(bench, tree, bytes));
  const double type1 =
      Simulate(bench, Planned(bench, bench.snapshot, ranks, bytes, TreeType::kTypeI), bytes);
  const double any =
      Simulate(bench, Planned(bench, bench.snapshot, ranks, bytes, std::nullopt), bytes);
  const double least = *std::min_element(us.begin(), us.end());
  ++counts.cases;
  if (us[2] < us[0] && us[2] < us[1]) ++counts.hierarchical_wins;
  if (type1 > least * (1 + 1e-9)) ++counts.behind;
  if (any > least * (1 + 1e-9)) ++counts.behind_of_any;
  if (us[2] > least * (1 + 1e-9)) {
    ++counts.hierarchical_behind;
    if (type1 >= us[2]) ++counts.not_below;
  }
  if (Height(trees[2]) > std::min(Height(trees[0]), Height(trees[1]))) {
    ++counts.hierarchical_taller;
    if (type1 >= us[2]) ++counts.not_below_where_taller;
  }
  counts.worst = std::max(counts.worst, type1 / least - 1);
  if (bytes != 8 && bytes != 2048 && ranks != 512) return;
  std::printf("%5u %6u %9.2f %9.2f %9.2f %9.2f %9.2f  %+.1f %%\n", ranks,
              static_cast<unsigned>(bytes), us[0], us[1], us[2], type1, any,
              100 * (type1 / least - 1));
}

// Figures 12 and 13: hosts with two ports and two processes, a full two-level fat tree.
void StandardFatTree(Placement placement) {
  const Bench bench("hosts-per-leaf=8,ports-per-host=2", placement);
  std::printf(
      "\nFigures 12, 13: two-level fat tree, 256 hosts of two ports, ranks placed %s; Bcast, us\n"
      "auto I: Coppice's best type I tree; auto: of either type\n"
      "%5s %6s %9s %9s %9s %9s %9s  %s\n",
      placement == Placement::kBlock ? "host by host" : "round by round over hosts", "RANKS",
      "BYTES", "32-ary", "32-nomial", "hier-32", "auto I", "auto",
      "auto I against the least of the three");
  ShapeCounts counts;
  for (uint32_t ranks = 2; ranks <= 512; ranks *= 2) {
    const std::vector<AggregationTree> trees = ThreeTrees(bench, ranks);
    for (uint64_t bytes = 8; bytes <= 65536; bytes *= 2) {
      CompareShapes(bench, trees, ranks, bytes, counts);
    }
  }
  std::printf(
      "%d cases: hierarchical least of the three in %d; auto I behind the least in %d, by at most "
      "%.2f %%,\nauto in %d; hierarchical slower than another in %d, auto I not below it in %d; "
      "its "
      "tree of more\nlevels than another in %d, auto I not below it in %d\n",
      counts.cases, counts.hierarchical_wins, counts.behind, 100 * counts.worst,
      counts.behind_of_any, counts.hierarchical_behind, counts.not_below,
      counts.hierarchical_taller, counts.not_below_where_taller);
}

bool IsBetweenSwitches(const Fabric& fabric, ChannelIndex c) {
  return fabric.IsSwitch(fabric.channel_from(c)) && fabric.IsSwitch(fabric.channel_to(c));
}

// The step in which each node sends, from 0: the height of the subtree below it.
std::vector<uint32_t> StepsOf(const AggregationTree& tree) {
  std::vector<uint32_t> steps(tree.node_count(), 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t n = 0; n < tree.node_count(); ++n) {
      if (tree.parents[n] < 0 || steps[tree.parents[n]] > steps[n]) continue;
      steps[tree.parents[n]] = steps[n] + 1;
      changed = true;
    }
  }
  return steps;
}

// [step] packets towards the root over each link between switches that carries any.
using StepLoads = std::map<ChannelIndex, std::vector<uint32_t>>;

StepLoads LoadsBySteps(const Bench& bench, const AggregationTree& tree) {
  const std::vector<uint32_t> steps = StepsOf(tree);
  const uint32_t height = steps[tree.root()];
  StepLoads loads;
  for (uint32_t n = 0; n < tree.node_count(); ++n) {
    if (tree.parents[n] < 0) continue;
    std::vector<ChannelIndex> path;
    const absl::Status found =
        bench.snapshot.routes->Append(tree.vertices[n], tree.vertices[tree.parents[n]], path);
    if (!found.ok()) std::exit(1);
    for (const ChannelIndex c : path) {
      if (!IsBetweenSwitches(*bench.snapshot.fabric, c)) continue;
      std::vector<uint32_t>& packets = loads[c];
      packets.resize(height, 0);
      ++packets[steps[n]];
    }
  }
  return loads;
}

// Figure 16: loads of all links between switches, one uplink a leaf.
void PrunedLinkLoads() {
  const Bench bench("hosts-per-leaf=8,ports-per-host=2,spines=1");
  const Fabric& fabric = *bench.snapshot.fabric;
  std::printf(
      "\nFigure 16: packets towards the root on the links between switches, 512 ranks, 16 on a "
      "leaf\n"
      "switch, one uplink each, by the steps of the tree: those of one step compete for a link\n"
      "%-13s %12s %12s   (paper: 496 / 16 / 31)\n",
      "", "in one step", "in all");
  const std::vector<AggregationTree> trees = ThreeTrees(bench, 512);
  for (const AggregationTree& tree : trees) {
    uint32_t step = 0, all = 0;
    for (const auto& [channel, packets] : LoadsBySteps(bench, tree)) {
      step = std::max(step, *std::max_element(packets.begin(), packets.end()));
      all = std::max(all, std::accumulate(packets.begin(), packets.end(), 0U));
    }
    std::printf("%-13s %12u %12u\n", std::string(ToString(tree.builder)).c_str(), step, all);
  }
  std::printf("All links, as packets in step 1 + step 2 + ...:\n");
  for (const AggregationTree& tree : trees) {
    std::map<std::vector<uint32_t>, std::string, std::greater<>> links;
    for (const auto& [channel, packets] : LoadsBySteps(bench, tree)) {
      absl::StrAppend(&links[packets], " ",
                      fabric.switch_info(fabric.AsSwitch(fabric.channel_from(channel))).description,
                      ">",
                      fabric.switch_info(fabric.AsSwitch(fabric.channel_to(channel))).description);
    }
    std::printf("%s\n", std::string(ToString(tree.builder)).c_str());
    for (const auto& [packets, names] : links) {
      std::printf("  %s:%s\n", absl::StrJoin(packets, "+").c_str(), names.c_str());
    }
  }
}

// Medians of Bcast of 8 B under noise: the three trees and Coppice's best of type I.
void NoisyTrees(const Bench& bench, bool between_switches, uint32_t header_bytes, uint32_t first,
                uint32_t last, uint32_t degree) {
  constexpr int kRuns = 25;
  constexpr uint32_t kMaxPlanned = 2048;  // under load every route of every candidate is walked
  std::printf(
      "noise %s, %u B of header\n%5s %9s %9s %9s %9s   hierarchical below the first, second\n",
      between_switches ? "between switches" : "on all links", header_bytes, "RANKS", "32-ary",
      "32-nomial", "hier-32", "auto I");
  const Snapshot planned_on = bench.Noisy(between_switches);
  const Snapshot snapshot = between_switches ? planned_on : bench.snapshot;
  const SimulationOptions options = {.noise = between_switches ? 0 : kNoise,
                                     .header_bytes = header_bytes};
  for (uint32_t ranks = first; ranks <= last; ranks *= 2) {
    std::vector<double> us;
    for (const AggregationTree& tree : ThreeTrees(bench, ranks, degree)) {
      us.push_back(Simulate(bench, snapshot, tree, 8, options, kRuns));
    }
    std::printf("%5u %9.2f %9.2f %9.2f", ranks, us[0], us[1], us[2]);
    if (ranks <= kMaxPlanned) {
      const AggregationTree type1 =
          Planned(bench, planned_on, ranks, 8, TreeType::kTypeI, header_bytes);
      std::printf(" %9.2f", Simulate(bench, snapshot, type1, 8, options, kRuns));
    } else {
      std::printf(" %9s", "-");
    }
    std::printf("   %5.1f %% %5.1f %%\n", 100 * (1 - us[2] / us[0]), 100 * (1 - us[2] / us[1]));
    std::fflush(stdout);
  }
}

void PrunedFatTrees() {
  const Bench two("hosts-per-leaf=8,ports-per-host=2,spines=1");
  std::printf(
      "\nTable 4: pruned two-level fat tree, 256 hosts of two ports, noise of 80 %%: Bcast of 8 B, "
      "us\n"
      "(paper: hierarchical below the others by 24-89 %%; below 32-nomial by 32 %% at 64 ranks, 24 "
      "%% at 512)\n");
  NoisyTrees(two, true, kPaperHeader, 64, 512, kDegree);
  NoisyTrees(two, true, kInfiniBandHeader, 64, 512, kDegree);
  NoisyTrees(two, false, kPaperHeader, 64, 512, kDegree);
  std::printf(
      "\nThree-level pruned fat tree, 2048 hosts of two ports, noise of 80 %%: Bcast of 8 B, us\n"
      "(paper: hierarchical < 32-nomial < 32-ary)\n");
  for (const char* const pruning : {"spines=16,tops=4", "spines=1,tops=1"}) {
    std::printf("8 supernodes of 32 leaf switches, %s\n", pruning);
    const Bench three(
        absl::StrCat("supernodes=8,leaves=32,hosts-per-leaf=8,ports-per-host=2,", pruning));
    NoisyTrees(three, true, kPaperHeader, 1024, 4096, 2 * kDegree);
    NoisyTrees(three, true, kInfiniBandHeader, 1024, 4096, 2 * kDegree);
  }
}

// Figure 18, and where type II stops to be the faster one.
void TypeTwo() {
  const Bench bench("hosts-per-leaf=16");
  std::printf(
      "\nFigure 18: Bcast, us (paper: type II about 1 us below the 64-ary tree)\n"
      "%5s %6s %9s %9s %9s\n",
      "RANKS", "BYTES", "64-ary", "type II", "less by");
  const auto times = [&](uint32_t ranks, uint64_t bytes) {
    const AggregationTree kary =
        Must(BuildKary(*bench.snapshot.fabric, bench.First(ranks), 64, kDegree));
    const AggregationTree type2 = Planned(bench, bench.snapshot, ranks, bytes, TreeType::kTypeII);
    return std::make_pair(Simulate(bench, kary, bytes), Simulate(bench, type2, bytes));
  };
  for (uint32_t ranks = 64; ranks <= 512; ranks *= 2) {
    for (const uint64_t bytes : {8, 2048}) {
      const auto [kary, type2] = times(ranks, bytes);
      std::printf("%5u %6u %9.2f %9.2f %9.2f\n", ranks, static_cast<unsigned>(bytes), kary, type2,
                  kary - type2);
    }
  }
  for (uint32_t ranks = 64; ranks <= 512; ranks *= 2) {
    uint64_t bytes = 8;
    while (bytes <= 1 << 20) {
      const auto [kary, type2] = times(ranks, bytes);
      if (type2 > kary) break;
      bytes += std::max<uint64_t>(8, bytes / 16);
    }
    std::printf("%u ranks: type II is no longer below the 64-ary tree from %u B on\n", ranks,
                static_cast<unsigned>(bytes));
  }
}

double Milliseconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since)
      .count();
}

// Rows and columns of 256 x 160 ranks on 40,960 ports: 416 collectives at once.
void Cost() {
  std::printf("\nCost of simulating, ms\n%-44s %10s %10s %12s\n", "", "lay out", "run", "events");
  const auto measure = [](const char* name, const Bench& bench,
                          const std::vector<SimulatedCollective>& collectives, double noise) {
    auto begin = std::chrono::steady_clock::now();
    const Simulator simulator =
        Must(Simulator::Prepare(bench.snapshot, bench.profile, collectives, {.noise = noise}));
    const double lay_out = Milliseconds(begin);
    std::vector<double> runs;
    for (uint64_t seed = 0; seed < 5; ++seed) {
      begin = std::chrono::steady_clock::now();
      const SimulationResult result = simulator.Run(seed);
      runs.push_back(Milliseconds(begin));
      if (result.events != simulator.event_count()) std::exit(1);
    }
    std::printf("%-44s %10.2f %10.2f %12u\n", name, lay_out, Median(runs),
                static_cast<unsigned>(simulator.event_count()));
  };
  const Bench small("hosts-per-leaf=16");
  SimulatedCollective one;
  one.tree = Must(BuildKnomial(*small.snapshot.fabric, small.everyone, kWidth, kDegree));
  one.payload = PayloadOf(Operation::kAllreduce, 8);
  measure("512 ranks, 8 B", small, {one}, 0);
  measure("512 ranks, 8 B, noise 0.8", small, {one}, kNoise);
  one.payload = PayloadOf(Operation::kAllreduce, 65536);
  measure("512 ranks, 64 KiB, noise 0.8", small, {one}, kNoise);
  const Bench large("supernodes=80,leaves=32,hosts-per-leaf=16,spines=16,tops=64");
  std::vector<SimulatedCollective> grid;
  const auto add = [&](uint32_t first, uint32_t count, uint32_t stride) {
    std::vector<EndpointIndex> members;
    for (uint32_t i = 0; i < count; ++i) members.push_back(large.everyone[first + i * stride]);
    SimulatedCollective line;
    line.tree = Must(BuildKnomial(*large.snapshot.fabric, members, 16, kDegree));
    line.payload = PayloadOf(Operation::kAllreduce, 8);
    grid.push_back(std::move(line));
  };
  for (uint32_t row = 0; row < 160; ++row) add(row * 256, 256, 1);
  for (uint32_t column = 0; column < 256; ++column) add(column, 160, 256);
  measure("416 collectives on 40,960 ports, 8 B", large, grid, 0);
  measure("416 collectives on 40,960 ports, noise 0.8", large, grid, kNoise);
}

}  // namespace
}  // namespace coppice

int main() {
  coppice::StandardFatTree(coppice::Placement::kCyclic);
  coppice::StandardFatTree(coppice::Placement::kBlock);
  coppice::PrunedLinkLoads();
  coppice::PrunedFatTrees();
  coppice::TypeTwo();
  coppice::Cost();
}
