// Chen 2024, 6.2.2, figures 19 and 20 beside what a batch makes of them: five patterns on the
// 40,960-port fabric, degree limits 256, 128 and 64.
//
// Table 1: entries in all with as many per switch as anybody wants: unreduced physical trees, the
// paper's minimum cost one by one, the batch with nearest roots where they work and with any (the
// default), and the bounds (see batch_baseline.h); the most loaded link; seconds of processor time
// for the batch. Table 2: communicators refused with 16, 8, 4, 2 and 1 entries per switch, and the
// least number that entries allow.
//
// Usage: batch_benchmark [fabric specification]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch.h"
#include "daemon/tree/batch_baseline.h"
#include "daemon/tree/batch_grid.h"

namespace coppice {
namespace {

constexpr char kFabric[] =
    "model:fat-tree(supernodes=80,leaves=32,spines=16,hosts-per-leaf=16,tops=64)";
constexpr uint32_t kManyEntries = 100000;
constexpr uint32_t kGroups = 512, kGroupSize = 128, kSeed = 1;

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

template <class T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}

struct Pattern {
  std::string name;
  std::vector<BatchCommunicator> communicators;
};

// Lines along the first axis are contiguous, so that those of 256 x 160 stay within a supernode.
std::vector<Pattern> Patterns(const Fabric& fabric) {
  std::vector<EndpointIndex> members;
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) members.emplace_back(e);
  std::vector<Pattern> patterns;
  for (const char* const name : {"256x160", "202x202", "32x32x40", "34x34x35"}) {
    const ProcessGrid grid{Must(ParseGridSizes(name)), GridOrder::kFirstAxisFastest, {}};
    patterns.push_back({name, Must(GridLines(grid, members))});
  }
  patterns.push_back({"random", Must(RandomGroups(kGroups, kGroupSize, kSeed, members))});
  return patterns;
}

std::vector<SwitchCapacity> Capacity(const Fabric& fabric, uint32_t entries, uint32_t degree) {
  return std::vector<SwitchCapacity>(fabric.switch_count(), {entries, entries, degree});
}

void PrintEntries(const Snapshot& snapshot, const Pattern& pattern, uint32_t degree) {
  const auto capacity = Capacity(*snapshot.fabric, kManyEntries, degree);
  const auto& batch = pattern.communicators;
  const BatchTotals unreduced =
      Must(PlanOneByOne(snapshot, capacity, batch, BaselineMethod::kUnreduced));
  const double begin_paper = CpuSeconds();
  const BatchTotals paper =
      Must(PlanOneByOne(snapshot, capacity, batch, BaselineMethod::kMinimumCost));
  const double begin = CpuSeconds();
  BatchOptions near_roots;
  near_roots.reach = RootReach::kToAdmit;
  const BatchTotals ours = Must(PlanBatch(snapshot, capacity, batch, near_roots)).totals;
  const double end = CpuSeconds();
  const BatchTotals any = Must(PlanBatch(snapshot, capacity, batch)).totals;
  const double end_any = CpuSeconds();
  const BatchBounds bounds = Must(BoundBatch(snapshot, capacity, batch));
  std::printf(
      "%-9s %5zu %4u | %9llu %7llu (%4u) %7llu %7llu | %7llu %7llu | %5u %5u %5u | %4u %4u | %6.3f "
      "%6.3f %6.3f\n",
      pattern.name.c_str(), batch.size(), degree,
      static_cast<unsigned long long>(unreduced.entries),
      static_cast<unsigned long long>(paper.entries), paper.failures,
      static_cast<unsigned long long>(ours.entries), static_cast<unsigned long long>(any.entries),
      static_cast<unsigned long long>(bounds.alone),
      static_cast<unsigned long long>(bounds.counting), paper.most_packets, ours.most_packets,
      any.most_packets, ours.farther_roots, any.farther_roots, begin - begin_paper, end - begin,
      end_any - end);
  std::fflush(stdout);
}

void PrintFailures(const Snapshot& snapshot, const Pattern& pattern, uint32_t degree) {
  std::printf("%-9s %5zu %4u |", pattern.name.c_str(), pattern.communicators.size(), degree);
  for (const uint32_t entries : {16U, 8U, 4U, 2U, 1U}) {
    const auto capacity = Capacity(*snapshot.fabric, entries, degree);
    const auto& batch = pattern.communicators;
    const BatchTotals unreduced =
        Must(PlanOneByOne(snapshot, capacity, batch, BaselineMethod::kUnreduced));
    const BatchTotals paper =
        Must(PlanOneByOne(snapshot, capacity, batch, BaselineMethod::kMinimumCost));
    const double begin = CpuSeconds();
    const BatchTotals ours = Must(PlanBatch(snapshot, capacity, batch)).totals;
    const double seconds = CpuSeconds() - begin;
    const BatchBounds bounds = Must(BoundBatch(snapshot, capacity, batch));
    std::printf(" %4u %4u %4u/%-4u %4u %5.2fs |", unreduced.failures, paper.failures, ours.failures,
                bounds.failures, ours.farther_roots, seconds);
    std::fflush(stdout);
  }
  std::printf("\n");
}

int Run(const std::string& spec) {
  const std::shared_ptr<const Snapshot> snapshot =
      Must(MakeSnapshot(Must(LoadFabric(spec)), nullptr));
  const std::vector<Pattern> patterns = Patterns(*snapshot->fabric);
  std::printf("%s\nroutes: %s; random: %u groups of %u, seed %u\n\n", spec.c_str(),
              std::string(ToString(snapshot->routes->kind())).c_str(), kGroups, kGroupSize, kSeed);
  std::printf(
      "                    |                  entries                     |     bounds      | most "
      "loaded link | farther   | seconds\n"
      "pattern    comms    K | unreduced   paper (fail) nearest     any |   alone counted | paper "
      "near   any | near  any |  paper   near    any\n");
  for (const uint32_t degree : {256U, 128U, 64U}) {
    for (const Pattern& pattern : patterns) PrintEntries(*snapshot, pattern, degree);
  }
  std::printf(
      "\nfailures with 16, 8, 4, 2, 1 entries per switch: unreduced, paper, batch/bound, farther "
      "roots of the batch, its seconds\n");
  for (const uint32_t degree : {256U, 128U, 64U}) {
    for (const Pattern& pattern : patterns) PrintFailures(*snapshot, pattern, degree);
  }
  return 0;
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) { return coppice::Run(argc > 1 ? argv[1] : coppice::kFabric); }
