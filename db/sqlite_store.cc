#include "db/sqlite_store.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "db/database_files.h"
#include "db/sqlite_tables.h"

namespace coppice {
namespace {

// secure_delete is on in Debian's SQLite and would rewrite every released tree. SQLite's cache of
// pages stays as it is, 2 MB: it keeps what a flood of trees has filled.
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
  RETURN_IF_ERROR(Migrate(*writer, Migrations(), NewestSchema()));
  RETURN_IF_ERROR(SwitchToWal(*writer));
  RETURN_IF_ERROR(writer->Execute(kWriterSettings));
  RETURN_IF_ERROR(writer->Execute(absl::StrCat("PRAGMA wal_autocheckpoint = ", kLogPages,
                                               "; PRAGMA journal_size_limit = ", kLogBytes)));
  if (options.max_pages > 0) {
    RETURN_IF_ERROR(writer->Execute(absl::StrCat("PRAGMA max_page_count = ", options.max_pages)));
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

// One thread that makes mutations durable in groups: while one group is being committed the next
// one gathers, so that many callers share one flush of the disk.
//
//   waiting   a b c | d e | f g h
//   long            |     |          X1 X2 X3, Y1 Y2
//   groups  [a b c X1] [d e X2] [f g h X3] [Y1] ...
//
// A mutation may take several steps: it lines up with its like, and each group has one step of the
// first of them. So nobody waits for more than a step.
//
// std::mutex rather than absl::Mutex: ThreadSanitizer sees through the former only, since the
// system's Abseil is not instrumented.
struct PendingMutation {
  Mutation mutation;
  Store::Done done;
  size_t steps = 1;     // that it takes, one in a group
  size_t step = 0;      // the one that this group has; those before it are durable
  absl::Status status;  // set by the commit function

  bool is_unfinished() const { return status.ok() && step + 1 < steps; }
};

class GroupWriter {
 public:
  // Applies a group in order and sets every status; runs on the writer's thread. OK: the group was
  // committed; else why it was not.
  using Commit = std::function<absl::Status(absl::Span<PendingMutation>)>;

  explicit GroupWriter(Commit commit) : commit_(std::move(commit)), thread_([this] { Run(); }) {}
  // Commits and answers everything that waits, then ends the thread.
  ~GroupWriter() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  // Never blocks on a commit. `steps`: at least 1; it is answered after the last, or the first that
  // fails. Thread-safe.
  void Submit(Mutation mutation, Store::Done done, size_t steps) {
    bool was_empty;
    {
      std::lock_guard lock(mutex_);
      was_empty = queue_.empty();
      ++statistics_.queued;
      queue_.push_back({std::move(mutation), std::move(done), steps, 0, absl::OkStatus()});
    }
    if (was_empty) wake_.notify_one();
  }

  // Without the size of the database, which only the store knows. Thread-safe.
  StoreStatistics Statistics() const {
    std::lock_guard lock(mutex_);
    return statistics_;
  }

 private:
  // Bounds how long the first of a group waits for the last.
  static constexpr size_t kMaxGroup = 1024;

  void CommitAndCount(absl::Span<PendingMutation> group) {
    const auto begin = std::chrono::steady_clock::now();
    const absl::Status committed = commit_(group);
    const absl::Duration took = absl::FromChrono(std::chrono::steady_clock::now() - begin);
    constexpr auto& kBounds = StoreStatistics::kBounds;
    const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), took) - kBounds.begin();
    const auto finished = static_cast<uint64_t>(std::count_if(
        group.begin(), group.end(), [](const PendingMutation& p) { return !p.is_unfinished(); }));
    std::lock_guard lock(mutex_);
    statistics_.queued -= finished;
    statistics_.mutations += finished;
    ++(committed.ok() ? statistics_.commits : statistics_.failed_commits);
    if (!committed.ok()) statistics_.refused += finished;
    statistics_.fault = std::string(committed.message());
    ++statistics_.commit_times[static_cast<size_t>(bucket)];
    statistics_.commit_time += took;
  }

  // Has `batch` end with the next step of a long one, if there is any.
  void AddStep(std::vector<PendingMutation>& batch) {
    const auto longs = std::stable_partition(batch.begin(), batch.end(),
                                             [](const PendingMutation& p) { return p.steps == 1; });
    std::move(longs, batch.end(), std::back_inserter(long_));
    batch.erase(longs, batch.end());
    if (long_.empty()) return;
    batch.push_back(std::move(long_.front()));
    long_.pop_front();
  }

