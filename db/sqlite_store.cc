#include "db/sqlite_store.h"

#include <atomic>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/database_files.h"
#include "db/group_writer.h"
#include "db/sqlite_connection.h"
#include "db/sqlite_schema.h"
#include "db/sqlite_tables.h"

namespace coppice {
namespace {

// secure_delete is on in Debian's SQLite and would rewrite every released tree. The log is copied
// into the database after kLogPages: hot pages are copied once rather than at each of the default
// 1,000. A log that has become longer is cut when it begins anew. SQLite's cache of pages stays as
// it is, 2 MB: it keeps what a flood of trees has filled.
constexpr int64_t kLogPages = kLogBytes / 4096;
constexpr char kWriterSettings[] = R"sql(
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA secure_delete = OFF;
    PRAGMA temp_store = MEMORY)sql";

absl::Status SwitchToWal(SqliteConnection& connection) {
  Statement mode(connection, "PRAGMA journal_mode = WAL");
  ASSIGN_OR_RETURN(const bool row, mode.Step());
  const bool is_wal = row && mode.Text(0) == "wal";
  mode.Reset();
  if (is_wal) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("database ", connection.path(),
                   ": its file system offers no shared memory: put it on a local disk"));
}

absl::StatusOr<std::unique_ptr<SqliteConnection>> OpenWriter(const std::string& path,
                                                             const SqliteOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> writer,
                   SqliteConnection::Open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                          options.busy_timeout));
  if (writer->read_only()) {
    return absl::FailedPreconditionError(
        absl::StrCat("database ", path, " is read-only: make the file and its directory writable"));
  }
  RETURN_IF_ERROR(CheckIntegrity(*writer));
  RETURN_IF_ERROR(Migrate(*writer, Migrations()));
  RETURN_IF_ERROR(SwitchToWal(*writer));
  RETURN_IF_ERROR(writer->Execute(kWriterSettings));
  RETURN_IF_ERROR(writer->Execute(absl::StrCat("PRAGMA wal_autocheckpoint = ", kLogPages,
                                               "; PRAGMA journal_size_limit = ", kLogBytes)
                                      .c_str()));
  if (options.max_pages > 0) {
    RETURN_IF_ERROR(
        writer->Execute(absl::StrCat("PRAGMA max_page_count = ", options.max_pages).c_str()));
  }
  // Not by a migration: a database that has none yet gets one whatever its schema.
  RETURN_IF_ERROR(writer->Execute(
      "INSERT OR IGNORE INTO setting VALUES ('database_id', random() & 0x7fffffffffffffff)"));
  // Parts of jobs and patterns whose last part never came.
  RETURN_IF_ERROR(writer->Execute(R"sql(
      DELETE FROM job_ranks WHERE job_id NOT IN (SELECT id FROM job);
      DELETE FROM pattern_part WHERE pattern_id NOT IN (SELECT id FROM pattern))sql"));
  // From here on the database refuses the tree ids of all earlier runs.
  RETURN_IF_ERROR(writer->Execute(R"sql(
      UPDATE setting SET value = max(value, ifnull(
          (SELECT seq FROM sqlite_sequence WHERE name = 'tree'), 0))
      WHERE name = 'tree_id_floor')sql"));
  return writer;
}

absl::StatusOr<std::unique_ptr<SqliteConnection>> OpenReader(const std::string& path,
                                                             const SqliteOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> reader,
                   SqliteConnection::Open(path, SQLITE_OPEN_READWRITE, options.busy_timeout));
  RETURN_IF_ERROR(reader->Execute("PRAGMA query_only = ON"));
  return reader;
}

}  // namespace

class SqliteStore::Impl {
 public:
  explicit Impl(LockFile lock) : lock_(std::move(lock)) {}

  absl::Status Open(const std::string& path, const SqliteOptions& options) {
    ASSIGN_OR_RETURN(writer_connection_, OpenWriter(path, options));
    mutator_.emplace(*writer_connection_);
    begin_.emplace(*writer_connection_, "BEGIN IMMEDIATE");
    commit_.emplace(*writer_connection_, "COMMIT");
    rollback_.emplace(*writer_connection_, "ROLLBACK");
    RETURN_IF_ERROR(writer_connection_->Prepare());
    ASSIGN_OR_RETURN(reader_connection_, OpenReader(path, options));
    reader_.emplace(*reader_connection_);
    RETURN_IF_ERROR(reader_connection_->Prepare());
    files_ = std::make_unique<FilesInPlace>(path);
    ASSIGN_OR_RETURN(database_id_, writer_connection_->QueryInteger(
                                       "SELECT value FROM setting WHERE name = 'database_id'"));
    group_writer_ = std::make_unique<GroupWriter>(
        [this](absl::Span<PendingMutation> group) { return CommitGroup(group); });
    return absl::OkStatus();
  }

