// Files that a store must refuse, and those that it must migrate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "db/sqlite_connection.h"
#include "db/sqlite_tables.h"
#include "tests/support/tier.h"
#include "tests/unit/db/raw_database.h"
#include "tests/unit/db/store_records.h"

namespace coppice::sqlite_open_test {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

class SqliteOpenTest : public testing::Test {
 protected:
  absl::Status Open() { return SqliteStore::Open(path_).status(); }
  void Write(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string Read() {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // A closed database with a few trees.
  void Fill() {
    auto store = SqliteStore::Open(path_);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_APPLIED((*store)->Apply(PutJob{Job(1)}));
    for (int64_t id = 1; id <= 50; ++id) {
      ASSERT_APPLIED((*store)->Apply(GrantTree{Tree(id, 1, {}, 100)}));
    }
  }
  // First pages of the tables and their indexes; all of them, while they are empty.
  std::set<size_t> PagesOf(const std::string& tables) {
    std::set<size_t> pages;
    auto connection = SqliteConnection::Open(path_, SQLITE_OPEN_READWRITE, absl::Seconds(1));
    Statement list(**connection,
                   "SELECT rootpage FROM sqlite_schema WHERE rootpage > 0 "
                   "AND tbl_name IN (" +
                       tables + ")");
    while (*list.Step()) pages.insert(static_cast<size_t>(list.Integer(0)));
    return pages;
  }

  StoreDirectory directory_;
  const std::string path_ = directory_.File("coppice.db");
  const std::string newest_ = std::to_string(Migrations().size());
};

TEST_F(SqliteOpenTest, NewerSchemaIsRefusedUntouched) {
  Fill();
  RawDatabase(path_).Run("PRAGMA user_version = 77");
  const std::string before = Read();
  EXPECT_STATUS(
      Open(), StatusCode::kFailedPrecondition,
      path_ + ": schema 77 is newer than this program's " + newest_ + ": upgrade coppiced");
  EXPECT_EQ(Read(), before);
}

TEST_F(SqliteOpenTest, NotADatabase) {
  Write(std::string(10'000, 'x'));
  EXPECT_STATUS(Open(), StatusCode::kDataLoss, path_);
  EXPECT_EQ(Read(), std::string(10'000, 'x'));
  Write("short");
  EXPECT_STATUS(Open(), StatusCode::kDataLoss, path_);
}

TEST_F(SqliteOpenTest, AnotherProgramsDatabase) {
  RawDatabase(path_).Run("CREATE TABLE cookies (crumbs)");
  const std::string before = Read();
  EXPECT_STATUS(Open(), StatusCode::kFailedPrecondition, path_ + " belongs to another program");
  EXPECT_EQ(Read(), before);
  RawDatabase(path_).Run("PRAGMA application_id = 77; DROP TABLE cookies");
  EXPECT_STATUS(Open(), StatusCode::kFailedPrecondition, "belongs to another program");
}

TEST_F(SqliteOpenTest, TruncatedDatabase) {
  Fill();
  const std::string whole = Read();
  ASSERT_GT(whole.size(), 12u * 4096);
  for (size_t size : {whole.size() - 4096, whole.size() / 2, size_t{5000}, size_t{100}}) {
    Write(whole.substr(0, size));
    EXPECT_STATUS(Open(), StatusCode::kDataLoss, path_);
  }
}

TEST_F(SqliteOpenTest, DamagedPagesAreFound) {
  Fill();
  const std::string whole = Read();
  const std::set<size_t> unread = PagesOf(R"sql(
      'event', 'deed', 'history_slot', 'reading_history', 'minute_history', 'hour_history')sql");
  std::mt19937_64 random(TestSeed());
  for (size_t page = 0; page < whole.size() / 4096; ++page) {
    std::string damaged = whole;
    for (size_t byte = 0; byte < 4096; ++byte)
      damaged[page * 4096 + byte] = static_cast<char>(random());
    Write(damaged);
    SCOPED_TRACE(page + 1);
    if (!unread.contains(page + 1)) EXPECT_STATUS(Open(), StatusCode::kDataLoss, path_);
  }
}

TEST_F(SqliteOpenTest, DamagedTextsOfATreeAreTold) {
  Fill();
  const std::string whole = Read();
  const std::pair<const char*, const char*> damages[] = {
      {"alternatives = '[{\"type\":\"III\"}]'", "alternatives: wrong character at position 10"},
      {"alternatives = ''", "alternatives: wrong character at position 0"},
      {"sizes = '[[8,1]'", "sizes: wrong character at position 6"},
      {"operation = 'alltoall'", "operation: there is none of its name"},
      {"nodes = '[[0,1]]'", "nodes: wrong character"},
      {"nodes = '[[-1,-1,0,0]]'", "nodes: they are not its ranks and switches"},
      {"links = '[-]'", "links: wrong character at position 1"},
      {"physical = '[-1]'", "physical: wrong character at position 1"}};
  for (const auto& [change, words] : damages) {
    Write(whole);
    ASSERT_EQ(RawDatabase(path_).Run(std::string("UPDATE tree SET ") + change), "");
    auto store = SqliteStore::Open(path_);
    ASSERT_TRUE(store.ok()) << store.status();
    const absl::Status status = (*store)->Load().status();
    EXPECT_STATUS(status, StatusCode::kDataLoss, words);
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_ + ": tree "));
  }
}

// Without a checksum a flipped bit inside a text is a different text; whatever it hits, the store
// either says so or carries on, and never crashes.
TEST_F(SqliteOpenTest, FlippedBitsNeverCrash) {
  Fill();
  const std::string whole = Read();
  std::mt19937_64 random(TestSeed());
  const int rounds = FullTier() ? 2'000 : 60;
  for (int round = 0; round < rounds; ++round) {
    std::string damaged = whole;
    for (int n = 0; n < 4; ++n)
      damaged[random() % whole.size()] ^= static_cast<char>(1 << random() % 8);
    Write(damaged);
    auto store = SqliteStore::Open(path_);
    if (!store.ok()) continue;
    const absl::Status status = (*store)->Load().status();
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
  }
}

TEST_F(SqliteOpenTest, UnusableDirectory) {
  EXPECT_STATUS(SqliteStore::Open(directory_.File("absent/coppice.db")).status(),
                StatusCode::kNotFound, "absent/coppice.db");
  Write("a file");
  EXPECT_STATUS(SqliteStore::Open(path_ + "/coppice.db").status(), StatusCode::kFailedPrecondition,
                "coppice.db/coppice.db");
  EXPECT_STATUS(SqliteStore::Open(directory_.path()).status(), StatusCode::kFailedPrecondition,
                std::string(directory_.path()));
}

// Permission bits bind root, too, on a thread whose file system user is nobody.
class AsNobody {
 public:
  AsNobody() : before_(setfsuid(65534)) {}
  ~AsNobody() { setfsuid(static_cast<uid_t>(before_)); }

 private:
  const int before_;
};

TEST_F(SqliteOpenTest, ReadOnlyFileAndDirectory) {
  using std::filesystem::perms;
  Fill();
  std::filesystem::permissions(path_, perms(0444));
  std::filesystem::permissions(path_ + ".lock", perms(0666));
  std::filesystem::permissions(directory_.path(), perms(0755));
  {
    AsNobody nobody;
    EXPECT_STATUS(Open(), StatusCode::kFailedPrecondition, path_ + " is read-only");
  }
  std::filesystem::permissions(path_ + ".lock", perms(0444));
  std::filesystem::permissions(directory_.path(), perms(0555));
  {
    AsNobody nobody;
    EXPECT_STATUS(Open(), StatusCode::kFailedPrecondition, path_);
  }
  std::filesystem::permissions(directory_.path(), perms(0755));
}

TEST_F(SqliteOpenTest, FilesAreTheirOwnersAlone) {
  using std::filesystem::perms;
  const auto expect_private = [&] {
    for (const char* const end : {"", "-wal", "-shm", ".lock"}) {
      EXPECT_EQ(std::filesystem::status(path_ + end).permissions(),
                perms::owner_read | perms::owner_write)
          << end;
    }
  };
  const mode_t before = umask(0);
  {
    const auto store = SqliteStore::Open(path_);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_APPLIED((*store)->Apply(PutJob{Job(1)}));
    expect_private();
  }
  // As releases before left them.
  for (const char* const end : {"", "-wal", "-shm", ".lock"}) {
    std::ofstream(path_ + end, std::ios::app);
    std::filesystem::permissions(path_ + end, perms(0664));
  }
  const auto store = SqliteStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_APPLIED((*store)->Apply(PutJob{Job(2)}));
  expect_private();
  umask(before);
}

TEST_F(SqliteOpenTest, SecondDaemonIsToldWhoHoldsIt) {
  auto first = SqliteStore::Open(path_);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_STATUS(Open(), StatusCode::kFailedPrecondition,
                path_ + " is in use by process " + std::to_string(getpid()));
  ASSERT_APPLIED((*first)->Apply(PutJob{Job(1)}));  // and the first goes on
  first->reset();
  EXPECT_TRUE(Open().ok());
}

// By a name of which the first daemon knows nothing.
TEST_F(SqliteOpenTest, ALinkToTheFileIsTheSameDatabase) {
  auto first = SqliteStore::Open(path_);
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string symbolic = directory_.File("symbolic.db"), hard = directory_.File("hard.db");
  std::filesystem::create_symlink(path_, symbolic);
  std::filesystem::create_hard_link(path_, hard);
  for (const std::string& link : {symbolic, hard}) {
    EXPECT_STATUS(SqliteStore::Open(link).status(), StatusCode::kFailedPrecondition,
                  link + " is in use by another process");
  }
  first->reset();
  EXPECT_TRUE(SqliteStore::Open(symbolic).ok());
}

TEST_F(SqliteOpenTest, EachDatabaseHasANumberOfItsOwn) {
  const uint64_t number = (*SqliteStore::Open(path_))->DatabaseId();
  EXPECT_NE(number, 0u);
  EXPECT_EQ((*SqliteStore::Open(path_))->DatabaseId(), number);
  EXPECT_NE((*SqliteStore::Open(directory_.File("other.db")))->DatabaseId(), number);
}

// Whoever answered as if it were written would answer for nothing.
TEST_F(SqliteOpenTest, NothingIsWrittenToAFileThatIsNotInItsPlace) {
  for (const char* ending : {"", "-wal", "-shm"}) {
    SCOPED_TRACE(ending);
    auto store = SqliteStore::Open(path_);
    ASSERT_TRUE(store.ok()) << store.status();
    const int64_t job = (*store)->Load()->last_job.value() + 1;
    const std::string file = path_ + ending, aside = directory_.File("aside");
    std::filesystem::rename(file, aside);
    const auto expect_refused = [&](const char* words) {
      EXPECT_THAT((*store)->Statistics().fault, HasSubstr(file + words));
      EXPECT_STATUS((*store)->Apply(PutJob{Job(job)}), StatusCode::kUnavailable, file + words);
      EXPECT_EQ((*store)->Load()->last_job, JobId(job - 1));
    };
    expect_refused(" was deleted");
    std::filesystem::copy(aside, file);
    expect_refused(" was exchanged");
    EXPECT_EQ((*store)->Statistics().refused, 2u);
    std::filesystem::rename(aside, file);
    EXPECT_EQ((*store)->Statistics().fault, "");
    ASSERT_APPLIED((*store)->Apply(PutJob{Job(job)}));
    store->reset();
    EXPECT_EQ((*SqliteStore::Open(path_))->Load()->last_job, JobId(job));
  }
}

TEST_F(SqliteOpenTest, BusyShellDelaysThenFailsOneGroupOnly) {
  auto store = SqliteStore::Open(path_, {.busy_timeout = absl::Milliseconds(1)});
  ASSERT_TRUE(store.ok()) << store.status();
  RawDatabase shell(path_);
  ASSERT_EQ(shell.Run("BEGIN IMMEDIATE"), "");
  EXPECT_STATUS((*store)->Apply(PutJob{Job(1)}), StatusCode::kUnavailable, path_);
  EXPECT_TRUE((*store)->Load().ok());
  ASSERT_EQ(shell.Run("COMMIT"), "");
  ASSERT_APPLIED((*store)->Apply(PutJob{Job(1)}));
}

TEST_F(SqliteOpenTest, EmptyFilesAreMigratedFromVersionZero) {
  Write("");
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(RawDatabase(path_).Run("PRAGMA user_version; PRAGMA application_id"),
            newest_ + "\n1131376745\n");
  std::filesystem::remove(path_);
  RawDatabase(path_).Run("PRAGMA journal_mode = WAL; CREATE TABLE t (x); DROP TABLE t");
  EXPECT_TRUE(Open().ok()) << Open();
  EXPECT_EQ(RawDatabase(path_).Run("PRAGMA user_version; PRAGMA journal_mode"),
            newest_ + "\nwal\n");
}

TEST_F(SqliteOpenTest, ANewFileIsAsAllMigrationsMakeIt) {
  const std::string by_migrations = path_ + ".migrated";
  auto connection = SqliteConnection::Open(
      by_migrations, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, absl::ZeroDuration());
  ASSERT_TRUE(connection.ok());
  const absl::Status status = Migrate(**connection, Migrations());
  ASSERT_TRUE(status.ok()) << status;
  Fill();
  const std::string schema =
      "SELECT type || name || tbl_name || ifnull(sql, '') FROM sqlite_schema ORDER BY type, name;"
      "PRAGMA user_version; PRAGMA application_id";
  const std::string expected = RawDatabase(by_migrations).Run(schema);
  EXPECT_GT(expected.size(), 20'000U);
  EXPECT_EQ(RawDatabase(path_).Run(schema), expected);
  std::filesystem::remove(path_);
  ASSERT_TRUE(Open().ok());
  const std::string settings = "SELECT name FROM setting WHERE name <> 'database_id' ORDER BY name";
  EXPECT_EQ(RawDatabase(path_).Run(settings), RawDatabase(by_migrations).Run(settings));
}

TEST_F(SqliteOpenTest, OlderSchemaIsMigratedWithItsRows) {
  Fill();
  std::vector<const char*> longer(Migrations().begin(), Migrations().end());
  longer.push_back("ALTER TABLE tree ADD COLUMN multicast_lid INTEGER;");
  longer.push_back("CREATE TABLE third (x INTEGER) STRICT;");
  auto connection = SqliteConnection::Open(path_, SQLITE_OPEN_READWRITE, absl::ZeroDuration());
  ASSERT_TRUE(connection.ok());
  const absl::Status status = Migrate(**connection, longer);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(RawDatabase(path_).Run("PRAGMA user_version; SELECT count(multicast_lid IS NULL) FROM "
                                   "tree; SELECT count(*) FROM third"),
            std::to_string(longer.size()) + "\n50\n0\n");
}

TEST_F(SqliteOpenTest, TreesOfTheFirstSchemaAreKeptAndCanBeRevised) {
  {
    auto connection = SqliteConnection::Open(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                             absl::ZeroDuration());
    ASSERT_TRUE(connection.ok());
    const absl::Status status = Migrate(**connection, Migrations().first(1));
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(
        (*connection)
            ->Execute("INSERT INTO switch_capability VALUES (5, 1, 0, 4), (6, 1, 0, 4);"
                      "INSERT INTO job VALUES (1, NULL, 0, '', '', '[]', 1, 'active', 0, NULL);"
                      "INSERT INTO tree VALUES (9, 1, 'r', 7, 3, 1, 2, 'minimum-cost', 2, 1, 2,"
                      "  'bcast', '[]', 1.0, 1.0, 2.0, '', '[]', 4,"
                      "  '[[0,1,1,1],[-1,-1,0,0]]', '[]', '[]');"
                      "INSERT INTO tree_switch VALUES (9, 1, 5, 1)"),
        absl::OkStatus());
  }
  auto store = SqliteStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  const StoredState state = *(*store)->Load();
  ASSERT_EQ(state.trees.size(), 1u);
  EXPECT_TRUE(state.trees[0].lacks_spec);
  EXPECT_EQ(state.trees[0].spec.operation, Operation::kBcast);
  auto next = std::make_shared<TreeRecord>(state.trees[0]);
  next->revision = 2;
  next->switches[0].guid = Guid(6);
  ASSERT_APPLIED((*store)->Apply(ChangeTrees{{}, {next}, {}}));
  EXPECT_TRUE((*store)->Load()->trees[0] == *next);
}

TEST_F(SqliteOpenTest, TheSeventhSchemaTakesPlacements) {
  {
    auto connection = SqliteConnection::Open(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                             absl::ZeroDuration());
    ASSERT_TRUE(connection.ok());
    const absl::Status status = Migrate(**connection, Migrations().first(7));
    ASSERT_TRUE(status.ok()) << status;
    // As nobody ever wrote it; a shell may have.
    ASSERT_EQ(
        (*connection)
            ->Execute("INSERT INTO job VALUES (1, 'r', 0, '', '', '[]', 1, 'active', 0, NULL);"
                      "INSERT INTO placement VALUES (41, NULL, 0, 'ada',"
                      "  '[\"0000000000000007\"]', 'held', '', 0, NULL)"),
        absl::OkStatus());
  }
  auto store = SqliteStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  const StoredState state = *(*store)->Load();
  EXPECT_EQ(state.jobs.size(), 1u);
  EXPECT_TRUE(state.placements.empty());
  EXPECT_EQ(state.last_placement, PlacementId(0));
  ASSERT_APPLIED((*store)->Apply(PutPlacements{{Placement(1, {"n1"})}}));
  EXPECT_EQ((*store)->Load()->placements.size(), 1u);
}

TEST_F(SqliteOpenTest, TheEighthSchemaTakesOrders) {
  {
    auto connection = SqliteConnection::Open(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                             absl::ZeroDuration());
    ASSERT_TRUE(connection.ok());
    const absl::Status status = Migrate(**connection, Migrations().first(8));
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ((*connection)
                  ->Execute("INSERT INTO job VALUES"
                            "  (1, 'r', 0, '', '', '[]', 1, 'active', 0, NULL),"
                            "  (2, NULL, 0, '', '', '[]', 1, 'ended', 0, 5)"),
              absl::OkStatus());
  }
  auto store = SqliteStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Load()->jobs.size(), 1u);
  EXPECT_STATUS((*store)->GetOrder(JobId(1)).status(), StatusCode::kNotFound, "job 1");
  const OrderRecord order{JobId(1), {1, 0}, "", At(1)};
  ASSERT_APPLIED((*store)->Apply(PutOrder{order}));
  EXPECT_STATUS((*store)->Apply(PutOrder{{JobId(2), {0}, "", At(1)}}),
                StatusCode::kFailedPrecondition, "job 2");
  EXPECT_EQ(*(*store)->GetOrder(JobId(1)), order);
  ASSERT_APPLIED((*store)->Apply(EndJob{JobId(1), JobState::kEnded, At(9)}));
  EXPECT_STATUS((*store)->GetOrder(JobId(1)).status(), StatusCode::kNotFound, "job 1");
}

TEST_F(SqliteOpenTest, DistancesOfTheNinthSchemaAreOverTcp) {
  {
    auto connection = SqliteConnection::Open(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                             absl::ZeroDuration());
    ASSERT_TRUE(connection.ok());
    const absl::Status status = Migrate(**connection, Migrations().first(9));
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ((*connection)
                  ->Execute("INSERT INTO distance VALUES ('a', 'b', 1.5, 0.25, 97.5, 3.5, 90, 17)"),
              absl::OkStatus());
  }
  auto store = SqliteStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  const DistanceRecord old{"a", "b", 1.5, 0.25, 97.5, 3.5, 90, absl::FromUnixNanos(17)};
  EXPECT_EQ((*store)->Distances()->at(0), old);
  EXPECT_EQ(old.transport, Transport::kTcp);
  EXPECT_THAT(RawDatabase(path_).Run("UPDATE distance SET transport = 'udp'"), HasSubstr("CHECK"));
}

// What a placement measures became a struct of the record; the text in its row did not change.
TEST_F(SqliteOpenTest, PlacementsOfTheReleaseBeforeAreRead) {
  const std::string measures =
      R"({"leaf_switches":2,"pods":1,"mean_distance":2.6666666666666665,"shared_links":0,)"
      R"("mean_load":0,"switches_without_entries":0,"fragmentation":-1,"traffic":0,)"
      R"("least_leaf_switches":2,"total_distance":16,"most_load":0,"max_congestion":0,)"
      R"("cost":8.5666666666666664,"is_optimal":1})";
  const std::string row = R"(NULL, 7, '', 'ada', '["n1"]', 1, '[]', 0, 300000000000, 3, 'why', ')" +
                          measures + "', 'held', NULL, 5, NULL, 0)";
  {
    auto connection = SqliteConnection::Open(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                             absl::ZeroDuration());
    ASSERT_TRUE(connection.ok());
    const absl::Status status = Migrate(**connection, Migrations().first(16));
    ASSERT_TRUE(status.ok()) << status;
    const std::string rows =
        "INSERT INTO placement VALUES (1, " + row + "; INSERT INTO placement_node VALUES ('n1', 1)";
    ASSERT_EQ((*connection)->Execute(rows.c_str()), absl::OkStatus());
  }
  auto store = SqliteStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  PlacementRecord read = (*store)->Load()->placements.at(0);
  EXPECT_EQ(read.measures.leaf_switches, 2u);
  EXPECT_EQ(read.measures.mean_distance, 8.0 / 3);
  EXPECT_EQ(read.measures.fragmentation, -1);
  EXPECT_EQ(read.measures.total_distance, 16);
  EXPECT_TRUE(read.is_optimal);
  EXPECT_EQ(read.partition, PartitionNum(0));
  read.id = PlacementId(2);
  read.nodes = {"n2"};
  ASSERT_APPLIED((*store)->Apply(PutPlacements{{read}}));
  EXPECT_EQ(RawDatabase(path_).Run("SELECT measures FROM placement WHERE id = 2"), measures + "\n");
}

TEST_F(SqliteOpenTest, TheTenthSchemaKnewNoHolders) {
  {
    auto connection = SqliteConnection::Open(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                             absl::ZeroDuration());
    ASSERT_TRUE(connection.ok());
    const absl::Status status = Migrate(**connection, Migrations().first(10));
    ASSERT_TRUE(status.ok()) << status;
    const std::string two = R"('["0000000000000007","0000000000000008"]')";
    ASSERT_EQ((*connection)
                  ->Execute(("INSERT INTO job VALUES"
                             "  (1, 'r', 0, '', 'ada', " +
                             two +
                             ", 1, 'active', 0, NULL),"
                             "  (2, NULL, 0, '', 'ada', " +
                             two +
                             ", 1, 'ended', 0, 5);"
                             "INSERT INTO pattern VALUES (1, 'melt', 'root', 2, 1, 1.0, 1.0, 0, 1),"
                             "  (2, 'foam', 'eve', 2, 1, 1.0, 1.0, 0, 1);"
                             "INSERT INTO pattern_part VALUES (1, 0, 'x'), (2, 0, 'y');"
                             "INSERT INTO event VALUES (1, 0, 'info', 'a', 'b', 'c')")
                                .c_str()),
              absl::OkStatus());
  }
  auto store = SqliteStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Load()->jobs.at(0).endpoints.size(), 2u);
  const std::vector<PatternRecord> patterns = *(*store)->Patterns();
  ASSERT_EQ(patterns.size(), 2u);
  EXPECT_FALSE(patterns[0].by_administrator);
  EXPECT_TRUE(patterns[1].by_administrator);
  EXPECT_EQ(*(*store)->PatternData(1), "x");
  // Another's request_id is free, one's own is not.
  JobRecord other = Job(3, "r");
  other.owner = "eve";
  ASSERT_APPLIED((*store)->Apply(PutJob{other}));
  EXPECT_STATUS((*store)->Apply(PutJob{Job(4, "r")}), StatusCode::kAlreadyExists, "job 1");
  // The older list goes first.
  ASSERT_APPLIED(
      (*store)->Apply(EndJob{JobId(1), JobState::kEnded, At(9), {2 * 19 + 1, INT64_MAX}, nullptr}));
  EXPECT_EQ((*store)->GetJob(JobId(2))->dropped_ranks, 2u);
  EXPECT_EQ((*store)->GetJob(JobId(1))->endpoints.size(), 2u);
  EXPECT_EQ((*store)->Events({})->at(0).actor, "");
}

TEST_F(SqliteOpenTest, TreesOfTheThirteenthSchemaAreCarriedByNobody) {
  {
    auto connection = SqliteConnection::Open(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                             absl::ZeroDuration());
    ASSERT_TRUE(connection.ok());
    ASSERT_TRUE(Migrate(**connection, Migrations().first(13)).ok());
    ASSERT_EQ(
        (*connection)
            ->Execute("INSERT INTO switch_capability VALUES (5, 1, 0, 4);"
                      "INSERT INTO job (id, request_fingerprint, name, owner, lease_ns, state,"
                      "  created_ns) VALUES (1, 0, '', '', 1, 'active', 0);"
                      "INSERT INTO tree VALUES (9, 1, 'r', 7, 3, 1, 2, 'minimum-cost', 2, 1, 2,"
                      "  'bcast', '[]', 1.0, 1.0, 2.0, '', '[]', 4,"
                      "  '[[0,1,1,1],[-1,-1,0,0]]', '[]', '[]', '');"
                      "INSERT INTO tree_switch VALUES (9, 1, 5, 1)"),
        absl::OkStatus());
  }
  auto store = SqliteStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  const StoredState state = *(*store)->Load();
  ASSERT_EQ(state.trees.size(), 1u);
  EXPECT_EQ(state.trees[0].carriage, CarriageRecord());
  auto next = std::make_shared<TreeRecord>(state.trees[0]);
  next->revision = 2;
  next->carriage = {std::string(16, 'k'), 1024, 4};
  ASSERT_APPLIED((*store)->Apply(ChangeTrees{{}, {next}, {}}));
  EXPECT_TRUE((*store)->Load()->trees[0] == *next);
  // Whoever writes it, a key has 16 bytes.
  EXPECT_THAT(RawDatabase(path_).Run("UPDATE tree SET install_key = x'00'"),
              HasSubstr("constraint failed"));
}

TEST_F(SqliteOpenTest, FailingMigrationChangesNothing) {
  Fill();
  std::vector<const char*> broken(Migrations().begin(), Migrations().end());
  broken.push_back("CREATE TABLE second (x INTEGER) STRICT;");
  broken.push_back("DELETE FROM tree; CREATE TABLE tree (x);");
  auto connection = SqliteConnection::Open(path_, SQLITE_OPEN_READWRITE, absl::ZeroDuration());
  ASSERT_TRUE(connection.ok());
  const absl::Status status = Migrate(**connection, broken);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("migration to schema " + std::to_string(broken.size())));
  EXPECT_EQ(
      RawDatabase(path_).Run("PRAGMA user_version; SELECT count(*) FROM tree; SELECT count(*) "
                             "FROM sqlite_schema WHERE name = 'second'"),
      newest_ + "\n50\n0\n");
  connection->reset();
  EXPECT_TRUE(Open().ok());
}

}  // namespace
}  // namespace coppice::sqlite_open_test
