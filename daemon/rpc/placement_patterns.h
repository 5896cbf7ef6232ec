// The patterns that the requests of one call about placements name or bring. A thousand requests
// are a few bytes each, and what each of them names may be hundreds of megabytes: so a stored
// pattern is read once for all of them, and all count in the memory of searches.
#ifndef COPPICE_DAEMON_RPC_PLACEMENT_PATTERNS_H_
#define COPPICE_DAEMON_RPC_PLACEMENT_PATTERNS_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coppice/v1/placements.pb.h"
#include "daemon/manager/mapping/memory_budget.h"
#include "daemon/manager/mapping/pattern_shelf.h"
#include "daemon/mapping/pattern.h"

namespace coppice {

// Of one call, and one thread. The pointers outlive it and the patterns.
class PlacementPatterns final {
 public:
  // Beside the first, patterns of one call may hold so much: two calls are planned at once.
  static constexpr size_t kMostBytes = size_t{128} << 20;

  PlacementPatterns(PatternShelf* shelf, MemoryBudget* memory, std::string user)
      : shelf_(shelf), memory_(memory), user_(std::move(user)) {}

  // Null: the request has none. It counts as long as anybody has it. INVALID_ARGUMENT, naming the
  // field; NOT_FOUND; RESOURCE_EXHAUSTED: no room, or too much for one call.
  absl::StatusOr<std::shared_ptr<const Pattern>> Of(const v1::PlacementTraffic& traffic);

 private:
  absl::StatusOr<std::shared_ptr<const Pattern>> Read(const v1::PlacementTraffic& traffic);

  PatternShelf* const shelf_;
  MemoryBudget* const memory_;
  const std::string user_;
  absl::flat_hash_map<std::string, std::shared_ptr<const Pattern>> stored_;
  size_t held_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_PLACEMENT_PATTERNS_H_
