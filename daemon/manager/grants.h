// The use cases of trees: grant, advise, release.
//
//   Create:  begin --> plan, unlocked --> reserve --> GrantTree durable --> table --> answer
//              |         ^    |              |                |
//            error       |  error      stale: plan again    failed: reservation undone, error
//                        +-------------------+  (kMaxAttempts, then ABORTED)
//
// Why nothing leaks when grants race with the end of their job: the store applies mutations in some
// order and answers in that order. A grant before the end is entered in the table by its callback
// and taken out by the end's; a grant after the end is refused by the store, and its callback gives
// the reservation back.
#ifndef COPPICE_DAEMON_MANAGER_GRANTS_H_
#define COPPICE_DAEMON_MANAGER_GRANTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/clock.h"
#include "daemon/manager/jobs.h"
#include "daemon/manager/options.h"
#include "daemon/manager/requests.h"
#include "daemon/manager/store_calls.h"
#include "daemon/manager/tables.h"
#include "daemon/manager/tree_draft.h"

namespace coppice {

// Thread-safe. Methods as Manager's of the same name.
class Grants {
 public:
  // Plans of one request before it is ABORTED. Each failed attempt means that another grant, or a
  // sweep, succeeded meanwhile.
  static constexpr int kMaxAttempts = 8;

  Grants(StoreCalls* calls, const Clock* clock, Tables* tables, LiveOptions options, Jobs* jobs);

  // Enters the trees of an earlier run. DATA_LOSS: a tree of a job that is not active.
  absl::Status Restore(std::vector<TreeRecord> trees, TreeId last);

  void Create(CreateTreeArgs args, Callback<TreeView> done);
  absl::StatusOr<TreeView> Advise(const CreateTreeArgs& args);
  void Release(TreeId id, Callback<TreeId> done, const Actor& actor = {});

 private:
  // A tree that holds its entries and is on its way to the store.
  struct Reserved {
    std::shared_ptr<Job> job;
    std::shared_ptr<const TreeRecord> record;
    RouteKind route_kind = RouteKind::kShortestPath;
    TreePromise promise;
  };

  // As NamedRequests has it: true with one tree in flight for the job.
  bool Begin(Job& job, const CreateTreeArgs& args, uint64_t fingerprint, Callback<TreeView>& done);
  // `basis` becomes what the draft stands on: it goes over bare links where the tables are behind.
  absl::StatusOr<TreeDraft> Plan(PlanBasis& basis, const Job& job, const CreateTreeArgs& args,
                                 DraftScratch& scratch);
  absl::StatusOr<Reserved> PlanAndReserve(const std::shared_ptr<Job>& job,
                                          const CreateTreeArgs& args, uint64_t fingerprint);
  absl::StatusOr<bool> TryReserve(const Job& job, const PlanBasis& basis, const Actor& actor,
                                  TreeDraft& draft);
  void OnGranted(const Reserved& reserved, absl::Status status, Callback<TreeView> done);
  void FailGrant(Job& job, const std::string& request_id, const absl::Status& status,
                 Callback<TreeView> done);
  void OnReleased(GrantedTree& tree, const absl::Status& status);

  ScratchPool scratches_;
  StoreCalls* const calls_;
  const Clock* const clock_;
  Tables* const tables_;
  const LiveOptions options_;
  Jobs* const jobs_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_GRANTS_H_
