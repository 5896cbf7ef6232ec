// The readers of coppice-plan place: any text is refused with its line, or read as hosts of the
// fabric.
#include <cstdint>
#include <cstdlib>

#include "absl/strings/match.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/tools/place_inputs.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto fabric =
      *coppice::LoadFabric("model:fat-tree(leaves=2,spines=2,hosts-per-leaf=3)");
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto hosts = coppice::ReadHostList(*fabric, text, "f");
  if (!hosts.ok() && !absl::StrContains(hosts.status().message(), "f, line ")) std::abort();
  const auto holders = coppice::ReadHolders(*fabric, text, "h");
  if (!holders.ok() && !absl::StrContains(holders.status().message(), "h, line ")) std::abort();
  if (holders.ok() && holders->size() != fabric->host_count()) std::abort();
  return 0;
}
