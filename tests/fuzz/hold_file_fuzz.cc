// The agent's file of held jobs: any text is read, and then written so that it reads the same, or
// refused.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "agents/node/hold_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto jobs = coppice::ParseHolds(text, "boot");
  if (!jobs.ok()) return 0;
  const auto again = coppice::ParseHolds(coppice::FormatHolds(*jobs, "boot"), "boot");
  if (!again.ok() || *again != *jobs) std::abort();
  return 0;
}
