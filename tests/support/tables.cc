#include "tests/support/tables.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/forwarding_tables.h"

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

absl::StatusOr<ForwardingTables> ReadForwardingTables(const Fabric& fabric,
                                                      absl::string_view text) {
  ForwardingTableReader reader(fabric);
  RETURN_IF_ERROR(reader.Read(text));
  return reader.Take();
}

namespace {

// The lowest vertex of each LID.
std::map<uint32_t, VertexIndex> VerticesByLid(const Fabric& fabric) {
  std::map<uint32_t, VertexIndex> vertices;
  for (uint32_t v = 0; v < fabric.vertex_count(); ++v) {
    const uint32_t lid = fabric.lid(VertexIndex(v)).value();
    if (lid != 0) vertices.emplace(lid, VertexIndex(v));
  }
  return vertices;
}

void WriteRoute(const Fabric& fabric, std::optional<VertexIndex> target, uint32_t lid, uint8_t port,
                std::string& text) {
  absl::StrAppendFormat(&text, "0x%04x %03u : ", lid, port);
  if (!target) {
    text += "(unknown node)\n";
  } else if (fabric.IsSwitch(*target)) {
    const SwitchInfo& info = fabric.switch_info(fabric.AsSwitch(*target));
    absl::StrAppend(&text, "(Switch portguid 0x", ToString(info.guid), ": '", info.description,
                    "')\n");
  } else {
    const EndpointIndex e = fabric.AsEndpoint(*target);
    const AdapterInfo& adapter = fabric.adapter(e);
    absl::StrAppend(&text,
                    adapter.kind == AdapterKind::kRouter ? "(Router portguid 0x"
                                                         : "(Channel Adapter portguid 0x",
                    ToString(fabric.endpoint(e).port_guid), ": '", adapter.description, "')\n");
  }
}

}  // namespace

std::string WriteForwardingTables(const Fabric& fabric, const ForwardingTables& tables) {
  const std::map<uint32_t, VertexIndex> vertices = VerticesByLid(fabric);
  std::string text;
  for (uint32_t s = 0; s < tables.switch_count(); ++s) {
    const absl::Span<const uint8_t> row = tables.row(SwitchIndex(s));
    if (row.empty()) continue;
    const SwitchInfo& info = fabric.switch_info(SwitchIndex(s));
    absl::StrAppendFormat(&text, "Unicast lids [0x0-0x%x] of switch Lid %d guid 0x%s (%s):\n",
                          row.size() - 1, info.lid.value(), ToString(info.guid), info.description);
    text += "  Lid  Out   Destination\n       Port     Info \n";
    uint32_t routes = 0;
    for (uint32_t lid = 0; lid < row.size(); ++lid) {
      if (row[lid] == ForwardingTables::kNoRoute) continue;
      const auto target = vertices.find(lid);
      WriteRoute(fabric, target == vertices.end() ? std::nullopt : std::optional(target->second),
                 lid, row[lid], text);
      ++routes;
    }
    absl::StrAppend(&text, routes, " valid lids dumped \n");
  }
  return text;
}

}  // namespace coppice
