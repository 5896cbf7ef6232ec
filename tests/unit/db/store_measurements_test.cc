// Counters, load and history: what the store keeps of them, what it drops, and in which words it
// refuses; and a long random run beside a naive model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/sqlite_tables.h"
#include "tests/support/tier.h"
#include "tests/unit/db/store_records.h"

namespace coppice::store_measurements_test {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using enum HistoryResolution;

class StoreMeasurementsTest : public StoreTest {};

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

TEST_F(StoreMeasurementsTest, CountersAreKeptExactlyAndReplaced) {
  Store& store = *store_;
  PortCounterRecord huge = Counted(2, 255, 0xfffffffffffffff0 - 16);
  ASSERT_APPLIED(store.Apply(PutCounters{{Counted(1, 2), Counted(1, 1), huge}, {}, {}, {}}));
  EXPECT_THAT(*store.Counters(Switch(1)), ElementsAre(Counted(1, 1), Counted(1, 2)));
  EXPECT_THAT(*store.Counters(Switch(2)), ElementsAre(huge));
  EXPECT_THAT(*store.Counters(Switch(3)), IsEmpty());
  ASSERT_APPLIED(store.Apply(PutCounters{{Counted(1, 2, 5000)}, {}, {}, {}}));
  EXPECT_THAT(*store.Counters(Switch(1)), ElementsAre(Counted(1, 1), Counted(1, 2, 5000)));
}

TEST_F(StoreMeasurementsTest, LoadOfBothDirectionsSurvives) {
  ASSERT_APPLIED(store_->Apply(OneLink()));
  const int64_t link = (*store_->LinkIds(OneLink().links))[0];
  const LinkLoadRecord ab{link, false, 0.25, 0.75, At(3), At(4)};
  LinkLoadRecord ba{link, true, 0, 1, At(2), At(4)};
  ASSERT_APPLIED(store_->Apply(PutCounters{{}, {ba, ab}, {}, {}}));
  Load();
  EXPECT_THAT(store_->LoadMeasurements()->loads, ElementsAre(ab, ba));
  ba.average = 0.5;
  ASSERT_APPLIED(store_->Apply(PutCounters{{}, {ba}, {}, {}}));
  EXPECT_THAT(store_->LoadMeasurements()->loads, ElementsAre(ab, ba));
}

TEST_F(StoreMeasurementsTest, SlotsTellNothingMovedFromNothingKnown) {
  Store& store = *store_;
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

TEST_F(StoreMeasurementsTest, LabelsMayRepeatAndFall) {
  Store& store = *store_;
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

TEST_F(StoreMeasurementsTest, ReadingAfterMissingOnesBeginsWhereTheLastEnded) {
  PutCounters put{{Counted(1, 1)}, {}, {{kReading, 1, {Row(1, 1, 60, 30)}}}, {Slot(1, 100)}};
  ASSERT_APPLIED(store_->Apply(put));
  const auto points = *store_->History(Of(1, 1));
  ASSERT_THAT(points, SizeIs(1));
  EXPECT_EQ(points[0].start, At(80));
  EXPECT_EQ(points[0].length, absl::Seconds(30));
}

TEST_F(StoreMeasurementsTest, RefusalsWriteNothing) {
  Store& store = *store_;
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

TEST_F(StoreMeasurementsTest, PruningKeepsAnHourOfReadings) {
  Store& store = *store_;
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

TEST_F(StoreMeasurementsTest, TheNewestSlotStaysHoweverLong) {
  Store& store = *store_;
  ASSERT_APPLIED(store.Apply(
      PutCounters{{Counted(1, 1)},
                  {},
                  {},
                  {Slot(1, 0, kReading, absl::Hours(5)), Slot(2, 9, kReading, absl::Hours(5))}}));
  ASSERT_APPLIED(store.Apply(PruneHistory{}));
  EXPECT_THAT(*store.History(Of(1, 1)), ElementsAre(HistoryPoint{At(9), absl::Hours(5)}));
}

TEST_F(StoreMeasurementsTest, OldEventsGoInSteps) {
  Store& store = *store_;
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

TEST_F(StoreMeasurementsTest, StatisticsCountWhatWasWritten) {
  Store& store = *store_;
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
  EXPECT_GT(statistics.database_bytes, 0u);
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

// Naive on purpose: lists that are searched from one end to the other, and rows that never go, as
// a row without its slot tells nothing.
struct Model {
  std::map<std::pair<Guid, uint8_t>, PortCounterRecord> ports;
  std::map<std::pair<int64_t, bool>, LinkLoadRecord> loads;
  std::vector<HistorySlot> slots;  // oldest first, of all resolutions
  std::map<std::tuple<HistoryResolution, int64_t, Guid, uint8_t>, HistoryRow> rows;
  std::vector<EventRecord> events;
  int64_t last_event = 0;

  int64_t Closed(HistoryResolution resolution) const {
    int64_t last = 0;
    for (const HistorySlot& slot : slots) {
      if (slot.resolution == resolution) last = slot.slot;
    }
    return last;
  }

  absl::Status CheckOpen(HistoryResolution resolution, int64_t slot) const {
    const int64_t closed = Closed(resolution);
    if (slot > closed) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat(
        "history slot ", slot, " of resolution ", static_cast<int>(resolution),
        " may be closed already, as ", closed, " is: go on from the highest that was ever used"));
  }

  // There is one link, and its id is 1.
  absl::Status Check(const PutCounters& put) const {
    RETURN_IF_ERROR(CheckShape(put));
    for (const LinkLoadRecord& load : put.loads) {
      if (load.link != 1) {
        return absl::NotFoundError(
            absl::StrCat("link ", load.link, " is in no inventory: take ids that LinkIds gave"));
      }
    }
    for (const HistoryPart& part : put.history) {
      for (const HistoryRow& row : part.rows) {
        const bool is_added = std::any_of(
            put.counters.begin(), put.counters.end(),
            [&](const auto& port) { return port.node == row.node && port.port == row.port; });
        if (!is_added && !ports.contains({row.node, row.port})) {
          return absl::NotFoundError(
              absl::StrCat(PortName(row.node, row.port),
                           " was never counted: put its counters with its history"));
        }
      }
      RETURN_IF_ERROR(CheckOpen(part.resolution, part.slot));
    }
    for (const HistorySlot& slot : put.closed) {
      RETURN_IF_ERROR(CheckOpen(slot.resolution, slot.slot));
    }
    return absl::OkStatus();
  }

  absl::Status Do(const PutCounters& put) {
    RETURN_IF_ERROR(Check(put));
    for (const PortCounterRecord& port : put.counters) ports[{port.node, port.port}] = port;
    for (const LinkLoadRecord& load : put.loads) loads[{load.link, load.from_b}] = load;
    for (const HistoryPart& part : put.history) {
      for (const HistoryRow& row : part.rows) {
        rows[{part.resolution, part.slot, row.node, row.port}] = row;
      }
    }
    slots.insert(slots.end(), put.closed.begin(), put.closed.end());
    return absl::OkStatus();
  }

  absl::Status Do(const AppendEvents& append) {
    for (EventRecord event : append.events) {
      event.id = ++last_event;
      events.push_back(std::move(event));
    }
    return absl::OkStatus();
  }

  absl::Status Do(const PruneHistory&) {
    std::vector<HistorySlot> kept;
    std::map<HistoryResolution, HistoryLimit> sum;
    for (auto slot = slots.rbegin(); slot != slots.rend(); ++slot) {
      const HistoryLimit limit = LimitOf(slot->resolution);
      HistoryLimit& newer = sum[slot->resolution];
      if (newer.slots < limit.slots && newer.length < limit.length) kept.push_back(*slot);
      newer.slots += 1;
      newer.length += slot->length;
    }
    slots.assign(kept.rbegin(), kept.rend());
    return absl::OkStatus();
  }

  absl::Status Do(const PruneEvents& prune) {
    for (uint32_t i = 0; i < prune.rows && !events.empty(); ++i) {
      const bool is_kept = events.front().id > last_event - prune.keep;
      if (is_kept && events.front().time >= prune.before) break;
      events.erase(events.begin());
    }
    return absl::OkStatus();
  }

  std::vector<PortCounterRecord> Counters(Guid node) const {
    std::vector<PortCounterRecord> found;
    for (const auto& [key, port] : ports) {
      if (key.first == node) found.push_back(port);
    }
    return found;
  }

  std::vector<LinkLoadRecord> Loads() const {
    std::vector<LinkLoadRecord> found;
    for (const auto& [key, load] : loads) found.push_back(load);
    return found;
  }

  std::vector<HistoryPoint> History(const HistoryQuery& query) const {
    std::map<absl::Time, HistoryPoint> by_label;
    for (const HistorySlot& slot : slots) {
      if (slot.resolution != query.resolution || !ports.contains({query.node, query.port}))
        continue;
      if (slot.start < query.start || slot.start >= query.end) continue;
      const auto row = rows.find({slot.resolution, slot.slot, query.node, query.port});
      const HistoryRow nothing{query.node, query.port, slot.length};
      const HistoryRow& moved = row == rows.end() ? nothing : row->second;
      if (row != rows.end() && moved.length == absl::ZeroDuration()) continue;  // not measured
      // A reading that tells of more than its slot tells of the time before it.
      const bool is_longer = slot.resolution == kReading && moved.length > slot.length;
      const absl::Time label = is_longer ? slot.start + slot.length - moved.length : slot.start;
      HistoryPoint& point = by_label[label];
      point.start = label;
      point.length += moved.length;
      point.sent_bytes += moved.sent_bytes;
      point.received_bytes += moved.received_bytes;
      point.errors += moved.errors;
      point.peak_sent_per_second = std::max(point.peak_sent_per_second, moved.peak_sent_per_second);
      point.peak_received_per_second =
          std::max(point.peak_received_per_second, moved.peak_received_per_second);
    }
    std::vector<HistoryPoint> points;
    for (const auto& [label, point] : by_label) points.push_back(point);
    return points;
  }

  std::vector<EventRecord> Events(const EventFilter& filter) const {
    std::vector<EventRecord> found;
    for (const EventRecord& event : events) {
      if (event.id <= filter.after_id || !Matches(filter, event)) continue;
      if (found.size() < filter.limit) found.push_back(event);
    }
    return found;
  }

  EventRange KeptEvents() const {
    return {events.empty() ? last_event + 1 : events.front().id, last_event};
  }
};

// Counters, loads and a slot of the history, which is closed or not.
PutCounters RandomPut(std::mt19937_64& random, HistoryResolution resolution, int64_t slot) {
  const auto below = [&](uint64_t n) { return random() % n; };
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
  if (below(2) == 1) {
    const absl::Duration length =
        below(3) * (resolution == kReading ? absl::Minutes(1) : absl::Hours(3));
    put.closed.push_back(Slot(slot, static_cast<int64_t>(below(500)), resolution, length));
  }
  return put;
}

void ExpectSameMeasurements(Store& store, const Model& model, HistoryResolution resolution,
                            std::mt19937_64& random) {
  const auto below = [&](uint64_t n) { return random() % n; };
  const Guid node = Switch(below(5));
  ASSERT_EQ(*store.Counters(node), model.Counters(node));
  HistoryQuery query{node, static_cast<uint8_t>(below(3)), At(static_cast<int64_t>(below(100))),
                     At(static_cast<int64_t>(below(600))), resolution};
  const auto points = *store.History(query), expected = model.History(query);
  ASSERT_NO_FATAL_FAILURE(ExpectAlike(points, expected));
  ASSERT_EQ(store.LoadMeasurements()->loads, model.Loads());
}

// `list`: what is listed in pages, between which events are added in its time and beyond.
void ExpectSameEvents(Store& store, const Model& model, EventFilter& list,
                      std::mt19937_64& random) {
  const auto below = [&](uint64_t n) { return random() % n; };
  const EventFilter filter = RandomFilter(random);
  ASSERT_EQ(*store.Events(filter), model.Events(filter));
  if (below(8) == 0) {
    list = {.limit = 5};
    if (below(2) == 0) list.start = At(static_cast<int64_t>(below(500)));
    if (below(4) != 0) list.end = At(static_cast<int64_t>(below(500)));
  }
  const std::vector<EventRecord> page = *store.Events(list);
  ASSERT_EQ(page, model.Events(list));
  if (!page.empty()) list.after_id = page.back().id;
  ASSERT_EQ(*store.KeptEvents(), model.KeptEvents());
}

// The same random measurements and events, prunings and questions to the store and to the model.
TEST_F(StoreMeasurementsTest, AgreesWithTheModel) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](uint64_t n) { return random() % n; };
  Store& store = *store_;
  Model model;
  ASSERT_APPLIED(store.Apply(OneLink()));
  std::array<int64_t, 3> next = {1, 1, 1};
  const int rounds = FullTier() ? 20'000 : 1'500;
  EventFilter list{.limit = 5};
  for (int round = 0; round < rounds; ++round) {
    const auto resolution = static_cast<HistoryResolution>(1 + below(3));
    int64_t& slot = next[static_cast<size_t>(resolution) - 1];
    const PutCounters put = RandomPut(random, resolution, slot);
    const AppendEvents append = RandomEvents(random);
    const PruneHistory prune{static_cast<uint32_t>(below(6))};
    const PruneEvents prune_events{static_cast<int64_t>(200 + below(200)), At(50),
                                   static_cast<uint32_t>(below(6))};
    const absl::Status done = store.Apply(put);
    ASSERT_EQ(done, model.Do(put));
    if (done.ok() && !put.closed.empty()) ++slot;
    ASSERT_EQ(store.Apply(append), model.Do(append));
    ASSERT_EQ(store.Apply(prune), model.Do(prune));
    ASSERT_EQ(store.Apply(prune_events), model.Do(prune_events));
    ASSERT_NO_FATAL_FAILURE(ExpectSameMeasurements(store, model, resolution, random));
    ASSERT_NO_FATAL_FAILURE(ExpectSameEvents(store, model, list, random));
  }
}

}  // namespace
}  // namespace coppice::store_measurements_test