  void Submit(Mutation mutation, Done done) {
    const size_t steps = SqliteMutator::StepsOf(mutation);
    group_writer_->Submit(std::move(mutation), std::move(done), steps);
  }

  uint64_t database_id() const { return static_cast<uint64_t>(database_id_); }

  StoreStatistics Statistics() const {
    StoreStatistics statistics = group_writer_->Statistics();
    const absl::Status lost = files_->Check();
    // What the last write met may be mended by now; of any other fault only the next one tells.
    if (!lost.ok() || was_lost_) statistics.fault = std::string(lost.message());
    for (const char* file : {"", "-wal"}) {
      std::error_code absent;
      const auto bytes = std::filesystem::file_size(writer_connection_->path() + file, absent);
      if (!absent) statistics.database_bytes += bytes;
    }
    return statistics;
  }

  absl::StatusOr<StoredState> Load() {
    std::lock_guard lock(reader_mutex_);
    return reader_->Load();
  }
  // What a table's reader answers, one caller at a time.
  template <class Table, class Answer, class... Parameters, class... Values>
  Answer Ask(Answer (Table::*question)(Parameters...), const Values&... values) {
    std::lock_guard lock(reader_mutex_);
    return (reader_->of<Table>().*question)(values...);
  }

 private:
  // One transaction: either everything that was not refused is durable, or, on a storage failure,
  // nothing is and everyone gets that failure.
  absl::Status CommitGroup(absl::Span<PendingMutation> group) {
    was_lost_ = false;
    absl::Status status = ApplyGroup(group);
    if (status.ok()) {
      mutator_->Committed();
    } else {
      if (writer_connection_->in_transaction()) {
        writer_connection_->Execute("ROLLBACK")
            .IgnoreError();  // the first error is the one to tell
      }
      mutator_->RolledBack();
      writer_connection_->TakeStorageFailure().IgnoreError();
      for (PendingMutation& pending : group) pending.status = status;
    }
    for (const PendingMutation& pending : group) {
      if (pending.step > 0 && !pending.status.ok()) mutator_->Abandon(pending.mutation);
    }
    return status;
  }

  absl::Status Begin() {
    RETURN_IF_ERROR(begin_->Run());
    return mutator_->DropAbandoned();
  }

  // A savepoint costs a copy of every page that its mutation changes, and hardly any group holds a
  // mutation that is refused. So a group is first applied without any; if one is refused, the group
  // starts over, each of its mutations in a savepoint.
  absl::Status ApplyGroup(absl::Span<PendingMutation> group) {
    RETURN_IF_ERROR(Begin());
    ASSIGN_OR_RETURN(const bool applied, ApplyIfAllPass(group));
    if (applied) return Commit();
    RETURN_IF_ERROR(rollback_->Run());
    mutator_->RolledBack();
    RETURN_IF_ERROR(Begin());
    for (PendingMutation& pending : group) {
      pending.status = mutator_->Apply(pending.mutation, pending.step);
      if (!pending.status.ok()) RETURN_IF_ERROR(writer_connection_->TakeStorageFailure());
    }
    return Commit();
  }

  // As late as can be: what is written to a file that has gone would be answered, and lost.
  absl::Status Commit() {
    const absl::Status lost = files_->Check();
    was_lost_ = !lost.ok();
    RETURN_IF_ERROR(lost);
    return commit_->Run();
  }

  // False: one was refused, and the transaction must be rolled back.
  absl::StatusOr<bool> ApplyIfAllPass(absl::Span<PendingMutation> group) {
    for (const PendingMutation& pending : group) {
      if (mutator_->ApplyBare(pending.mutation, pending.step).ok()) continue;
      RETURN_IF_ERROR(writer_connection_->TakeStorageFailure());
      return false;
    }
    return true;
  }

