#include "daemon/fabric/snapshot.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/fabric_builder.h"

namespace coppice {

LinkLoad::LinkLoad(absl::Span<const float> utilisation) {
  std::vector<uint32_t> pages((utilisation.size() + kPageChannels - 1) / kPageChannels);
  absl::c_iota(pages, 0U);
  *this = LinkLoad().With(utilisation.size(), pages, [&](size_t first, absl::Span<float> values) {
    const absl::Span<const float> part = utilisation.subspan(first, values.size());
    absl::c_copy(part, values.begin());
  });
}

LinkLoad LinkLoad::With(size_t channels, absl::Span<const uint32_t> pages,
                        absl::FunctionRef<void(size_t, absl::Span<float>)> fill) const {
  LinkLoad load = *this;
  load.size_ = channels;
  load.pages_.resize((channels + kPageChannels - 1) / kPageChannels);
  for (const uint32_t p : pages) {
    auto page = std::make_shared<Page>();
    const size_t first = p * kPageChannels;
    const size_t count = std::min(kPageChannels, channels - first);
    fill(first, absl::MakeSpan(page->values).first(count));
    page->greatest =
        *std::max_element(page->values.begin(), page->values.begin() + static_cast<int64_t>(count));
    load.pages_[p] = page->greatest > 0 ? std::move(page) : nullptr;
  }
  load.greatest_ = 0;
  for (const std::shared_ptr<const Page>& page : load.pages_) {
    if (page != nullptr) load.greatest_ = std::max(load.greatest_, page->greatest);
  }
  return load;
}

absl::StatusOr<std::shared_ptr<const Snapshot>> MakeSnapshot(
    std::shared_ptr<const Fabric> fabric, std::shared_ptr<const ForwardingTables> tables) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->fabric = fabric;
  if (tables == nullptr) {
    snapshot->routes = Routes::ShortestPaths(fabric);
  } else {
    ASSIGN_OR_RETURN(snapshot->routes, Routes::FromTables(fabric, std::move(tables)));
  }
  snapshot->hierarchy = DeriveHierarchy(*fabric);
  snapshot->load = std::make_shared<const LinkLoad>();
  return snapshot;
}

absl::StatusOr<std::shared_ptr<const Fabric>> WithoutLinks(const Fabric& fabric,
                                                           const std::vector<bool>& is_lost) {
  std::vector<bool> is_cabled(fabric.vertex_count());
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    if (is_lost[l]) continue;
    const LinkInfo& link = fabric.link(LinkIndex(l));
    is_cabled[link.a.value()] = is_cabled[link.b.value()] = true;
  }
  FabricBuilder builder;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    RETURN_IF_ERROR(builder.AddSwitch(fabric.switch_info(SwitchIndex(s))));
  }
  const auto node_of = [&](VertexIndex v) {
    return fabric.IsSwitch(v) ? v.value()
                              : *builder.FindNode(fabric.adapter(fabric.AsEndpoint(v)).guid);
  };
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
    const VertexIndex vertex = fabric.Vertex(EndpointIndex(e));
    if (!is_cabled[vertex.value()]) continue;
    const EndpointInfo& info = fabric.endpoint(EndpointIndex(e));
    const AdapterInfo& adapter = fabric.adapter(info.adapter);
    if (!builder.FindNode(adapter.guid)) RETURN_IF_ERROR(builder.AddAdapter(adapter));
    RETURN_IF_ERROR(
        builder.SetAdapterPort(node_of(vertex), info.port, info.port_guid, info.lid, info.lmc));
  }
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    if (is_lost[l]) continue;
    const LinkInfo& link = fabric.link(LinkIndex(l));
    RETURN_IF_ERROR(builder.AddLink(node_of(link.a), link.a_port, node_of(link.b), link.b_port,
                                    link.rate, link.capacity_gbps));
  }
  return builder.Build();
}

}  // namespace coppice
