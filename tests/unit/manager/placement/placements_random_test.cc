// Thousands of requests at once, and random lives: no node ever has two holders, memory and store
// agree, and nothing is left when all is over.
#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/tier.h"
#include "tests/unit/manager/placement/placements_fixture.h"

namespace coppice::placements_random_test {
namespace {

class PlacementsRandomTest : public PlacementsTest {
 protected:
  void BootOn(const FabricShape& shape) {
    Boot();
    port_.Set(SmallFabric(shape));
    ASSERT_TRUE(manager_->Sweep().ok());
  }
  // Held placements and active jobs hold every node at most once, and the store holds the same.
  void ExpectDisjoint() {
    Settle();
    std::map<std::string, int> holders;
    uint64_t placed = 0;
    for (const PlacementView& view : placements().List(PlacementId(), 1u << 20)) {
      placed += view.record->nodes.size();
      for (const std::string& node : view.record->nodes) ++holders[node];
    }
    const auto fabric = manager_->fabric()->snapshot->fabric;
    for (const JobView& job : manager_->ListJobs(JobId(), 1u << 20)) {
      std::set<std::string> nodes;
      for (const Guid port : job.record->endpoints) {
        nodes.insert(std::string(fabric->host_name(fabric->host(*fabric->FindEndpoint(port)))));
      }
      for (const std::string& node : nodes) ++holders[node];
    }
    for (const auto& [node, count] : holders) ASSERT_EQ(count, 1) << node;
    ASSERT_EQ(placed, manager_->Counts().placed_nodes);
    const std::vector<PlacementRecord> stored = store_.Load()->placements;
    const auto held = std::count_if(stored.begin(), stored.end(), [](const PlacementRecord& p) {
      return p.state == PlacementState::kHeld;  // others are exclusive jobs'
    });
    ASSERT_EQ(held, manager_->Counts().held_placements);
  }
};

TEST_F(PlacementsRandomTest, ThousandsAtOnceShareTheNodes) {
  BootOn({.leaves = 16, .spines = 4, .hosts_per_leaf = 8});
  const int threads = 4, each = FullTier() ? 2'000 : 250;
  std::vector<std::thread> workers;
  std::atomic<int> granted{0}, full{0}, aborted{0}, others{0};
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      std::mt19937_64 random(TestSeed() + static_cast<uint64_t>(t));
      std::vector<PlacementId> mine;
      for (int i = 0; i < each; ++i) {
        const auto view = Place(Nodes(1 + static_cast<uint32_t>(random() % 24)));
        if (view.ok()) {
          ++granted;
          mine.push_back(view->record->id);
        } else {
          ++(absl::IsResourceExhausted(view.status()) ? full
             : absl::IsAborted(view.status())         ? aborted
                                                      : others);
        }
        if (!mine.empty() && (random() % 2 == 0 || !view.ok())) {
          const PlacementId id = mine[random() % mine.size()];
          std::erase(mine, id);
          EXPECT_TRUE(ReleaseOf(id).ok());
        }
      }
      for (const PlacementId id : mine) EXPECT_TRUE(ReleaseOf(id).ok());
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(others, 0);
  EXPECT_GT(granted, each);
  EXPECT_EQ(granted + full + aborted, threads * each);
  ExpectDisjoint();
  EXPECT_EQ(manager_->Counts().placed_nodes, 0u);
}

TEST_F(PlacementsRandomTest, RandomLivesKeepNodesApart) {
  BootOn({.leaves = 8, .spines = 2, .hosts_per_leaf = 4});
  std::mt19937_64 random(TestSeed());
  const auto below = [&](uint64_t n) { return random() % n; };
  std::vector<PlacementId> held;
  std::vector<JobId> jobs;
  for (int round = 0; round < (FullTier() ? 4'000 : 400); ++round) {
    const uint64_t what = below(20);
    if (what < 9) {
      CreatePlacementArgs args = Nodes(1 + static_cast<uint32_t>(below(10)));
      args.task.constraints.exclusive_switches = below(5) == 0;
      const auto view = Place(args);
      if (view.ok()) {
        held.push_back(view->record->id);
      } else {
        ASSERT_TRUE(absl::IsResourceExhausted(view.status())) << view.status();
      }
    } else if (what < 13 && !held.empty()) {
      const PlacementId id = held[below(held.size())];
      std::erase(held, id);
      const auto job = StartOf(id);
      ASSERT_TRUE(job.ok()) << job.status();
      jobs.push_back(job->record->id);
    } else if (what < 16 && !held.empty()) {
      const PlacementId id = held[below(held.size())];
      std::erase(held, id);
      ASSERT_TRUE(ReleaseOf(id).ok());
    } else if (what < 18 && !jobs.empty()) {
      const JobId id = jobs[below(jobs.size())];
      std::erase(jobs, id);
      ASSERT_TRUE(End(id).ok());
    } else if (what == 18) {
      clock_.Advance(absl::Seconds(below(90)));
      for (const JobId job : jobs) ASSERT_TRUE(manager_->KeepAlive(job).ok());
      manager_->ExpireLeases();
      Settle();
      std::erase_if(held, [&](PlacementId id) {
        return placements().Get(id)->record->state != PlacementState::kHeld;
      });
    } else if (below(4) == 0) {
      Boot();
    }
    if (round % 10 == 0) ExpectDisjoint();
  }
  ExpectDisjoint();
}

}  // namespace
}  // namespace coppice::placements_random_test
