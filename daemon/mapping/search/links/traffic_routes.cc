#include "daemon/mapping/search/links/traffic_routes.h"

#include <algorithm>
#include <optional>

namespace coppice {

TrafficRoutes::TrafficRoutes(const MappingProblem& problem, size_t max_table_bytes)
    : problem_(problem),
      even_(problem.traffic != TrafficModel::kRoutes),
      in_parts_(problem.snapshot->fabric->component_count() > 1),
      switches_(problem.snapshot->fabric->switch_count()),
      max_table_bytes_(max_table_bytes) {
  const Fabric& fabric = *problem.snapshot->fabric;
  const Places& places = *problem.places;
  leaf_number_.assign(switches_, kNoSwitch);
  for (uint32_t p = 0; p < places.count(); ++p) {
    const EndpointIndex e = places.endpoint(PlaceIndex(p));
    const std::optional<SwitchIndex> leaf = fabric.attached_switch(e);
    sites_.push_back({fabric.bundle(e).value(), leaf ? leaf->value() : kNoSwitch,
                      leaf ? fabric.uplink(e).value() : 0});
    all_have_leaves_ &= leaf.has_value();
    if (leaf && leaf_number_[leaf->value()] == kNoSwitch) leaf_number_[leaf->value()] = leaves_++;
  }
  if (even_) {
    paths_ = std::make_unique<EvenPaths>(problem.snapshot->routes->distances());
    const size_t lists = size_t{leaves_} * leaves_;
    if (lists * sizeof(List) <= max_table_bytes_ / 4) lists_.resize(lists);
    return;
  }
  channel_to_.resize(fabric.channel_count());
  for (uint32_t c = 0; c < channel_to_.size(); ++c) {
    channel_to_[c] = fabric.channel_to(ChannelIndex(c)).value();
  }
  const size_t entries = size_t{places.count()} * switches_;
  if (entries * sizeof(uint32_t) <= max_table_bytes_) next_.assign(entries, kUnknown);
}

bool TrafficRoutes::OnPartsOfOneHost(uint32_t a, uint32_t b) const {
  const Places& places = *problem_.places;
  return problem_.snapshot->fabric->StayWithinHost(places.endpoint(PlaceIndex(a)),
                                                   places.endpoint(PlaceIndex(b)));
}

uint32_t TrafficRoutes::Step(uint32_t to, uint32_t at) const {
  const Fabric& fabric = *problem_.snapshot->fabric;
  return problem_.snapshot->routes
      ->NextChannel(SwitchIndex(at), fabric.Vertex(problem_.places->endpoint(PlaceIndex(to))))
      .value();
}

bool TrafficRoutes::FindCable(uint32_t from, uint32_t to) {
  const Fabric& fabric = *problem_.snapshot->fabric;
  const Places& places = *problem_.places;
  cable_.clear();
  return problem_.snapshot->routes
      ->Append(fabric.Vertex(places.endpoint(PlaceIndex(from))),
               fabric.Vertex(places.endpoint(PlaceIndex(to))), cable_)
      .ok();
}

absl::Span<const TrafficRoutes::Share> TrafficRoutes::Shares(uint32_t from_leaf, uint32_t to_leaf,
                                                             bool& found) {
  List* const list =
      lists_.empty() ? nullptr
                     : &lists_[size_t{leaf_number_[from_leaf]} * leaves_ + leaf_number_[to_leaf]];
  found = true;
  if (list != nullptr && list->begin == kNoPath) found = false;
  if (list != nullptr && list->begin < kNoPath) {
    return absl::MakeConstSpan(shares_).subspan(list->begin, list->size);
  }
  walked_.clear();
  const SwitchFlow unit{SwitchIndex(from_leaf), 1.0};
  if (found) {
    found = paths_
                ->Spread(SwitchIndex(to_leaf), absl::MakeConstSpan(&unit, 1),
                         [&](ChannelIndex c, double share) {
                           walked_.push_back({c.value(), share});
                         })
                .has_value();
  }
  if (list != nullptr && !found) list->begin = kNoPath;
  const size_t bytes = (shares_.size() + walked_.size()) * sizeof(Share);
  if (list != nullptr && found && bytes <= max_table_bytes_ / 4 * 3) {
    *list = {static_cast<uint32_t>(shares_.size()), static_cast<uint32_t>(walked_.size())};
    shares_.insert(shares_.end(), walked_.begin(), walked_.end());
  }
  return walked_;
}

uint32_t LinklessSet(const Fabric& fabric, EndpointIndex e) {
  const absl::Span<const EndpointIndex> ports = fabric.endpoints_of_host(fabric.host(e));
  const uint32_t component = fabric.component(fabric.Vertex(e));
  const bool in_parts = std::any_of(ports.begin(), ports.end(), [&](EndpointIndex port) {
    return fabric.component(fabric.Vertex(port)) != component;
  });
  return fabric.bundle(in_parts ? ports.front() : e).value();
}

}  // namespace coppice
