// Chen 2024, 6.2.2, figures 19 and 20 beside what a batch makes of them: five patterns on the
// 40,960-port fabric, degree limits 256, 128 and 64.
//
// Table 1: entries in all with as many per switch as anybody wants: unreduced physical trees, the
// paper's minimum cost one by one, the batch, one with entries before links and one with links
// before entries, and the bounds (see baseline.h of daemon/tree/batch); the most loaded link, and
// the least there can be with a twentieth more entries than counted; communicators with farther
// roots; seconds of processor time. Where the paper's method refuses some, its entries and most
// loaded link are those of the others: a second row, "admitted", has these alone in all columns.
// Table 2: communicators refused with 16, 8, 4, 2 and 1 entries per switch, and the least number
// that entries allow.
//
// First the time of the whole batch of 256 x 160 against reading that request from text and writing
// its trees to SQLite (in COPPICE_BENCHMARK_DIRECTORY, else the working directory): the goal is a
// ratio of 10 at most.
//
// Usage: batch_benchmark [fabric specification]
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/baseline.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/batch/grid.h"
#include "daemon/tree/batch/state.h"
#include "db/sqlite_store.h"

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

BatchOptions For(BatchGoal goal) {
  BatchOptions options;
  options.goal = goal;
  return options;
}

std::vector<BatchCommunicator> AdmittedByPaper(const Snapshot& snapshot,
                                               absl::Span<const SwitchCapacity> capacity,
                                               const std::vector<BatchCommunicator>& batch) {
  const BatchShapes shapes = Must(FindBatchShapes(snapshot, capacity, batch));
  BatchState state(snapshot, capacity, batch.size(), BatchOptions().packets_at_full_load);
  PlaceOneByOne(snapshot, shapes, BaselineMethod::kMinimumCost, state);
  std::vector<BatchCommunicator> admitted;
  for (uint32_t c = 0; c < batch.size(); ++c) {
    if (state.tree(c)) admitted.push_back(batch[c]);
  }
  return admitted;
}

// Returns how many the paper's method refuses.
uint32_t PrintRow(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity,
                  const std::string& name, const std::vector<BatchCommunicator>& batch) {
  const BatchTotals unreduced =
      Must(PlanOneByOne(snapshot, capacity, batch, BaselineMethod::kUnreduced));
  const double begin_paper = CpuSeconds();
  const BatchTotals paper =
      Must(PlanOneByOne(snapshot, capacity, batch, BaselineMethod::kMinimumCost));
  const double begin = CpuSeconds();
  const BatchTotals ours = Must(PlanBatch(snapshot, capacity, batch)).totals;
  const double end = CpuSeconds();
  const BatchTotals entries =
      Must(PlanBatch(snapshot, capacity, batch, For(BatchGoal::kEntries))).totals;
  const double end_entries = CpuSeconds();
  const BatchTotals links =
      Must(PlanBatch(snapshot, capacity, batch, For(BatchGoal::kLinks))).totals;
  const BatchBounds bounds = Must(BoundBatch(snapshot, capacity, batch));
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf(
      "%-9s %5zu %4u | %9llu %7llu (%4u) %7llu %7llu %7llu | %7llu %7llu | %5u %5u %7u %5u %5u | "
      "%5u %7u | %6.3f %6.3f %7.3f\n",
      name.c_str(), batch.size(), capacity[0].degree_limit, number(unreduced.entries),
      number(paper.entries), paper.failures, number(ours.entries), number(entries.entries),
      number(links.entries), number(bounds.alone), number(bounds.counting), paper.most_packets,
      ours.most_packets, entries.most_packets, links.most_packets, bounds.most_packets,
      ours.farther_roots, entries.farther_roots, begin - begin_paper, end - begin,
      end_entries - end);
  std::fflush(stdout);
  return paper.failures;
}

void PrintEntries(const Snapshot& snapshot, const Pattern& pattern, uint32_t degree) {
  const auto capacity = Capacity(*snapshot.fabric, kManyEntries, degree);
  if (PrintRow(snapshot, capacity, pattern.name, pattern.communicators) == 0) return;
  PrintRow(snapshot, capacity, " admitted",
           AdmittedByPaper(snapshot, capacity, pattern.communicators));
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

double WallSeconds() { return absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()); }

std::string AsText(absl::Span<const BatchCommunicator> batch) {
  std::string text;
  for (const BatchCommunicator& communicator : batch) {
    for (const EndpointIndex e : communicator.members) absl::StrAppend(&text, e.value(), " ");
    text += '\n';
  }
  return text;
}

std::vector<BatchCommunicator> FromText(absl::string_view text) {
  std::vector<BatchCommunicator> batch;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    std::vector<EndpointIndex>& members = batch.emplace_back().members;
    for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      uint32_t e = 0;
      if (absl::SimpleAtoi(word, &e)) members.emplace_back(e);
    }
  }
  return batch;
}

