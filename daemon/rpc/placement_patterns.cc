#include "daemon/rpc/placement_patterns.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/mapping_conversion.h"

namespace coppice {

absl::StatusOr<std::shared_ptr<const Pattern>> PlacementPatterns::Of(
    const v1::PlacementTraffic& traffic) {
  if (traffic.has_pattern() && !traffic.pattern_name().empty()) {
    return absl::InvalidArgumentError("traffic: give pattern or pattern_name, not both");
  }
  if (!traffic.has_pattern() && traffic.pattern_name().empty()) return nullptr;
  const auto known = stored_.find(traffic.pattern_name());
  if (known != stored_.end()) return known->second;
  ASSIGN_OR_RETURN(const std::shared_ptr<const Pattern> pattern, Read(traffic));
  const bool is_first = held_ == 0;
  held_ += pattern->MemoryBytes();
  if (!is_first && held_ > kMostBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("traffic: this pattern and those of the requests before take more than ",
                     kMostBytes >> 20, " MiB; ask for fewer at once"));
  }
  if (!traffic.pattern_name().empty()) stored_.emplace(traffic.pattern_name(), pattern);
  return pattern;
}

absl::StatusOr<std::shared_ptr<const Pattern>> PlacementPatterns::Read(
    const v1::PlacementTraffic& traffic) {
  if (!traffic.has_pattern()) return shelf_->Load(traffic.pattern_name(), user_, *memory_);
  ASSIGN_OR_RETURN(MemoryBudget::Share room,
                   memory_->Take(ReadingBytes(traffic.pattern()), "reading this pattern"));
  ASSIGN_OR_RETURN(std::shared_ptr<const Pattern> pattern, PatternOf(traffic.pattern()));
  room.ShrinkTo(pattern->MemoryBytes());
  return Counted(std::move(pattern), std::move(room));
}

}  // namespace coppice
