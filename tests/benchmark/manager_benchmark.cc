// What the manager adds to planning and store: trees of 64 ranks created and released over a store
// that writes none of them, beside PlanTree alone on the same snapshot and members. CPU time of the
// whole process, so that the store's thread counts too.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/manager/manager.h"
#include "daemon/tree/planner.h"
#include "tests/support/scratch_store.h"

namespace coppice {
namespace {

constexpr int kInFlight = 64;

template <class T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) std::abort();
  return *std::move(value);
}

// Answers for trees in their turn, on its own thread, and writes none.
class TreelessStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  void Submit(Mutation mutation, Done done) override {
    const bool is_of_a_tree = std::holds_alternative<GrantTree>(mutation) ||
                              std::holds_alternative<ReleaseTree>(mutation);
    store_->Submit(is_of_a_tree ? Mutation(AppendEvents()) : std::move(mutation), std::move(done));
  }
};

// The paper's fabric of 512 ports, every switch with room for all that is in flight, one job.
class Daemon {
 public:
  explicit Daemon(double promised_duty = 0.1) {
    ManagerOptions options;
    options.promised_duty = promised_duty;
    options.profile = Must(BuiltInProfile("hdr"));
    CapabilityRule rule;
    rule.entries = 4 * kInFlight;
    rule.degree_limit = 64;
    options.capability_rules = {rule};
    manager_ = Must(Manager::Create(&store_, port_.get(), &SystemClock(), std::move(options)));
    Must(manager_->Sweep());
    RegisterJobArgs args;
    args.all_endpoints = true;
    manager_->RegisterJob(std::move(args), [this](absl::StatusOr<JobView> view) {
      job_ = Must(std::move(view)).record;
      Landed();
    });
    Await(1);
    std::mt19937_64 random(7);
    std::vector<uint32_t> ranks(job_->endpoints.size());
    for (uint32_t i = 0; i < ranks.size(); ++i) ranks[i] = i;
    for (int i = 0; i < 1000; ++i) {
      std::shuffle(ranks.begin(), ranks.end(), random);
      members_.emplace_back(ranks.begin(), ranks.begin() + 64);
    }
  }

  // Creates and releases kInFlight trees.
  void Round(TreeType type) {
    for (int i = 0; i < kInFlight; ++i) {
      CreateTreeArgs args;
      args.job = job_->id;
      args.type = type;
      args.ranks = NextRanks();
      manager_->CreateTree(std::move(args), [this](absl::StatusOr<TreeView> view) {
        manager_->ReleaseTree(Must(std::move(view)).record->id, [this](absl::StatusOr<TreeId> id) {
          Must(id);
          Landed();
        });
      });
    }
    Await(kInFlight);
  }

  // Plans kInFlight trees, without manager and store.
  void PlanOnly(TreeType type) {
    const auto view = manager_->fabric();
    const Fabric& fabric = *view->snapshot->fabric;
    const std::vector<SwitchCapacity> capacity(fabric.switch_count(),
                                               {4 * kInFlight, 4 * kInFlight, 64});
    for (int i = 0; i < kInFlight; ++i) {
      TreeRequest request;
      request.type = type;
      for (const uint32_t rank : NextRanks()) {
        request.members.push_back(*fabric.FindEndpoint(job_->endpoints[rank]));
      }
      benchmark::DoNotOptimize(
          Must(PlanTree(*view->snapshot, *manager_->profile(), capacity, request)));
    }
  }

 private:
  const std::vector<uint32_t>& NextRanks() { return members_[next_++ % members_.size()]; }
  void Landed() {
    std::lock_guard lock(mu_);
    ++landed_;
    changed_.notify_one();
  }
  void Await(int count) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return landed_ == count; });
    landed_ = 0;
  }

  ScratchStore kept_;
  TreelessStore store_{&kept_};
  std::unique_ptr<OfflineSubnetPort> port_ =
      Must(OfflineSubnetPort::Create("model:fat-tree(leaves=32,spines=16)"));
  std::mutex mu_;
  std::condition_variable changed_;
  int landed_ = 0;
  std::shared_ptr<const JobRecord> job_;
  std::vector<std::vector<uint32_t>> members_;
  size_t next_ = 0;
  std::unique_ptr<Manager> manager_;  // first to go: its callbacks use the rest
};

// The second argument: percent of a job's time that its trees promise as load; 0: nobody sees
// others.
void CreateAndRelease(benchmark::State& state) {
  Daemon daemon(static_cast<double>(state.range(1)) / 100);
  const TreeType type = state.range(0) == 1 ? TreeType::kTypeI : TreeType::kTypeII;
  for (auto _ : state) daemon.Round(type);
  state.SetItemsProcessed(state.iterations() * kInFlight);
}
BENCHMARK(CreateAndRelease)->ArgsProduct({{1, 2}, {0, 10}})->MeasureProcessCPUTime();

void PlanAlone(benchmark::State& state) {
  Daemon daemon;
  const TreeType type = state.range(0) == 1 ? TreeType::kTypeI : TreeType::kTypeII;
  for (auto _ : state) daemon.PlanOnly(type);
  state.SetItemsProcessed(state.iterations() * kInFlight);
}
BENCHMARK(PlanAlone)->Arg(1)->Arg(2)->MeasureProcessCPUTime();

}  // namespace
}  // namespace coppice

BENCHMARK_MAIN();
