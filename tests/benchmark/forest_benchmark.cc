// What a forest takes for a long Allreduce beside the other ways, in the simulator: each as a ratio
// to the bound of the cuts (daemon/tree/forest/bound.h).
//
//   coppice_forest_benchmark [--small] [--regret] [--only TEXT]
//
// ring, rhd (recursive halving and doubling, the better of far and near partners first), double
// (binary tree), bine (the same two orders), single: the planner's one tree of either type, with 16
// entries on every switch. "behind": the forest's time over the least of theirs, less one. "floor":
// the bound that no overlap of both halves undercuts, to the other bound. --regret simulates every
// candidate of the planner, too: what its choice costs beside the best of them. --only: cases whose
// name has this text. Ranks of one host share its port; "2 ports": hosts of two. Loaded: every link
// between switches by itself, up to the share named, which the simulator plays as noise.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "daemon/fabric/fabric_source.h"
#include "daemon/simulation/schedule.h"
#include "daemon/simulation/simulator.h"
#include "daemon/tree/forest/bound.h"
#include "daemon/tree/forest/forest.h"
#include "daemon/tree/forest/shapes.h"
#include "daemon/tree/forest/walk.h"
#include "daemon/tree/planner.h"
#include "tests/support/forests.h"
#include "tests/support/schedules.h"

namespace coppice {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

template <class T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", std::string(value.status().message()).c_str());
  std::exit(1);
}

struct FabricOfCases {
  const char* name;
  const char* spec;
  double load;
};
constexpr FabricOfCases kFabrics[] = {
    {"fat tree", "model:fat-tree(leaves=16,spines=16,hosts-per-leaf=16)", 0},
    {"fat tree, 4:1", "model:fat-tree(leaves=16,spines=4,hosts-per-leaf=16)", 0},
    {"fat tree, 8:1", "model:fat-tree(leaves=32,spines=1,hosts-per-leaf=8)", 0},
    {"fat tree, loaded 0.6", "model:fat-tree(leaves=16,spines=16,hosts-per-leaf=16)", 0.6},
    {"4:1, loaded 0.6", "model:fat-tree(leaves=16,spines=4,hosts-per-leaf=16)", 0.6},
    {"three levels", "model:fat-tree(supernodes=4,leaves=8,spines=4,hosts-per-leaf=8,tops=8)", 0},
    {"torus", "model:torus(dims=4x4x4,hosts=4)", 0},
    {"torus, 1 host", "model:torus(dims=8x8x4,hosts=1)", 0},
    {"dragonfly+", "model:dragonfly-plus", 0},
    {"2 ports", "model:fat-tree(leaves=16,spines=16,hosts-per-leaf=8,ports-per-host=2)", 0}};

struct Ranks {
  uint32_t count, per_host;
};
constexpr Ranks kRanks[] = {{16, 1}, {48, 1}, {64, 1}, {64, 4}, {100, 1}, {128, 2}, {256, 1}};

struct Case {
  std::string name;
  Snapshot snapshot;
  std::vector<EndpointIndex> members;
  uint64_t bytes = 0;
};

Snapshot Loaded(Snapshot snapshot, double most) {
  if (most == 0) return snapshot;
  std::mt19937_64 generator(1);
  const Fabric& fabric = *snapshot.fabric;
  std::vector<float> load(fabric.channel_count(), 0.0F);
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    const LinkInfo& link = fabric.link(LinkIndex(l));
    if (!fabric.IsSwitch(link.a) || !fabric.IsSwitch(link.b)) continue;
    for (const uint32_t c : {2 * l, 2 * l + 1}) {
      load[c] = static_cast<float>(most * static_cast<double>(generator() % 1024) / 1024);
    }
  }
  snapshot.load = std::make_shared<const LinkLoad>(load);
  return snapshot;
}

// The first ports in order, or any; ranks in turn on their host, or anywhere among the ports.
std::vector<EndpointIndex> PlacesOf(const Fabric& fabric, Ranks ranks, bool shuffled) {
  std::mt19937_64 generator(7);
  std::vector<EndpointIndex> ports, members;
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) ports.emplace_back(e);
  if (shuffled) std::shuffle(ports.begin(), ports.end(), generator);
  for (uint32_t r = 0; r < ranks.count; ++r) members.push_back(ports[r / ranks.per_host]);
  if (shuffled) std::shuffle(members.begin(), members.end(), generator);
  return members;
}

