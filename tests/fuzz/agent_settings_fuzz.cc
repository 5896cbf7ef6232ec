// The agent's configuration: any text gives settings, or a message that names the line; never a
// crash.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "agents/node/settings.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  coppice::Settings settings;
  const absl::Status status = coppice::ReadSettings(text, "fuzz.toml", settings);
  if (!status.ok() && !absl::StartsWith(status.message(), "fuzz.toml:")) __builtin_trap();
  if (status.ok() && settings.socket_mode > 0777) __builtin_trap();
  const absl::Status checked = coppice::CheckSettings(settings);
  if (!checked.ok() && checked.message().empty()) __builtin_trap();
  return 0;
}
