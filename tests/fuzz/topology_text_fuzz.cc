// Any bytes as a topology text: every reader answers with a fabric or INVALID_ARGUMENT, and what is
// read can be written and read again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "daemon/fabric/topology_lines.h"
#include "tests/support/fabric_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& fabric : {coppice::ReadFabricText(text, "fuzz"),
                             coppice::ReadTextBy(coppice::ReadIbnetdiscover, text, "fuzz"),
                             coppice::ReadTextBy(coppice::ReadIbnetdiscoverPorts, text, "fuzz"),
                             coppice::ReadTextBy(coppice::ReadIbsimNet, text, "fuzz")}) {
    if (!fabric.ok()) {
      if (fabric.status().code() != absl::StatusCode::kInvalidArgument) std::abort();
      continue;
    }
    const std::string written = coppice::WriteIbnetdiscover(**fabric);
    if ((*fabric)->vertex_count() > 0 &&
        !coppice::ReadTextBy(coppice::ReadIbnetdiscover, written, "again").ok()) {
      std::abort();
    }
  }
  return 0;
}
