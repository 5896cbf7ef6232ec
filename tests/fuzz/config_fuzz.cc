// The configuration's reader: any text gives a configuration or a message, never a crash.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "daemon/config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = coppice::ParseConfig(text, "fuzz.toml", "/nonexistent");
  if (!config.ok() && config.status().message().empty()) __builtin_trap();
  return 0;
}