  // Destroyed from the last to the first: the writer's thread ends, connections close, the lock
  // goes.
  LockFile lock_;
  std::unique_ptr<SqliteConnection> writer_connection_;
  std::optional<SqliteMutator> mutator_;
  std::optional<Statement> begin_, commit_, rollback_;
  std::mutex reader_mutex_;
  std::unique_ptr<SqliteConnection> reader_connection_;  // guarded by reader_mutex_
  std::optional<SqliteReader> reader_;                   // guarded by reader_mutex_
  std::unique_ptr<const FilesInPlace> files_;
  int64_t database_id_ = 0;
  std::atomic<bool> was_lost_ = false;  // that is why the last group was not committed
  std::unique_ptr<GroupWriter> group_writer_;
};

SqliteStore::SqliteStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteStore::~SqliteStore() = default;

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::string& path,
                                                               const SqliteOptions& options) {
  // First of all: closing any descriptor of the database file would drop another store's locks.
  ASSIGN_OR_RETURN(LockFile lock, LockFile::Acquire(path));
  KeepPrivate(path);
  auto impl = std::make_unique<Impl>(std::move(lock));
  RETURN_IF_ERROR(impl->Open(path, options));
  return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(impl)));
}

void SqliteStore::Submit(Mutation mutation, Done done) {
  impl_->Submit(std::move(mutation), std::move(done));
}

absl::StatusOr<StoredState> SqliteStore::Load() { return impl_->Load(); }
absl::StatusOr<std::vector<EntryUse>> SqliteStore::Entries() {
  return impl_->Ask(&TreeReader::Entries);
}
absl::StatusOr<std::vector<EventRecord>> SqliteStore::Events(const EventFilter& filter) {
  return impl_->Ask(&EventReader::Find, filter);
}
absl::StatusOr<EventRange> SqliteStore::KeptEvents() { return impl_->Ask(&EventReader::Kept); }
absl::StatusOr<JobRecord> SqliteStore::GetJob(JobId id) { return impl_->Ask(&JobReader::Get, id); }
absl::StatusOr<int64_t> SqliteStore::EndedJobs(absl::Time before) {
  return impl_->Ask(&JobReader::Ended, before);
}
absl::StatusOr<std::vector<OwnedJobs>> SqliteStore::EndedJobsOfOwners() {
  return impl_->Ask(&JobReader::EndedOfOwners);
}
absl::StatusOr<PlacementRecord> SqliteStore::GetPlacement(PlacementId id) {
  return impl_->Ask(&PlacementReader::Get, id);
}
absl::StatusOr<int64_t> SqliteStore::EndedPlacements(absl::Time before) {
  return impl_->Ask(&PlacementReader::Ended, before);
}
absl::StatusOr<std::vector<int64_t>> SqliteStore::LinkIds(const std::vector<LinkRecord>& links) {
  return impl_->Ask(&InventoryReader::LinkIds, links);
}
absl::StatusOr<StoredLoad> SqliteStore::LoadMeasurements() {
  return impl_->Ask(&MeasurementReader::Load);
}
absl::StatusOr<std::vector<PortCounterRecord>> SqliteStore::Counters(Guid node) {
  return impl_->Ask(&MeasurementReader::Counters, node);
}
absl::StatusOr<std::vector<HistoryPoint>> SqliteStore::History(const HistoryQuery& query) {
  return impl_->Ask(&MeasurementReader::History, query);
}
absl::StatusOr<std::vector<PatternRecord>> SqliteStore::Patterns() {
  return impl_->Ask(&PatternReader::List);
}
absl::StatusOr<std::string> SqliteStore::PatternData(int64_t id) {
  return impl_->Ask(&PatternReader::Data, id);
}
absl::StatusOr<std::vector<DistanceRecord>> SqliteStore::Distances() {
  return impl_->Ask(&DistanceReader::List);
}
absl::StatusOr<OrderRecord> SqliteStore::GetOrder(JobId job) {
  return impl_->Ask(&OrderReader::Get, job);
}
absl::StatusOr<std::vector<DeedRecord>> SqliteStore::Deeds(const DeedFilter& filter) {
  return impl_->Ask(&DeedReader::Find, filter);
}
StoreStatistics SqliteStore::Statistics() { return impl_->Statistics(); }
uint64_t SqliteStore::DatabaseId() { return impl_->database_id(); }

}  // namespace coppice
