// coppice.v1.BatchCreateTrees* <-> the manager's plain structs.
#ifndef COPPICE_DAEMON_RPC_CONVERSION_TREES_BATCH_CONVERSION_H_
#define COPPICE_DAEMON_RPC_CONVERSION_TREES_BATCH_CONVERSION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "coppice/v1/trees.pb.h"
#include "daemon/manager/requests.h"
#include "daemon/rpc/conversion/trees_conversion.h"

namespace coppice {

// INVALID_ARGUMENT: a job id or enumerator that is none; more axes, cells or communicators than any
// batch may have; a communicator of no ranks; ranges and a list at once, ranges that hold no rank,
// more than `max_ranks` or one beyond 2^32 (names the communicator). Whether the grid or the ranks
// fit the job, and all else, is the manager's to say.
absl::StatusOr<CreateBatchArgs> FromProto(const v1::BatchCreateTreesRequest& request,
                                          uint32_t max_ranks);

// Of the trees in the stream. INVALID_ARGUMENT: RANK.
absl::StatusOr<TreeDetail> BatchDetail(v1::TreeView view);

void ToProto(const BatchView::Tree& tree, TreeDetail detail, v1::BatchTree& message);
void ToProto(const BatchView& batch, v1::BatchSummary& summary);
void ToProto(BatchWatch::Phase phase, uint32_t done, uint32_t communicators,
             v1::BatchProgress& progress);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CONVERSION_TREES_BATCH_CONVERSION_H_
