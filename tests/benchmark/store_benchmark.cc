// How fast trees become durable: grants and releases at 1, 8 and 64 in flight, and one tree of
// every port of a large fabric against the same rows written by plain prepared statements.
//
// The databases lie in COPPICE_BENCHMARK_DIRECTORY, else in the working directory: it should be on
// the disk that is to be measured, not on a tmpfs.
#include <benchmark/benchmark.h>
#include <sqlite3.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "db/json_lists.h"
#include "db/sqlite_store.h"

namespace coppice {
namespace {

std::string FreshDatabase(const std::string& name) {
  const char* directory = std::getenv("COPPICE_BENCHMARK_DIRECTORY");
  const std::string path =
      std::filesystem::path(directory != nullptr ? directory : ".") / (name + ".db");
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) std::filesystem::remove(path + suffix);
  return path;
}

// Members 0.. and, for type II, `switches` spread over `fabric_switches` starting at some place.
TreeRecord MakeTree(int64_t id, uint32_t members, uint32_t switches, uint32_t fabric_switches) {
  TreeRecord tree;
  tree.id = TreeId(id);
  tree.job = JobId(1);
  tree.type = switches > 0 ? 2 : 1;
  tree.builder = switches > 0 ? "minimum-cost" : "hierarchical";
  tree.spec.sizes = {{8, 1}};
  tree.reason = "type I: 12.25 us for 8 B allreduce; type II: 9.75 us";
  tree.alternatives = {{TreeType::kTypeI, TreeBuilder::kKary, 4, 12.25, ""}};
  const uint32_t nodes = members + switches;
  for (uint32_t rank = 0; rank < members; ++rank) tree.ranks.push_back(rank);
  for (uint32_t n = 0; n < switches; ++n) {
    const uint64_t number = (static_cast<uint64_t>(id) * 7 + n) % fabric_switches;
    tree.switches.push_back({Guid(0x0002c90200400000 + number), 8});
  }
  for (uint32_t node = 0; node < nodes; ++node) {
    tree.parents.push_back(node == 0 ? -1 : static_cast<int32_t>((node - 1) / 8));
    tree.edge_links_up.push_back(2 + node % 3);
    tree.edge_links_down.push_back(2 + node % 3);
    tree.links.push_back(node * 3 + 1);
    if (switches > 0) tree.physical.insert(tree.physical.end(), {node + 1000u, node / 8u});
  }
  return tree;
}

std::unique_ptr<SqliteStore> OpenStore(benchmark::State& state, const std::string& path,
                                       uint32_t switches, uint32_t entries) {
  absl::StatusOr<std::unique_ptr<SqliteStore>> store = SqliteStore::Open(path);
  if (!store.ok()) {
    state.SkipWithError(std::string(store.status().message()).c_str());
    return nullptr;
  }
  PutCapabilities capabilities;
  for (uint64_t n = 0; n < switches; ++n) {
    capabilities.capabilities.push_back({Guid(0x0002c90200400000 + n), entries, 0, 36});
  }
  JobRecord job;
  job.id = JobId(1);
  job.lease = absl::Seconds(30);
  if (!(*store)->Apply(capabilities).ok() || !(*store)->Apply(PutJob{job}).ok()) {
    state.SkipWithError("cannot prepare the store");
    return nullptr;
  }
  return *std::move(store);
}

// Keeps `in_flight` chains going, each granting a tree and, once that is durable, releasing it.
class Chains {
 public:
  Chains(Store& store, const std::vector<TreeRecord>& trees) : store_(store), trees_(trees) {}

