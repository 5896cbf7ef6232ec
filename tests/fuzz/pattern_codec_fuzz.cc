// Stored patterns: whatever the database holds, it is a pattern or DATA_LOSS, and a pattern that is
// read is written the same again.
#include <cstdint>
#include <cstdlib>

#include "daemon/manager/mapping/pattern_store.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto pattern =
      coppice::DecodePattern(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!pattern.ok()) {
    if (pattern.status().code() != absl::StatusCode::kDataLoss) std::abort();
    return 0;
  }
  const std::string text = coppice::EncodePattern(**pattern);
  const auto again = coppice::DecodePattern(text);
  if (!again.ok() || coppice::EncodePattern(**again) != text) std::abort();
  return 0;
}
