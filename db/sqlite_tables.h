// The tables: each mutation goes to its own on the writer's connection, each question to the
// reader's, which sees what is committed and never waits for the writer.
//
// The refusals of store.h come from the database's own constraints and triggers; code only finds
// the words for them afterwards, so that the common path asks nothing twice.
//
// Every question leaves its statements reset, also one that fails: a statement half way would keep
// the transaction, and the log that it pins, open.
#ifndef COPPICE_DB_SQLITE_TABLES_H_
#define COPPICE_DB_SQLITE_TABLES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "db/sqlite_connection.h"
#include "db/store.h"

namespace coppice {

// --- Questions and mutations that nothing is remembered for. Contracts as in store.h; mutations
// within the writer's transaction; Load...: a part of the state, DATA_LOSS names the row. ---

// Trees and entries (sqlite_trees.cc).
absl::Status Apply(SqliteConnection& db, const GrantTree& grant);
absl::Status Apply(SqliteConnection& db, const ReleaseTree& release);
absl::Status Apply(SqliteConnection& db, const ChangeTrees& change);
absl::Status Apply(SqliteConnection& db, const PutCapabilities& put);
absl::Status LoadTrees(SqliteConnection& db, StoredState& state);
absl::StatusOr<std::vector<EntryUse>> ReadEntries(SqliteConnection& db);

// Placements, orders and patterns (sqlite_placements.cc).
absl::Status Apply(SqliteConnection& db, const PutPlacements& put);
absl::Status Apply(SqliteConnection& db, const EndPlacement& end);
absl::Status Apply(SqliteConnection& db, const StartPlacement& start);  // without its job
absl::Status Apply(SqliteConnection& db, const PrunePlacements& prune);
absl::Status LoadPlacements(SqliteConnection& db, StoredState& state);
absl::StatusOr<PlacementRecord> ReadPlacement(SqliteConnection& db, PlacementId id);
absl::StatusOr<int64_t> CountEndedPlacements(SqliteConnection& db, absl::Time before);
absl::Status Apply(SqliteConnection& db, const PutOrder& put);
absl::StatusOr<OrderRecord> ReadOrder(SqliteConnection& db, JobId job);
absl::Status Apply(SqliteConnection& db, const PutPatternPart& put);
absl::Status Apply(SqliteConnection& db, const PutPattern& put);
absl::Status Apply(SqliteConnection& db, const DropPatternParts& drop);
absl::Status Apply(SqliteConnection& db, const DropPattern& drop);
absl::StatusOr<std::vector<PatternRecord>> ListPatterns(SqliteConnection& db);
absl::StatusOr<std::string> ReadPatternData(SqliteConnection& db, int64_t id);

// Inventory, distances and settings (sqlite_inventory.cc).
absl::Status Apply(SqliteConnection& db, const PutInventory& put);
absl::StatusOr<std::vector<int64_t>> FindLinkIds(SqliteConnection& db,
                                                 const std::vector<LinkRecord>& links);
absl::StatusOr<std::vector<LinkRecord>> ListLastLinks(SqliteConnection& db);
absl::Status Apply(SqliteConnection& db, const PutDistances& put);
absl::StatusOr<std::vector<DistanceRecord>> ListDistances(SqliteConnection& db);
absl::Status Apply(SqliteConnection& db, const PutQuota& put);
absl::Status Apply(SqliteConnection& db, const PutAccounts& put);
absl::Status Apply(SqliteConnection& db, const PutReservation& put);
absl::Status Apply(SqliteConnection& db, const DropReservation& drop);
absl::Status Apply(SqliteConnection& db, const PutProfile& put);
absl::Status LoadSettings(SqliteConnection& db, StoredState& state);

// How soon collectives went (sqlite_way_times.cc).
absl::Status Apply(SqliteConnection& db, const PutWayTimes& put);
absl::Status LoadWayTimes(SqliteConnection& db, StoredState& state);

// Counters and history (sqlite_measurements.cc).
absl::Status Apply(SqliteConnection& db, const PruneHistory& prune);
absl::StatusOr<StoredLoad> ReadLoad(SqliteConnection& db);
absl::StatusOr<std::vector<PortCounterRecord>> ReadCounters(SqliteConnection& db, Guid node);
// One look-up for each slot that was asked for: 3,600 at most.
absl::StatusOr<std::vector<HistoryPoint>> ReadHistory(SqliteConnection& db,
                                                      const HistoryQuery& query);

// Events and deeds (sqlite_events.cc).
absl::Status Apply(SqliteConnection& db, const AppendEvents& append);
absl::Status Apply(SqliteConnection& db, const PruneEvents& prune);
absl::StatusOr<EventRange> ReadEventRange(SqliteConnection& db);
absl::StatusOr<std::vector<DeedRecord>> FindDeeds(SqliteConnection& db, const DeedFilter& filter);

// Jobs (sqlite_jobs.cc).
absl::Status LoadJobs(SqliteConnection& db, StoredState& state);
absl::StatusOr<JobRecord> ReadJob(SqliteConnection& db, JobId id);
absl::StatusOr<int64_t> CountEndedJobs(SqliteConnection& db, absl::Time before);
absl::StatusOr<std::vector<OwnedJobs>> CountEndedJobsOfOwners(SqliteConnection& db);

inline constexpr char kFindActiveJob[] = "SELECT id FROM job WHERE id = ? AND state = 'active'";

// Ids from `ended`, rows of id and time that what ended first leads: the first `most`, and those
// that ended before `before`.
absl::StatusOr<std::vector<int64_t>> FindSurplus(Statement& ended, int64_t most, absl::Time before);

// Refuses what must not be kept, before the database sees it: INVALID_ARGUMENT, naming the record.
// Shape only; what the present state forbids is the database's own matter (record_check.cc).
absl::Status CheckShape(const Mutation& mutation);

std::string PortName(Guid node, uint8_t port);  // "port 0002c9020040b0e0/7"

// --- What remembers something from call to call ---

// Ranks are rows of their own, slices of so many ranks (one of any size from before schema 13):
// 300 KiB of text, written in less than a millisecond. README.md says why.
inline constexpr size_t kRanksOfSlice = 16'384;
inline size_t SlicesOf(size_t ranks) {
  return std::max<size_t>(1, (ranks + kRanksOfSlice - 1) / kRanksOfSlice);
}

class KeptRanks;

// Of writers: belong to the writer's thread, work within its transaction and hear what became of
// it.
class JobWriter {
 public:
  explicit JobWriter(SqliteConnection& db);
  ~JobWriter();