  // Grants and releases `pairs` trees; ids from `first` on. Returns the number of failures.
  int64_t Run(int64_t first, int64_t pairs, int64_t in_flight) {
    next_ = first;
    end_ = first + pairs;
    running_ = in_flight;
    for (int64_t n = 0; n < in_flight; ++n) Grant();
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return running_ == 0; });
    return failures_;
  }

 private:
  void Grant() {
    const int64_t id = next_.fetch_add(1);
    if (id >= end_) {
      std::lock_guard lock(mutex_);
      if (--running_ == 0) idle_.notify_one();
      return;
    }
    TreeRecord tree = trees_[static_cast<size_t>(id) % trees_.size()];
    tree.id = TreeId(id);
    store_.Submit(GrantTree{std::move(tree)}, [this, id](absl::Status granted) {
      failures_ += !granted.ok();
      store_.Submit(ReleaseTree{TreeId(id), JobId(1)}, [this](absl::Status released) {
        failures_ += !released.ok();
        Grant();
      });
    });
  }

  Store& store_;
  const std::vector<TreeRecord>& trees_;
  std::atomic<int64_t> next_ = 0;
  int64_t end_ = 0;
  std::atomic<int64_t> failures_ = 0;
  std::mutex mutex_;
  std::condition_variable idle_;
  int64_t running_ = 0;  // guarded by mutex_
};

