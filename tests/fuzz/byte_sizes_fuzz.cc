// The reader of message sizes: any text is refused with words, or read as sizes that are written as
// plain numbers and read again as the same.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_join.h"
#include "proto/text/byte_sizes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto sizes = coppice::ParseByteSizes(text);
  if (sizes.has_value() != coppice::FaultOfByteSizes(text).empty()) std::abort();
  if (!sizes.has_value()) return 0;
  for (const uint64_t bytes : *sizes) {
    if (bytes > coppice::kMaxByteSize) std::abort();
  }
  if (coppice::ParseByteSizes(absl::StrJoin(*sizes, ",")) != sizes) std::abort();
  return 0;
}