  // The last step: the job's row, and the last slice of its ranks.
  absl::Status Apply(const PutJob& put);
  // A step before that: the slice of that number.
  absl::Status PutAhead(const JobRecord& job, size_t slice);
  // Slices were committed, and Put will never come.
  void Abandon(JobId job) { abandoned_.push_back(job); }
  // What abandoned jobs left; first of all in each transaction.
  absl::Status DropAbandoned();
  absl::Status Apply(const EndJob& end);
  absl::Status Apply(const PruneJobs& prune);
  void Committed();
  void RolledBack();

 private:
  absl::Status PutSlice(const JobRecord& job, size_t slice);
  // Reads which ended jobs have their ranks.
  absl::Status ReadKeptRanks();
  absl::Status DropSurplusRanks(const EndJob& end);
  absl::Status Delete(int64_t job);

  SqliteConnection& db_;
  std::unique_ptr<KeptRanks> kept_ranks_;  // null: not read, or what was read is undone
  // In the open transaction.
  bool ranks_changed_ = false;
  bool wrote_slices_ = false;  // wrote the last of a long list of ranks, or dropped one
  std::vector<JobId> abandoned_;
};

// One statement a row, on rows that are found by small numbers. The numbers of ports are remembered
// here, as one look-up a row would cost more than the row.
class CounterWriter {
 public:
  explicit CounterWriter(SqliteConnection& db) : db_(db) {}

  absl::Status Apply(const PutCounters& put);
  void Committed() { has_new_ports_ = false; }
  // Numbers that the transaction gave to ports are forgotten. Others may be left in it.
  void RolledBack() { has_ports_ = has_ports_ && !has_new_ports_; }

 private:
  absl::Status ReadPorts();
  // `update`: of a port that is known.
  absl::Status PutPort(const PortCounterRecord& port, Statement& update);
  absl::Status PutPart(const HistoryPart& part);

  SqliteConnection& db_;
  bool has_ports_ = false;      // ports_ holds what the table does
  bool has_new_ports_ = false;  // some are not committed
  int64_t last_port_ = 0;
  absl::flat_hash_map<std::pair<Guid, uint8_t>, int64_t> ports_;
};

class KeptDeeds;

class DeedWriter {
 public:
  explicit DeedWriter(SqliteConnection& db);
  ~DeedWriter();

  absl::Status Apply(const AppendDeeds& append);
  absl::Status Append(const DeedRecord& deed, const DeedLimits& limits);
  void Committed() { changed_ = false; }
  void RolledBack();

 private:
  absl::Status ReadKept();