  void Run() {
    std::vector<PendingMutation> batch;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return stopping_ || !queue_.empty() || !long_.empty(); });
        if (queue_.empty() && long_.empty()) return;
        batch.swap(queue_);
      }
      AddStep(batch);
      for (size_t begin = 0; begin < batch.size(); begin += kMaxGroup) {
        absl::Span<PendingMutation> group =
            absl::MakeSpan(batch).subspan(begin, std::min(kMaxGroup, batch.size() - begin));
        CommitAndCount(group);
        for (PendingMutation& pending : group) {
          if (pending.is_unfinished()) {
            ++pending.step;
            long_.push_front(std::move(pending));
            continue;
          }
          // The callback goes before the next answer: what it holds is released here, too.
          Store::Done done = std::move(pending.done);
          std::move(done)(std::move(pending.status));
        }
      }
      batch.clear();
    }
  }

  const Commit commit_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<PendingMutation> queue_;  // guarded by mutex_
  bool stopping_ = false;               // guarded by mutex_
  StoreStatistics statistics_;          // guarded by mutex_
  std::deque<PendingMutation> long_;    // the writer's thread's: those of several steps
  std::thread thread_;                  // last: it uses the rest
};

class OpenStore final : public SqliteStore {
 public:
  explicit OpenStore(std::unique_ptr<LockFile> lock) : lock_(std::move(lock)) {}

  absl::Status OpenFiles(const std::string& path, const SqliteOptions& options) {
    ASSIGN_OR_RETURN(writer_, OpenWriter(path, options));
    mutator_.emplace(*writer_);
    ASSIGN_OR_RETURN(reader_, OpenReader(path, options));
    events_.emplace(*reader_);
    files_ = std::make_unique<FilesInPlace>(path);
    ASSIGN_OR_RETURN(database_id_,
                     writer_->Sql("SELECT value FROM setting WHERE name = 'database_id'").Number());
    group_writer_ = std::make_unique<GroupWriter>(
        [this](absl::Span<PendingMutation> group) { return CommitGroup(group); });
    return absl::OkStatus();
  }

  void Submit(Mutation mutation, Done done) override {
    const size_t steps = SqliteMutator::StepsOf(mutation);
    group_writer_->Submit(std::move(mutation), std::move(done), steps);
  }

  absl::StatusOr<StoredState> Load() override { return Ask(LoadState); }
  absl::StatusOr<std::vector<EntryUse>> Entries() override { return Ask(ReadEntries); }
  absl::StatusOr<std::vector<EventRecord>> Events(const EventFilter& filter) override {
    std::lock_guard lock(reader_mutex_);
    return events_->Find(filter);
  }
  absl::StatusOr<EventRange> KeptEvents() override { return Ask(ReadEventRange); }
  absl::StatusOr<JobRecord> GetJob(JobId id) override { return Ask(ReadJob, id); }
  absl::StatusOr<int64_t> EndedJobs(absl::Time before) override {
    return Ask(CountEndedJobs, before);
  }
  absl::StatusOr<std::vector<OwnedJobs>> EndedJobsOfOwners() override {
    return Ask(CountEndedJobsOfOwners);
  }
  absl::StatusOr<PlacementRecord> GetPlacement(PlacementId id) override {
    return Ask(ReadPlacement, id);
  }
  absl::StatusOr<int64_t> EndedPlacements(absl::Time before) override {
    return Ask(CountEndedPlacements, before);
  }
  absl::StatusOr<std::vector<int64_t>> LinkIds(const std::vector<LinkRecord>& links) override {
    return Ask(FindLinkIds, links);
  }
  absl::StatusOr<std::vector<LinkRecord>> LastLinks() override { return Ask(ListLastLinks); }
  absl::StatusOr<StoredLoad> LoadMeasurements() override { return Ask(ReadLoad); }
  absl::StatusOr<std::vector<PortCounterRecord>> Counters(Guid node) override {
    return Ask(ReadCounters, node);
  }
  absl::StatusOr<std::vector<HistoryPoint>> History(const HistoryQuery& query) override {
    return Ask(ReadHistory, query);
  }
  absl::StatusOr<std::vector<PatternRecord>> Patterns() override { return Ask(ListPatterns); }
  absl::StatusOr<std::string> PatternData(int64_t id) override { return Ask(ReadPatternData, id); }
  absl::StatusOr<std::vector<DistanceRecord>> Distances() override { return Ask(ListDistances); }
  absl::StatusOr<OrderRecord> GetOrder(JobId job) override { return Ask(ReadOrder, job); }
  absl::StatusOr<std::vector<DeedRecord>> Deeds(const DeedFilter& filter) override {
    return Ask(FindDeeds, filter);
  }
  uint64_t DatabaseId() override { return static_cast<uint64_t>(database_id_); }

