// Any bytes as a topology text: every reader answers with a fabric or INVALID_ARGUMENT, and what is
// read can be written and read again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/ibnetdiscover.h"
#include "daemon/fabric/ibsim_net.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  coppice::TopologyLines one(text, "fuzz"), two(text, "fuzz"), three(text, "fuzz");
  for (const auto& fabric : {coppice::ReadFabricText(text, "fuzz"), coppice::ReadIbnetdiscover(one),
                             coppice::ReadIbnetdiscoverPorts(two), coppice::ReadIbsimNet(three)}) {
    if (!fabric.ok()) {
      if (fabric.status().code() != absl::StatusCode::kInvalidArgument) std::abort();
      continue;
    }
    const std::string written = coppice::WriteIbnetdiscover(**fabric);
    coppice::TopologyLines again(written, "again");
    if ((*fabric)->vertex_count() > 0 && !coppice::ReadIbnetdiscover(again).ok()) std::abort();
  }
  return 0;
}
