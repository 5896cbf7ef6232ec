// What a light sweep sees of links is mended by it, before anybody reads the fabric anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <vector>

#include "daemon/manager/inventory.h"
#include "daemon/manager/options.h"
#include "daemon/manager/rounds.h"
#include "tests/unit/manager/routed_fixture.h"

namespace coppice::manager_light_sweep_test {
namespace {

using testing::HasSubstr;

class ManagerLightSweepTest : public RoutedManagerTest {
 protected:
  // With what Begin() booted.
  void SetPeriods(const SweepPeriods& periods) {
    ManagerOptions options = Options(3, 7);
    options.sweep_periods = periods;
    ASSERT_TRUE(manager_->Reconfigure(options).ok());
  }
  // Runs the threads, whose next light sweep sees these, until the change of the tree has come. The
  // full sweep that follows is held until then.
  TreeChange ChangeBySeeing(std::vector<LinkChange> links, Picture& picture) {
    std::promise<void> is_seen;
    const std::shared_future<void> seen = is_seen.get_future().share();
    const std::shared_ptr<const Fabric> before = manager_->fabric()->snapshot->fabric;
    port_.OnSweep([seen] { seen.wait(); });
    LightSweepResult light;
    light.has_changed = true;
    light.links = std::move(links);
    port_.SetLight(light);
    SetPeriods({absl::InfiniteDuration(), absl::Milliseconds(1), absl::InfiniteDuration()});
    manager_->Start();
    std::vector<TreeChange> changes;
    const absl::Time limit = absl::Now() + absl::Seconds(60);
    while (changes.empty() && absl::Now() < limit) changes = picture.Read();
    EXPECT_NE(before, manager_->fabric()->snapshot->fabric);
    dropped_ = manager_->fabric();
    down_ = manager_->Counts().down_links;
    port_.SetLight(LightSweepResult());
    is_seen.set_value();
    manager_->Stop();
    port_.OnSweep(nullptr);
    EXPECT_FALSE(changes.empty());
    return changes.empty() ? TreeChange() : changes.front();
  }