struct Way {
  const char* name;
  double us;
};

class Comparison {
 public:
  Comparison(const Case& one, const CostProfile& profile) : case_(one), profile_(profile) {
    request_.members = one.members;
    request_.operation = Operation::kAllreduce;
    request_.sizes = {{one.bytes, 1}};
  }

  ForestBound Bound() const {
    return Must(FindForestBound(case_.snapshot, profile_, case_.members, case_.bytes));
  }
  ForestPlan Forest() const {
    return Must(PlanForest(case_.snapshot, profile_, request_, kMaxTrees));
  }
  double Us(absl::Span<const ShapedTree> trees) const {
    return Must(SimulatedForestUs(case_.snapshot, profile_, case_.members, trees, case_.bytes));
  }

  std::vector<Way> Others() const {
    const auto ranks = static_cast<uint32_t>(case_.members.size());
    const std::array<std::vector<int32_t>, 2> both = DoubleBinaryTree(ranks);
    return {{"ring", Us(RingAllreduce(ranks))},
            {"rhd", std::min(Us(HalvingDoubling(ranks, true)), Us(HalvingDoubling(ranks, false)))},
            {"double", Us({{both[0], 0.5}, {both[1], 0.5}})},
            {"bine", std::min(Us(BineAllreduce(ranks, true)), Us(BineAllreduce(ranks, false)))},
            {"single", SingleUs()}};
  }

  // The least of all shapes that the planner has followed or not.
  double BestUs() const {
    const MemberPlaces places = Must(FindMemberPlaces(case_.snapshot, case_.members));
    ForestRoutes routes(case_.snapshot, profile_, places);
    const ForestHosts hosts = FindForestHosts(case_.snapshot, places);
    double least = std::numeric_limits<double>::infinity();
    for (const ForestShape& shape : ShapesToTry(hosts, kMaxTrees)) {
      least = std::min(least, Us(Must(BuildForest(hosts, shape, routes))));
    }
    return least;
  }

 private:
  double Us(const BlockSchedule& schedule) const {
    const MessageSchedule messages = ForBytes(schedule, case_.members, case_.bytes);
    return Must(SimulateSchedule(case_.snapshot, profile_, messages, {}, 1)).total_us;
  }

  double SingleUs() const {
    const std::vector<SwitchCapacity> capacity(case_.snapshot.fabric->switch_count(), {16, 16, 64});
    SimulatedCollective one;
    one.tree = Must(PlanTree(case_.snapshot, profile_, capacity, request_)).tree;
    one.payload = PayloadOf(Operation::kAllreduce, case_.bytes);
    return Must(Simulator::Prepare(case_.snapshot, profile_, {&one, 1}, {}))
        .Run(1)
        .collectives[0]
        .total_us;
  }

  const Case& case_;
  const CostProfile& profile_;
  TreeRequest request_;
};

class Table {
 public:
  Table(const CostProfile& profile, bool regret) : profile_(profile), regret_(regret) {
    std::printf("%-44s %5s %8s %6s %6s | %6s %6s %6s %6s %6s | %8s %7s %6s %s\n", "case", "MiB",
                "bound us", "floor", "forest", "ring", "rhd", "double", "bine", "single",
                "behind %", "regret %", "plan s", "shape");
  }

