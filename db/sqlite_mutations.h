// Each mutation as SQL, through statements prepared once, on the writer's connection.
//
// The refusals of store.h come from the database's own constraints and triggers; code only finds
// the words for them afterwards, so that the common path asks nothing twice.
#ifndef COPPICE_DB_SQLITE_MUTATIONS_H_
#define COPPICE_DB_SQLITE_MUTATIONS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/kept_ranks.h"
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
  absl::Status DropAbandoned();
  // What became of the transaction.
  void Committed() {
    measurements_.Committed();
    deeds_.Committed();
    abandoned_.clear();
    // Otherwise pages of ranks would take the place of all others, and 64 MB for good.
    if (wrote_slices_) connection_.ReleaseMemory();
    wrote_slices_ = false;
    ranks_changed_ = false;
  }
  void RolledBack() {
    measurements_.RolledBack();
    deeds_.RolledBack();
    if (ranks_changed_) kept_ranks_.reset();
    ranks_changed_ = false;
  }

 private:
  explicit SqliteMutator(Connection& connection)
      : connection_(connection),
        events_(connection),
        measurements_(connection),
        patterns_(connection),
        distances_(connection),
        placements_(connection),
        orders_(connection),
        ranks_(connection),
        deeds_(connection) {}
  absl::Status PrepareJobs();
  absl::Status PrepareEnds();
  absl::Status PrepareTrees();
  absl::Status PrepareRevisions();
  absl::Status PrepareInventory();

  absl::Status Do(const PutJob& put);
  absl::Status PutAhead(const JobRecord& job, size_t step);
  absl::Status Do(const EndJob& end);
  absl::Status Do(const GrantTree& grant);
  absl::Status Do(const ReleaseTree& release);
  absl::Status Do(const ChangeTrees& change);
  absl::Status Do(const PutCapabilities& put);
  absl::Status Do(const PutProfile& put);
  absl::Status Do(const PutInventory& put);
  absl::Status Do(const AppendEvents& append) { return events_.Append(append); }
  absl::Status Do(const PutCounters& put) { return measurements_.Put(put); }
  absl::Status Do(const PruneHistory& prune) { return measurements_.Prune(prune); }
  absl::Status Do(const PruneEvents& prune) { return events_.Prune(prune); }
  absl::Status Do(const PruneJobs& prune);
  absl::Status Do(const PutPatternPart& put) { return patterns_.Put(put); }
  absl::Status Do(const PutPattern& put) { return patterns_.Put(put); }
  absl::Status Do(const DropPatternParts& drop) { return patterns_.Drop(drop); }
  absl::Status Do(const DropPattern& drop) { return patterns_.Drop(drop); }
  absl::Status Do(const PutDistances& put) { return distances_.Put(put); }
  absl::Status Do(const PutPlacements& put) { return placements_.Put(put); }
  absl::Status Do(const EndPlacement& end) { return placements_.End(end); }
  absl::Status Do(const StartPlacement& start);
  absl::Status Do(const PrunePlacements& prune) { return placements_.Prune(prune); }
  absl::Status Do(const PutOrder& put) { return orders_.Put(put); }
  absl::Status Do(const PutQuota& put);
  absl::Status Do(const AppendDeeds& append) { return deeds_.Append(append); }

  // Which ended jobs have their ranks; read when it is first asked for.
  absl::StatusOr<KeptRanks*> Ranks();
  absl::Status DropSurplusRanks(const EndJob& end);

  absl::Status Grant(const TreeRecord& tree);
  absl::Status InsertTree(const TreeRecord& tree);
  absl::Status InsertSwitches(const TreeRecord& tree);
  absl::Status CheckRevision(const TreeRecord& tree);
  absl::Status UpdateTree(const TreeRecord& tree);
  void WriteLists(const TreeRecord& tree);
  absl::Status InsertNodes(const PutInventory& put);
  absl::Status InsertPorts(const PutInventory& put);
  absl::Status InsertLinks(const PutInventory& put);
  absl::Status DropUnnamed(const PutCapabilities& put);

  // Words for a constraint that `failure` reports; a storage failure stays as it is.
  absl::Status ExplainJob(const JobRecord& job, absl::Status failure);
  absl::Status ExplainTree(const TreeRecord& tree, absl::Status failure);
  absl::Status ExplainSwitch(Guid guid, absl::Status failure);
  absl::Status ExplainNode(Guid guid, const std::string& user, absl::Status failure);

  Connection& connection_;
  EventWriter events_;
  MeasurementWriter measurements_;
  PatternWriter patterns_;
  DistanceWriter distances_;
  PlacementWriter placements_;
  OrderWriter orders_;
  RankWriter ranks_;
  DeedWriter deeds_;
  std::optional<KeptRanks> kept_ranks_;  // unset: not read, or what was read is undone
  // In the open transaction.
  bool ranks_changed_ = false;
  bool wrote_slices_ = false;  // wrote the last of a long list of ranks, or dropped one
  std::vector<JobId> abandoned_;
  Statement savepoint_, release_savepoint_, rollback_savepoint_;
  Statement insert_job_, end_job_, release_job_trees_;
  Statement count_ended_jobs_, list_ended_jobs_, count_ended_of_, list_ended_of_, delete_job_;
  Statement list_kept_ranks_, find_ended_job_, drop_ranks_, put_quota_, delete_quota_;
  Statement put_profile_, delete_profile_;
  Statement find_job_, find_job_request_, find_active_job_;
  Statement insert_tree_, insert_tree_switch_, delete_tree_;
  Statement find_revision_, empty_tree_, update_tree_;
  Statement find_tree_, find_tree_request_, find_tree_floor_, find_entries_;
  Statement put_capability_, delete_capability_, list_capabilities_;
  Statement put_node_, put_port_, put_link_, find_node_, raise_fabric_version_;
  // Reused from tree to tree.
  std::string nodes_text_, links_text_, physical_text_;
};

// How job.state spells a state.
const char* ToString(JobState state);

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_MUTATIONS_H_