// 64 ranks, half of the trees of type II with `switches` serving switches of 48.
void BM_GrantRelease(benchmark::State& state) {
  constexpr int64_t kPairs = 4'096;
  const int64_t in_flight = state.range(0);
  const uint32_t switches = static_cast<uint32_t>(state.range(1));
  auto store = OpenStore(state, FreshDatabase("store_benchmark"), 48, 64);
  if (store == nullptr) return;
  std::vector<TreeRecord> trees;
  for (int64_t n = 0; n < 64; ++n) trees.push_back(MakeTree(n, 64, n % 2 ? switches : 0, 48));
  Chains chains(*store, trees);
  int64_t first = 1, failures = 0;
  const int64_t pairs = in_flight == 1 ? kPairs / 8 : kPairs;
  for (auto _ : state) {
    failures = chains.Run(first, pairs, in_flight);
    first += pairs;
  }
  if (failures > 0) state.SkipWithError("grants or releases failed");
  state.counters["grants_and_releases"] =
      benchmark::Counter(2.0 * static_cast<double>(first - 1), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_GrantRelease)
    ->ArgNames({"in_flight", "switches"})
    ->ArgsProduct({{1, 8, 64}, {0, 12, 32}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// Grants alone: 64 per commit, all of them kept for the length of a batch, then released untimed.
void BM_Grant(benchmark::State& state) {
  auto store = OpenStore(state, FreshDatabase("store_benchmark"), 48, 4'096);
  if (store == nullptr) return;
  const uint32_t switches = static_cast<uint32_t>(state.range(0));
  int64_t id = 1;
  std::atomic<int64_t> failures = 0;
  const auto count = [&](absl::Status status) { failures += !status.ok(); };
  for (auto _ : state) {
    state.PauseTiming();
    std::vector<TreeRecord> trees;
    for (int n = 0; n < 64; ++n, ++id) trees.push_back(MakeTree(id, 64, switches, 48));
    state.ResumeTiming();
    for (TreeRecord& tree : trees) store->Submit(GrantTree{std::move(tree)}, count);
    store->Apply(AppendEvents{}).IgnoreError();  // answered after all of them
    state.PauseTiming();
    for (int64_t n = id - 64; n < id; ++n) store->Submit(ReleaseTree{TreeId(n), JobId(1)}, count);
    store->Apply(AppendEvents{}).IgnoreError();
    state.ResumeTiming();
  }
  if (failures > 0) state.SkipWithError("grants or releases failed");
  state.counters["grants"] =
      benchmark::Counter(static_cast<double>(id - 1), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Grant)->ArgName("switches")->Arg(0)->Arg(12)->Arg(32)->UseRealTime();

// The rows of one tree through SQLite and nothing else: the same columns, no trigger, no check, no
// savepoint, the same durability.
class PlainWriter {
 public:
  explicit PlainWriter(const std::string& path) {
    sqlite3_open(path.c_str(), &database_);
    Execute(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = OFF;"
        "PRAGMA wal_autocheckpoint = 8192;"
        "CREATE TABLE tree (id INTEGER PRIMARY KEY, job_id INTEGER, reason TEXT, alternatives "
        "TEXT, nodes TEXT, links TEXT, physical TEXT);"
        "CREATE UNIQUE INDEX tree_by_job ON tree (job_id, id);"
        "CREATE TABLE tree_switch (tree_id INTEGER, node INTEGER, guid INTEGER, children "
        "INTEGER, PRIMARY KEY (tree_id, node), UNIQUE (guid, tree_id)) WITHOUT ROWID");
    tree_ = Prepare("INSERT INTO tree VALUES (?, ?, ?, ?, ?, ?, ?)");
    switch_ = Prepare("INSERT INTO tree_switch VALUES (?, ?, ?, ?)");
  }
  ~PlainWriter() {
    sqlite3_finalize(tree_);
    sqlite3_finalize(switch_);
    sqlite3_close(database_);
  }

  void Write(const TreeRecord& tree) {
    std::string nodes, links, physical;
    const std::string alternatives = AlternativesText(tree.alternatives);
    AppendTreeNodes(tree, nodes);
    AppendNumbers(tree.links, links);
    AppendNumbers(tree.physical, physical);
    Execute("BEGIN IMMEDIATE");
    sqlite3_bind_int64(tree_, 1, tree.id.value());
    sqlite3_bind_int64(tree_, 2, tree.job.value());
    int column = 3;
    for (const std::string* text : std::initializer_list<const std::string*>{
             &tree.reason, &alternatives, &nodes, &links, &physical}) {
      sqlite3_bind_text(tree_, column++, text->data(), static_cast<int>(text->size()),
                        SQLITE_STATIC);
    }
    Run(tree_);
    int64_t node = static_cast<int64_t>(tree.ranks.size());
    for (const TreeSwitchRecord& serving : tree.switches) {
      sqlite3_bind_int64(switch_, 1, tree.id.value());
      sqlite3_bind_int64(switch_, 2, node++);
      sqlite3_bind_int64(switch_, 3, static_cast<int64_t>(serving.guid.value()));
      sqlite3_bind_int64(switch_, 4, serving.children);
      Run(switch_);
    }
    Execute("COMMIT");
  }
  void Clear() { Execute("DELETE FROM tree_switch; DELETE FROM tree"); }
  bool ok() const { return ok_; }

 private:
  void Execute(const char* sql) {
    ok_ &= sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
  }
  sqlite3_stmt* Prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    ok_ &= sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr) == SQLITE_OK;
    return statement;
  }
  void Run(sqlite3_stmt* statement) {
    ok_ &= sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_reset(statement);
  }

  sqlite3* database_ = nullptr;
  sqlite3_stmt* tree_ = nullptr;
  sqlite3_stmt* switch_ = nullptr;
  bool ok_ = true;
};

// Counter `ratio`: the store's time over the plain writer's, taken in turns in one run.
void BM_LargeTreeAgainstPlainStatements(benchmark::State& state) {
  constexpr uint32_t kMembers = 40'960, kSwitches = 2'560;
  using Clock = std::chrono::steady_clock;
  auto store = OpenStore(state, FreshDatabase("store_benchmark"), kSwitches, 16);
  PlainWriter plain(FreshDatabase("store_benchmark_plain"));
  if (store == nullptr) return;
  const uint32_t switches = state.range(0) == 2 ? kSwitches : 0;
  Clock::duration store_time{}, plain_time{};
  bool ok = true;
  int64_t id = 0;
  for (auto _ : state) {
    const TreeRecord tree = MakeTree(++id, kMembers, switches, kSwitches);
    GrantTree grant{tree};
    const auto start = Clock::now();
    ok &= store->Apply(std::move(grant)).ok();
    const auto middle = Clock::now();
    plain.Write(tree);
    const auto end = Clock::now();
    store_time += middle - start;
    plain_time += end - middle;
    state.SetIterationTime(std::chrono::duration<double>(middle - start).count());
    ok &= store->Apply(ReleaseTree{TreeId(id), JobId(1)}).ok();
    plain.Clear();
  }
  if (!ok || !plain.ok()) state.SkipWithError("a write failed");
  state.counters["ratio"] = std::chrono::duration<double>(store_time).count() /
                            std::chrono::duration<double>(plain_time).count();
}
BENCHMARK(BM_LargeTreeAgainstPlainStatements)
    ->ArgName("type")
    ->Arg(1)
    ->Arg(2)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace coppice
