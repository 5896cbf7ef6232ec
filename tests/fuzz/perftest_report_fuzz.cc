// Whatever a program prints: figures that a measurement may have, or an error in words.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "agents/node/perftest.h"

namespace {

constexpr uint32_t kBytes = 8;

void Check(const absl::StatusOr<coppice::Spread>& spread) {
  if (!spread.ok()) {
    if (!absl::IsInvalidArgument(spread.status())) __builtin_trap();
    return;
  }
  const bool is_good = std::isfinite(spread->mean) && spread->mean > 0 &&
                       std::isfinite(spread->deviation) && spread->deviation >= 0 &&
                       spread->samples > 0;
  if (!is_good) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  Check(coppice::ParseLatencyReport(text, kBytes));
  Check(coppice::ParseBandwidthReport(text, kBytes));
  for (const char c : coppice::LastWords(text)) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) __builtin_trap();
  }
  return 0;
}
