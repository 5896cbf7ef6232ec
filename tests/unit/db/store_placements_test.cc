// Placements in the store: held nodes have one holder, a start moves them to a job in one step,
// and what is over is kept and forgotten as jobs are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/support/tier.h"
#include "tests/unit/db/raw_database.h"
#include "tests/unit/db/store_records.h"

namespace coppice::store_placements_test {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::IsEmpty;

class StorePlacementsTest : public StoreTest {
 protected:
  absl::Status Put(std::vector<PlacementRecord> placements) {
    return store_->Apply(PutPlacements{std::move(placements)});
  }
  absl::Status End(int64_t id, PlacementState state, int64_t time = 50) {
    return store_->Apply(EndPlacement{PlacementId(id), state, At(time)});
  }
};

TEST_F(StorePlacementsTest, AreThereAfterARestart) {
  PlacementRecord odd = Placement(7, {"n \"2\"", "n\\3", "n\t4", "n\xff"}, "r7");
  odd.permutation.clear();
  odd.is_exclusive = true;
  ASSERT_APPLIED(Put({Placement(3, {"n1"}), odd}));
  const StoredState state = Load();
  EXPECT_THAT(state.placements, ElementsAre(Placement(3, {"n1"}), odd));
  EXPECT_EQ(state.last_placement, PlacementId(7));
  EXPECT_EQ(*store_->GetPlacement(PlacementId(7)), odd);
  EXPECT_STATUS(store_->GetPlacement(PlacementId(4)).status(), StatusCode::kNotFound,
                "placement 4");
}

TEST_F(StorePlacementsTest, NodesHaveOneHolder) {
  ASSERT_APPLIED(Put({Placement(1, {"n1", "n2"})}));
  EXPECT_STATUS(Put({Placement(2, {"n3"}), Placement(3, {"n4", "n2"})}),
                StatusCode::kFailedPrecondition, "node n2 is held by placement 1");
  EXPECT_STATUS(Put({Placement(2, {"n3"}), Placement(3, {"n3"})}), StatusCode::kFailedPrecondition,
                "node n3 is held by placement 2");
  ASSERT_APPLIED(Put({Placement(4, {"n3"})}));  // nothing of the refused ones stayed
  ASSERT_APPLIED(End(1, PlacementState::kReleased));
  ASSERT_APPLIED(Put({Placement(5, {"n2", "n1"})}));
  EXPECT_EQ(Load().placements.size(), 2u);
}

TEST_F(StorePlacementsTest, EndOnce) {
  ASSERT_APPLIED(Put({Placement(1, {"n1"}), Placement(2, {"n2"})}));
  ASSERT_APPLIED(End(1, PlacementState::kReleased, 9));
  ASSERT_APPLIED(End(2, PlacementState::kExpired));
  EXPECT_STATUS(End(1, PlacementState::kExpired), StatusCode::kNotFound, "placement 1");
  EXPECT_STATUS(End(3, PlacementState::kReleased), StatusCode::kNotFound, "placement 3");
  EXPECT_STATUS(End(3, PlacementState::kStarted), StatusCode::kInvalidArgument, "released");
  EXPECT_THAT(Load().placements, IsEmpty());
  PlacementRecord ended = Placement(1, {"n1"});
  ended.state = PlacementState::kReleased;
  ended.ended = At(9);
  EXPECT_EQ(*store_->GetPlacement(PlacementId(1)), ended);
}

TEST_F(StorePlacementsTest, AStartMovesTheNodesToTheJob) {
  ASSERT_APPLIED(Put({Placement(1, {"n1"})}));
  ASSERT_APPLIED(store_->Apply(StartPlacement{PlacementId(1), Job(4, "s")}));
  EXPECT_STATUS(store_->Apply(StartPlacement{PlacementId(1), Job(5)}), StatusCode::kNotFound,
                "placement 1");
  const StoredState state = Load();
  EXPECT_THAT(state.placements, IsEmpty());
  EXPECT_THAT(state.jobs, ElementsAre(Job(4, "s")));
  const PlacementRecord started = *store_->GetPlacement(PlacementId(1));
  EXPECT_EQ(started.state, PlacementState::kStarted);
  EXPECT_EQ(started.job, JobId(4));
  EXPECT_EQ(started.ended, Job(4).created);
}

TEST_F(StorePlacementsTest, AStartThatIsRefusedLeavesThePlacement) {
  ASSERT_APPLIED(Put({Placement(1, {"n1"})}));
  ASSERT_APPLIED(store_->Apply(PutJob{Job(4, "s")}));
  EXPECT_STATUS(store_->Apply(StartPlacement{PlacementId(1), Job(4)}), StatusCode::kAlreadyExists,
                "job 4");
  EXPECT_STATUS(store_->Apply(StartPlacement{PlacementId(1), Job(5, "s")}),
                StatusCode::kAlreadyExists, "job 4");
  EXPECT_EQ(Load().placements.size(), 1u);
  EXPECT_STATUS(Put({Placement(2, {"n1"})}), StatusCode::kFailedPrecondition, "placement 1");
}

TEST_F(StorePlacementsTest, ExclusiveOnesAreToldAsLongAsTheirJobsAreActive) {
  PlacementRecord exclusive = Placement(1, {"n1"});
  exclusive.is_exclusive = true;
  ASSERT_APPLIED(Put({exclusive, Placement(2, {"n2"})}));
  ASSERT_APPLIED(store_->Apply(StartPlacement{PlacementId(1), Job(4)}));
  ASSERT_APPLIED(store_->Apply(StartPlacement{PlacementId(2), Job(5)}));
  ASSERT_EQ(Load().placements.size(), 1u);
  EXPECT_EQ(Load().placements[0].job, JobId(4));
  // Whatever age and number would have forgotten.
  ASSERT_APPLIED(store_->Apply(PrunePlacements{0, absl::InfiniteFuture()}));
  EXPECT_EQ(Load().placements.size(), 1u);
  EXPECT_FALSE(store_->GetPlacement(PlacementId(2)).ok());
  ASSERT_APPLIED(store_->Apply(EndJob{JobId(4), JobState::kEnded, At(60)}));
  EXPECT_THAT(Load().placements, IsEmpty());
  ASSERT_APPLIED(store_->Apply(PrunePlacements{0, absl::InfiniteFuture()}));
  EXPECT_FALSE(store_->GetPlacement(PlacementId(1)).ok());
}

TEST_F(StorePlacementsTest, RefuseWhatIsNoPlacement) {
  const auto refuse = [&](const PlacementRecord& bad, const char* words) {
    EXPECT_STATUS(Put({Placement(9, {"x"}), bad}), StatusCode::kInvalidArgument, words);
  };
  refuse(Placement(0, {"n1"}), "ids start at 1");
  refuse(Placement(1, {}), "no nodes");
  refuse(Placement(1, {"n1", "n2", "n1"}), "node n1 twice");
  PlacementRecord bad = Placement(1, {"n1"});
  bad.state = PlacementState::kReleased;
  refuse(bad, "must be held");
  bad = Placement(1, {"n1"});
  bad.term = absl::ZeroDuration();
  refuse(bad, "term");
  bad = Placement(1, {"n1"});
  bad.ranks_per_node = 0;
  refuse(bad, "ranks");
  EXPECT_THAT(Load().placements, IsEmpty());
}

TEST_F(StorePlacementsTest, NamesAreTakenUntilThePlacementIsForgotten) {
  ASSERT_APPLIED(Put({Placement(1, {"n1"}, "r"), Placement(2, {"n2"})}));
  EXPECT_STATUS(Put({Placement(1, {"n3"})}), StatusCode::kAlreadyExists, "placement 1");
  ASSERT_APPLIED(End(1, PlacementState::kReleased, 10));
  ASSERT_APPLIED(End(2, PlacementState::kExpired, 20));
  EXPECT_STATUS(Put({Placement(3, {"n1"}, "r")}), StatusCode::kAlreadyExists, "placement 1");
  EXPECT_EQ(*store_->EndedPlacements(absl::InfiniteFuture()), 2);
  EXPECT_EQ(*store_->EndedPlacements(At(20)), 1);
  ASSERT_APPLIED(store_->Apply(PrunePlacements{1}));
  EXPECT_STATUS(store_->GetPlacement(PlacementId(1)).status(), StatusCode::kNotFound, "forgotten");
  EXPECT_TRUE(store_->GetPlacement(PlacementId(2)).ok());
  ASSERT_APPLIED(store_->Apply(PrunePlacements{5, At(21)}));
  EXPECT_FALSE(store_->GetPlacement(PlacementId(2)).ok());
  EXPECT_EQ(Load().last_placement, PlacementId(2));
  ASSERT_APPLIED(Put({Placement(3, {"n1"}, "r")}));
  EXPECT_STATUS(store_->Apply(PrunePlacements{-1}), StatusCode::kInvalidArgument, "kept");
}

// Random mutations against a model that recounts who holds what from the list of placements.
TEST_F(StorePlacementsTest, AgreesWithTheModel) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  std::map<int64_t, PlacementRecord> model;
  std::set<int64_t> jobs;
  for (int round = 0; round < (FullTier() ? 5'000 : 300); ++round) {
    const int64_t id = 1 + below(40);
    const auto found = model.find(id);
    const bool is_held = found != model.end() && found->second.state == PlacementState::kHeld;
    StatusCode expected = StatusCode::kOk, answered;
    if (below(2) == 0) {
      std::set<std::string> nodes;
      for (int64_t n = 1 + below(3); n > 0; --n) nodes.insert("n" + std::to_string(below(12)));
      const PlacementRecord put = Placement(id, {nodes.begin(), nodes.end()});
      if (found != model.end()) expected = StatusCode::kAlreadyExists;
      for (const auto& [other, held] : model) {
        if (expected != StatusCode::kOk || held.state != PlacementState::kHeld) continue;
        for (const std::string& node : held.nodes) {
          if (nodes.contains(node)) expected = StatusCode::kFailedPrecondition;
        }
      }
      if (expected == StatusCode::kOk) model[id] = put;
      answered = Put({put}).code();
    } else if (below(2) == 0) {
      if (!is_held) expected = StatusCode::kNotFound;
      if (is_held) found->second.state = PlacementState::kReleased;
      answered = End(id, PlacementState::kReleased).code();
    } else {
      const int64_t job = 1 + below(60);
      if (!is_held) expected = StatusCode::kNotFound;
      if (is_held && jobs.contains(job)) expected = StatusCode::kAlreadyExists;
      if (expected == StatusCode::kOk) {
        found->second.state = PlacementState::kStarted;
        jobs.insert(job);
      }
      answered = store_->Apply(StartPlacement{PlacementId(id), Job(job)}).code();
    }
    ASSERT_EQ(answered, expected) << "round " << round;
    std::vector<PlacementRecord> held;
    for (const auto& [number, placement] : model) {
      if (placement.state == PlacementState::kHeld) held.push_back(placement);
    }
    if (round % 20 == 0) {
      ASSERT_EQ(Load().placements, held) << "round " << round;
    }
  }
}

TEST(SqlitePlacementsTest, AShellCannotGiveANodeTwice) {
  StoreDirectory directory;
  const std::string path = directory.File("coppice.db");
  auto store = *SqliteStore::Open(path);
  ASSERT_APPLIED(store->Apply(PutPlacements{{Placement(1, {"n1"})}}));
  RawDatabase shell(path);
  EXPECT_THAT(shell.Run("INSERT INTO placement_node VALUES ('n1', 2)"),
              testing::HasSubstr("UNIQUE"));
  EXPECT_EQ(shell.Run("SELECT id || state || node_count FROM placement_list"), "1held1\n");
  shell.Run("DELETE FROM placement WHERE id = 1");
  EXPECT_EQ(shell.Run("SELECT count(*) FROM placement_node"), "0\n");
}

}  // namespace
}  // namespace coppice::store_placements_test
