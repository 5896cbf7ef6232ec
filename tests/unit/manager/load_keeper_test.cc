// Counter sweeps on a small fat tree: what plans, people and the store see of them.
#include "daemon/manager/load_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "daemon/manager/inventory.h"
#include "tests/unit/manager/manager_fixture.h"

namespace coppice::load_keeper_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kCapacity = 200e9 / 8;  // of a link, bytes a second

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(1'700'000'000 + seconds); }

// A store, a published fabric and ports whose counters the test moves.
class LoadKeeperTest : public testing::Test {
 protected:
  LoadKeeperTest() { Publish(SmallFabric()->WithVersion(1)); }

  void Publish(std::shared_ptr<const Fabric> fabric) {
    EXPECT_TRUE(store_.Apply(InventoryOf(*fabric, At(0))).ok());
    auto view = std::make_shared<FabricView>();
    view->snapshot = *MakeSnapshot(fabric, nullptr);
    view->link_ids =
        std::make_shared<const std::vector<int64_t>>(*store_.LinkIds(LinksOf(*fabric)));
    auto snapshot = std::make_shared<Snapshot>(*view->snapshot);
    snapshot->load = keeper_.LoadOf(fabric, *view->link_ids);
    view->snapshot = snapshot;
    std::lock_guard lock(tables_.mu);
    tables_.view = view;
    tables_.load.Rebase(*view->snapshot);
  }
  std::shared_ptr<const FabricView> view() {
    std::lock_guard lock(tables_.mu);
    return tables_.view;
  }
  const Fabric& fabric() { return *view()->snapshot->fabric; }

  // All cabled switch ports as they count now, `second` after the start; without those of `silent`.
  CounterSweep Sweep(int64_t second, Guid silent = Guid(0)) {
    CounterSweep sweep;
    const Fabric& f = fabric();
    for (uint32_t s = 0; s < f.switch_count(); ++s) {
      const SwitchInfo& info = f.switch_info(SwitchIndex(s));
      for (uint8_t port = 1; port <= info.port_count && info.guid != silent; ++port) {
        if (f.channel_at(SwitchIndex(s), PortNum(port)) == kNoChannel) continue;
        CounterReading reading{info.guid, PortNum(port), counts_[{info.guid, port}], true,
                               absl::Seconds(1000 + second)};
        sweep.readings.push_back(reading);
      }
    }
    return sweep;
  }
  absl::Status Take(const CounterSweep& sweep, int64_t second) {
    return keeper_.TakeReadings(sweep, view(), At(second), events_);
  }
  void Read(int64_t second, Guid silent = Guid(0)) {
    const absl::Status status = Take(Sweep(second, silent), second);
    ASSERT_TRUE(status.ok()) << status;
  }
  void Send(Guid node, uint8_t port, double share, double seconds) {
    counts_[{node, port}].sent_bytes += static_cast<uint64_t>(share * seconds * kCapacity);
  }
  float Load(Guid node, uint8_t port) {
    const auto v = view();
    const Fabric& f = *v->snapshot->fabric;
    return v->snapshot->utilisation(f.channel_at(*f.FindSwitch(node), PortNum(port)));
  }

  ScratchStore store_;
  Tables tables_;
  LoadKeeper keeper_{&store_, &tables_, LoadOptions()};
  std::map<std::pair<Guid, uint8_t>, PortCounters> counts_;
  std::vector<EventRecord> events_;
};

TEST_F(LoadKeeperTest, LoadIsPublishedUnderTheSameVersion) {
  const auto before = view();
  Read(0);
  Send(LeafGuid(0), 1, 0.5, 10);
  Read(10);
  EXPECT_NEAR(Load(LeafGuid(0), 1), 0.5, 1e-6);
  EXPECT_EQ(Load(LeafGuid(0), 2), 0);
  EXPECT_EQ(view()->snapshot->fabric, before->snapshot->fabric);
  EXPECT_NE(view()->snapshot, before->snapshot);
  // The tables' load is what plans see.
  std::lock_guard lock(tables_.mu);
  EXPECT_NEAR(tables_.load.Current()->greatest(), 0.5, 1e-6);
}

TEST_F(LoadKeeperTest, HostLinksGetTheirLoadFromTheSwitch) {
  Read(0);
  counts_[{LeafGuid(0), 3}].received_bytes += static_cast<uint64_t>(0.25 * kCapacity * 10);
  Read(10);
  const Fabric& f = fabric();
  const ChannelIndex down = f.channel_at(*f.FindSwitch(LeafGuid(0)), PortNum(3));
  EXPECT_NEAR(view()->snapshot->utilisation(Fabric::Reverse(down)), 0.25, 1e-6);
  EXPECT_EQ(view()->snapshot->utilisation(down), 0);
}

TEST_F(LoadKeeperTest, ReceiverSpeaksForASilentSender) {
  Read(0);
  counts_[{SpineGuid(0), 1}].received_bytes += static_cast<uint64_t>(0.75 * kCapacity * 10);
  Read(10, LeafGuid(0));
  EXPECT_NEAR(Load(LeafGuid(0), 1), 0.75, 1e-6);
}

TEST_F(LoadKeeperTest, LoadSurvivesASweepUnlessTheLinkWent) {
  Read(0);
  Send(LeafGuid(0), 1, 0.5, 10);
  Send(LeafGuid(0), 2, 0.25, 10);
  Read(10);
  Publish(SmallFabric({.missing_cables = {{0, 1}}})->WithVersion(2));
  EXPECT_NEAR(Load(LeafGuid(0), 1), 0.5, 1e-6);
  Read(20);
  Publish(SmallFabric()->WithVersion(3));
  EXPECT_GT(Load(LeafGuid(0), 1), 0.1);
  EXPECT_EQ(Load(LeafGuid(0), 2), 0);
}

TEST_F(LoadKeeperTest, ViewOfAnotherVersionIsLeftAlone) {
  Read(0);
  const auto old = view();
  Send(LeafGuid(0), 1, 0.5, 10);
  const CounterSweep sweep = Sweep(10);
  Publish(SmallFabric()->WithVersion(2));
  const auto newer = view();
  ASSERT_TRUE(keeper_.TakeReadings(sweep, old, At(10), events_).ok());
  EXPECT_EQ(view(), newer);
}

TEST_F(LoadKeeperTest, WallClockThatStepsChangesNoRate) {
  Read(0);
  for (const int64_t wall : {-1'000'000, 7, 40'000'000}) {
    static int64_t second = 0;
    second += 10;
    Send(LeafGuid(0), 1, 0.5, 10);
    ASSERT_TRUE(Take(Sweep(second), wall).ok());
    EXPECT_NEAR(Load(LeafGuid(0), 1), 0.5, 1e-6) << wall;
  }
}

TEST_F(LoadKeeperTest, HistoryHasRowsOnlyWhereSomethingMoved) {
  Read(0);
  Send(LeafGuid(0), 1, 0.5, 10);
  Read(10);
  Read(20, LeafGuid(1));
  const auto of = [&](Guid node, uint8_t port, HistoryResolution resolution) {
    return *store_.History({node, port, absl::InfinitePast(), absl::InfiniteFuture(), resolution});
  };
  const auto busy = of(LeafGuid(0), 1, HistoryResolution::kReading);
  ASSERT_THAT(busy, SizeIs(2));
  EXPECT_EQ(busy[0].start, At(0));
  EXPECT_EQ(busy[0].length, absl::Seconds(10));
  EXPECT_EQ(busy[0].sent_bytes, static_cast<uint64_t>(5 * kCapacity));
  EXPECT_EQ(busy[1].sent_bytes, 0u);
  EXPECT_THAT(of(LeafGuid(2), 1, HistoryResolution::kReading), SizeIs(2));
  EXPECT_THAT(of(LeafGuid(1), 1, HistoryResolution::kReading), SizeIs(1));  // one was missed
  EXPECT_THAT(of(LeafGuid(0), 1, HistoryResolution::kMinute), IsEmpty());
  ASSERT_TRUE(keeper_.Flush().ok());
  const auto minute = of(LeafGuid(0), 1, HistoryResolution::kMinute);
  ASSERT_THAT(minute, SizeIs(1));
  EXPECT_EQ(minute[0].length, absl::Seconds(20));
  EXPECT_EQ(minute[0].peak_sent_per_second, static_cast<uint64_t>(0.5 * kCapacity));
  EXPECT_THAT(of(LeafGuid(0), 1, HistoryResolution::kHour), SizeIs(1));
}

TEST_F(LoadKeeperTest, RestartTakesUpWhatIsNotOld) {
  Read(0);
  Send(LeafGuid(0), 1, 0.5, 10);
  Read(10);
  const auto published = view();
  for (const auto& [age, share] : std::map<int64_t, double>{{60, 0.5}, {400, 0}}) {
    LoadKeeper next(&store_, &tables_, LoadOptions());
    ASSERT_TRUE(next.Restore(At(10 + age)).ok());
    const auto load = next.LoadOf(published->snapshot->fabric, *published->link_ids);
    EXPECT_NEAR(load->greatest(), share, 1e-6) << age;
    // History goes on in slots of its own.
    std::vector<EventRecord> events;
    for (const int64_t second : {10 + age, 20 + age}) {
      ASSERT_TRUE(next.TakeReadings(Sweep(second), published, At(second), events).ok());
    }
  }
}

TEST_F(LoadKeeperTest, SilenceIsNoLoad) {
  Read(0);
  Send(LeafGuid(0), 1, 0.5, 10);
  Read(10);
  keeper_.ForgetIfSilent(absl::Seconds(5));
  keeper_.ForgetIfSilent(absl::Seconds(5) + kLoadLife);
  EXPECT_NEAR(Load(LeafGuid(0), 1), 0.5, 1e-6);
  keeper_.ForgetIfSilent(absl::Seconds(6) + kLoadLife);
  EXPECT_EQ(Load(LeafGuid(0), 1), 0);
  EXPECT_TRUE(keeper_.LoadOf(view()->snapshot->fabric, *view()->link_ids)->empty());
  Send(LeafGuid(0), 1, 0.5, 10);
  Read(20);
  EXPECT_NEAR(Load(LeafGuid(0), 1), 0.5, 1e-6);
}

TEST_F(LoadKeeperTest, SilenceIsNoLoadForPeopleToo) {
  Read(0);
  Send(LeafGuid(0), 1, 0.5, 10);
  Read(10);
  const ChannelIndex c = fabric().channel_at(*fabric().FindSwitch(LeafGuid(0)), PortNum(1));
  keeper_.ForgetIfSilent(absl::Seconds(5));
  keeper_.ForgetIfSilent(absl::Seconds(6) + kLoadLife);
  const LinkMeasure measure = keeper_.Measure(fabric(), Fabric::link_of(c));
  EXPECT_EQ(measure.ab.average, 0);
  EXPECT_NEAR(measure.ab.peak, 0.5, 1e-6);
}

TEST_F(LoadKeeperTest, LoadPublishedLateIsTakenBack) {
  Read(0);
  Send(LeafGuid(0), 1, 0.5, 10);
  Read(10);
  auto late = std::make_shared<FabricView>(*view());
  keeper_.ForgetIfSilent(absl::Seconds(5));
  keeper_.ForgetIfSilent(absl::Seconds(6) + kLoadLife);
  {
    std::lock_guard lock(tables_.mu);
    tables_.view = late;
    tables_.load.Rebase(*late->snapshot);
  }
  EXPECT_NEAR(Load(LeafGuid(0), 1), 0.5, 1e-6);
  keeper_.ClearIfSilent();
  EXPECT_EQ(Load(LeafGuid(0), 1), 0);
}

TEST_F(LoadKeeperTest, RestoredLoadIsShownBeforeTheFirstReadings) {
  Read(0);
  Send(LeafGuid(0), 1, 0.5, 10);
  Read(10);
  const auto published = view();
  const ChannelIndex c = fabric().channel_at(*fabric().FindSwitch(LeafGuid(0)), PortNum(1));
  for (const auto& [age, share] : std::map<int64_t, double>{{60, 0.5}, {400, 0}}) {
    LoadKeeper next(&store_, &tables_, LoadOptions());
    ASSERT_TRUE(next.Restore(At(10 + age)).ok());
    next.LoadOf(published->snapshot->fabric, *published->link_ids);
    const LinkMeasure measure = next.Measure(fabric(), Fabric::link_of(c));
    EXPECT_NEAR(measure.ab.average, share, 1e-6) << age;
    EXPECT_NEAR(measure.ab.peak, 0.5, 1e-6);
    EXPECT_EQ(measure.ab.read, At(10));
  }
}

TEST_F(LoadKeeperTest, RowsOfIdleLinksAreLeftAlone) {
  Read(0);
  Send(LeafGuid(0), 1, 0.5, 10);
  Read(10);
  for (int64_t second = 20; second <= 3000; second += 10) Read(second);
  const auto written = store_.LoadMeasurements()->loads;
  for (int64_t second = 3010; second <= 3600; second += 10) Read(second);
  const auto later = store_.LoadMeasurements()->loads;
  ASSERT_EQ(later.size(), written.size());
  for (size_t i = 0; i < later.size(); ++i) EXPECT_EQ(later[i].updated, written[i].updated);
}

TEST_F(LoadKeeperTest, CountersOfASwitch) {
  EXPECT_THAT(keeper_.Counters(LeafGuid(0)), IsEmpty());
  Read(0);
  Send(LeafGuid(0), 1, 0.5, 10);
  Read(10);
  const auto ports = keeper_.Counters(LeafGuid(0));
  ASSERT_THAT(ports, SizeIs(6));
  EXPECT_EQ(ports[0].port, 1);
  EXPECT_NEAR(ports[0].sent_bytes_per_second, 0.5 * kCapacity, 1);
  EXPECT_EQ(ports[0].read, At(10));
  const auto stored = *store_.Counters(LeafGuid(0));
  ASSERT_THAT(stored, SizeIs(6));
  EXPECT_EQ(stored[0], ports[0]);
  EXPECT_EQ(stored[1].read, At(0));  // rows of ports that stand still are not written again
  EXPECT_THAT(keeper_.Counters(Guid(0x99)), IsEmpty());
}

TEST_F(LoadKeeperTest, RisingErrorsAreToldOnce) {
  Read(0);
  counts_[{LeafGuid(0), 1}].symbol_errors += 100;
  counts_[{LeafGuid(0), 1}].receive_errors += 7;
  Read(10);
  ASSERT_THAT(events_, SizeIs(1));
  EXPECT_EQ(events_[0].kind, "link.errors");
  EXPECT_EQ(events_[0].severity, "warning");
  EXPECT_EQ(events_[0].object, "link:0000000000000100/1-0000000000000200/1");
  EXPECT_THAT(events_[0].message, HasSubstr("symbol_errors +100, receive_errors +7 in 10s"));
  counts_[{LeafGuid(0), 1}].symbol_errors += 100;
  Read(20);
  EXPECT_THAT(events_, SizeIs(1));
  Read(400);
  ASSERT_THAT(events_, SizeIs(2));
  EXPECT_EQ(events_[1].severity, "info");
  EXPECT_THAT(events_[1].message, HasSubstr("rise no more; symbol_errors +100"));
}

TEST_F(LoadKeeperTest, MeasureTellsBothDirections) {
  Read(0);
  Send(LeafGuid(0), 1, 0.5, 10);
  Send(SpineGuid(0), 1, 0.125, 10);
  Read(10);
  const ChannelIndex c = fabric().channel_at(*fabric().FindSwitch(LeafGuid(0)), PortNum(1));
  const LinkMeasure measure = keeper_.Measure(fabric(), Fabric::link_of(c));
  EXPECT_NEAR(measure.ab.average, 0.5, 1e-6);
  EXPECT_NEAR(measure.ba.average, 0.125, 1e-6);
  EXPECT_NEAR(measure.ab.peak, 0.5, 1e-6);
  EXPECT_EQ(measure.ab.peaked, At(10));
}

TEST_F(LoadKeeperTest, FailedWriteIsMadeUpByTheNext) {
  UnrulyStore unruly(&store_);
  LoadKeeper keeper(&unruly, &tables_, LoadOptions());
  unruly.Refuse<PutCounters>(absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(keeper.TakeReadings(Sweep(0), view(), At(0), events_).code(),
            absl::StatusCode::kResourceExhausted);
  Send(LeafGuid(0), 1, 0.5, 10);
  EXPECT_FALSE(keeper.TakeReadings(Sweep(10), view(), At(10), events_).ok());
  EXPECT_NEAR(Load(LeafGuid(0), 1), 0.5, 1e-6);  // the load does not wait for the disk
  EXPECT_THAT(*store_.Counters(LeafGuid(0)), IsEmpty());
  unruly.Obey();
  ASSERT_TRUE(keeper.TakeReadings(Sweep(20), view(), At(20), events_).ok());
  EXPECT_THAT(*store_.Counters(LeafGuid(0)), SizeIs(6));
  EXPECT_THAT(*store_.History({LeafGuid(0), 1}), SizeIs(1));
}

TEST_F(LoadKeeperTest, OptionsMayChange) {
  Read(0);
  Send(LeafGuid(0), 1, 0.5, 10);
  counts_[{LeafGuid(0), 1}].symbol_errors += 100;
  keeper_.Configure({.time_constant = absl::Milliseconds(10), .error_threshold = 1000});
  Read(10);
  EXPECT_THAT(events_, IsEmpty());
  Send(LeafGuid(0), 1, 0.25, 10);
  Read(20);
  EXPECT_NEAR(Load(LeafGuid(0), 1), 0.25, 1e-6);
}

TEST_F(LoadKeeperTest, StoppedCounterKeepsItsLoadAndIsToldOnce) {
  constexpr uint64_t kStop = 4 * 0xffffffffULL;
  // To a host: nobody reads the other end.
  const auto read = [&](int64_t second, uint64_t sent) {
    CounterSweep sweep = Sweep(second);
    for (CounterReading& reading : sweep.readings) {
      reading.is_extended = false;
      if (reading.node == LeafGuid(0) && reading.port == PortNum(3)) {
        reading.values.sent_bytes = sent;
      }
    }
    ASSERT_TRUE(Take(sweep, second).ok());
  };
  const auto measure = [&] {
    const ChannelIndex c = fabric().channel_at(*fabric().FindSwitch(LeafGuid(0)), PortNum(3));
    const LinkMeasure both = keeper_.Measure(fabric(), Fabric::link_of(c));
    return c.value() % 2 == 0 ? both.ab : both.ba;
  };
  read(0, 0);
  EXPECT_EQ(measure().certainty, Certainty::kUnknown);
  read(10, kStop);
  EXPECT_EQ(measure().certainty, Certainty::kAtLeast);
  const float load = Load(LeafGuid(0), 3);
  EXPECT_GT(load, 0.05);
  for (int64_t second = 20; second <= 3600; second += 10) read(second, kStop);
  EXPECT_EQ(Load(LeafGuid(0), 3), load);
  EXPECT_EQ(measure().certainty, Certainty::kUnknown);
  EXPECT_EQ(measure().read, At(10));
  ASSERT_THAT(events_, SizeIs(1));
  EXPECT_EQ(events_[0].kind, "port.counters");
  EXPECT_EQ(events_[0].object, "port:0000000000000100/3");
  read(3610, 0);
  for (int64_t second = 3620; second <= 3700; second += 10) read(second, 0);
  EXPECT_LT(Load(LeafGuid(0), 3), load);
  EXPECT_EQ(measure().certainty, Certainty::kExact);
}

TEST_F(LoadKeeperTest, PeakOfALinkThatReturnsIsKept) {
  Read(0);
  Send(LeafGuid(0), 2, 0.5, 10);
  Read(10);
  const auto all = view()->link_ids;
  const ChannelIndex c = fabric().channel_at(*fabric().FindSwitch(LeafGuid(0)), PortNum(2));
  const int64_t id = (*all)[Fabric::link_of(c).value()];
  Publish(SmallFabric({.missing_cables = {{0, 1}}})->WithVersion(2));
  Read(20);
  Publish(SmallFabric()->WithVersion(3));
  for (int64_t second = 30; second <= 50; second += 10) {
    Send(LeafGuid(0), 2, 0.25, 10);
    Read(second);
  }
  EXPECT_NEAR(Load(LeafGuid(0), 2), 0.25, 1e-6);
  EXPECT_NEAR(keeper_.Measure(fabric(), Fabric::link_of(c)).ab.peak, 0.5, 1e-6);
  double stored = 0;
  const StoredLoad all_stored = *store_.LoadMeasurements();
  for (const LinkLoadRecord& load : all_stored.loads) {
    if (load.link == id) stored = std::max(stored, load.peak);
  }
  EXPECT_NEAR(stored, 0.5, 1e-6);
}

TEST_F(LoadKeeperTest, MinuteThatCouldNotBeWrittenIsWrittenLater) {
  UnrulyStore unruly(&store_);
  LoadKeeper keeper(&unruly, &tables_, LoadOptions());
  const auto take = [&](int64_t second) {
    Send(LeafGuid(0), 1, 0.5, 10);
    return keeper.TakeReadings(Sweep(second), view(), At(second), events_).ok();
  };
  // 1,700,000,000 is 20 seconds into a minute.
  for (int64_t second = 0; second <= 40; second += 10) ASSERT_TRUE(take(second));
  unruly.Refuse<PutCounters>(absl::ResourceExhaustedError("disk full"));
  EXPECT_FALSE(take(50));
  EXPECT_FALSE(take(60));
  unruly.Obey();
  ASSERT_TRUE(take(70));
  ASSERT_TRUE(take(80));
  const HistoryQuery query{LeafGuid(0), 1, absl::InfinitePast(), absl::InfiniteFuture(),
                           HistoryResolution::kMinute};
  const auto minutes = *store_.History(query);
  ASSERT_THAT(minutes, SizeIs(1));
  EXPECT_EQ(minutes[0].length, absl::Seconds(40));
  EXPECT_EQ(minutes[0].sent_bytes, static_cast<uint64_t>(20 * kCapacity));
}

}  // namespace
}  // namespace coppice::load_keeper_test
