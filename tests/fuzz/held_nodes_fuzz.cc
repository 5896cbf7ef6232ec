// The reader of coppice-plan --held: any text is refused with its line, or read as hosts of the
// fabric, each once.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "absl/strings/match.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/tools/held_nodes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto fabric =
      *coppice::LoadFabric("model:fat-tree(leaves=2,spines=2,hosts-per-leaf=3)");
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto held = coppice::ReadHeldNodes(*fabric, text, "h");
  if (!held.ok()) {
    if (!absl::StrContains(held.status().message(), "h, line ")) std::abort();
    return 0;
  }
  std::vector<bool> is_held(fabric->host_count());
  for (const coppice::HeldNodes& one : *held) {
    for (const coppice::HostIndex host : one.hosts) {
      if (is_held.at(host.value())) std::abort();
      is_held[host.value()] = true;
    }
  }
  return 0;
}
