// Everything that changes in the daemon, behind one lock. Sections under it are short: look-ups,
// counts and pointers; never planning, never the store, never a caller's callback.
#ifndef COPPICE_DAEMON_MANAGER_TABLES_H_
#define COPPICE_DAEMON_MANAGER_TABLES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/clock.h"
#include "daemon/fabric/fabric.h"
#include "daemon/manager/change_feed.h"
#include "daemon/manager/entry_ledger.h"
#include "daemon/manager/event_log.h"
#include "daemon/manager/fabric_view.h"
#include "daemon/manager/job_ports.h"
#include "daemon/manager/kept_entries.h"
#include "daemon/manager/promised_load.h"
#include "daemon/manager/quota_ledger.h"
#include "daemon/manager/requests.h"
#include "db/store.h"

namespace coppice {

// What happened since the last look, in numbers: trees come and go thousands of times a second, and
// the trees table is their record; one event each would only wear the disk. So grants, releases and
// refusals are counted and written as a few events per period.
// Not thread-safe; the manager's lock guards it.
class Activity {
 public:
  void Granted(uint64_t trees = 1) { now_.granted += trees; }
  void Released(uint64_t trees) { now_.released += trees; }
  // A type II tree was refused because of these.
  void Refused(absl::Span<const RefusedSwitch> switches);
  // Have events of their own.
  void Repaired() { ++now_.repaired; }
  void Revoked() { ++now_.revoked; }

  // The events of the period that ends at `now`, and starts the next: one "trees.changed", one
  // "entries.exhausted" for each of the first switches that refused. Nothing happened: none.
  std::vector<EventRecord> Take(absl::Time now);

  const TreeTotals& totals() const { return now_; }

 private:
  // Most switches that one period names; the rest is a number.
  static constexpr size_t kMaxSwitches = 32;
  struct Refusals {
    uint32_t entries_total = 0;
    uint64_t count = 0;
  };

  TreeTotals now_;
  TreeTotals before_;  // at the start of the period
  absl::btree_map<Guid, Refusals> by_switch_;
};

// --- Active jobs ---
// Job::trees and JobTable mirror the store: they change in the callbacks of mutations, which come
// in the order in which the store applied them. `ending` and `trees_in_flight` run ahead of it.
// Not thread-safe; the manager's lock guards table and jobs.
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
  std::vector<Callback<uint32_t>> end_waiters;
  absl::btree_set<TreeId> trees;
  std::vector<uint32_t> lost_ranks;  // ascending: whose ports the published fabric has not
  uint32_t trees_in_flight = 0;      // being planned or on their way to the store
  using TreeRequests = NamedRequests<TreeId, TreeView>;
  TreeRequests tree_requests;
  // By request_id; the id of one that is done is kBatchDone, and `batches` has its trees.
  static constexpr uint64_t kBatchDone = 1;
  using BatchRequests = NamedRequests<uint64_t, std::shared_ptr<const BatchView>>;
  BatchRequests batch_requests;
  absl::flat_hash_map<std::string, GrantedBatch> batches;
  std::shared_ptr<const JobPorts> ports;  // on the fabric that was planned on last; null: none
  PartitionNum kept_partition;  // of an earlier release's, once chosen (PartitionOfJob); else 0
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
  using Registrations = NamedRequests<JobId, JobView>;
  Registrations registrations;

 private:
  void StopFollowingIfLong();
  void Unqueue(const Job& job) { queue_.erase({job.queued_deadline, job.record->id}); }

  absl::btree_map<JobId, std::shared_ptr<Job>> jobs_;
  // One place per job. A tree rather than a heap, so that jobs that end early leave nothing behind.
  absl::btree_set<std::pair<absl::Duration, JobId>> queue_;
  JobId last_;
  static constexpr size_t kMaxChanges = 16'384;
  bool is_followed_ = false;  // `changes_` are what came and went since the last TakeChanges
  Changes changes_;
};

// --- Granted trees: as jobs ---
struct GrantedTree {
  std::shared_ptr<const TreeRecord> record;
  std::shared_ptr<Job> job;
  std::optional<RouteKind> route_kind;  // nullopt: granted by an earlier run, which did not say
  TreePromise promise;                  // on the present fabric, once there is one
  bool releasing = false;               // ReleaseTree is on its way to the store
  // A repair may have given its switches the next revision: its entries are the repair's to free.
  bool is_moving = false;
  std::vector<Callback<TreeId>> release_waiters;
};

class TreeTable {
 public:
  // Null: not granted.
  std::shared_ptr<GrantedTree> Find(TreeId id) const;
  // Also enters it with its job and, if its name says so, its batch.
  void Add(std::shared_ptr<GrantedTree> tree);
  // Also takes it, and its request_id, from its job and its batch.
  void Remove(const GrantedTree& tree);
  size_t size() const { return trees_.size(); }
  // Up to `limit` trees with higher ids than `after`, ascending; of one job unless `job` is null.
  std::vector<std::shared_ptr<GrantedTree>> List(const Job* job, TreeId after, size_t limit) const;

  void set_last(TreeId id) { last_ = id; }
  TreeId TakeId() { return last_ = TreeId(last_.value() + 1); }

