// One attempt at a tree: from a request, a job's endpoints and a copy of the entries that were free
// to a record that still has no id. Takes no lock and no entry: what it returns may be stale by the
// time it returns, and the caller checks that.
#ifndef COPPICE_DAEMON_MANAGER_TREE_DRAFT_H_
#define COPPICE_DAEMON_MANAGER_TREE_DRAFT_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/manager/activity.h"
#include "daemon/manager/job_table.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/plan_basis.h"
#include "daemon/manager/tree_promise.h"
#include "daemon/manager/tree_record.h"

namespace coppice {

// Memory that one attempt after another reuses, so that a request costs few allocations.
struct DraftScratch {
  std::vector<SwitchCapacity> capacity;  // [switch] of the snapshot that is planned on
  TreeRequest request;
  std::vector<uint64_t> rank_marks;
  LinkUseCounter links;
};

// As many of them as requests were ever planned at once. Thread-safe.
class ScratchPool {
 public:
  class Loan {
   public:
    explicit Loan(ScratchPool& pool) : pool_(pool), scratch_(pool.Take()) {}
    ~Loan() { pool_.Return(std::move(scratch_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    DraftScratch& operator*() const { return *scratch_; }

   private:
    ScratchPool& pool_;
    std::unique_ptr<DraftScratch> scratch_;
  };

 private:
  std::unique_ptr<DraftScratch> Take();
  void Return(std::unique_ptr<DraftScratch> scratch);

  std::mutex mu_;
  std::vector<std::unique_ptr<DraftScratch>> idle_;  // guarded by mu_
};

struct TreeDraft {
  TreeRecord record;                  // without ids and time
  std::vector<SwitchIndex> switches;  // that serve, in the snapshot
  TreePromise promise;
  std::vector<Tradeoff> tradeoffs;
};

// The endpoints of all ranks in that fabric. O(ranks log endpoints).
std::shared_ptr<const ResolvedEndpoints> ResolveAll(const Fabric& fabric, const JobRecord& job);

// Plans on the basis with scratch.capacity. Errors: INVALID_ARGUMENT (ranks; width, degree);
// NOT_FOUND (the root switch); FAILED_PRECONDITION (a member is not in the fabric, members cannot
// reach each other); RESOURCE_EXHAUSTED (with kFullSwitchesPayload; `full` gets the switches).
absl::StatusOr<TreeDraft> DraftTree(const PlanBasis& basis, const JobRecord& job,
                                    const CreateTreeArgs& args, DraftScratch& scratch,
                                    std::vector<RefusedSwitch>& full);

// FAILED_PRECONDITION: the rank's port is not in the fabric any more.
absl::Status MemberIsGone(const JobRecord& job, uint32_t rank);

// One line of kFullSwitchesPayload.
std::string FullSwitchLine(const SwitchInfo& info, const SwitchCapacity& capacity);

// The record and promise of a plan that was made for scratch.request, as `args` asked for it.
// NOT_FOUND: an edge without a route.
absl::StatusOr<TreeDraft> DraftOfPlan(const PlanBasis& basis, const JobRecord& job,
                                      const CreateTreeArgs& args, TreePlan plan,
                                      DraftScratch& scratch);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TREE_DRAFT_H_
