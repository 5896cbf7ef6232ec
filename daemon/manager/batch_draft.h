// One attempt at a batch: from lists of ranks and a basis to records without ids. Takes no lock and
// no entry, as tree_draft.h does for one tree.
#ifndef COPPICE_DAEMON_MANAGER_BATCH_DRAFT_H_
#define COPPICE_DAEMON_MANAGER_BATCH_DRAFT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/manager/activity.h"
#include "daemon/manager/quota_ledger.h"
#include "daemon/manager/tree_draft.h"

namespace coppice {

// What the job's owner may still have. Where only a part is granted, or type I does as well, the
// draft stays within; else all of it is drafted, and refused as a whole when it is taken.
struct BatchRoom {
  int64_t trees = QuotaLimit::kNone, ranks = QuotaLimit::kNone, entries = QuotaLimit::kNone;
  // In words, why so many more are too many.
  std::function<std::string(Quota quota, int64_t more)> why_not = {};
};

struct BatchDraft {
  std::vector<TreeDraft> trees;         // by communicator
  std::vector<uint32_t> communicators;  // [tree]
  std::vector<BatchView::Refusal> refusals;
  uint32_t most_packets = 0;
  std::string most_loaded;
  std::optional<BatchComparison> comparison;  // args.compare
  BatchRoom room;                             // that there was
};

// Type II for every communicator that can have it, type I where that is accepted; where there is
// room for some only, trees of few entries come first, so that most communicators get one. Errors,
// all of which name the communicator: FAILED_PRECONDITION (unless args.largest_part: a member is
// not in the fabric, or two cannot reach each other); RESOURCE_EXHAUSTED (unless args.largest_part:
// some do not fit; with kFullSwitchesPayload); CANCELLED (by watch.is_cancelled). `full` gets the
// switches that kept a tree of type II away, also if the draft is an error.
absl::StatusOr<BatchDraft> DraftBatch(const PlanBasis& basis, const JobRecord& job,
                                      const CreateBatchArgs& args,
                                      absl::Span<const SwitchCapacity> capacity,
                                      const BatchRoom& room, const BatchWatch& watch,
                                      std::vector<RefusedSwitch>& full);

absl::Status BatchIsCancelled();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_BATCH_DRAFT_H_