  SqliteConnection& db_;
  std::unique_ptr<KeptDeeds> kept_;  // null: not read, or what was read is undone
  bool changed_ = false;             // in the open transaction
};

// Filtered lists of events that stay quick on a million: every filter is led by the index that
// leaves least to look at, and all give events by id.
//
//     object given           event_by_object
//     warnings or errors     event_of_concern
//     kinds with a prefix    event_by_kind, the first so many of each kind, merged: kinds are few
//     otherwise              by id
//
// Times rise with ids unless the clock was set back, so the first page of a list with a start or an
// end looks up in event_by_time, once, where to begin and to end; what lies between is still
// compared. The end found holds for the later pages.
class EventReader {
 public:
  explicit EventReader(SqliteConnection& db) : db_(db) {}

  absl::StatusOr<std::vector<EventRecord>> Find(const EventFilter& filter);

 private:
  // Ids outside of which the filter picks nothing.
  struct Ids {
    int64_t after = 0, last = 0;
  };
  // What the last list with an end was found to be bounded by: its later pages need not look for
  // it, and the last of them does not read on to the newest event.
  struct Held {
    absl::Time start = absl::InfiniteFuture(), end = absl::InfinitePast();
    int64_t last = 0;    // highest id in that time
    int64_t newest = 0;  // of all events, when that was found
  };

  absl::StatusOr<Ids> FindIds(const EventFilter& filter);
  // Of held_: looks at what has been added since.
  absl::Status BringUpToDate();
  absl::StatusOr<std::vector<std::string>> KindsWith(const std::string& prefix);
  // Appends what is found by `index` and the condition that `leading` is the parameter of.
  absl::Status Append(const char* index, const char* condition, const std::string& leading,
                      const EventFilter& filter, const Ids& ids, std::vector<EventRecord>& found);

  SqliteConnection& db_;
  Held held_;
};

// --- All of them ---

// Belongs to the writer's thread.
class SqliteMutator {
 public:
  // `db` must outlive the mutator and hold the newest schema.
  explicit SqliteMutator(SqliteConnection& db) : db_(db), jobs_(db), counters_(db), deeds_(db) {}

  // In so many steps, each in a transaction of its own, a mutation is applied; nothing of it counts
  // before the last.
  static size_t StepsOf(const Mutation& mutation);

  // Applies a step of `mutation` within the open transaction, whole or, if it is refused, not at
  // all. After a storage failure (db.TakeStorageFailure()) the transaction must be rolled back.
  absl::Status Apply(const Mutation& mutation, size_t step);
  // Cheaper: if it is refused, part of it may be there, and the transaction must be rolled back.
  absl::Status ApplyBare(const Mutation& mutation, size_t step);
  // Steps of the mutation were committed, and the last will never be.
  void Abandon(const Mutation& mutation);
  // What abandoned mutations left; first of all in each transaction.
  absl::Status DropAbandoned() { return jobs_.DropAbandoned(); }
  // What became of the transaction.
  void Committed();
  void RolledBack();

 private:
  absl::Status Do(const auto& what) { return coppice::Apply(db_, what); }
  absl::Status Do(const PutJob& put) { return jobs_.Apply(put); }
  absl::Status Do(const EndJob& end) { return jobs_.Apply(end); }
  absl::Status Do(const PruneJobs& prune) { return jobs_.Apply(prune); }
  absl::Status Do(const PutCounters& put) { return counters_.Apply(put); }
  absl::Status Do(const AppendDeeds& append) { return deeds_.Apply(append); }
  absl::Status Do(const StartPlacement& start);

  SqliteConnection& db_;
  JobWriter jobs_;
  CounterWriter counters_;
  DeedWriter deeds_;
};

// What a daemon takes up, all of it as of one instant.
absl::StatusOr<StoredState> LoadState(SqliteConnection& db);

// --- The schema (sqlite_schema.cc) ---
//
// Brings a database file of any age to the newest schema, or says why it will not touch it.
//
// user_version holds the number of the last migration applied, application_id says that the file
// is ours. A migration, once released, is never edited: the next change is the next number.

// "Copi": tells file(1) and us whose database it is.
inline constexpr int64_t kApplicationId = 0x436f7069;

// SQL text of db/migrations/0001_*.sql, 0002_*.sql, ... in order.
absl::Span<const char* const> Migrations();
// What all of them make of a new file.
const char* NewestSchema();

// Applies those of `migrations` that the database lacks, in one transaction: all or none. A new
// file takes `newest` instead, which is what all of them make of it, if it is given.
// FAILED_PRECONDITION: the schema is newer than `migrations`, or the file is another program's.
absl::Status Migrate(SqliteConnection& connection, absl::Span<const char* const> migrations,
                     const char* newest = nullptr);

// DATA_LOSS if a page of a table is damaged that decides what the daemon does. Reads those tables
// and their indexes whole; neither events nor history.
absl::Status CheckIntegrity(SqliteConnection& connection);

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_TABLES_H_