 private:
  static void LeaveBatch(const GrantedTree& tree);

  absl::btree_map<TreeId, std::shared_ptr<GrantedTree>> trees_;
  TreeId last_;
};

inline absl::Status NoSuchTree(TreeId id) {
  return absl::NotFoundError(
      absl::StrCat("no tree ", id.value(), " is granted; it was released or never existed"));
}

// Ranks of a tree, of a forest once for each of its trees: what it takes to keep it.
inline int64_t RanksKept(const TreeRecord& tree) {
  return static_cast<int64_t>(tree.ranks.size() * std::max<size_t>(1, tree.forest.size()));
}

// What they count for.
inline QuotaAmounts AmountsOf(const TreeRecord& tree) {
  QuotaAmounts amounts;
  amounts[Quota::kTrees] = 1;
  amounts[Quota::kTreeRanks] = RanksKept(tree);
  amounts[Quota::kEntries] = static_cast<int64_t>(tree.switches.size());
  return amounts;
}
inline QuotaAmounts AmountsOf(const JobRecord& job) {
  QuotaAmounts amounts;
  amounts[Quota::kJobs] = 1;
  amounts[Quota::kRanks] = static_cast<int64_t>(job.endpoints.size());
  amounts[Quota::kNodes] = job.placed_nodes;
  return amounts;
}
inline QuotaAmounts AmountsOf(const PlacementRecord& placement) {
  QuotaAmounts amounts;
  amounts[Quota::kNodes] = static_cast<int64_t>(placement.nodes.size());
  return amounts;
}

struct Tables;
class SwitchInstaller;

// What every use case of the manager works with; all of it outlives them.
struct UseCase {
  StoreCalls* const calls_;
  EventLog* const events_;
  const Clock* const clock_;
  Tables* const tables_;
  const LiveOptions options_;
  SwitchInstaller* const installer_ = nullptr;  // null: no switch will speak
};

// Entries that a grant has a right to, and others were lent: of each switch the trees that are to
// give way; none where nobody can.
using LentEntries = absl::flat_hash_map<Guid, std::vector<TreeId>>;

struct Tables {
  mutable std::mutex mu;  // std, not absl: ThreadSanitizer does not see through Debian's Abseil
  QuotaLedger quotas;     // locks for itself; asked under whatever lock decides on a grant
  // All guarded by mu.
  JobTable jobs;
  TreeTable trees;
  EntryLedger entries;
  PromisedLoad load;  // on the channels of `view`: exactly what the trees in `trees` promise
  Activity activity;
  std::shared_ptr<const FabricView> view;      // null before the first sweep
  std::shared_ptr<const CostProfile> profile;  // in force; never null once the manager is made
  double promised_duty = 0;
  ChangeFeed feed;                  // what happens to `trees`, as it happens
  std::vector<TreeId> stale_trees;  // to be judged without waiting for a sweep that sees a change
  std::function<void()> on_stale;   // called when one is added
  // What reservations keep now; never null.
  std::shared_ptr<const KeptEntries> kept = std::make_shared<const KeptEntries>();
  // Trees that are to be planned anew without the entries that they were lent, and why.
  absl::flat_hash_map<TreeId, std::string> called_back;
  absl::Time last_stamp = absl::UnixEpoch();
  // To be judged when a switch speaks again: they moved while one that carries them was away.
  absl::btree_set<TreeId> waiting_trees;
  LinkUseCounter counter;                        // FindPromise's, as large as the fabric
  std::shared_ptr<const Routes> shortest_paths;  // ShortestPathsOf's (tree_draft.h); may be null