  // As they were before the full sweep, which sees the links again.
  std::shared_ptr<const FabricView> dropped_;
  std::vector<DownLink> down_;
};

TEST_F(ManagerLightSweepTest, ACutCableMovesItsTreeBeforeAFullSweep) {
  Begin();
  const auto tree = TreeOver(0, 7);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const uint32_t spine = SpineOf(*tree->record);
  Picture picture(*manager_);
  picture.Read();
  // Both ends say so.
  const TreeChange change =
      ChangeBySeeing({{LeafGuid(0), PortNum(static_cast<uint8_t>(1 + spine)), false},
                      {SpineGuid(spine), PortNum(1), false}},
                     picture);
  ASSERT_NE(change.tree.record, nullptr);
  EXPECT_EQ(TreeChangeKind::kRevised, change.kind);
  EXPECT_THAT(change.reason, HasSubstr("gone"));
  EXPECT_EQ(2u, change.tree.record->revision);
  EXPECT_EQ(1 - spine, SpineOf(*change.tree.record));
  const std::shared_ptr<const Fabric> cut =
      SmallFabric({.missing_cables = {{0, spine}}, .has_lids = true});
  EXPECT_TRUE(SameFabric(*cut, *dropped_->snapshot->fabric));
  EXPECT_FALSE(dropped_->routes_settled);
  ExpectStands(*dropped_, *manager_->profile(), change.tree);
  EXPECT_EQ(1u, EventsOf("link.down").size());
  ASSERT_EQ(down_.size(), 1u);
  EXPECT_EQ(down_.front().ends[0].name, "leaf0");
  // The full sweeps, which had seen nothing of it yet, brought it back; the tree stays where it is.
  ASSERT_NO_FATAL_FAILURE(SweepTo({.missing_cables = {{0, spine}}}, {}));
  ExpectConserved();
}

TEST_F(ManagerLightSweepTest, AHostWhoseCableIsCutIsGoneForCertain) {
  Begin();
  const auto tree = TreeOver(0, 7), other = TreeOver(8, 15);
  ASSERT_TRUE(tree.ok() && other.ok());
  Picture picture(*manager_);
  picture.Read();
  const TreeChange change = ChangeBySeeing({{LeafGuid(0), PortNum(3), false}}, picture);
  ASSERT_NE(change.tree.record, nullptr);
  EXPECT_EQ(TreeChangeKind::kRevoked, change.kind);
  EXPECT_EQ(tree->record->id, change.tree.record->id);
  EXPECT_FALSE(dropped_->snapshot->fabric->FindEndpoint(PortGuid(0)));
  EXPECT_TRUE(manager_->GetTree(other->record->id).ok());
  EXPECT_EQ(1u, EventsOf("job.member_lost").size());
  EXPECT_TRUE(SameFabric(*SmallFabric({.missing_hosts = {0}, .has_lids = true}),
                         *dropped_->snapshot->fabric));
}

TEST_F(ManagerLightSweepTest, WhatCannotBeWrittenIsNotInForce) {
  Begin();
  const std::shared_ptr<const FabricView> before = manager_->fabric();
  store_.Refuse<PutInventory>(absl::UnavailableError("disk full"));
  LightSweepResult light;
  light.has_changed = true;
  light.links = {{LeafGuid(0), PortNum(1), false}};
  std::promise<void> is_read;
  int sweeps = 0;
  port_.OnSweep([&] {
    if (++sweeps == 2) is_read.set_value();
  });
  port_.SetLight(light);
  SetPeriods({absl::InfiniteDuration(), absl::Milliseconds(1), absl::InfiniteDuration()});
  manager_->Start();
  is_read.get_future().wait();
  manager_->Stop();
  EXPECT_EQ(before->snapshot->fabric, manager_->fabric()->snapshot->fabric);
  EXPECT_TRUE(EventsOf("link.down").empty());
}

// A full sweep of a large fabric takes seconds; it read the cable before that was cut.
TEST_F(ManagerLightSweepTest, ACutDuringAFullSweepIsMendedBeforeThatEnds) {
  Begin();
  const auto tree = TreeOver(0, 7);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const uint32_t spine = SpineOf(*tree->record);
  Picture picture(*manager_);
  picture.Read();
  const absl::Duration period = absl::Seconds(1);
  SetPeriods({absl::InfiniteDuration(), period, absl::InfiniteDuration()});
  std::vector<TreeChange> early, changes;
  port_.WithinSweep([&](const SweepOptions& options) {
    ASSERT_TRUE(options.between != nullptr);
    options.between();  // all is well
    LightSweepResult light;
    light.has_changed = true;
    light.links = {{LeafGuid(0), PortNum(static_cast<uint8_t>(1 + spine)), false}};
    port_.SetLight(light);
    options.between();  // not a period since
    early = picture.Read();
    clock_.Advance(period);
    options.between();
    changes = picture.Read();
  });
  ASSERT_TRUE(manager_->Sweep().ok());
  port_.WithinSweep(nullptr);
  EXPECT_TRUE(early.empty());
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(TreeChangeKind::kRevised, changes[0].kind);
  EXPECT_EQ(2u, changes[0].tree.record->revision);
  EXPECT_EQ(1 - spine, SpineOf(*changes[0].tree.record));
  // What the sweep read of the cable does not bring it back.
  const FabricShape cut = {.missing_cables = {{0, spine}}, .has_lids = true};
  EXPECT_TRUE(SameFabric(*SmallFabric(cut), *manager_->fabric()->snapshot->fabric));
  ExpectAllStand(*manager_);
  ExpectConserved();
}

// The rounds without their timetable, which would space the full sweeps that are asked for.
class LightRoundsTest : public ManagerTest {
 protected:
  LightRoundsTest() { port_.Set(SmallFabric()); }
  ~LightRoundsTest() override { calls_.AwaitAll(); }

  bool ReadAll() { return duties_.full(/*in_haste=*/true, absl::InfiniteDuration()).outcome.is_ok; }
  // Whether a light sweep, a second after the last, that sees these asks for a full one, which
  // follows.
  bool AsksForFull(std::vector<LinkChange> links) {
    clock_.Advance(absl::Seconds(1));
    LightSweepResult light;
    light.has_changed = !links.empty();
    light.links = std::move(links);
    port_.SetLight(light);
    const Sweeper::OtherSweep seen = duties_.light();
    EXPECT_TRUE(seen.status.ok()) << seen.status;
    EXPECT_FALSE(seen.needs_full);
    EXPECT_TRUE(!seen.has_changed || ReadAll());
    return seen.has_changed;
  }

