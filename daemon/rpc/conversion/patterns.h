// Patterns of who talks to whom, as the Mapping and the Placements service are given them.
#ifndef COPPICE_DAEMON_RPC_CONVERSION_PATTERNS_H_
#define COPPICE_DAEMON_RPC_CONVERSION_PATTERNS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "coppice/v1/mapping.pb.h"
#include "coppice/v1/placements.pb.h"
#include "daemon/manager/mapping/memory_budget.h"
#include "daemon/manager/mapping/pattern_store.h"
#include "daemon/mapping/pattern.h"

namespace coppice {

// The pattern that is given in full, as lists or as a file. INVALID_ARGUMENT, naming the field:
// lists of different lengths, or as Pattern::Make; as ReadPattern.
absl::StatusOr<std::shared_ptr<const Pattern>> PatternOf(const v1::MappingTask& task);
absl::StatusOr<std::shared_ptr<const Pattern>> PatternOf(const v1::PutPatternRequest& request);
absl::StatusOr<std::shared_ptr<const Pattern>> PatternOf(const v1::PlacementTraffic& traffic);

// How much memory reading the message takes beside it, from above.
size_t ReadingBytes(const v1::MappingTask& task);
size_t ReadingBytes(const v1::PutPatternRequest& request);
size_t ReadingBytes(const v1::PlacementTraffic& traffic);

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

#endif  // COPPICE_DAEMON_RPC_CONVERSION_PATTERNS_H_