  // Takes the lock; null before the first sweep.
  std::shared_ptr<const FabricView> Published() const {
    std::lock_guard lock(mu);
    return view;
  }
  // A granted tree, whose entries are its own already, into all other tables. Every tree comes in
  // here and goes out by RemoveTree.
  //
  // Whoever grants many finds their promises before it takes the lock; what is missing or of
  // another fabric is found here.
  void AddTree(std::shared_ptr<GrantedTree> tree, TreeChangeKind kind = TreeChangeKind::kGranted) {
    if (view != nullptr) {
      if (tree->promise.fabric_version != view->snapshot->fabric->version()) {
        tree->promise = FindPromise(*view, *tree->job->record, *tree->record);
      }
      load.Add(tree->record->job, tree->promise.channels, promised_duty);
      NoteIfStale(*tree->record);
      NoteIfUnrouted(*tree);
    }
    if (kind != TreeChangeKind::kPresent) feed.Push(kind, ViewOf(*tree));
    trees.Add(std::move(tree));
  }
  // The same tree, planned anew; its entries are those of `record` already.
  void ReviseTree(GrantedTree& tree, std::shared_ptr<const TreeRecord> record, TreePromise promise,
                  RouteKind route_kind, std::string reason) {
    load.Remove(tree.record->job, tree.promise.channels, promised_duty);
    QuotaAmounts more;  // what a repair needs is not refused
    more[Quota::kEntries] = static_cast<int64_t>(record->switches.size()) -
                            static_cast<int64_t>(tree.record->switches.size());
    more[Quota::kTreeRanks] = RanksKept(*record) - RanksKept(*tree.record);
    const Payer payer = PayerOf(*tree.job->record);
    quotas.Give(payer, {}, tree.record->switches);
    quotas.Count(payer, more, record->switches);
    called_back.erase(record->id);
    tree.record = std::move(record);
    tree.route_kind = route_kind;
    tree.promise = std::move(promise);
    if (tree.promise.fabric_version != view->snapshot->fabric->version()) {
      tree.promise = FindPromise(*view, *tree.job->record, *tree.record);
    }
    load.Add(tree.record->job, tree.promise.channels, promised_duty);
    NoteIfStale(*tree.record);
    feed.Push(TreeChangeKind::kRevised, ViewOf(tree), std::move(reason));
  }
  // What every grant and every end needs of one tree: out of all tables at once.
  void RemoveTree(const GrantedTree& tree, TreeChangeKind kind = TreeChangeKind::kReleased,
                  std::string reason = "") {
    feed.Push(kind, ViewOf(tree), std::move(reason));
    if (tree.is_moving) {
      entries.Unsettle(tree.record->id, tree.record->switches);
    } else {
      entries.Release(tree.record->id, tree.record->switches);
    }
    quotas.Give(PayerOf(*tree.job->record), AmountsOf(*tree.record), tree.record->switches);
    if (view != nullptr) {
      load.Remove(tree.record->job, tree.promise.channels, promised_duty);
    }
    called_back.erase(tree.record->id);
    trees.Remove(tree);
    if (kind == TreeChangeKind::kRevoked) {
      activity.Revoked();
    } else {
      activity.Released(1);
    }
  }
  // A view's own copy of what may change meanwhile.
  TreeView ViewOf(const GrantedTree& tree) const {
    const RouteKind present = view ? view->snapshot->routes->kind() : RouteKind::kShortestPath;
    return {tree.record, tree.job->record, tree.route_kind.value_or(present), tree.promise.busiest};
  }
  // The fabric whose switches and hosts there are to share out.
  void RebaseEntries(const Fabric& fabric, absl::Span<const EntryUse> uses) {
    entries.Rebase(fabric, uses);
    SetWholeOfEntries();
    quotas.SetWhole(Quota::kNodes, fabric.host_count());
  }
  // Of one switch, by its own word.
  void SetCapability(const CapabilityRecord& capability) {
    entries.SetCapability(capability);
    SetWholeOfEntries();
  }
  void SetAway(Guid guid, bool is_away) {
    entries.SetAway(guid, is_away);
    SetWholeOfEntries();
  }
  void SetWholeOfEntries() {
    quotas.SetWhole(Quota::kEntries,
                    static_cast<int64_t>(entries.entries_total() - entries.entries_reserved()));
  }
  // A grant that was on its way while a sweep published another fabric.
  void NoteIfStale(const TreeRecord& record) {
    if (record.fabric_version != view->snapshot->fabric->version()) NoteUnjudged(record.id);
  }
  // Planned while the tables were behind the links, it may be one that they lead over.
  void NoteIfUnrouted(const GrantedTree& tree) {
    const RouteKind present = view->snapshot->routes->kind();
    if (tree.route_kind.value_or(present) != present) NoteUnjudged(tree.record->id);
  }
  // A tree that no sweep judges, unless it is asked to: also one that was on its way out when the
  // last one did, and then stayed.
  void NoteUnjudged(TreeId tree) {
    stale_trees.push_back(tree);
    if (on_stale) on_stale();
  }
  // The time of the clock, but later than all that it was told: what was made earlier says so,
  // however the clock is set. Of trees, moves and reservations.
  absl::Time Stamp(absl::Time now) {
    return last_stamp = std::max(now, last_stamp + absl::Nanoseconds(1));
  }
  // Takes entries of the switch back for the share's tenant, from others' trees that came there
  // after it was reserved, the newest first. Returns those trees, `most` of them at most.
  std::vector<TreeId> CallBack(Guid guid, const KeptEntries::Share& share, int64_t most);
  // Whether one that was called back is still there.
  bool IsGivingWay(TreeId tree) const;
  // False: what is free there beyond what is kept from the payer is less. `lent` gets what others
  // are to give back then.
  bool LeavesKept(const Payer& payer, absl::Span<const TreeSwitchRecord> wanted, LentEntries& lent);
  void JudgeWaiting() {
    for (const TreeId tree : std::exchange(waiting_trees, {})) NoteUnjudged(tree);
  }
  // For the few that race with a sweep; whoever has many finds them without the lock.
  TreePromise FindPromise(const FabricView& of, const JobRecord& job, const TreeRecord& record) {
    return PromiseOfRecord(*of.snapshot, *of.link_ids, *profile, promised_duty, job, record,
                           counter);
  }
};

// Of the job where ports tell theirs, else 0. What is chosen for one of an earlier release, which
// has none of its own, is kept as soon as the tables of all of its ports are known. Takes the lock.
absl::StatusOr<PartitionNum> PartitionOfJob(Tables& tables, Job& job, const Snapshot& snapshot);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TABLES_H_
