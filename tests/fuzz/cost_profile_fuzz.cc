// Any bytes as a cost profile: an answer or INVALID_ARGUMENT, never more.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "daemon/tree/cost_profile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto profile =
      coppice::ParseProfile({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
  if (!profile.ok() && profile.status().code() != absl::StatusCode::kInvalidArgument) std::abort();
  return 0;
}
