#include "daemon/fabric/without_links.h"

#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/fabric/fabric_builder.h"

namespace coppice {
namespace {

Guid NodeAt(const Fabric& fabric, VertexIndex v) {
  return fabric.IsSwitch(v) ? fabric.switch_info(fabric.AsSwitch(v)).guid
                            : fabric.adapter(fabric.AsEndpoint(v)).guid;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Fabric>> WithoutLinks(const Fabric& fabric,
                                                           const std::vector<bool>& is_lost) {
  std::vector<bool> is_cabled(fabric.vertex_count()), has_port(fabric.adapter_count());
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    if (is_lost[l]) continue;
    const LinkInfo& link = fabric.link(LinkIndex(l));
    is_cabled[link.a.value()] = is_cabled[link.b.value()] = true;
  }
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
    const EndpointIndex endpoint(e);
    if (is_cabled[fabric.Vertex(endpoint).value()]) {
      has_port[fabric.endpoint(endpoint).adapter.value()] = true;
    }
  }
  FabricBuilder builder;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    RETURN_IF_ERROR(builder.AddSwitch(fabric.switch_info(SwitchIndex(s))));
  }
  for (uint32_t a = 0; a < fabric.adapter_count(); ++a) {
    if (has_port[a]) RETURN_IF_ERROR(builder.AddAdapter(fabric.adapter(AdapterIndex(a))));
  }
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
    const EndpointInfo& info = fabric.endpoint(EndpointIndex(e));
    if (!is_cabled[fabric.Vertex(EndpointIndex(e)).value()]) continue;
    RETURN_IF_ERROR(builder.SetAdapterPort(fabric.adapter(info.adapter).guid, info.port,
                                           info.port_guid, info.lid, info.lmc));
  }
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    if (is_lost[l]) continue;
    const LinkInfo& link = fabric.link(LinkIndex(l));
    RETURN_IF_ERROR(builder.AddLink(NodeAt(fabric, link.a), link.a_port, NodeAt(fabric, link.b),
                                    link.b_port, link.rate, link.capacity_gbps));
  }
  return builder.Build();
}

}  // namespace coppice
