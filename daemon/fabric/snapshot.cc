#include "daemon/fabric/snapshot.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/fabric/fabric_builder.h"

namespace coppice {

LinkLoad::LinkLoad(absl::Span<const float> utilisation) {
  std::vector<uint32_t> pages((utilisation.size() + kPageChannels - 1) / kPageChannels);
  std::iota(pages.begin(), pages.end(), 0U);
  *this = LinkLoad().With(utilisation.size(), pages, [&](size_t first, absl::Span<float> values) {
    const absl::Span<const float> part = utilisation.subspan(first, values.size());
    std::copy(part.begin(), part.end(), values.begin());
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
  load.FindGreatest();
  return load;
}

void LinkLoad::FindGreatest() {
  greatest_ = 0;
  for (const std::shared_ptr<const Page>& page : pages_) {
    if (page != nullptr) greatest_ = std::max(greatest_, page->greatest);
  }
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
