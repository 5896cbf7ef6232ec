#include "daemon/manager/sweep/down_links.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "daemon/manager/inventory.h"

namespace coppice {
namespace {

using PortKey = std::pair<Guid, uint8_t>;

PortKey KeyOf(const DownLink::End& end) { return {end.node, end.port}; }

absl::flat_hash_set<PortKey> CabledPorts(const Fabric& fabric) {
  absl::flat_hash_set<PortKey> ports;
  ports.reserve(2 * fabric.link_count());
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    const LinkInfo& info = fabric.link(LinkIndex(l));
    ports.emplace(NodeGuid(fabric, info.a), info.a_port.value());
    ports.emplace(NodeGuid(fabric, info.b), info.b_port.value());
  }
  return ports;
}

DownLink::End EndOf(const Fabric& fabric, VertexIndex node, PortNum port) {
  return {NodeGuid(fabric, node), port.value(), NodeName(fabric, node), fabric.IsSwitch(node)};
}

}  // namespace

void DownLinks::Compare(const Fabric& before, const Fabric& now, absl::Time when) {
  const absl::flat_hash_set<PortKey> cabled = CabledPorts(now);
  std::vector<DownLink> lost;
  for (uint32_t l = 0; l < before.link_count(); ++l) {
    const LinkInfo& info = before.link(LinkIndex(l));
    const PortKey a = {NodeGuid(before, info.a), info.a_port.value()};
    const PortKey b = {NodeGuid(before, info.b), info.b_port.value()};
    if (cabled.contains(a) || cabled.contains(b)) continue;
    DownLink link{{EndOf(before, info.a, info.a_port), EndOf(before, info.b, info.b_port)},
                  ToString(info.rate),
                  when};
    if (b < a) std::swap(link.ends[0], link.ends[1]);
    lost.push_back(std::move(link));
  }
  std::lock_guard lock(mu_);
  std::erase_if(links_, [&](const DownLink& link) {
    return cabled.contains(KeyOf(link.ends[0])) || cabled.contains(KeyOf(link.ends[1]));
  });
  const size_t room = kMax - std::min(kMax, links_.size());
  lost.resize(std::min(lost.size(), room));
  links_.insert(links_.end(), std::make_move_iterator(lost.begin()),
                std::make_move_iterator(lost.end()));
  std::sort(links_.begin(), links_.end(), [](const DownLink& a, const DownLink& b) {
    return std::tuple(KeyOf(a.ends[0]), KeyOf(a.ends[1])) <
           std::tuple(KeyOf(b.ends[0]), KeyOf(b.ends[1]));
  });
}

std::vector<DownLink> DownLinks::All() const {
  std::lock_guard lock(mu_);
  return links_;
}

}  // namespace coppice