  StoreStatistics Statistics() override {
    StoreStatistics statistics = group_writer_->Statistics();
    const absl::Status lost = files_->Check();
    // What the last write met may be mended by now; of any other fault only the next one tells.
    if (!lost.ok() || was_lost_) statistics.fault = std::string(lost.message());
    for (const char* file : {"", "-wal"}) {
      std::error_code absent;
      const auto bytes = std::filesystem::file_size(writer_->path() + file, absent);
      if (!absent) statistics.database_bytes += bytes;
    }
    return statistics;
  }

 private:
  // What a question answers on the reader's connection, one caller at a time.
  template <class Answer, class... Parameters, class... Values>
  Answer Ask(Answer (*question)(SqliteConnection&, Parameters...), const Values&... values) {
    std::lock_guard lock(reader_mutex_);
    return question(*reader_, values...);
  }

  // One transaction: either everything that was not refused is durable, or, on a storage failure,
  // nothing is and everyone gets that failure.
  absl::Status CommitGroup(absl::Span<PendingMutation> group) {
    was_lost_ = false;
    absl::Status status = ApplyGroup(group);
    if (status.ok()) {
      mutator_->Committed();
    } else {
      // The first error is the one to tell.
      if (writer_->in_transaction()) writer_->Execute("ROLLBACK").IgnoreError();
      mutator_->RolledBack();
      writer_->TakeStorageFailure().IgnoreError();
      for (PendingMutation& pending : group) pending.status = status;
    }
    for (const PendingMutation& pending : group) {
      if (pending.step > 0 && !pending.status.ok()) mutator_->Abandon(pending.mutation);
    }
    return status;
  }

  absl::Status Begin() {
    RETURN_IF_ERROR(writer_->Sql("BEGIN IMMEDIATE").Run());
    return mutator_->DropAbandoned();
  }

  // Without savepoints first; if a mutation is refused, the group starts over, each in one of its
  // own.
  absl::Status ApplyGroup(absl::Span<PendingMutation> group) {
    RETURN_IF_ERROR(Begin());
    ASSIGN_OR_RETURN(const bool applied, ApplyIfAllPass(group));
    if (applied) return Commit();
    RETURN_IF_ERROR(writer_->Sql("ROLLBACK").Run());
    mutator_->RolledBack();
    RETURN_IF_ERROR(Begin());
    for (PendingMutation& pending : group) {
      pending.status = mutator_->Apply(pending.mutation, pending.step);
      if (!pending.status.ok()) RETURN_IF_ERROR(writer_->TakeStorageFailure());
    }
    return Commit();
  }

  // As late as can be: what is written to a file that has gone would be answered, and lost.
  absl::Status Commit() {
    const absl::Status lost = files_->Check();
    was_lost_ = !lost.ok();
    RETURN_IF_ERROR(lost);
    return writer_->Sql("COMMIT").Run();
  }

  // False: one was refused, and the transaction must be rolled back.
  absl::StatusOr<bool> ApplyIfAllPass(absl::Span<PendingMutation> group) {
    for (const PendingMutation& pending : group) {
      if (mutator_->ApplyBare(pending.mutation, pending.step).ok()) continue;
      RETURN_IF_ERROR(writer_->TakeStorageFailure());
      return false;
    }
    return true;
  }

  // Destroyed from the last to the first: the writer's thread ends, connections close, the lock
  // goes.
  std::unique_ptr<LockFile> lock_;
  std::unique_ptr<SqliteConnection> writer_;
  std::optional<SqliteMutator> mutator_;
  std::mutex reader_mutex_;
  std::unique_ptr<SqliteConnection> reader_;  // guarded by reader_mutex_
  std::optional<EventReader> events_;         // guarded by reader_mutex_
  std::unique_ptr<const FilesInPlace> files_;
  int64_t database_id_ = 0;
  std::atomic<bool> was_lost_ = false;  // that is why the last group was not committed
  std::unique_ptr<GroupWriter> group_writer_;
};

}  // namespace

absl::Status Store::Apply(Mutation mutation) {
  std::promise<absl::Status> result;
  Submit(std::move(mutation),
         [&result](absl::Status status) { result.set_value(std::move(status)); });
  return result.get_future().get();
}

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::string& path,
                                                               const SqliteOptions& options) {
  // First of all: closing any descriptor of the database file would drop another store's locks.
  ASSIGN_OR_RETURN(auto lock, LockFile::Acquire(path));
  KeepPrivate(path);
  auto store = std::make_unique<OpenStore>(std::move(lock));
  RETURN_IF_ERROR(store->OpenFiles(path, options));
  return store;
}

}  // namespace coppice
