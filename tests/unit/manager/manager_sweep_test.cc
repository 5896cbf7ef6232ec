#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

#include "tests/unit/manager/manager_fixture.h"

namespace coppice::manager_sweep_test {
namespace {

using ::testing::HasSubstr;

class ManagerSweepTest : public ManagerTest {};

TEST_F(ManagerSweepTest, NothingIsKnownBeforeTheFirstSweep) {
  Boot(Options(), false);
  EXPECT_EQ(nullptr, manager_->fabric());
  EXPECT_TRUE(manager_->Entries().empty());
  EXPECT_TRUE(absl::IsUnavailable(Register(AllHosts()).status()));
}

TEST_F(ManagerSweepTest, FirstSweepPublishesVersionOneWithCapabilitiesAndInventory) {
  Boot(Options(5, 7));
  const auto view = manager_->fabric();
  ASSERT_NE(nullptr, view);
  EXPECT_EQ(1u, view->snapshot->fabric->version());
  EXPECT_EQ("script", view->source);
  EXPECT_EQ(clock_.Now(), view->swept);
  ASSERT_EQ(view->snapshot->fabric->link_count(), view->link_ids->size());
  ASSERT_EQ(6u, manager_->Entries().size());
  for (const SwitchEntries& entries : manager_->Entries()) {
    EXPECT_EQ(5u, entries.entries_total);
    EXPECT_EQ(7u, entries.degree_limit);
    EXPECT_EQ(0u, entries.entries_taken);
  }
  EXPECT_EQ(30u, manager_->Counts().entries_total);
  EXPECT_EQ(1u, kept_.Load()->last_fabric_version);
  EXPECT_EQ(1u, EventsOf("sweep.done").size());
}

TEST_F(ManagerSweepTest, AnUnchangedFabricKeepsItsVersionAndWritesNothing) {
  Boot();
  const auto before = manager_->fabric();
  store_.RefuseWhere([](const Mutation&) { return absl::UnavailableError("no writes"); });
  clock_.Advance(absl::Seconds(30));
  port_.Set(SmallFabric());  // an equal value, not the same object
  ASSERT_TRUE(manager_->Sweep().ok());
  const auto after = manager_->fabric();
  EXPECT_EQ(before->snapshot, after->snapshot);
  EXPECT_EQ(clock_.Now(), after->swept);
  EXPECT_EQ(1u, EventsOf("sweep.done").size());
}

TEST_F(ManagerSweepTest, AChangedFabricGetsTheNextVersion) {
  Boot();
  port_.Set(SmallFabric({.missing_hosts = {3}}));
  const auto view = manager_->Sweep();
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(2u, (*view)->snapshot->fabric->version());
  EXPECT_EQ(15u, manager_->fabric()->snapshot->fabric->endpoint_count());
  EXPECT_EQ(2u, EventsOf("sweep.done").size());
}

TEST_F(ManagerSweepTest, VersionsRiseOverRestarts) {
  Boot();
  Boot();
  EXPECT_EQ(2u, manager_->fabric()->snapshot->fabric->version());
}

TEST_F(ManagerSweepTest, AFailedSweepKeepsTheViewAndIsReportedOnce) {
  Boot();
  const auto before = manager_->fabric();
  port_.Set(absl::UnavailableError("mlx5_0 does not answer"));
  EXPECT_TRUE(absl::IsUnavailable(manager_->Sweep().status()));
  EXPECT_TRUE(absl::IsUnavailable(manager_->Sweep().status()));
  EXPECT_EQ(before, manager_->fabric());
  EXPECT_THAT(manager_->Counts().last_sweep_error, HasSubstr("mlx5_0"));
  EXPECT_EQ(1u, EventsOf("sweep.failed").size());
  port_.Set(SmallFabric());
  EXPECT_TRUE(manager_->Sweep().ok());
  EXPECT_EQ("", manager_->Counts().last_sweep_error);
  EXPECT_EQ(1u, EventsOf("sweep.recovered").size());
}

TEST_F(ManagerSweepTest, AStoreThatFailsMidwayLeavesTheViewAsItIs) {
  Boot();
  const auto before = manager_->fabric();
  port_.Set(SmallFabric({.missing_hosts = {3}}));
  store_.Refuse<PutInventory>(absl::UnavailableError("busy"));
  EXPECT_TRUE(absl::IsUnavailable(manager_->Sweep().status()));
  EXPECT_EQ(before, manager_->fabric());
  store_.Refuse<PutCapabilities>(absl::UnavailableError("busy"));
  EXPECT_TRUE(absl::IsUnavailable(manager_->Sweep().status()));
  EXPECT_EQ(before, manager_->fabric());
  store_.Obey();
  ASSERT_TRUE(manager_->Sweep().ok());
  // 2 was used up by the sweep whose inventory was written.
  EXPECT_EQ(3u, manager_->fabric()->snapshot->fabric->version());
}

TEST_F(ManagerSweepTest, SweepsAtTheSameTimeAreOneSweep) {
  Boot();
  std::mutex mu;
  std::condition_variable changed;
  bool entered = false, may_leave = false;
  port_.OnSweep([&] {
    std::unique_lock lock(mu);
    entered = true;
    changed.notify_all();
    changed.wait(lock, [&] { return may_leave; });
  });
  std::thread first([&] { EXPECT_TRUE(manager_->Sweep().ok()); });
  {
    std::unique_lock lock(mu);
    changed.wait(lock, [&] { return entered; });
  }
  std::thread second([&] { EXPECT_TRUE(manager_->Sweep().ok()); });
  {
    std::lock_guard lock(mu);
    may_leave = true;
    changed.notify_all();
  }
  first.join();
  second.join();
  // The second either joined the first or, if it came late, swept after it; never beside it.
  EXPECT_LE(port_.sweeps(), 3);
}

TEST_F(ManagerSweepTest, WhatWentAwayKeepsTheTimeWhenItWasLastSeen) {
  Boot();
  std::vector<absl::Time> seen;
  store_.RefuseWhere([&](const Mutation& mutation) {
    if (const auto* inventory = std::get_if<PutInventory>(&mutation)) {
      seen.push_back(inventory->time);
    }
    return absl::OkStatus();
  });
  clock_.Advance(absl::Seconds(10));
  ASSERT_TRUE(manager_->Sweep().ok());
  const absl::Time last_seen = clock_.Now();
  clock_.Advance(absl::Seconds(10));
  port_.Set(SmallFabric({.missing_hosts = {3}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  EXPECT_THAT(seen, ::testing::ElementsAre(last_seen, clock_.Now()));
}

TEST_F(ManagerSweepTest, TheThreadsSweepAtOnceAndStop) {
  Boot(Options(), false);
  manager_->Start();
  manager_->Start();
  ASSERT_TRUE(manager_->Sweep().ok());  // joins the thread's, or follows it
  EXPECT_NE(nullptr, manager_->fabric());
  manager_->Stop();
  manager_->Stop();
}

}  // namespace
}  // namespace coppice::manager_sweep_test
