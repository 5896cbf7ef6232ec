#include "daemon/placement/link_tally.h"

#include <algorithm>
#include <utility>

#include "daemon/placement/job_links.h"

namespace coppice {
namespace {

constexpr size_t kMostKept = 1 << 14;  // routes

}  // namespace

bool LinkTally::IsAffordable(const PlacementQuestion& question, size_t open_hosts, size_t leaves) {
  const size_t n = question.request.constraints.host_count;
  return open_hosts * leaves <= kMostKept && n * std::min(n, leaves) <= kMostRoutes;
}

LinkTally::LinkTally(const PlacementQuestion& question, absl::Span<const uint32_t> positions)
    : question_(question),
      positions_(positions.begin(), positions.end()),
      routes_(question.open.hosts.size() * positions.size()) {}

uint32_t LinkTally::Keep(ChannelIndex c) {
  const auto [at, is_new] =
      channel_numbers_.try_emplace(c.value(), static_cast<uint32_t>(channels_.size()));
  if (!is_new) return at->second;
  const uint32_t link = Fabric::link_of(c).value();
  KeptChannel kept;
  kept.link = link_numbers_.try_emplace(link, shared_directions_.size()).first->second;
  if (kept.link == shared_directions_.size()) shared_directions_.push_back(0);
  kept.load = question_.snapshot.utilisation(c);
  const std::vector<uint32_t>& users = question_.occupancy.channel_users;
  kept.has_users = !users.empty() && users[c.value()] > 0;
  channels_.push_back(kept);
  return at->second;
}

const std::vector<uint32_t>& LinkTally::RouteTo(uint32_t host, uint32_t source) {
  auto& route = routes_[size_t{host} * positions_.size() + source];
  if (route) return *route;
  route.emplace();
  const PlacementIndex& index = question_.index;
  const auto from = index.switch_of(question_.open.leaves[positions_[source]].leaf);
  if (!from) return *route;
  const Fabric& fabric = index.fabric();
  const auto endpoints = fabric.endpoints_of_host(question_.open.hosts[host]);
  const EndpointIndex first = *std::min_element(endpoints.begin(), endpoints.end());
  // As job_links.cc walks: a broken route counts up to where it breaks off, a loop once round.
  std::vector<uint32_t> seen;
  for (VertexIndex here = fabric.Vertex(*from); fabric.IsSwitch(here);) {
    if (std::find(seen.begin(), seen.end(), here.value()) != seen.end()) break;
    seen.push_back(here.value());
    const ChannelIndex c =
        question_.snapshot.routes->NextChannel(fabric.AsSwitch(here), fabric.Vertex(first));
    if (c == kNoChannel) break;
    here = fabric.channel_to(c);
    if (fabric.IsSwitch(here)) route->push_back(Keep(c));
  }
  return *route;
}

void LinkTally::Use(KeptChannel& channel, int32_t by) {
  const bool was_used = channel.routes > 0;
  channel.routes += static_cast<uint32_t>(by);
  const bool is_used = channel.routes > 0;
  if (was_used == is_used) return;
  used_ += is_used ? 1 : -1;
  load_ += is_used ? channel.load : -channel.load;
  if (!channel.has_users) return;
  uint32_t& directions = shared_directions_[channel.link];
  if (is_used) {
    shared_links_ += directions++ == 0 ? 1 : 0;
  } else {
    shared_links_ -= --directions == 0 ? 1 : 0;
  }
}

void LinkTally::Count(uint32_t host, uint32_t leaf, absl::Span<const uint32_t> sources,
                      int32_t by) {
  for (const uint32_t source : sources) {
    if (source == leaf) continue;
    for (const uint32_t c : RouteTo(host, source)) Use(channels_[c], by);
  }
}

}  // namespace coppice
