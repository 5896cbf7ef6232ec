// The readers of options' words. Sizes: any text is refused, or read as sizes that are written as
// plain numbers and read again as the same. The others: what is read is within its bounds.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_join.h"
#include "proto/text/option_words.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto sizes = coppice::ParseByteSizes(text);
  if (const auto budget = coppice::ParseBudget(text)) {
    if (*budget <= absl::ZeroDuration() || *budget > coppice::kMaxPeriod) std::abort();
  }
  if (const auto parameter = coppice::ParseParameter(text); parameter && parameter->first.empty()) {
    std::abort();
  }
  (void)coppice::ParseObjective(text);
  if (!sizes.has_value()) return 0;
  for (const uint64_t bytes : *sizes) {
    if (bytes > coppice::kMaxByteSize) std::abort();
  }
  if (coppice::ParseByteSizes(absl::StrJoin(*sizes, ",")) != sizes) std::abort();
  return 0;
}
