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

// The use case of batches: many communicators of one job planned together and granted in one step.
//
//   check, list ranks --> begin --> draft, unlocked --> reserve all --> ChangeTrees --> tables
//                           |          ^    |               |            durable          |
//                         error        |  error, cancelled  stale: plan again           answer
//                                      +--------------------+  (Grants::kMaxAttempts, then ABORTED)
//
// Why nothing leaks and nothing is there by half: the store applies ChangeTrees whole or not at
// all, and until it answers the batch's entries are reserved, as those of a single tree are
// (grants.h).
//
// A batch is named by its request_id; its trees' names say which batch and communicator they are
// of, so the trees alone tell a later run of the daemon what the batch was granted.

// Thread-safe.
class BatchGrants {
 public:
  using View = std::shared_ptr<const BatchView>;
  using Done = Callback<View>;

  BatchGrants(StoreCalls* calls, const Clock* clock, Tables* tables, LiveOptions options,
              Jobs* jobs);

  // As Manager::BatchCreateTrees.
  void Create(CreateBatchArgs args, const BatchWatch& watch, Done done);

 private:
  // A batch that holds its entries and is on its way to the store.
  struct Reserved {
    std::shared_ptr<Job> job;
    std::string request_id;
    uint32_t communicators = 0;                       // as many are in flight for the job
    std::vector<std::shared_ptr<GrantedTree>> trees;  // with ids
    std::shared_ptr<BatchView> view;                  // without views of trees
  };

  // As NamedRequests has it: true with the whole batch in flight for the job.
  bool Begin(Job& job, const CreateBatchArgs& args, uint64_t fingerprint, Done& done);
  std::shared_ptr<const BatchView> Recall(const Job& job, const CreateBatchArgs& args) const;
  void Advise(const std::shared_ptr<Job>& job, const CreateBatchArgs& args, const BatchWatch& watch,
              Done done);
  // `basis` becomes what the draft stands on: all of it goes over bare links where the tables are
  // behind and more communicators get trees so.
  absl::StatusOr<BatchDraft> Draft(PlanBasis& basis, const Job& job, const CreateBatchArgs& args,
                                   const BatchWatch& watch, std::vector<SwitchCapacity>& capacity);
  absl::StatusOr<Reserved> PlanAndReserve(const std::shared_ptr<Job>& job,
                                          const CreateBatchArgs& args, uint64_t fingerprint,
                                          const BatchWatch& watch);
  absl::StatusOr<bool> TryReserve(const Job& job, const PlanBasis& basis, const Actor& actor,
                                  BatchDraft& draft);
  void OnGranted(const Reserved& reserved, const absl::Status& status, Done done);
  void Fail(Job& job, const std::string& request_id, uint32_t communicators,
            const absl::Status& status, Done done);

  StoreCalls* const calls_;
  const Clock* const clock_;
  Tables* const tables_;
  const LiveOptions options_;
  Jobs* const jobs_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_GRANTS_H_
