// Random faults on random fabrics with random trees: whatever is lost, every tree that is still
// granted stands on what is there, entries are exact in memory and in the store, and a watcher's
// picture is right. Seed printed.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/tier.h"
#include "tests/unit/manager/manager_fixture.h"
#include "tests/unit/manager/standing_trees.h"

namespace coppice::repair_random_test {
namespace {

class RepairRandomTest : public ManagerTest {
 protected:
  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  FabricShape WithFaults(FabricShape shape) {
    const uint32_t hosts = shape.leaves * shape.hosts_per_leaf;
    for (uint32_t n = Below(3); n > 0; --n) {
      shape.missing_cables.insert({Below(shape.leaves), Below(shape.spines)});
    }
    if (Below(4) == 0) shape.missing_spines.insert(Below(shape.spines));
    if (Below(3) == 0) shape.missing_hosts.insert(Below(hosts));
    return shape;
  }
  CreateTreeArgs RandomTree(JobId job, uint32_t ranks) {
    CreateTreeArgs args;
    args.job = job;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      if (Below(3) != 0) args.ranks.push_back(rank);
    }
    std::shuffle(args.ranks.begin(), args.ranks.end(), random_);
    if (args.ranks.empty()) args.ranks.push_back(0);
    args.operation = static_cast<Operation>(Below(4));
    args.sizes = {{8ull << Below(14), 1}};
    if (Below(3) != 0) args.type = TreeType::kTypeII;
    if (Below(4) == 0) args.nic_degree = 3 + Below(5);
    return args;
  }
  void RunOnce() {
    const FabricShape shape{2 + Below(4), 1 + Below(3), 1 + Below(4)};
    port_.Set(SmallFabric(shape));
    Boot(Options(1 + Below(4), 3 + Below(6)), false);
    ASSERT_TRUE(manager_->Sweep().ok());
    Picture picture(*manager_);
    for (int round = 0; round < 6; ++round) {
      const absl::StatusOr<JobView> job = Register(AllHosts());
      if (job.ok()) {
        const uint32_t ranks = static_cast<uint32_t>(job->record->endpoints.size());
        for (uint32_t n = Below(6); n > 0; --n) {
          Create(RandomTree(job->record->id, ranks)).IgnoreError();
        }
        if (Below(4) == 0) {
          ASSERT_TRUE(End(job->record->id).ok());
        }
      }
      port_.Set(SmallFabric(Below(4) == 0 ? shape : WithFaults(shape)));
      ASSERT_TRUE(manager_->Sweep().ok());
      ExpectAllStand(*manager_);
      ExpectConserved();
      picture.Read();
      picture.ExpectEquals(*manager_);
      EXPECT_TRUE(ManagerPeer::RepairTrees(*manager_));
      EXPECT_TRUE(picture.Read().empty());  // once is enough
      if (HasFailure()) return;
    }
    for (const JobView& job : manager_->ListJobs(JobId(), 1000)) {
      ASSERT_TRUE(End(job.record->id).ok());
    }
    EXPECT_EQ(0u, manager_->Counts().entries_taken);
    picture.Read();
    picture.ExpectEquals(*manager_);
  }

  std::mt19937_64 random_{TestSeed()};
};

TEST_F(RepairRandomTest, WhatIsGrantedStands) {
  const int runs = FullTier() ? 2'000 : 60;
  for (int run = 0; run < runs && !HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    RunOnce();
  }
}

}  // namespace
}  // namespace coppice::repair_random_test
