// coppice.v1.Placement and its requests <-> the manager's plain structs.
#ifndef COPPICE_DAEMON_RPC_CONVERSION_PLACEMENTS_CONVERSION_H_
#define COPPICE_DAEMON_RPC_CONVERSION_PLACEMENTS_CONVERSION_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "coppice/v1/placements.pb.h"
#include "daemon/manager/mapping/memory_budget.h"
#include "daemon/manager/mapping/pattern_store.h"
#include "daemon/manager/placement/placement_view.h"
#include "daemon/mapping/pattern.h"

namespace coppice {

// Without the pattern (PlacementPatterns), but with its name if it is a stored one.
// INVALID_ARGUMENT, naming the field: a budget that is no duration.
absl::StatusOr<PlacementTask> FromProto(const v1::PlacementRequest& request);
// Without the owner.
absl::StatusOr<CreatePlacementArgs> FromProto(const v1::CreatePlacementRequest& request);
absl::StatusOr<StartPlacementArgs> FromProto(const v1::StartPlacementRequest& request);

// `in_full`: also measures, reason and permutation.
void ToProto(const PlacementView& view, bool in_full, v1::Placement& message);
void ToProto(const NodeDistancesView& view, v1::NodeDistances& message);

// The patterns that the requests of one call about placements name or bring. A thousand requests
// are a few bytes each, and what each of them names may be hundreds of megabytes: so a stored
// pattern is read once for all of them, and all count in the memory of searches.

// Of one call, and one thread. The pointers outlive it and the patterns.
class PlacementPatterns final {
 public:
  // Beside the first, patterns of one call may hold so much: two calls are planned at once.
  static constexpr size_t kMaxBytes = size_t{128} << 20;

  PlacementPatterns(PatternStore* pattern_store, MemoryBudget* memory, std::string user)
      : pattern_store_(pattern_store), memory_(memory), user_(std::move(user)) {}

  // Null: the request has none. It counts as long as anybody has it. INVALID_ARGUMENT, naming the
  // field; NOT_FOUND; RESOURCE_EXHAUSTED: no room, or too much for one call.
  absl::StatusOr<std::shared_ptr<const Pattern>> Of(const v1::PlacementTraffic& traffic);

 private:
  absl::StatusOr<std::shared_ptr<const Pattern>> Read(const v1::PlacementTraffic& traffic);

  PatternStore* const pattern_store_;
  MemoryBudget* const memory_;
  const std::string user_;
  absl::flat_hash_map<std::string, std::shared_ptr<const Pattern>> stored_;
  size_t held_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CONVERSION_PLACEMENTS_CONVERSION_H_
