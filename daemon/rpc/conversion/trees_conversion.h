// coppice.v1.Tree and CreateTreeRequest <-> the manager's plain structs.
#ifndef COPPICE_DAEMON_RPC_CONVERSION_TREES_CONVERSION_H_
#define COPPICE_DAEMON_RPC_CONVERSION_TREES_CONVERSION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coppice/v1/trees.pb.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/manager/change_feed.h"
#include "daemon/manager/requests.h"
#include "daemon/manager/switches/switch_table.h"

namespace coppice {

// What of a tree is answered; the values of v1::TreeView without UNSPECIFIED.
enum class TreeDetail : uint8_t { kFull, kRank, kSummary };

// INVALID_ARGUMENT: a job id, GUID or enumerator that is none; ranges and a list at once; ranges
// that hold no rank, more than `max_ranks` or one beyond 2^32. Whether the ranks exist, and all
// else, is the manager's to say.
absl::StatusOr<CreateTreeArgs> FromProto(const v1::CreateTreeRequest& request, uint32_t max_ranks);

absl::StatusOr<TreeDetail> FromProto(v1::TreeView view);

// All but nodes and physical tree, which a full one has, and rank view. Times of advice (id 0) are
// left out; the order of ranks if `snapshot` is null. O(nodes log nodes) if it is full.
void ToProto(const TreeView& view, TreeDetail detail, const Snapshot* snapshot, v1::Tree& tree);

// Summary and one rank's part. `fabric` (may be null) gives the LIDs. INVALID_ARGUMENT: the
// communicator has no such rank. FAILED_PRECONDITION: it is a forest. O(nodes).
absl::Status RankToProto(const TreeView& view, uint32_t rank, const Fabric* fabric, v1::Tree& tree);

// What the switch of that GUID said of itself; nullopt: it is away.
using HelloOf = absl::FunctionRef<std::optional<SwitchHello>(Guid)>;
// How the tree's members use the switches that carry it; nothing where none do. To be told to
// whoever owns the tree's job, and to nobody else.
void CarriageToProto(const TreeRecord& record, HelloOf hello_of, v1::Tree& tree);
// The same for one of its ranks. O(nodes).
void CarriageToProto(const TreeRecord& record, uint32_t rank, HelloOf hello_of, v1::Tree& tree);

v1::Operation ToProto(Operation operation);
absl::StatusOr<Operation> FromProto(v1::Operation operation);
v1::TreeType ToProto(TreeType type);
v1::RouteKind ToProto(RouteKind kind);

void ToProto(const WayTime& time, v1::WayTime& message);
// INVALID_ARGUMENT: no name for an application, which `times` need; an unknown operation or way.
absl::Status CheckApplication(absl::string_view name);
absl::StatusOr<std::vector<WayTime>> TimesFromProto(const v1::ReleaseTreeRequest& request);

// INVALID_ARGUMENT: a job id or enumerator that is none; more axes, cells or communicators than any
// batch may have; a communicator of no ranks; ranges and a list at once, ranges that hold no rank,
// more than `max_ranks` or one beyond 2^32 (names the communicator). Whether the grid or the ranks
// fit the job, and all else, is the manager's to say.
absl::StatusOr<CreateBatchArgs> FromProto(const v1::BatchCreateTreesRequest& request,
                                          uint32_t max_ranks);

// Writes over `message`. O(nodes) if `detail` is full.
void ToProto(const TreeChange& change, TreeDetail detail, const Snapshot* snapshot,
             v1::TreeChange& message);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CONVERSION_TREES_CONVERSION_H_