  LiveOptions options_{Options()};
  Tables tables_;
  StoreCalls calls_{&store_};
  EventLog events_{&calls_, &clock_, options_, [] {}};
  LoadKeeper load_{&store_, &tables_, options_->load};
  const UseCase with_{&calls_, &events_, &clock_, &tables_, options_};
  Topology topology_{with_, &port_, &load_, 0};
  Repair repair_{with_};
  Rounds rounds_{with_, &port_, &topology_, &repair_, &load_};
  const Sweeper::Duties duties_ = rounds_.Duties();
};

TEST_F(LightRoundsTest, APortThatFlapsAsksForNoMoreFullSweepsAndOthersDo) {
  ASSERT_TRUE(ReadAll());
  bool is_up = true, was_up = true;  // now, and when all was read
  const auto flap = [&](std::vector<LinkChange> seen) {
    is_up = !is_up;
    if (is_up != was_up) seen.push_back({LeafGuid(0), PortNum(1), is_up});
    const bool asks = AsksForFull(std::move(seen));
    if (asks) was_up = is_up;
    return asks;
  };
  for (int i = 1; i < FlapFilter::kFlaps; ++i) EXPECT_TRUE(flap({})) << i;
  const int sweeps = port_.sweeps();
  EXPECT_EQ(FlapFilter::kFlaps, sweeps);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(flap({})) << i;
  EXPECT_EQ(sweeps, port_.sweeps());
  EXPECT_TRUE(flap({{LeafGuid(1), PortNum(2), false}}));
  EXPECT_EQ(sweeps + 1, port_.sweeps());
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(flap({})) << i;
  EXPECT_EQ(sweeps + 1, port_.sweeps());
}

// Reading the counters of a large fabric takes a second, and so does writing down what changed.
TEST_F(LightRoundsTest, WhatTakesLongLooksFirstWhereALightSweepWouldBeLate) {
  const absl::Duration period = absl::Seconds(1);
  port_.SetCounters(CounterSweep());
  ASSERT_TRUE(ReadAll());
  ASSERT_TRUE(duties_.light().status.ok());
  const auto looks = [&, before = port_.light_sweeps()] { return port_.light_sweeps() - before; };
  clock_.Advance(period * 0.4);
  EXPECT_TRUE(duties_.counters(period).status.ok());
  EXPECT_TRUE(duties_.full(true, period).outcome.is_ok);
  EXPECT_EQ(0, looks());
  clock_.Advance(period * 0.1);
  EXPECT_TRUE(duties_.counters(period).status.ok());
  EXPECT_EQ(1, looks());
  EXPECT_TRUE(duties_.full(true, period).outcome.is_ok);
  EXPECT_EQ(1, looks());
  clock_.Advance(period * 0.5);
  EXPECT_TRUE(duties_.full(true, period).outcome.is_ok);
  EXPECT_EQ(2, looks());
  port_.WithinSweep([&](const SweepOptions&) { clock_.Advance(period * 0.5); });
  EXPECT_TRUE(duties_.full(true, period).outcome.is_ok);
  EXPECT_EQ(3, looks());  // after the reading
  // What does not answer is not asked twice.
  port_.SetLight(absl::UnavailableError("frozen"));
  EXPECT_TRUE(duties_.full(true, period).outcome.is_ok);
  EXPECT_EQ(4, looks());
  EXPECT_TRUE(duties_.full(true, period).outcome.is_ok);
  EXPECT_TRUE(duties_.counters(period).status.ok());
  EXPECT_EQ(4, looks());
}

TEST_F(LightRoundsTest, ALossSeenBeforeCountersThatCannotBeWrittenAsksForAFullSweep) {
  const absl::Duration period = absl::Seconds(1);
  port_.SetCounters(CounterSweep());
  ASSERT_TRUE(ReadAll());
  clock_.Advance(period);
  EXPECT_FALSE(duties_.counters(period).needs_full);
  store_.Refuse<PutInventory>(absl::UnavailableError("disk full"));
  LightSweepResult light;
  light.has_changed = true;
  light.links = {{LeafGuid(0), PortNum(1), false}};
  port_.SetLight(light);
  clock_.Advance(period);
  const Sweeper::OtherSweep seen = duties_.counters(period);
  EXPECT_TRUE(seen.status.ok()) << seen.status;
  EXPECT_TRUE(seen.needs_full);
}

TEST_F(LightRoundsTest, WhatAFullSweepHasReadIsNoFlap) {
  ASSERT_TRUE(ReadAll());
  for (int i = 0; i < FlapFilter::kFlaps - 1; ++i) {
    EXPECT_TRUE(AsksForFull({{LeafGuid(0), PortNum(1), i % 2 == 1}})) << i;
    EXPECT_FALSE(AsksForFull({})) << i;  // it stays as it was read
  }
}

}  // namespace
}  // namespace coppice::manager_light_sweep_test