TreeRecord AsRecord(const Fabric& fabric, int64_t id, const RankTree& ranks) {
  const AggregationTree& tree = ranks.tree;
  TreeRecord record;
  record.id = TreeId(id);
  record.job = JobId(1);
  record.type = 2;
  record.builder = "minimum-cost";
  record.spec.sizes = {{8, 1}};
  record.reason = "planned in one batch";
  record.parents = tree.parents;
  for (uint32_t rank = 0; rank < tree.rank_count; ++rank) record.ranks.push_back(rank);
  for (uint32_t node = tree.rank_count; node < tree.node_count(); ++node) {
    record.switches.push_back({fabric.switch_info(fabric.AsSwitch(tree.vertices[node])).guid, 2});
  }
  record.edge_links_up.assign(tree.node_count(), 2);
  record.edge_links_down = record.edge_links_up;
  for (size_t v = 0; v < ranks.physical.vertices.size(); ++v) {
    record.physical.push_back(ranks.physical.vertices[v].value());
    record.physical.push_back(static_cast<uint64_t>(ranks.physical.parents[v] + 1));
    if (v > 0) record.links.push_back(Fabric::link_of(ranks.physical.up[v]).value());
  }
  std::sort(record.links.begin(), record.links.end());
  record.links.erase(std::unique(record.links.begin(), record.links.end()), record.links.end());
  return record;
}

std::unique_ptr<SqliteStore> FreshStore(const Fabric& fabric, uint32_t entries) {
  const char* const directory = std::getenv("COPPICE_BENCHMARK_DIRECTORY");
  const std::string path = absl::StrCat(directory != nullptr ? directory : ".", "/batch.db");
  for (const char* const suffix : {"", "-wal", "-shm", ".lock"}) {
    std::remove(absl::StrCat(path, suffix).c_str());
  }
  std::unique_ptr<SqliteStore> store = Must(SqliteStore::Open(path));
  PutCapabilities capabilities;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    capabilities.capabilities.push_back({fabric.switch_info(SwitchIndex(s)).guid, entries, 0, 256});
  }
  JobRecord job;
  job.id = JobId(1);
  job.lease = absl::Seconds(30);
  if (!store->Apply(capabilities).ok() || !store->Apply(PutJob{job}).ok()) std::exit(1);
  return store;
}

// Seconds until all trees are durable.
double Write(Store& store, const std::vector<TreeRecord>& records) {
  const double begin = WallSeconds();
  absl::BlockingCounter open(static_cast<int>(records.size()));
  std::atomic<int> failed = 0;
  for (const TreeRecord& record : records) {
    store.Submit(GrantTree(record), [&](absl::Status status) {
      if (!status.ok()) ++failed;
      open.DecrementCount();
    });
  }
  open.Wait();
  if (failed > 0) std::fprintf(stderr, "%d trees were not written\n", failed.load());
  return WallSeconds() - begin;
}

void PrintRatio(const Snapshot& snapshot, const Pattern& pattern) {
  constexpr uint32_t kEntries = 16;
  constexpr int kRounds = 5;
  const Fabric& fabric = *snapshot.fabric;
  const std::string text = AsText(pattern.communicators);
  std::printf(
      "\n%s, K = 256, %u entries, seconds: read, plan (switches), hang ranks, write; ratio\n",
      pattern.name.c_str(), kEntries);
  for (int round = 0; round < kRounds; ++round) {
    const auto capacity = Capacity(fabric, kEntries, 256);
    const double begin = WallSeconds();
    const std::vector<BatchCommunicator> batch = FromText(text);
    const double read = WallSeconds();
    const BatchPlan plan = Must(PlanBatch(snapshot, capacity, batch));
    const double planned = WallSeconds();
    std::vector<RankTree> trees;
    for (size_t c = 0; c < batch.size(); ++c) {
      trees.push_back(
          Must(HangBatchTree(snapshot, capacity, batch[c].members, *plan.communicators[c].tree)));
    }
    const double hung = WallSeconds();
    std::vector<TreeRecord> records;
    for (size_t c = 0; c < trees.size(); ++c) {
      records.push_back(AsRecord(fabric, static_cast<int64_t>(c) + 1, trees[c]));
    }
    const double write = Write(*FreshStore(fabric, kEntries), records);
    std::printf("%.4f %.4f %.4f %.4f  %.2f\n", read - begin, planned - read, hung - planned, write,
                (hung - read) / (read - begin + write));
  }
}

int Run(const std::string& spec) {
  const std::shared_ptr<const Snapshot> snapshot =
      Must(MakeSnapshot(Must(LoadFabric(spec)), nullptr));
  const std::vector<Pattern> patterns = Patterns(*snapshot->fabric);
  std::printf("%s\nroutes: %s; random: %u groups of %u, seed %u\n\n", spec.c_str(),
              std::string(ToString(snapshot->routes->kind())).c_str(), kGroups, kGroupSize, kSeed);
  PrintRatio(*snapshot, patterns[0]);
  std::printf(
      "\n                     |                    entries                       |     bounds      "
      "|        most loaded link         |    farther    | seconds\n"
      "pattern   comms    K | unreduced   paper (fail)   batch entries   links |   alone counted |"
      " paper batch entries links bound | batch entries |  paper  batch entries\n");
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
