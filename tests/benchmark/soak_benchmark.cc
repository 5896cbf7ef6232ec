// Whether memory and database stay as large as they are while the manager works for long: a store
// on disk, a fabric of 256 ports whose links are cut and mended, light sweeps and counters of
// weeks, jobs that come and go, trees of all kinds, and watchers, one of them slow.
//
//   coppice_soak_benchmark [--trees=100000] [--sweeps=1000] [--share=0.05] [--seed=1]
//
// After a warm-up of a fifth as many, until everything that is kept for a time is kept once, it
// prints a row at each tenth of the run. Exits 1 if memory, the database without job rows, or the
// database with its log is larger in the mean of the last three rows than in that of the first
// three by more than `share`; 2 if anything fails, if a watcher is told something twice, or if
// entries are left when all jobs have ended. Rows of jobs, of which those that ended last are kept,
// are shown apart. The growth of less than half of the default run is not judged. Nothing is said
// of speed: seconds are for whoever waits.
#include <spdlog/spdlog.h>
#include <sqlite3.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/models/model.h"
#include "daemon/rpc/server.h"
#include "db/sqlite_store.h"
#include "tests/benchmark/soak/changing_port.h"
#include "tests/benchmark/soak/users.h"

namespace coppice {
namespace {

constexpr char kFabric[] = "fat-tree(leaves=16,spines=8,hosts-per-leaf=16)";
constexpr uint64_t kRows = 10;
constexpr uint64_t kSweepsPerJob = 4;
constexpr uint64_t kSlowness = 50;  // sweeps between two looks of the slow watcher
// Beside those of the fabric and of jobs: the newest 4,096 events are in memory for watchers, and
// must all have been replaced once when the warm-up ends.
constexpr int kEventsPerSweep = 25;
constexpr uint64_t kJudgedTrees = 50'000, kJudgedSweeps = 500;

struct Scale {
  uint64_t trees = 100'000, sweeps = 1000, seed = 1;
  double share = 0.05;
};

absl::StatusOr<Scale> ParseScale(int argc, char** argv) {
  Scale scale;
  for (int i = 1; i < argc; ++i) {
    absl::string_view value = argv[i];
    const bool is_right =
        absl::ConsumePrefix(&value, "--trees=")    ? absl::SimpleAtoi(value, &scale.trees)
        : absl::ConsumePrefix(&value, "--sweeps=") ? absl::SimpleAtoi(value, &scale.sweeps)
        : absl::ConsumePrefix(&value, "--seed=")   ? absl::SimpleAtoi(value, &scale.seed)
        : absl::ConsumePrefix(&value, "--share=")  ? absl::SimpleAtod(value, &scale.share)
                                                   : false;
    if (!is_right) return absl::InvalidArgumentError(absl::StrCat("not an option: ", argv[i]));
  }
  if (scale.sweeps < kRows) return absl::InvalidArgumentError("--sweeps: at least 10");
  return scale;
}

ManagerOptions SoakOptions() {
  ManagerOptions options;
  options.profile = *BuiltInProfile("hdr");
  CapabilityRule rule;
  rule.entries = 32;
  rule.degree_limit = 32;
  options.capability_rules = {rule};
  options.default_lease = options.max_lease = absl::Hours(24 * 3650);
  options.sweep_periods.light = absl::Milliseconds(20);
  options.sweep_periods.counters = absl::Milliseconds(20);
  options.kept_events = 2000;
  options.kept_event_age = absl::Hours(24 * 30);
  options.kept_tree_changes = 4096;
  options.kept_ended_jobs = 200;
  return options;
}

// What is looked at with an administrator's eyes, in the file itself.
class Database {
 public:
  explicit Database(std::string path) : path_(std::move(path)) {}
  std::string path() const { return path_; }
  // The first number of the answer.
  absl::StatusOr<int64_t> Ask(const std::string& question) const {
    sqlite3* connection = nullptr;
    const absl::Cleanup close = [&] { sqlite3_close(connection); };
    sqlite3_stmt* statement = nullptr;
    const absl::Cleanup finish = [&] { sqlite3_finalize(statement); };
    const bool has_row =
        sqlite3_open_v2(path_.c_str(), &connection, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK &&
        sqlite3_busy_timeout(connection, 5000) == SQLITE_OK &&
        sqlite3_prepare_v2(connection, question.c_str(), -1, &statement, nullptr) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW;
    if (has_row) return sqlite3_column_int64(statement, 0);
    return absl::InternalError(
        absl::StrCat(path_, ": \"", question, "\": ", sqlite3_errmsg(connection)));
  }

 private:
  const std::string path_;
};

struct Row {
  double resident = 0, database = 0, with_log = 0, job_rows = 0;  // bytes
};

class Soak {
 public:
  Soak(const Scale& scale, std::string path, std::shared_ptr<const Fabric> fabric)
      : scale_(scale),
        database_(std::move(path)),
        fabric_(std::move(fabric)),
        port_(fabric_, &clock_, scale.seed) {}

