// All tables together: each mutation goes to the writer of its tables, on the writer's connection,
// and each question to a reader, on a connection of its own, which sees what is committed and never
// waits for the writer. Statements are prepared once.
//
// The refusals of store.h come from the database's own constraints and triggers; code only finds
// the words for them afterwards, so that the common path asks nothing twice.
#ifndef COPPICE_DB_SQLITE_TABLES_H_
#define COPPICE_DB_SQLITE_TABLES_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/sqlite_connection.h"
#include "db/sqlite_events.h"
#include "db/sqlite_inventory.h"
#include "db/sqlite_jobs.h"
#include "db/sqlite_measurements.h"
#include "db/sqlite_placements.h"
#include "db/sqlite_trees.h"
#include "db/store.h"

namespace coppice {

// One of each of `Tables`, on one connection.
template <class... Tables>
class TablesOn {
 public:
  explicit TablesOn(SqliteConnection& connection)
      : tables_((static_cast<void>(sizeof(Tables)), std::ref(connection))...) {}

  template <class Table>
  Table& of() {
    return std::get<Table>(tables_);
  }
  // Of all; the first failure.
  absl::Status Prepare() {
    return std::apply(
        [](Tables&... tables) {
          absl::Status status;
          static_cast<void>(((status = tables.Prepare()).ok() && ...));
          return status;
        },
        tables_);
  }

 private:
  std::tuple<Tables...> tables_;
};

// Belongs to the writer's thread.
class SqliteMutator {
 public:
  // `connection` must outlive the mutator and hold the newest schema.
  static absl::StatusOr<std::unique_ptr<SqliteMutator>> Create(SqliteConnection& connection);

  // In so many steps, each in a transaction of its own, a mutation is applied; nothing of it counts
  // before the last.
  static size_t StepsOf(const Mutation& mutation);

  // Applies a step of `mutation` within the open transaction, whole or, if it is refused, not at
  // all. After a storage failure (connection.TakeStorageFailure()) the transaction must be rolled
  // back.
  absl::Status Apply(const Mutation& mutation, size_t step);
  // Cheaper: if it is refused, part of it may be there, and the transaction must be rolled back.
  absl::Status ApplyBare(const Mutation& mutation, size_t step);
  // Steps of the mutation were committed, and the last will never be.
  void Abandon(const Mutation& mutation);
  // What abandoned mutations left; first of all in each transaction.
  absl::Status DropAbandoned() { return tables_.of<JobWriter>().DropAbandoned(); }
  // What became of the transaction.
  void Committed();
  void RolledBack();

 private:
  explicit SqliteMutator(SqliteConnection& connection)
      : connection_(connection), tables_(connection) {}

  absl::Status Do(const PutJob& put) { return tables_.of<JobWriter>().Put(put); }
  absl::Status Do(const EndJob& end) { return tables_.of<JobWriter>().End(end); }
  absl::Status Do(const PruneJobs& prune) { return tables_.of<JobWriter>().Prune(prune); }
  absl::Status Do(const GrantTree& grant) { return tables_.of<TreeWriter>().Grant(*grant.tree); }
  absl::Status Do(const ReleaseTree& release) { return tables_.of<TreeWriter>().Release(release); }
  absl::Status Do(const ChangeTrees& change) { return tables_.of<TreeWriter>().Change(change); }
  absl::Status Do(const PutCapabilities& put) { return tables_.of<TreeWriter>().Put(put); }
  absl::Status Do(const PutPlacements& put) { return tables_.of<PlacementWriter>().Put(put); }
  absl::Status Do(const EndPlacement& end) { return tables_.of<PlacementWriter>().End(end); }
  absl::Status Do(const StartPlacement& start);
  absl::Status Do(const PrunePlacements& prune) {
    return tables_.of<PlacementWriter>().Prune(prune);
  }
  absl::Status Do(const PutOrder& put) { return tables_.of<OrderWriter>().Put(put); }
  absl::Status Do(const PutPatternPart& put) { return tables_.of<PatternWriter>().Put(put); }
  absl::Status Do(const PutPattern& put) { return tables_.of<PatternWriter>().Put(put); }
  absl::Status Do(const DropPatternParts& drop) { return tables_.of<PatternWriter>().Drop(drop); }
  absl::Status Do(const DropPattern& drop) { return tables_.of<PatternWriter>().Drop(drop); }
  absl::Status Do(const PutInventory& put) { return tables_.of<InventoryWriter>().Put(put); }
  absl::Status Do(const PutCounters& put) { return tables_.of<MeasurementWriter>().Put(put); }
  absl::Status Do(const PruneHistory& prune) {
    return tables_.of<MeasurementWriter>().Prune(prune);
  }
  absl::Status Do(const PutDistances& put) { return tables_.of<DistanceWriter>().Put(put); }
  absl::Status Do(const AppendEvents& append) { return tables_.of<EventWriter>().Append(append); }
  absl::Status Do(const PruneEvents& prune) { return tables_.of<EventWriter>().Prune(prune); }
  absl::Status Do(const AppendDeeds& append) { return tables_.of<DeedWriter>().Append(append); }
  absl::Status Do(const PutQuota& put) { return tables_.of<SettingWriter>().Put(put); }
  absl::Status Do(const PutProfile& put) { return tables_.of<SettingWriter>().Put(put); }

  SqliteConnection& connection_;
  TablesOn<JobWriter, TreeWriter, PlacementWriter, OrderWriter, PatternWriter, InventoryWriter,
           MeasurementWriter, DistanceWriter, EventWriter, DeedWriter, SettingWriter>
      tables_;
  Statement savepoint_, release_savepoint_, rollback_savepoint_;
};

// Not thread-safe: its owner lets one thread in at a time.
class SqliteReader {
 public:
  // `connection` must outlive the reader and hold the newest schema.
  static absl::StatusOr<std::unique_ptr<SqliteReader>> Create(SqliteConnection& connection);

  // All of it as of one instant.
  absl::StatusOr<StoredState> Load();

  // One table's part, as reader.of<JobReader>().
  template <class Table>
  Table& of() {
    return tables_.of<Table>();
  }

 private:
  explicit SqliteReader(SqliteConnection& connection) : tables_(connection) {}
  absl::StatusOr<StoredState> LoadInTransaction();

  TablesOn<JobReader, TreeReader, PlacementReader, OrderReader, PatternReader, InventoryReader,
           MeasurementReader, DistanceReader, EventReader, DeedReader, SettingReader>
      tables_;
  Statement begin_, commit_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_TABLES_H_
