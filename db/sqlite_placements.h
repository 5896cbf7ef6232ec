// The tables of mapping: patterns, orders of ranks and placements.
//
// Placements as SQL: the writer's part and the reader's.
#ifndef COPPICE_DB_SQLITE_PLACEMENTS_H_
#define COPPICE_DB_SQLITE_PLACEMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/job_records.h"
#include "db/sqlite_connection.h"

namespace coppice {

// Belongs to the writer's thread; works within its transaction. Contracts as of the mutations.
class PlacementWriter {
 public:
  explicit PlacementWriter(SqliteConnection& connection);

  absl::Status Apply(const PutPlacements& put);
  absl::Status Apply(const EndPlacement& end) { return End(end.placement, end.state, end.time); }
  // StartPlacement without its job.
  absl::Status Start(PlacementId id, JobId job, absl::Time time) {
    return End(id, PlacementState::kStarted, time, job);
  }
  absl::Status Apply(const PrunePlacements& prune);

 private:
  absl::Status Put(const PlacementRecord& placement);
  absl::Status End(PlacementId id, PlacementState state, absl::Time time, JobId job = {});
  // Words for a constraint that `failure` reports; a storage failure stays as it is.
  absl::Status Explain(const PlacementRecord& placement, absl::Status failure);
  absl::Status ExplainNode(const std::string& node, absl::Status failure);

  Statement insert_, insert_node_, end_, find_, find_request_, find_node_, count_ended_,
      list_ended_, delete_;
};

// As SqliteReader, part of which it is. Contracts as of Store.
class PlacementReader {
 public:
  explicit PlacementReader(SqliteConnection& connection);

  // Those that the state keeps.
  absl::Status Load(StoredState& state);
  absl::StatusOr<PlacementRecord> Get(PlacementId id);
  absl::StatusOr<int64_t> Ended(absl::Time before);

 private:
  Statement holding_, find_, ended_;
};

// Orders of jobs' ranks as SQL: the writer's part and the reader's. The end of a job drops its
// order by a trigger, in the transaction of the end.

// Belongs to the writer's thread; works within its transaction. Contracts as of the mutations.
class OrderWriter {
 public:
  explicit OrderWriter(SqliteConnection& connection);

  absl::Status Apply(const PutOrder& put);

 private:
  Statement find_active_job_, count_others_, put_;
};

// As SqliteReader, part of which it is. Contracts as of Store.
class OrderReader {
 public:
  explicit OrderReader(SqliteConnection& connection);

  // DATA_LOSS: the row is not what the writer makes.
  absl::StatusOr<OrderRecord> Get(JobId job);

 private:
  Statement find_;
};

// Communication patterns as SQL: the writer's part and the reader's.

// Belongs to the writer's thread; works within its transaction. Contracts as of the mutations.
class PatternWriter {
 public:
  explicit PatternWriter(SqliteConnection& connection);

  absl::Status Apply(const PutPatternPart& put);
  absl::Status Apply(const PutPattern& put);
  absl::Status Apply(const DropPatternParts& drop);
  absl::Status Apply(const DropPattern& drop);

 private:
  // ALREADY_EXISTS: there is a pattern of that number.
  absl::Status CheckFree(int64_t id);
  absl::Status DropName(const std::string& name, const std::string& owner, bool by_administrator);

  Statement insert_part_, count_parts_, find_, drop_parts_, drop_name_, drop_shared_, insert_;
};

// As SqliteReader, part of which it is. Contracts as of Store.
class PatternReader {
 public:
  explicit PatternReader(SqliteConnection& connection);

  absl::StatusOr<std::vector<PatternRecord>> List();
  absl::StatusOr<std::string> Data(int64_t id);

 private:
  Statement list_, find_, parts_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_PLACEMENTS_H_
