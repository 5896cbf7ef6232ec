// Everything that changes in the daemon, behind one lock. Sections under it are short: look-ups,
// counts and pointers; never planning, never the store, never a caller's callback.
#ifndef COPPICE_DAEMON_MANAGER_TABLES_H_
#define COPPICE_DAEMON_MANAGER_TABLES_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/manager/activity.h"
#include "daemon/manager/change_feed.h"
#include "daemon/manager/entry_ledger.h"
#include "daemon/manager/job_table.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/promised_load.h"
#include "daemon/manager/quota_ledger.h"
#include "daemon/manager/tree_table.h"

namespace coppice {

// What every use case that needs a fabric answers before the first sweep.
inline absl::Status NoFabricError() {
  return absl::UnavailableError("no fabric is known yet: the first sweep has not ended; try again");
}

inline absl::Status NoSuchTree(TreeId id) {
  return absl::NotFoundError(
      absl::StrCat("no tree ", id.value(), " is granted; it was released or never existed"));
}

inline QuotaAccount AccountOf(const JobRecord& job) { return {job.owner, job.by_administrator}; }

// What they count for.
inline QuotaAmounts AmountsOf(const TreeRecord& tree) {
  QuotaAmounts amounts;
  amounts[Quota::kTrees] = 1;
  amounts[Quota::kTreeRanks] = static_cast<int64_t>(tree.ranks.size());
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
  LinkUseCounter counter;           // FindPromise's, as large as the fabric
  std::shared_ptr<const Routes> shortest_paths;  // ShortestPathsOf's (plan_basis.h); may be null

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
    quotas.Count(AccountOf(*tree.job->record), more);
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
    entries.Release(tree.record->id, tree.record->switches);
    quotas.Give(AccountOf(*tree.job->record), AmountsOf(*tree.record));
    if (view != nullptr) {
      load.Remove(tree.record->job, tree.promise.channels, promised_duty);
    }
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
    quotas.SetWhole(Quota::kEntries,
                    static_cast<int64_t>(entries.entries_total() - entries.entries_reserved()));
    quotas.SetWhole(Quota::kNodes, fabric.host_count());
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
  // For the few that race with a sweep; whoever has many finds them without the lock.
  TreePromise FindPromise(const FabricView& of, const JobRecord& job, const TreeRecord& record) {
    return PromiseOfRecord(*of.snapshot, *of.link_ids, *profile, promised_duty, job, record,
                           counter);
  }
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TABLES_H_
