// That the database of a daemon which measures for ever stays as large as it is, that older ones
// get their new tables, and that an administrator can read these.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "db/sqlite_connection.h"
#include "db/sqlite_tables.h"
#include "tests/support/tier.h"
#include "tests/unit/db/raw_database.h"
#include "tests/unit/db/store_records.h"

namespace coppice::sqlite_growth_test {
namespace {

using enum HistoryResolution;

class SqliteGrowthTest : public testing::Test {
 protected:
  std::unique_ptr<SqliteStore> Open() {
    auto store = SqliteStore::Open(path_);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  std::string Ask(const std::string& sql) { return RawDatabase(path_).Run(sql); }

  StoreDirectory directory_;
  const std::string path_ = directory_.File("coppice.db");
};

PortCounterRecord Counted(uint64_t node, uint8_t port) {
  PortCounterRecord record;
  record.node = Switch(node);
  record.port = port;
  record.read = At(1);
  return record;
}

// One slot of readings, a tenth of an hour long, of ports that all move something.
PutCounters Busy(int64_t slot, uint8_t ports) {
  PutCounters put;
  HistoryPart part{kReading, slot, {}};
  for (uint8_t port = 1; port <= ports; ++port) {
    put.counters.push_back(Counted(1, port));
    part.rows.push_back({Switch(1), port, absl::Minutes(6), 1'000'000'000'000, 2'000'000'000'000,
                         2'777'777'777, 5'555'555'555, 0});
  }
  put.history.push_back(part);
  put.closed.push_back({kReading, slot, At(slot * 360), absl::Minutes(6)});
  return put;
}

TEST_F(SqliteGrowthTest, SizeStaysFlatOnceHistoryIsFull) {
  auto store = Open();
  const int64_t slots = FullTier() ? 4'000 : 400;
  int64_t pages_when_full = 0;
  for (int64_t slot = 1; slot <= slots; ++slot) {
    ASSERT_APPLIED(store->Apply(Busy(slot, 200)));
    ASSERT_APPLIED(store->Apply(PruneHistory{400}));
    AppendEvents append;
    for (int i = 0; i < 20; ++i) append.events.push_back(Event("info", "link.up"));
    ASSERT_APPLIED(store->Apply(append));
    ASSERT_APPLIED(store->Apply(PruneEvents{500, absl::InfinitePast(), 40}));
    if (slot == 100) pages_when_full = std::stoll(Ask("PRAGMA page_count"));
  }
  EXPECT_GT(pages_when_full, 0);
  EXPECT_LE(std::stoll(Ask("PRAGMA page_count")), pages_when_full + 8);
  EXPECT_EQ(Ask("SELECT count(*) FROM reading_history"), "2000\n");
  EXPECT_EQ(Ask("SELECT count(*) FROM history_slot"), "10\n");
  EXPECT_EQ(Ask("SELECT count(*) FROM event"), "500\n");
}

// What README.md states of a row.
TEST_F(SqliteGrowthTest, RowsAreSmall) {
  auto store = Open();
  for (int64_t slot = 1; slot <= 10; ++slot) ASSERT_APPLIED(store->Apply(Busy(slot, 250)));
  const int64_t pages =
      std::stoll(Ask("SELECT count(*) FROM dbstat WHERE name = 'reading_history'"));
  EXPECT_LE(pages * 4096, 2500 * 36);
}

TEST_F(SqliteGrowthTest, EveryOlderSchemaIsMigrated) {
  constexpr size_t kFirstWithDeeds = 11;
  for (size_t version = 1; version < Migrations().size(); ++version) {
    const std::string path = directory_.File("old" + std::to_string(version));
    {
      auto connection = SqliteConnection::Open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                               absl::ZeroDuration());
      ASSERT_TRUE(connection.ok());
      ASSERT_APPLIED(Migrate(**connection, Migrations().first(version)));
      ASSERT_APPLIED((*connection)->Execute(R"sql(
          INSERT INTO node VALUES (1, 'switch', 'leaf', '', 0, 0, 36, 0, 0),
                                  (2, 'switch', 'spine', '', 0, 0, 36, 0, 0);
          INSERT INTO link VALUES (5, 1, 1, 2, 1, '4xHDR', 200.0, 0, 0);
          INSERT INTO link_load VALUES (5, 'a-to-b', 0.5, 0.75, 9, 10);
          INSERT INTO event (id, time_ns, severity, kind, object, message)
            VALUES (3, 4, 'error', 'sweep.failed', 'fabric', 'words'))sql"));
      if (version >= kFirstWithDeeds) {
        // Those of the eleventh schema have no time of the first yet.
        const bool has_first = version > kFirstWithDeeds;
        const std::string insert =
            std::string("INSERT INTO deed (id, time_ns, share, caller, user, origin, method, ") +
            "object, outcome, count" + (has_first ? ", first_ns" : "") +
            ") VALUES (6, 77, 1, 'ada', 'ada', 'uid:1000', 'Jobs.EndJob', 'job:7', 'OK', 1" +
            (has_first ? ", 77)" : ")");
        ASSERT_APPLIED((*connection)->Execute(insert.c_str()));
      }
    }
    auto store = SqliteStore::Open(path);
    ASSERT_TRUE(store.ok()) << store.status();
    const auto stored = (*store)->LoadMeasurements();
    ASSERT_TRUE(stored.ok() && stored->loads.size() == 1) << stored.status();
    EXPECT_EQ(stored->loads[0].peak, 0.75);
    EventFilter filter;
    filter.object = "fabric";
    EXPECT_EQ((*store)->Events(filter)->size(), 1u);
    ASSERT_APPLIED((*store)->Apply(Busy(1, 3)));
    EXPECT_EQ((*store)->History({Switch(1), 2})->size(), 1u);
    const auto deeds = (*store)->Deeds({});
    ASSERT_TRUE(deeds.ok()) << deeds.status();
    ASSERT_EQ(deeds->size(), version >= kFirstWithDeeds ? 1u : 0u);
    if (!deeds->empty()) {
      EXPECT_EQ(deeds->front().first, absl::FromUnixNanos(77));
    }
  }
}

TEST_F(SqliteGrowthTest, AdministratorsReadViews) {
  auto store = Open();
  PutInventory inventory{1, At(1), {}, {}, {}};
  inventory.nodes.push_back({Switch(1), NodeKind::kSwitch, "leaf", "", 1, 2, 36});
  inventory.nodes.push_back({Switch(2), NodeKind::kSwitch, "spine", "", 1, 2, 36});
  inventory.links.push_back({Switch(1), 1, Switch(2), 7, "4xHDR", 200});
  ASSERT_APPLIED(store->Apply(inventory));
  PutCounters put = Busy(1, 2);
  put.loads = {{1, true, 0.25, 0.5, At(1), At(2)}};
  ASSERT_APPLIED(store->Apply(put));
  EXPECT_EQ(Ask("SELECT node || ' ' || description || ' ' || port FROM port_counters"),
            "0002c90200400001 leaf 1\n0002c90200400001 leaf 2\n");
  EXPECT_EQ(Ask("SELECT sender || '/' || port || ' ' || receiver || ' ' || average || ' ' || peak "
                "FROM link_utilisation"),
            "spine/7 leaf 0.25 0.5\n");
  EXPECT_EQ(Ask("SELECT resolution || ' ' || node || '/' || port || ' ' || seconds || ' ' || "
                "sent_bytes || ' ' || peak_sent_per_second FROM load_history WHERE port = 2"),
            "reading 0002c90200400001/2 360.0 1000000000000 2777777777\n");
}

}  // namespace
}  // namespace coppice::sqlite_growth_test
