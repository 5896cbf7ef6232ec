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
  // By the one of them that takes it.
  template <class What>
  absl::Status Apply(const What& what) {
    static_assert(((Takes<Tables, What> ? 1 : 0) + ...) == 1);
    return ForAll([&](auto& table) {
      if constexpr (requires { table.Apply(what); }) return table.Apply(what);
      return absl::OkStatus();
    });
  }
  // What each of them has of the state.
  absl::Status Load(StoredState& state) {
    return ForAll([&](auto& table) {
      if constexpr (requires { table.Load(state); }) return table.Load(state);
      return absl::OkStatus();
    });
  }
  // What became of the transaction, to those that remember something of it.
  void Committed() {
    ForAll([](auto& table) {
      if constexpr (requires { table.Committed(); }) table.Committed();
      return absl::OkStatus();
    }).IgnoreError();
  }
  void RolledBack() {
    ForAll([](auto& table) {
      if constexpr (requires { table.RolledBack(); }) table.RolledBack();
      return absl::OkStatus();
    }).IgnoreError();
  }

 private:
  template <class Table, class What>
  static constexpr bool Takes = requires(Table& table, const What& what) {
    table.Apply(what);
  };

  // The first failure.
  template <class Visit>
  absl::Status ForAll(Visit visit) {
    return std::apply(
        [&](Tables&... tables) {
          absl::Status status;
          static_cast<void>(((status = visit(tables)).ok() && ...));
          return status;
        },
        tables_);
  }

  std::tuple<Tables...> tables_;
};

// Belongs to the writer's thread.
class SqliteMutator {
 public:
  // `connection` must outlive the mutator and hold the newest schema; it is to prepare all.
  explicit SqliteMutator(SqliteConnection& connection)
      : connection_(connection),
        tables_(connection),
        savepoint_(connection, "SAVEPOINT mutation"),
        release_savepoint_(connection, "RELEASE mutation"),
        rollback_savepoint_(connection, "ROLLBACK TO mutation") {}

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
  void Committed() { tables_.Committed(); }
  void RolledBack() { tables_.RolledBack(); }

 private:
  // Of one table; of several, each has its own.
  template <class What>
  absl::Status Do(const What& what) {
    return tables_.Apply(what);
  }
  absl::Status Do(const StartPlacement& start);

  SqliteConnection& connection_;
  TablesOn<JobWriter, TreeWriter, PlacementWriter, OrderWriter, PatternWriter, InventoryWriter,
           MeasurementWriter, DistanceWriter, EventWriter, DeedWriter, SettingWriter>
      tables_;
  Statement savepoint_, release_savepoint_, rollback_savepoint_;
};

// Not thread-safe: its owner lets one thread in at a time.
class SqliteReader {
 public:
  // As SqliteMutator.
  explicit SqliteReader(SqliteConnection& connection)
      : tables_(connection), begin_(connection, "BEGIN"), commit_(connection, "COMMIT") {}

  // All of it as of one instant.
  absl::StatusOr<StoredState> Load();

  // One table's part, as reader.of<JobReader>().
  template <class Table>
  Table& of() {
    return tables_.of<Table>();
  }

 private:
  TablesOn<JobReader, TreeReader, PlacementReader, OrderReader, PatternReader, InventoryReader,
           MeasurementReader, DistanceReader, EventReader, DeedReader, SettingReader>
      tables_;
  Statement begin_, commit_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_TABLES_H_
