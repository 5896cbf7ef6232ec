// The jobs in memory: those that are active, by id, with what the manager must know of each beyond
// its record. A job leaves the table when the store has ended it; from then on the store alone
// knows it.
//
// Job::trees and JobTable mirror the store: they change in the callbacks of mutations, which come
// in the order in which the store applied them. `ending` and `trees_in_flight` run ahead of it.
// Not thread-safe; the manager's lock guards table and jobs, except where a field says otherwise.
#ifndef COPPICE_DAEMON_MANAGER_JOB_TABLE_H_
#define COPPICE_DAEMON_MANAGER_JOB_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "daemon/fabric/fabric.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/named_requests.h"

namespace coppice {

// A job's endpoints as indices of one snapshot.
struct ResolvedEndpoints {
  static constexpr EndpointIndex kGone{0xffffffff};
  uint64_t fabric_version = 0;
  std::vector<EndpointIndex> endpoints;  // [rank]; kGone: the port is not in that snapshot
};

// What a batch that was named by a request_id was granted, as far as it still lives.
struct GrantedBatch {
  absl::btree_map<uint32_t, TreeId> trees;   // by communicator; never empty
  std::shared_ptr<const BatchView> outcome;  // as answered; null after a restart
};

struct Job {
  std::shared_ptr<const JobRecord> record;
  absl::Duration deadline;         // by Clock::Monotonic
  absl::Duration queued_deadline;  // where JobTable's queue has it, at or before `deadline`
  bool ending = false;             // EndJob is on its way to the store
  bool ended = false;              // and has arrived: the job is no longer in the table
  std::vector<Manager::Callback<uint32_t>> end_waiters;
  absl::btree_set<TreeId> trees;
  std::vector<uint32_t> lost_ranks;  // ascending: whose ports the published fabric has not
  uint32_t trees_in_flight = 0;      // being planned or on their way to the store
  NamedRequests<TreeId, TreeView> tree_requests;
  // By request_id; the id of one that is done is kBatchDone, and `batches` has its trees.
  static constexpr uint64_t kBatchDone = 1;
  NamedRequests<uint64_t, std::shared_ptr<const BatchView>> batch_requests;
  absl::flat_hash_map<std::string, GrantedBatch> batches;
  std::shared_ptr<const ResolvedEndpoints> resolved;  // null: not yet
};

class JobTable {
 public:
  // Null: not active.
  std::shared_ptr<Job> Find(JobId id) const;
  void Add(std::shared_ptr<Job> job);
  // Takes the job out, with its request_id.
  void Remove(Job& job);
  size_t size() const { return jobs_.size(); }
  // Up to `limit` jobs with higher ids than `after`, ascending.
  std::vector<std::shared_ptr<Job>> List(JobId after, size_t limit) const;

  // Marks as ending, and returns, every job whose deadline is at or before `now`. O(log jobs) for
  // each job whose queued deadline has come; renewing a lease costs the queue nothing.
  std::vector<std::shared_ptr<Job>> TakeExpired(absl::Duration now);
  // Queues a job that TakeExpired took but that could not be ended.
  void Requeue(Job& job, absl::Duration deadline);
  // No deadline is earlier. Infinite: none queued.
  absl::Duration NextDeadline() const;

  // What came and went since the last call, for who keeps something of every active job.
  struct Changes {
    bool is_all = false;  // `added` are all that there are; others went
    absl::btree_map<JobId, std::shared_ptr<const JobRecord>> added;  // and not removed since
    std::vector<JobId> removed;                                      // as they went
  };
  // One caller. All, if that is asked for, at the first call, and after more changes than are kept.
  // O(changes).
  Changes TakeChanges(bool all);

  JobId last() const { return last_; }
  void set_last(JobId id) { last_ = id; }
  JobId TakeId() { return last_ = JobId(last_.value() + 1); }

  // By OwnName of the request_id, of active jobs and of registrations under way.
  NamedRequests<JobId, JobView> registrations;

 private:
  void StopFollowingIfLong();
  void Unqueue(const Job& job) { queue_.erase({job.queued_deadline, job.record->id}); }

  absl::btree_map<JobId, std::shared_ptr<Job>> jobs_;
  // One place per job. A tree rather than a heap, so that jobs that end early leave nothing behind.
  absl::btree_set<std::pair<absl::Duration, JobId>> queue_;
  JobId last_;
  static constexpr size_t kMostChanges = 16'384;
  bool is_followed_ = false;  // `changes_` are what came and went since the last TakeChanges
  Changes changes_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_JOB_TABLE_H_
