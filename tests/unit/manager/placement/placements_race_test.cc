// Whoever plans long and whoever plans for an instant get their nodes, both.
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/tier.h"
#include "tests/unit/manager/placement/placements_fixture.h"

namespace coppice::placements_race_test {
namespace {

class PlacementsRaceTest : public PlacementsTest {
 protected:
  static void WaitFor(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::yield();
    }
  }
};

TEST_F(PlacementsRaceTest, WhoLosesTwiceHasATurnThatOthersWaitFor) {
  Boot();
  std::vector<std::thread> others;
  std::atomic<size_t> done{0};
  const auto another_is_quicker = [&] {
    others.emplace_back([&] {
      const auto view = Place(Nodes(1, "", {"n[0-15]"}));
      EXPECT_TRUE(view.ok()) << view.status();
      ++done;
    });
    // It has its node, or waits until the turn is over.
    WaitFor([&] { return done == others.size() || placements().numbers().waiting > 0; });
  };
  Answer<Views> answer;
  int calls = 0;
  placements().Create(
      {Nodes(1, "", {"n[0-15]"})},
      [&] {
        if (++calls % 2 == 0) another_is_quicker();  // planned, not taken yet
        return false;
      },
      answer.Callback());
  const auto views = answer.Get();
  for (std::thread& other : others) other.join();
  EXPECT_TRUE(views.ok()) << views.status();
  EXPECT_EQ(calls, 2 * (Placements::kFreeAttempts + 1));
  EXPECT_EQ(manager_->Counts().held_placements, 4u);
  EXPECT_EQ(manager_->Counts().placed_nodes, 4u);
}

TEST_F(PlacementsRaceTest, WhoGoesAwayDuringItsTurnHoldsNobodyUp) {
  Boot();
  Answer<Views> answer;
  int calls = 0;
  placements().Create(
      {Nodes(1, "", {"n[0-15]"})},
      [&] {
        ++calls;
        if (calls <= 4 && calls % 2 == 0) {
          EXPECT_TRUE(Place(Nodes(1, "", {"n[0-15]"})).ok());
        }
        return calls > 5;  // planned, in its turn
      },
      answer.Callback());
  EXPECT_EQ(answer.Get().status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(Place(Nodes(14)).ok());
}

// A scheduler's backfill beside a stream of short requests for the same nodes.
TEST_F(PlacementsRaceTest, ALongBatchIsNotStarved) {
  Boot();
  port_.Set(SmallFabric({.leaves = 16, .spines = 4, .hosts_per_leaf = 8}));
  ASSERT_TRUE(manager_->Sweep().ok());
  std::atomic<bool> over{false};
  std::atomic<int> short_ones{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!over) {
        const auto view = Place(Nodes(1));
        ASSERT_TRUE(view.ok()) << view.status();
        ASSERT_TRUE(ReleaseOf(view->record->id).ok());
        ++short_ones;
      }
    });
  }
  for (int round = 0; round < (FullTier() ? 40 : 8); ++round) {
    const int before = short_ones;
    const auto views = BeginPlace(std::vector<CreatePlacementArgs>(60, Nodes(2))).Get();
    EXPECT_TRUE(views.ok()) << views.status();
    for (size_t i = 0; views.ok() && i < views->size(); ++i) {
      EXPECT_TRUE(ReleaseOf((*views)[i].record->id).ok());
    }
    WaitFor([&] { return short_ones > before + 3; });  // nor are they
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(manager_->Counts().placed_nodes, 0u);
}

}  // namespace
}  // namespace coppice::placements_race_test
