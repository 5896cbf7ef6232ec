#include "tests/support/tables.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace coppice {

std::shared_ptr<const Routes> TablesLike(const Routes& routes,
                                         const std::shared_ptr<const Fabric>& fabric) {
  uint16_t last = 0;
  for (uint32_t v = 0; v < fabric->vertex_count(); ++v) {
    last = std::max(last, fabric->lid(VertexIndex(v)).value());
  }
  auto tables = std::make_shared<ForwardingTables>(fabric->switch_count());
  for (uint32_t s = 0; s < fabric->switch_count(); ++s) {
    std::vector<uint8_t> row(last + size_t{1}, ForwardingTables::kNoRoute);
    for (uint32_t v = 0; v < fabric->vertex_count(); ++v) {
      const uint16_t lid = fabric->lid(VertexIndex(v)).value();
      const ChannelIndex next = routes.NextChannel(SwitchIndex(s), VertexIndex(v));
      if (v == s) row[lid] = 0;
      if (next != kNoChannel) row[lid] = fabric->channel_from_port(next).value();
    }
    tables->SetRow(SwitchIndex(s), std::move(row));
  }
  return *Routes::FromTables(fabric, tables);
}

}  // namespace coppice
