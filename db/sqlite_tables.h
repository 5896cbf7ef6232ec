// All tables together: each mutation goes to the writer of its tables, on the writer's connection,
// and each question to a reader, on a connection of its own, which sees what is committed and never
// waits for the writer. Statements are prepared once.
//
// The refusals of store.h come from the database's own constraints and triggers; code only finds
// the words for them afterwards, so that the common path asks nothing twice.
#ifndef COPPICE_DB_SQLITE_TABLES_H_
#define COPPICE_DB_SQLITE_TABLES_H_

#include <cstddef>
#include <memory>

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

// Belongs to the writer's thread.
class SqliteMutator {
 public:
  // `connection` must outlive the mutator and hold the newest schema.
  static absl::StatusOr<std::unique_ptr<SqliteMutator>> Create(Connection& connection);

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
  absl::Status DropAbandoned() { return jobs_.DropAbandoned(); }
  // What became of the transaction.
  void Committed();
  void RolledBack();

 private:
  explicit SqliteMutator(Connection& connection)
      : connection_(connection),
        jobs_(connection),
        trees_(connection),
        placements_(connection),
        orders_(connection),
        patterns_(connection),
        inventory_(connection),
        measurements_(connection),
        distances_(connection),
        events_(connection),
        deeds_(connection),
        settings_(connection) {}

  absl::Status Do(const PutJob& put) { return jobs_.Put(put); }
  absl::Status Do(const EndJob& end) { return jobs_.End(end); }
  absl::Status Do(const PruneJobs& prune) { return jobs_.Prune(prune); }
  absl::Status Do(const GrantTree& grant) { return trees_.Grant(*grant.tree); }
  absl::Status Do(const ReleaseTree& release) { return trees_.Release(release); }
  absl::Status Do(const ChangeTrees& change) { return trees_.Change(change); }
  absl::Status Do(const PutCapabilities& put) { return trees_.Put(put); }
  absl::Status Do(const PutPlacements& put) { return placements_.Put(put); }
  absl::Status Do(const EndPlacement& end) { return placements_.End(end); }
  absl::Status Do(const StartPlacement& start);
  absl::Status Do(const PrunePlacements& prune) { return placements_.Prune(prune); }
  absl::Status Do(const PutOrder& put) { return orders_.Put(put); }
  absl::Status Do(const PutPatternPart& put) { return patterns_.Put(put); }
  absl::Status Do(const PutPattern& put) { return patterns_.Put(put); }
  absl::Status Do(const DropPatternParts& drop) { return patterns_.Drop(drop); }
  absl::Status Do(const DropPattern& drop) { return patterns_.Drop(drop); }
  absl::Status Do(const PutInventory& put) { return inventory_.Put(put); }
  absl::Status Do(const PutCounters& put) { return measurements_.Put(put); }
  absl::Status Do(const PruneHistory& prune) { return measurements_.Prune(prune); }
  absl::Status Do(const PutDistances& put) { return distances_.Put(put); }
  absl::Status Do(const AppendEvents& append) { return events_.Append(append); }
  absl::Status Do(const PruneEvents& prune) { return events_.Prune(prune); }
  absl::Status Do(const AppendDeeds& append) { return deeds_.Append(append); }
  absl::Status Do(const PutQuota& put) { return settings_.Put(put); }
  absl::Status Do(const PutProfile& put) { return settings_.Put(put); }

  Connection& connection_;
  JobWriter jobs_;
  TreeWriter trees_;
  PlacementWriter placements_;
  OrderWriter orders_;
  PatternWriter patterns_;
  InventoryWriter inventory_;
  MeasurementWriter measurements_;
  DistanceWriter distances_;
  EventWriter events_;
  DeedWriter deeds_;
  SettingWriter settings_;
  Statement savepoint_, release_savepoint_, rollback_savepoint_;
};

// Not thread-safe: its owner lets one thread in at a time.
class SqliteReader {
 public:
  // `connection` must outlive the reader and hold the newest schema.
  static absl::StatusOr<std::unique_ptr<SqliteReader>> Create(Connection& connection);

  // All of it as of one instant.
  absl::StatusOr<StoredState> Load();

  JobReader& jobs() { return jobs_; }
  TreeReader& trees() { return trees_; }
  PlacementReader& placements() { return placements_; }
  OrderReader& orders() { return orders_; }
  PatternReader& patterns() { return patterns_; }
  InventoryReader& inventory() { return inventory_; }
  MeasurementReader& measurements() { return measurements_; }
  DistanceReader& distances() { return distances_; }
  EventReader& events() { return events_; }
  DeedReader& deeds() { return deeds_; }

 private:
  explicit SqliteReader(Connection& connection)
      : jobs_(connection),
        trees_(connection),
        placements_(connection),
        orders_(connection),
        patterns_(connection),
        inventory_(connection),
        measurements_(connection),
        distances_(connection),
        events_(connection),
        deeds_(connection),
        settings_(connection) {}
  absl::StatusOr<StoredState> LoadInTransaction();

  JobReader jobs_;
  TreeReader trees_;
  PlacementReader placements_;
  OrderReader orders_;
  PatternReader patterns_;
  InventoryReader inventory_;
  MeasurementReader measurements_;
  DistanceReader distances_;
  EventReader events_;
  DeedReader deeds_;
  SettingReader settings_;
  Statement begin_, commit_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_TABLES_H_
