// Jobs that register themselves beside placements that are made, at once and on the same nodes.
//
// RegisterJob asks nobody: a scheduler that bypasses placements may put a job wherever it likes,
// also on nodes that a placement holds. A placement without candidates is never given a node that
// had a job when it was asked for and still has it when it is answered.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/tier.h"
#include "tests/unit/manager/placement/placements_fixture.h"

namespace coppice::placements_jobs_test {
namespace {

class PlacementsJobsTest : public PlacementsTest {
 protected:
  static constexpr uint32_t kHosts = 64, kHostsPerLeaf = 4;

  // From `first` on at the latest and up to `last` at least, as the numbers of events.
  struct Tenure {
    std::set<uint32_t> nodes;
    uint64_t asked = 0, first = 0, last = UINT64_MAX;
    bool is_exclusive = false;
  };

  void Begin() {
    Boot();
    port_.Set(SmallFabric({.leaves = 16, .spines = 4, .hosts_per_leaf = kHostsPerLeaf}));
    ASSERT_TRUE(manager_->Sweep().ok());
  }
  uint64_t Now() { return ++events_; }
  void Keep(std::vector<Tenure>& list, Tenure tenure) {
    std::lock_guard lock(mu_);
    list.push_back(std::move(tenure));
  }

  void RegisterAndEnd(int rounds, uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < rounds; ++i) {
      Tenure job;
      RegisterJobArgs args = AllHosts();
      args.all_endpoints = false;
      for (uint64_t n = 1 + random() % 4; n > 0; --n) job.nodes.insert(random() % kHosts);
      for (const uint32_t node : job.nodes) args.endpoints.push_back("n" + std::to_string(node));
      const auto registered = Register(args);
      ASSERT_TRUE(registered.ok()) << registered.status();
      job.first = Now();
      for (uint64_t n = random() % 64; n > 0; --n) std::this_thread::yield();
      job.last = Now();
      ASSERT_TRUE(End(registered->record->id).ok());
      Keep(jobs_, std::move(job));
    }
  }

  void PlaceAndRelease(int rounds, uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < rounds; ++i) {
      Tenure placement;
      CreatePlacementArgs args = Nodes(1 + static_cast<uint32_t>(random() % 12));
      args.task.constraints.exclusive_switches = placement.is_exclusive = random() % 4 == 0;
      placement.asked = Now();
      const auto view = Place(args);
      if (!view.ok()) {
        ASSERT_TRUE(absl::IsResourceExhausted(view.status()) || absl::IsAborted(view.status()))
            << view.status();
        continue;
      }
      placement.first = Now();
      for (const std::string& node : view->record->nodes) {
        placement.nodes.insert(static_cast<uint32_t>(std::stoul(node.substr(1))));
      }
      placement.last = Now();
      ASSERT_TRUE(ReleaseOf(view->record->id).ok());
      Keep(placements_, std::move(placement));
    }
  }

  static bool Share(const Tenure& a, const Tenure& b) {
    const auto meets = [&](uint32_t node) {
      return std::any_of(b.nodes.begin(), b.nodes.end(), [&](uint32_t other) {
        return a.is_exclusive ? node / kHostsPerLeaf == other / kHostsPerLeaf : node == other;
      });
    };
    return std::any_of(a.nodes.begin(), a.nodes.end(), meets);
  }

  std::atomic<uint64_t> events_{0};
  std::mutex mu_;
  std::vector<Tenure> jobs_, placements_;  // guarded by mu_
};

TEST_F(PlacementsJobsTest, NoPlacementIsGivenWhatAJobHas) {
  Begin();
  const int rounds = FullTier() ? 2'000 : 200;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] { RegisterAndEnd(rounds, TestSeed() + t); });
    threads.emplace_back([&, t] { PlaceAndRelease(rounds, TestSeed() + 10 + t); });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(jobs_.size(), 2u * static_cast<size_t>(rounds));
  EXPECT_GT(placements_.size(), static_cast<size_t>(rounds) / 2);
  size_t at_once = 0;
  for (const Tenure& placement : placements_) {
    for (const Tenure& job : jobs_) {
      if (job.first > placement.first || job.last < placement.asked) continue;
      ++at_once;
      if (job.first > placement.asked || job.last < placement.first) continue;  // came or went
      EXPECT_FALSE(Share(placement, job)) << placement.asked << " " << job.first;
    }
    for (const Tenure& other : placements_) {
      const bool held_at_once = other.first <= placement.last && other.last >= placement.first;
      if (&other == &placement || !held_at_once) continue;
      EXPECT_FALSE(Share(placement, other)) << placement.asked << " " << other.asked;
    }
  }
  EXPECT_GT(at_once, 0u);
  EXPECT_EQ(manager_->Counts().placed_nodes, 0u);
  EXPECT_TRUE(Place(Nodes(kHosts)).ok()) << "everything is free again";
}

// What a placement took may be registered on by whoever bypasses it; the placement stays whole, and
// so does the count of who has what.
TEST_F(PlacementsJobsTest, AJobOnPlacedNodesLeavesThePlacementAsItIs) {
  Begin();
  const auto view = Place(Nodes(4));
  ASSERT_TRUE(view.ok()) << view.status();
  RegisterJobArgs args = AllHosts();
  args.all_endpoints = false;
  args.endpoints = {view->record->nodes.front()};
  const auto job = Register(args);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(placements().Get(view->record->id)->record->nodes, view->record->nodes);
  EXPECT_FALSE(Place(Nodes(kHosts - 3)).ok());
  ASSERT_TRUE(ReleaseOf(view->record->id).ok());
  EXPECT_FALSE(Place(Nodes(kHosts)).ok()) << "the job is still there";
  ASSERT_TRUE(End(job->record->id).ok());
  EXPECT_TRUE(Place(Nodes(kHosts)).ok());
}

}  // namespace
}  // namespace coppice::placements_jobs_test