  // Whether nothing grew.
  absl::StatusOr<bool> Run() {
    ASSIGN_OR_RETURN(store_, SqliteStore::Open(database_.path()));
    ASSIGN_OR_RETURN(manager_, Manager::Create(store_.get(), &port_, &clock_, SoakOptions()));
    RETURN_IF_ERROR(manager_->Sweep().status());
    manager_->Start();
    launcher_ = std::make_unique<Launcher>(manager_.get(), fabric_.get(), scale_.seed);
    fast_ = std::make_unique<Watcher>(manager_.get());
    slow_ = std::make_unique<Watcher>(manager_.get());
    for (int i = 0; i < 8; ++i) launcher_->TurnOverJob();
    std::printf("%7s %6s %6s %8s %9s %11s %13s %8s %6s %7s %9s %5s\n", "trees", "sweeps", "light",
                "counters", "memory MB", "database MB", "with log MB", "pages", "free", "events",
                "jobs' kB", "s");
    const uint64_t warm = scale_.sweeps / 5;
    for (uint64_t sweep = 1; sweep <= warm + scale_.sweeps; ++sweep) {
      RETURN_IF_ERROR(Step(sweep));
      if (sweep <= warm) continue;
      if ((sweep - warm) * kRows / scale_.sweeps > rows_.size()) RETURN_IF_ERROR(Look());
    }
    RETURN_IF_ERROR(End());
    return Judge();
  }

 private:
  absl::Status Step(uint64_t sweep) {
    port_.Change();
    RETURN_IF_ERROR(manager_->Sweep().status());
    if (sweep % kSweepsPerJob == 0) launcher_->TurnOverJob();
    launcher_->KeepJobsAlive();
    for (int i = 0; i < kEventsPerSweep; ++i) {
      manager_->Announce("sweep.done", absl::StrCat("step:", sweep),
                         absl::StrCat("event ", i, " of ", kEventsPerSweep, " of this step"));
    }
    const uint64_t wanted = scale_.trees * sweep / scale_.sweeps;
    while (launcher_->failure().ok() && launcher_->created() < wanted) {
      launcher_->CreateAndRelease(wanted - launcher_->created());
    }
    RETURN_IF_ERROR(launcher_->failure());
    RETURN_IF_ERROR(fast_->Look());
    return sweep % kSlowness == 0 ? slow_->Look() : absl::OkStatus();
  }

  absl::Status Look() {
    ASSIGN_OR_RETURN(const int64_t pages, database_.Ask("PRAGMA page_count"));
    ASSIGN_OR_RETURN(const int64_t page_size, database_.Ask("PRAGMA page_size"));
    ASSIGN_OR_RETURN(const int64_t free, database_.Ask("PRAGMA freelist_count"));
    ASSIGN_OR_RETURN(const int64_t events, database_.Ask("SELECT count(*) FROM event"));
    ASSIGN_OR_RETURN(const int64_t job_bytes,
                     database_.Ask("SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM "
                                   "sqlite_schema WHERE tbl_name = 'job')"));
    const SweepStanding standing = manager_->Sweeps();
    Row row;
    row.resident = static_cast<double>(ReadProcess().resident_bytes);
    row.database = static_cast<double>(pages * page_size);
    row.with_log = static_cast<double>(store_->Statistics().database_bytes);
    row.job_rows = static_cast<double>(job_bytes);
    rows_.push_back(row);
    std::printf("%7llu %6llu %6llu %8llu %9.1f %11.2f %13.2f %8lld %6lld %7lld %9.0f %5.0f\n",
                static_cast<unsigned long long>(launcher_->created()),
                static_cast<unsigned long long>(standing.full.count),
                static_cast<unsigned long long>(standing.light.count),
                static_cast<unsigned long long>(standing.counters.count), row.resident / 1e6,
                row.database / 1e6, row.with_log / 1e6, static_cast<long long>(pages),
                static_cast<long long>(free), static_cast<long long>(events), row.job_rows / 1e3,
                absl::ToDoubleSeconds(absl::Now() - start_));
    std::fflush(stdout);
    return absl::OkStatus();
  }