  void Add(const Case& one) {
    const Comparison comparison(one, profile_);
    const ForestBound bound = comparison.Bound();
    const auto begin = std::chrono::steady_clock::now();
    const ForestPlan plan = comparison.Forest();
    const double plan_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::vector<ShapedTree> trees;
    for (const ForestTree& tree : plan.trees) trees.push_back({tree.tree.parents, tree.share});
    const double us = comparison.Us(trees);
    std::printf("%-44s %5.0f %8.1f %6.3f %6.3f |", one.name.c_str(),
                static_cast<double>(one.bytes) / kMiB, bound.allreduce_us,
                bound.allreduce_floor_us / bound.allreduce_us, us / bound.allreduce_us);
    double least = std::numeric_limits<double>::infinity();
    for (const Way& way : comparison.Others()) {
      std::printf(" %6.3f", way.us / bound.allreduce_us);
      least = std::min(least, way.us);
    }
    const double regret = regret_ ? us / std::min(us, comparison.BestUs()) - 1 : 0;
    std::printf(" | %8.2f %7.2f %6.2f %s\n", 100 * (us / least - 1), 100 * regret, plan_s,
                ToString(plan.shape).c_str());
    std::fflush(stdout);
    ratios_.push_back(us / bound.allreduce_us);
    Note(us / least - 1, one.name, behind_, behind_case_);
    Note(regret, one.name, worst_regret_, regret_case_);
    off_.push_back(std::abs(plan.total_us / us - 1));
  }

  bool IsEmpty() const { return ratios_.empty(); }

  void PrintSummary() {
    std::sort(ratios_.begin(), ratios_.end());
    std::sort(off_.begin(), off_.end());
    std::printf(
        "%zu cases: forest to the bound %.3f in the median, %.3f at worst; behind the best of the "
        "others by %.2f %% at worst (%s)\npredicted and simulated time: %.2f %% apart in the "
        "median, %.2f %% at worst\n",
        ratios_.size(), ratios_[ratios_.size() / 2], ratios_.back(), 100 * behind_,
        behind_case_.c_str(), 100 * off_[off_.size() / 2], 100 * off_.back());
    if (regret_) {
      std::printf("regret over all shapes: %.2f %% at worst (%s)\n", 100 * worst_regret_,
                  regret_case_.c_str());
    }
  }

 private:
  static void Note(double value, const std::string& name, double& worst, std::string& worst_case) {
    if (value <= worst) return;
    worst = value;
    worst_case = name;
  }

  const CostProfile& profile_;
  bool regret_;
  std::vector<double> ratios_, off_;
  double behind_ = -1, worst_regret_ = -1;
  std::string behind_case_, regret_case_;
};

// Few packets in all where there are many ranks: the simulator follows each of them.
bool IsLooked(Ranks ranks, uint64_t bytes, bool small) {
  if (small) return ranks.count <= 64 && bytes <= 4 * kMiB;
  return ranks.count * bytes <= 1024 * kMiB;
}

int Main(int argc, char** argv) {
  bool small = false, regret = false;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    small |= std::strcmp(argv[i], "--small") == 0;
    regret |= std::strcmp(argv[i], "--regret") == 0;
    if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) only = argv[++i];
  }
  const CostProfile profile = Must(BuiltInProfile("hdr"));
  Table table(profile, regret);
  for (const FabricOfCases& fabric : kFabrics) {
    const auto snapshot = Must(MakeSnapshot(Must(LoadFabric(fabric.spec)), nullptr));
    for (const Ranks& ranks : kRanks) {
      if (ranks.count > snapshot->fabric->endpoint_count() * ranks.per_host) continue;
      for (const bool shuffled : {false, true}) {
        for (const uint64_t bytes : {kMiB, 4 * kMiB, 16 * kMiB}) {
          if (!IsLooked(ranks, bytes, small)) continue;
          Case one;
          one.name = std::string(fabric.name) + ", " + std::to_string(ranks.count) + " ranks" +
                     (ranks.per_host > 1 ? ", " + std::to_string(ranks.per_host) + " a host" : "") +
                     (shuffled ? ", shuffled" : "");
          one.snapshot = Loaded(*snapshot, fabric.load);
          one.members = PlacesOf(*snapshot->fabric, ranks, shuffled);
          one.bytes = bytes;
          if (one.name.find(only) != std::string::npos) table.Add(one);
        }
      }
    }
  }
  if (table.IsEmpty()) {
    std::fprintf(stderr, "error: no case has \"%s\" in its name [INVALID_ARGUMENT]\n",
                 only.c_str());
    return 2;
  }
  table.PrintSummary();
  return 0;
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) { return coppice::Main(argc, argv); }
