// The questions that a store answers, as SQL on a connection of their own: they see what is
// committed and never wait for the writer.
#ifndef COPPICE_DB_SQLITE_QUERIES_H_
#define COPPICE_DB_SQLITE_QUERIES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/sqlite_connection.h"
#include "db/sqlite_deeds.h"
#include "db/sqlite_distances.h"
#include "db/sqlite_events.h"
#include "db/sqlite_measurements.h"
#include "db/sqlite_orders.h"
#include "db/sqlite_patterns.h"
#include "db/sqlite_placements.h"
#include "db/sqlite_ranks.h"
#include "db/store.h"

namespace coppice {

// Not thread-safe: its owner lets one thread in at a time. Contracts as of Store.
class SqliteReader {
 public:
  // `connection` must outlive the reader and hold the newest schema.
  static absl::StatusOr<std::unique_ptr<SqliteReader>> Create(Connection& connection);

  // All of it as of one instant.
  absl::StatusOr<StoredState> Load();
  absl::StatusOr<std::vector<EntryUse>> Entries();
  absl::StatusOr<JobRecord> GetJob(JobId id);
  absl::StatusOr<int64_t> EndedJobs(absl::Time before);
  absl::StatusOr<std::vector<OwnedJobs>> EndedJobsOfOwners();
  absl::StatusOr<std::vector<int64_t>> LinkIds(const std::vector<LinkRecord>& links);
  EventReader& events() { return events_; }
  MeasurementReader& measurements() { return measurements_; }
  PatternReader& patterns() { return patterns_; }
  DistanceReader& distances() { return distances_; }
  PlacementReader& placements() { return placements_; }
  OrderReader& orders() { return orders_; }
  DeedReader& deeds() { return deeds_; }

 private:
  explicit SqliteReader(Connection& connection)
      : connection_(connection),
        events_(connection),
        measurements_(connection),
        patterns_(connection),
        distances_(connection),
        placements_(connection),
        orders_(connection),
        ranks_(connection),
        deeds_(connection) {}
  absl::StatusOr<StoredState> LoadInTransaction();
  absl::Status LoadTrees(StoredState& state);
  absl::Status LoadCounters(StoredState& state);
  absl::Status LoadQuotas(StoredState& state);
  // From the row that the statement stands on, which keeps the moment that is read. DATA_LOSS names
  // the row.
  absl::StatusOr<JobRecord> JobAt(const Statement& row);
  absl::StatusOr<TreeRecord> TreeAt(const Statement& row);

  Connection& connection_;
  EventReader events_;
  MeasurementReader measurements_;
  PatternReader patterns_;
  DistanceReader distances_;
  PlacementReader placements_;
  OrderReader orders_;
  RankReader ranks_;
  DeedReader deeds_;
  Statement begin_, commit_;
  Statement active_jobs_, job_, ended_jobs_, ended_jobs_of_owners_, trees_, tree_switches_,
      entries_, link_, last_id_, profile_, setting_, quotas_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_QUERIES_H_