  // Everything is given back, and the watchers know.
  absl::Status End() {
    launcher_->EndAll();
    RETURN_IF_ERROR(launcher_->failure());
    manager_->Stop();
    for (Watcher* watcher : {fast_.get(), slow_.get()}) {
      RETURN_IF_ERROR(watcher->Look());
      if (watcher->trees() != 0) {
        return absl::InternalError(
            absl::StrCat("a watcher still holds ", watcher->trees(), " trees when all are gone"));
      }
    }
    const DaemonCounts counts = manager_->Counts();
    ASSIGN_OR_RETURN(const int64_t taken, database_.Ask("SELECT count(*) FROM tree_switch"));
    std::printf(
        "asked in vain %llu; changes seen %llu, by the slow watcher %llu, who began anew "
        "%llu times; entries left %llu, in the database %lld\n",
        static_cast<unsigned long long>(launcher_->refused()),
        static_cast<unsigned long long>(fast_->changes()),
        static_cast<unsigned long long>(slow_->changes()),
        static_cast<unsigned long long>(slow_->restarts()),
        static_cast<unsigned long long>(counts.entries_taken), static_cast<long long>(taken));
    if (counts.granted_trees == 0 && counts.entries_taken == 0 && taken == 0) {
      return absl::OkStatus();
    }
    return absl::InternalError("all jobs have ended, but trees or entries are left");
  }

  // Growth from the mean of the first three rows to that of the last three.
  template <class What>
  bool IsFlat(const char* name, What what) const {
    double first = 0, last = 0;
    for (size_t i = 0; i < 3; ++i) {
      first += what(rows_[i]);
      last += what(rows_[rows_.size() - 1 - i]);
    }
    const double growth = last / first - 1;
    std::printf("%-28s grew by %6.2f %% (bound %.0f)\n", name, 100 * growth, 100 * scale_.share);
    return growth <= scale_.share;
  }

  bool Judge() const {
    bool is_flat = IsFlat("memory", [](const Row& row) { return row.resident; });
    is_flat &= IsFlat("database without job rows",
                      [](const Row& row) { return row.database - row.job_rows; });
    is_flat &= IsFlat("database with its log", [](const Row& row) { return row.with_log; });
    if (scale_.trees >= kJudgedTrees && scale_.sweeps >= kJudgedSweeps) return is_flat;
    std::printf("too short to judge growth\n");
    return true;
  }

  const Scale scale_;
  const Database database_;
  const std::shared_ptr<const Fabric> fabric_;
  const absl::Time start_ = absl::Now();
  ManualClock clock_;
  ChangingPort port_;
  std::vector<Row> rows_;
  // In the order in which they go, from the last.
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<Manager> manager_;
  std::unique_ptr<Launcher> launcher_;
  std::unique_ptr<Watcher> fast_, slow_;
};

absl::StatusOr<bool> RunSoak(int argc, char** argv) {
  ASSIGN_OR_RETURN(const Scale scale, ParseScale(argc, argv));
  ASSIGN_OR_RETURN(const std::shared_ptr<const Fabric> fabric, GenerateModel(kFabric));
  std::string directory = (std::filesystem::temp_directory_path() / "coppice-soak-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) {
    return absl::UnavailableError(absl::StrCat(directory, ": cannot be made; is TMPDIR writable?"));
  }
  const absl::Cleanup remove = [&] {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  };
  Soak soak(scale, directory + "/soak.db", fabric);
  return soak.Run();
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::err);  // trees that links take with them are warnings
  const absl::StatusOr<bool> is_flat = coppice::RunSoak(argc, argv);
  if (!is_flat.ok()) {
    std::fprintf(stderr, "%s\n", is_flat.status().ToString().c_str());
    return 2;
  }
  return *is_flat ? 0 : 1;
}
