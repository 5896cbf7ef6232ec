// Counters, load and history: what every store keeps of them, what it drops, and in which words it
// refuses; and long random runs in which both stores must agree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/tier.h"
#include "tests/unit/db/store_records.h"

namespace coppice::store_measurements_test {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using enum HistoryResolution;

template <class Setup>
using StoreMeasurementsTest = StoreTest<Setup>;
TYPED_TEST_SUITE(StoreMeasurementsTest, StoreSetups);

PortCounterRecord Counted(uint64_t node, uint8_t port, uint64_t bytes = 1000) {
  PortCounterRecord record;
  record.node = Switch(node);
  record.port = port;
  uint64_t next = bytes;
  for (uint64_t* count :
       {&record.sent_bytes, &record.received_bytes, &record.sent_packets, &record.received_packets,
        &record.sent_wait_ticks, &record.symbol_errors, &record.link_recoveries,
        &record.link_downed, &record.receive_errors, &record.remote_physical_errors,
        &record.relay_errors, &record.send_discards, &record.send_constraint_errors,
        &record.receive_constraint_errors, &record.integrity_errors, &record.buffer_overruns,
        &record.vl15_dropped}) {
    *count = next++;
  }
  record.is_extended = true;
  record.sent_bytes_per_second = 1.5;
  record.received_bytes_per_second = 2.5;
  record.read = At(7);
  return record;
}

HistoryRow Row(uint64_t node, uint8_t port, uint64_t sent, int seconds = 10) {
  return {Switch(node), port, absl::Seconds(seconds), sent, 2 * sent, sent, 3 * sent, 4};
}

HistorySlot Slot(int64_t slot, int64_t start, HistoryResolution resolution = kReading,
                 absl::Duration length = absl::Seconds(10)) {
  return {resolution, slot, At(start), length};
}

HistoryQuery Of(uint64_t node, uint8_t port, HistoryResolution resolution = kReading) {
  return {Switch(node), port, absl::InfinitePast(), absl::InfiniteFuture(), resolution};
}

PutInventory OneLink() {
  PutInventory put{1, At(1), {}, {}, {}};
  put.nodes.push_back({Switch(1), NodeKind::kSwitch, "leaf", "", 1, 2, 36});
  put.nodes.push_back({Switch(2), NodeKind::kSwitch, "spine", "", 1, 2, 36});
  put.links.push_back({Switch(1), 1, Switch(2), 1, "4xHDR", 200});
  return put;
}

TYPED_TEST(StoreMeasurementsTest, CountersAreKeptExactlyAndReplaced) {
  Store& store = *this->store_;
  PortCounterRecord huge = Counted(2, 255, 0xfffffffffffffff0 - 16);
  ASSERT_APPLIED(store.Apply(PutCounters{{Counted(1, 2), Counted(1, 1), huge}, {}, {}, {}}));
  EXPECT_THAT(*store.Counters(Switch(1)), ElementsAre(Counted(1, 1), Counted(1, 2)));
  EXPECT_THAT(*store.Counters(Switch(2)), ElementsAre(huge));
  EXPECT_THAT(*store.Counters(Switch(3)), IsEmpty());
  ASSERT_APPLIED(store.Apply(PutCounters{{Counted(1, 2, 5000)}, {}, {}, {}}));
  EXPECT_THAT(*store.Counters(Switch(1)), ElementsAre(Counted(1, 1), Counted(1, 2, 5000)));
}

TYPED_TEST(StoreMeasurementsTest, LoadOfBothDirectionsSurvives) {
  ASSERT_APPLIED(this->store_->Apply(OneLink()));
  const int64_t link = (*this->store_->LinkIds(OneLink().links))[0];
  const LinkLoadRecord ab{link, false, 0.25, 0.75, At(3), At(4)};
  LinkLoadRecord ba{link, true, 0, 1, At(2), At(4)};
  ASSERT_APPLIED(this->store_->Apply(PutCounters{{}, {ba, ab}, {}, {}}));
  this->Load();
  EXPECT_THAT(this->store_->LoadMeasurements()->loads, ElementsAre(ab, ba));
  ba.average = 0.5;
  ASSERT_APPLIED(this->store_->Apply(PutCounters{{}, {ba}, {}, {}}));
  EXPECT_THAT(this->store_->LoadMeasurements()->loads, ElementsAre(ab, ba));
}

TYPED_TEST(StoreMeasurementsTest, SlotsTellNothingMovedFromNothingKnown) {
  Store& store = *this->store_;
  const PutCounters first{{Counted(1, 1), Counted(1, 2)},
                          {},
                          {{kReading, 1, {Row(1, 1, 100)}}},
                          {Slot(1, 0), Slot(1, 0, kMinute, absl::Minutes(1))}};
  ASSERT_APPLIED(store.Apply(first));
  // Port 2 could not be read in the second slot; the third is not closed.
  ASSERT_APPLIED(store.Apply(PutCounters{
      {}, {}, {{kReading, 2, {Row(1, 2, 0, 0)}}, {kReading, 3, {Row(1, 1, 7)}}}, {Slot(2, 10)}}));
  const HistoryPoint moved{At(0), absl::Seconds(10), 100, 200, 100, 300, 4};
  EXPECT_THAT(*store.History(Of(1, 1)),
              ElementsAre(moved, HistoryPoint{At(10), absl::Seconds(10)}));
  EXPECT_THAT(*store.History(Of(1, 2)), ElementsAre(HistoryPoint{At(0), absl::Seconds(10)}));
  EXPECT_THAT(*store.History(Of(1, 2, kMinute)),
              ElementsAre(HistoryPoint{At(0), absl::Minutes(1)}));
  EXPECT_THAT(*store.History(Of(1, 3)), IsEmpty());  // never counted
  EXPECT_THAT(store.LoadMeasurements()->last_slot, ElementsAre(3, 1, 0));
}

TYPED_TEST(StoreMeasurementsTest, LabelsMayRepeatAndFall) {
  Store& store = *this->store_;
  PutCounters put{{Counted(1, 1)}, {}, {}, {}};
  put.history = {{kMinute, 1, {Row(1, 1, 60, 20)}},
                 {kMinute, 2, {Row(1, 1, 40, 30)}},
                 {kMinute, 3, {Row(1, 1, 5, 60)}}};
  put.closed = {Slot(1, 60, kMinute), Slot(2, 60, kMinute), Slot(3, 0, kMinute)};
  ASSERT_APPLIED(store.Apply(put));
  EXPECT_THAT(*store.History(Of(1, 1, kMinute)),
              ElementsAre(HistoryPoint{At(0), absl::Seconds(60), 5, 10, 5, 15, 4},
                          HistoryPoint{At(60), absl::Seconds(50), 100, 200, 60, 180, 8}));
  HistoryQuery part = Of(1, 1, kMinute);
  part.start = At(1);
  EXPECT_THAT(*store.History(part), SizeIs(1));
  part.end = At(60);
  EXPECT_THAT(*store.History(part), IsEmpty());
}

TYPED_TEST(StoreMeasurementsTest, ReadingAfterMissingOnesBeginsWhereTheLastEnded) {
  PutCounters put{{Counted(1, 1)}, {}, {{kReading, 1, {Row(1, 1, 60, 30)}}}, {Slot(1, 100)}};
  ASSERT_APPLIED(this->store_->Apply(put));
  const auto points = *this->store_->History(Of(1, 1));
  ASSERT_THAT(points, SizeIs(1));
  EXPECT_EQ(points[0].start, At(80));
  EXPECT_EQ(points[0].length, absl::Seconds(30));
}

TYPED_TEST(StoreMeasurementsTest, RefusalsWriteNothing) {
  Store& store = *this->store_;
  ASSERT_APPLIED(store.Apply(PutCounters{{Counted(1, 1)}, {}, {}, {Slot(5, 0)}}));
  const auto refuse = [&](PutCounters put, StatusCode code, const std::string& words) {
    put.counters.push_back(Counted(9, 9));
    EXPECT_STATUS(store.Apply(put), code, words);
    EXPECT_THAT(*store.Counters(Switch(9)), IsEmpty());
  };
  refuse({{}, {{77, false, 0.5, 0.5, At(1), At(1)}}, {}, {}}, StatusCode::kNotFound, "link 77");
  refuse({{}, {{0, false, 0.5, 0.5, At(1), At(1)}}, {}, {}}, StatusCode::kNotFound, "link 0");
  refuse({{}, {{1, false, -0.5, 0.5, At(1), At(1)}}, {}, {}}, StatusCode::kInvalidArgument,
         "link 1");
  refuse({{}, {}, {{kReading, 6, {Row(8, 8, 1)}}}, {}}, StatusCode::kNotFound,
         "port 0002c90200400008/8");
  refuse({{}, {}, {{kReading, 5, {Row(1, 1, 1)}}}, {}}, StatusCode::kAlreadyExists, "slot 5");
  refuse({{}, {}, {}, {Slot(5, 10)}}, StatusCode::kAlreadyExists, "slot 5");
  refuse({{}, {}, {}, {Slot(6, 10), Slot(6, 10)}}, StatusCode::kAlreadyExists, "slot 6");
  refuse({{}, {}, {}, {Slot(0, 10)}}, StatusCode::kInvalidArgument, "slot 0");
  refuse({{}, {}, {}, {Slot(int64_t{1} << 39, 10)}}, StatusCode::kInvalidArgument, "2^39");
  refuse({{}, {}, {}, {Slot(6, 10, kReading, -absl::Seconds(1))}}, StatusCode::kInvalidArgument,
         "slot 6");
  PortCounterRecord nonsense = Counted(1, 1);
  nonsense.sent_bytes_per_second = std::numeric_limits<double>::quiet_NaN();
  refuse({{nonsense}, {}, {}, {}}, StatusCode::kInvalidArgument, "port 0002c90200400001/1");
  EXPECT_THAT(*store.History(Of(1, 1)), SizeIs(1));
}

TYPED_TEST(StoreMeasurementsTest, PruningKeepsAnHourOfReadings) {
  Store& store = *this->store_;
  for (int64_t slot = 1; slot <= 80; ++slot) {
    ASSERT_APPLIED(store.Apply(PutCounters{{Counted(1, 1)},
                                           {},
                                           {{kReading, slot, {Row(1, 1, 5, 60)}}},
                                           {Slot(slot, 60 * slot, kReading, absl::Minutes(1))}}));
  }
  ASSERT_APPLIED(store.Apply(PruneHistory{7}));
  const auto points = *store.History(Of(1, 1));
  ASSERT_THAT(points, SizeIs(60));
  EXPECT_EQ(points[0].start, At(60 * 21));
  EXPECT_EQ(store.LoadMeasurements()->last_slot[0], 80);
}

TYPED_TEST(StoreMeasurementsTest, TheNewestSlotStaysHoweverLong) {
  Store& store = *this->store_;
  ASSERT_APPLIED(store.Apply(
      PutCounters{{Counted(1, 1)},
                  {},
                  {},
                  {Slot(1, 0, kReading, absl::Hours(5)), Slot(2, 9, kReading, absl::Hours(5))}}));
  ASSERT_APPLIED(store.Apply(PruneHistory{}));
  EXPECT_THAT(*store.History(Of(1, 1)), ElementsAre(HistoryPoint{At(9), absl::Hours(5)}));
}

TYPED_TEST(StoreMeasurementsTest, OldEventsGoInSteps) {
  Store& store = *this->store_;
  AppendEvents append;
  for (int i = 0; i < 100; ++i) append.events.push_back({0, At(i), "info", "k", "o", "m"});
  ASSERT_APPLIED(store.Apply(append));
  ASSERT_APPLIED(store.Apply(PruneEvents{90, absl::InfinitePast(), 4}));
  EXPECT_EQ(*store.KeptEvents(), (EventRange{5, 100}));
  ASSERT_APPLIED(store.Apply(PruneEvents{90, absl::InfinitePast(), 400}));
  EXPECT_EQ(*store.KeptEvents(), (EventRange{11, 100}));
  ASSERT_APPLIED(store.Apply(PruneEvents{90, At(20), 400}));
  EXPECT_EQ(*store.KeptEvents(), (EventRange{21, 100}));
  ASSERT_APPLIED(store.Apply(PruneEvents{0, absl::InfinitePast(), 400}));
  EXPECT_EQ(*store.KeptEvents(), (EventRange{101, 100}));
  EXPECT_STATUS(store.Apply(PruneEvents{-1, absl::InfinitePast(), 4}), StatusCode::kInvalidArgument,
                "kept events");
  ASSERT_APPLIED(store.Apply(AppendEvents{{Event("info", "next")}}));
  EXPECT_EQ(*store.KeptEvents(), (EventRange{101, 101}));
}

TYPED_TEST(StoreMeasurementsTest, StatisticsCountWhatWasWritten) {
  Store& store = *this->store_;
  EXPECT_EQ(store.Statistics().mutations, 0u);
  ASSERT_APPLIED(store.Apply(PutCounters{{Counted(1, 1)}, {}, {}, {}}));
  EXPECT_FALSE(store.Apply(PutJob{Job(0)}).ok());
  const StoreStatistics statistics = store.Statistics();
  EXPECT_EQ(statistics.queued, 0u);
  EXPECT_EQ(statistics.mutations, 2u);
  EXPECT_EQ(statistics.commits, 2u);  // a refusal is committed, too: as nothing
  EXPECT_EQ(statistics.failed_commits, 0u);
  uint64_t all = 0;
  for (const uint64_t bucket : statistics.commit_times) all += bucket;
  EXPECT_EQ(all, 2u);
  EXPECT_GT(statistics.commit_time, absl::ZeroDuration());
  EXPECT_EQ(statistics.database_bytes > 0, TypeParam::kSurvives);
}

constexpr const char* kSeverities[] = {"info", "info", "info", "warning", "error"};

AppendEvents RandomEvents(std::mt19937_64& random) {
  const auto below = [&](uint64_t n) { return random() % n; };
  AppendEvents append;
  const char* const kinds[] = {"link", "link.up", "link.down", "linked", "job.", "job"};
  for (uint64_t i = below(3); i > 0; --i) {
    append.events.push_back({0, At(static_cast<int64_t>(below(500))), kSeverities[below(5)],
                             kinds[below(6)], below(2) == 1 ? "a" : "b", "words"});
  }
  return append;
}

EventFilter RandomFilter(std::mt19937_64& random) {
  const auto below = [&](uint64_t n) { return random() % n; };
  EventFilter filter;
  const char* const prefixes[] = {"", "", "link", "link.", "job", "x"};
  filter.after_id = static_cast<int64_t>(below(2) * below(2000));
  filter.kind_prefix = prefixes[below(6)];
  filter.object = below(3) == 0 ? "a" : "";
  filter.min_severity = below(2) == 0 ? "" : kSeverities[below(5)];
  filter.limit = static_cast<uint32_t>(1 + below(30));
  if (below(2) == 0) filter.start = At(static_cast<int64_t>(below(500)));
  if (below(2) == 0) filter.end = At(static_cast<int64_t>(below(500)));
  return filter;
}

void ExpectAlike(const std::vector<HistoryPoint>& points,
                 const std::vector<HistoryPoint>& expected) {
  ASSERT_EQ(points.size(), expected.size());
  for (size_t i = 0; i < points.size(); ++i) {
    ASSERT_EQ(points[i].sent_bytes, expected[i].sent_bytes);
    ASSERT_EQ(points[i].start, expected[i].start);
    ASSERT_EQ(points[i].length, expected[i].length);
    ASSERT_EQ(points[i].errors, expected[i].errors);
    // A peak that is the mean but for rounding is not stored.
    ASSERT_NEAR(static_cast<double>(points[i].peak_received_per_second),
                static_cast<double>(expected[i].peak_received_per_second),
                2 + 2e-3 * static_cast<double>(expected[i].peak_received_per_second));
  }
}

// The same random measurements and events, prunings and questions to both stores.
TEST(StoreMeasurementsModelTest, StoresAgree) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](uint64_t n) { return random() % n; };
  SqliteSetup sqlite;
  std::unique_ptr<Store> a = sqlite.Open();
  MemoryStore b;
  ASSERT_APPLIED(a->Apply(OneLink()));
  ASSERT_APPLIED(b.Apply(OneLink()));
  std::array<int64_t, 3> next = {1, 1, 1};
  const int rounds = FullTier() ? 20'000 : 1'500;
  EventFilter list{.limit = 5};
  for (int round = 0; round < rounds; ++round) {
    const auto resolution = static_cast<HistoryResolution>(1 + below(3));
    int64_t& slot = next[static_cast<size_t>(resolution) - 1];
    PutCounters put;
    for (uint64_t i = below(4); i > 0; --i) {
      put.counters.push_back(Counted(below(5), static_cast<uint8_t>(below(3)), random()));
    }
    if (below(3) == 0) {
      put.loads.push_back({static_cast<int64_t>(below(3)), below(2) == 1, 0.5,
                           static_cast<double>(below(9)), At(1), At(2)});
    }
    HistoryPart part{resolution, slot - static_cast<int64_t>(below(12) == 0), {}};
    for (uint64_t i = below(4); i > 0; --i) {
      part.rows.push_back(Row(below(5), static_cast<uint8_t>(below(3)), below(1 << 20),
                              static_cast<int>(below(3)) * 30));
    }
    if (!part.rows.empty()) put.history.push_back(part);
    const bool closes = below(2) == 1;
    if (closes) {
      const absl::Duration length =
          below(3) * (resolution == kReading ? absl::Minutes(1) : absl::Hours(3));
      put.closed.push_back(Slot(slot, static_cast<int64_t>(below(500)), resolution, length));
    }
    const AppendEvents append = RandomEvents(random);
    const PruneHistory prune{static_cast<uint32_t>(below(6))};
    const PruneEvents prune_events{static_cast<int64_t>(200 + below(200)), At(50),
                                   static_cast<uint32_t>(below(6))};
    const absl::Status done = a->Apply(put);
    ASSERT_EQ(done, b.Apply(put));
    if (done.ok() && closes) ++slot;
    ASSERT_EQ(a->Apply(append), b.Apply(append));
    ASSERT_EQ(a->Apply(prune), b.Apply(prune));
    ASSERT_EQ(a->Apply(prune_events), b.Apply(prune_events));

    const Guid node = Switch(below(5));
    ASSERT_EQ(*a->Counters(node), *b.Counters(node));
    HistoryQuery query{node, static_cast<uint8_t>(below(3)), At(static_cast<int64_t>(below(100))),
                       At(static_cast<int64_t>(below(600))), resolution};
    const auto points = *a->History(query), expected = *b.History(query);
    ASSERT_NO_FATAL_FAILURE(ExpectAlike(points, expected));
    ASSERT_EQ(a->LoadMeasurements()->loads, b.LoadMeasurements()->loads);
    const EventFilter filter = RandomFilter(random);
    ASSERT_EQ(*a->Events(filter), *b.Events(filter));
    // A list in pages, between which events are added in its time and beyond.
    if (below(8) == 0) {
      list = {.limit = 5};
      if (below(2) == 0) list.start = At(static_cast<int64_t>(below(500)));
      if (below(4) != 0) list.end = At(static_cast<int64_t>(below(500)));
    }
    const std::vector<EventRecord> page = *a->Events(list);
    ASSERT_EQ(page, *b.Events(list));
    if (!page.empty()) list.after_id = page.back().id;
    ASSERT_EQ(*a->KeptEvents(), *b.KeptEvents());
  }
}

}  // namespace
}  // namespace coppice::store_measurements_test
