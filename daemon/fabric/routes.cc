// Routes are walked, never stored: InfiniBand forwards by destination, so that a route is a chain
// of one decision a switch (Step), taken from the tables, from the distance row of the
// destination's switch or from the grid.
//
//     from --uplink--> s0 --Step--> s1 --Step--> ... --Step--> to
//
// A table may be wrong in two ways. A hole ends the chain at once. A loop is found by Brent's
// method (R. Brent, "An improved Monte Carlo factorization algorithm", BIT 20, 1980, section 3):
// remember one switch of the route, meeting it again is a loop; move the memory to the present
// switch after 1, 2, 4, ... hops. It takes at most three times the hops up to the end of the loop's
// first round.
#include "daemon/fabric/routes.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {

absl::string_view ToString(RouteKind kind) {
  switch (kind) {
    case RouteKind::kForwardingTables:
      return "forwarding tables";
    case RouteKind::kShortestPath:
      return "shortest path";
    case RouteKind::kDimensionOrder:
      return "dimension order";
  }
  return "unknown";
}

struct Routes::Destination {
  VertexIndex vertex;
  Lid lid;
  std::optional<SwitchIndex> at;       // the switch itself, or the one that the endpoint is on
  ChannelIndex last = kNoChannel;      // from `at` to an endpoint
  absl::Span<const uint8_t> distance;  // [switch] to `at`, for shortest paths
};

Routes::Routes(std::shared_ptr<const Fabric> fabric, RouteKind kind)
    : fabric_(fabric),
      distances_(std::make_shared<const SwitchDistances>(std::move(fabric))),
      kind_(kind) {}

absl::StatusOr<std::shared_ptr<const Routes>> Routes::FromTables(
    std::shared_ptr<const Fabric> fabric, std::shared_ptr<const ForwardingTables> tables) {
  if (tables->switch_count() != fabric->switch_count()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "forwarding tables of ", tables->switch_count(), " switches for a fabric of ",
        fabric->switch_count(), ": take both from one sweep or from files of one moment"));
  }
  std::shared_ptr<Routes> routes(new Routes(std::move(fabric), RouteKind::kForwardingTables));
  routes->tables_ = std::move(tables);
  return routes;
}

std::shared_ptr<const Routes> Routes::ShortestPaths(std::shared_ptr<const Fabric> fabric) {
  return std::shared_ptr<const Routes>(new Routes(std::move(fabric), RouteKind::kShortestPath));
}

absl::StatusOr<std::shared_ptr<const Routes>> Routes::DimensionOrder(
    std::shared_ptr<const Fabric> fabric) {
  ASSIGN_OR_RETURN(GridLayout grid, GridLayout::FromDescriptions(*fabric));
  std::shared_ptr<Routes> routes(new Routes(std::move(fabric), RouteKind::kDimensionOrder));
  routes->grid_ = std::make_shared<const GridLayout>(std::move(grid));
  return routes;
}

Routes::Destination Routes::Resolve(VertexIndex to) const {
  Destination destination;
  destination.vertex = to;
  if (fabric_->IsSwitch(to)) {
    destination.at = fabric_->AsSwitch(to);
  } else {
    const EndpointIndex endpoint = fabric_->AsEndpoint(to);
    destination.at = fabric_->attached_switch(endpoint);
    if (destination.at) destination.last = Fabric::Reverse(fabric_->uplink(endpoint));
  }
  if (kind_ == RouteKind::kForwardingTables) {
    destination.lid = fabric_->lid(to);
  } else if (kind_ == RouteKind::kShortestPath && destination.at) {
    destination.distance = distances_->RowTo(*destination.at);
  }
  return destination;
}

ChannelIndex Routes::ShortestStep(SwitchIndex s, const Destination& to) const {
  const uint8_t here = to.distance[s.value()];
  if (here == SwitchDistances::kUnreachable) return kNoChannel;
  std::array<uint32_t, 256> nearer;  // a switch has at most 254 ports (IBA vol. 1, 14.2.5.3)
  uint32_t count = 0;
  for (const Channel& channel : fabric_->switch_channels(s)) {
    nearer[count] = channel.index.value();
    count += to.distance[channel.to.value()] + 1 == here ? 1 : 0;
  }
  return count == 0 ? kNoChannel : ChannelIndex(nearer[to.vertex.value() % count]);
}

ChannelIndex Routes::GridStep(SwitchIndex s, const Destination& to) const {
  const std::optional<SwitchIndex> next = grid_->Next(s, *to.at);
  if (!next) return kNoChannel;
  const VertexIndex neighbour = fabric_->Vertex(*next);
  std::array<uint32_t, 256> cables;
  uint32_t count = 0;
  for (const Channel& channel : fabric_->switch_channels(s)) {
    cables[count] = channel.index.value();
    count += channel.to == neighbour ? 1 : 0;
  }
  return count == 0 ? kNoChannel : ChannelIndex(cables[to.vertex.value() % count]);
}

ChannelIndex Routes::Step(SwitchIndex s, const Destination& to) const {
  if (fabric_->Vertex(s) == to.vertex) return kNoChannel;
  if (kind_ == RouteKind::kForwardingTables) {
    const uint8_t port = to.lid.value() == 0 ? 0 : tables_->port(s, to.lid);
    if (port == 0 || port == ForwardingTables::kNoRoute) return kNoChannel;
    return fabric_->channel_at(s, PortNum(port));
  }
  if (!to.at) return kNoChannel;
  if (*to.at == s) return to.last;
  return kind_ == RouteKind::kShortestPath ? ShortestStep(s, to) : GridStep(s, to);
}

ChannelIndex Routes::NextChannel(SwitchIndex s, VertexIndex to) const {
  return Step(s, Resolve(to));
}

absl::Status Routes::BrokenAt(VertexIndex from, VertexIndex to, VertexIndex at) const {
  std::string why = "which has no route to it";
  if (kind_ == RouteKind::kForwardingTables && fabric_->lid(to).value() == 0) {
    why = "because the destination has no LID: let the subnet manager assign one";
  } else if (!fabric_->IsSwitch(at)) {
    why = "which is an end of the fabric";
  }
  return absl::NotFoundError(absl::StrCat(
      "no route by ", ToString(kind_), " from ", Describe(*fabric_, from), " to ",
      Describe(*fabric_, to), ": it breaks off at ", Describe(*fabric_, at), ", ", why));
}

// Calls visit(channel) for every channel of the route, in order, until the route ends or breaks.
template <class Visitor>
absl::Status Routes::Walk(VertexIndex from, VertexIndex to, Visitor visit) const {
  if (from == to) return absl::OkStatus();
  VertexIndex here = from;
  if (!fabric_->IsSwitch(from)) {
    const EndpointIndex source = fabric_->AsEndpoint(from);
    if (!fabric_->IsSwitch(to) && fabric_->host(source) == fabric_->host(fabric_->AsEndpoint(to))) {
      return absl::OkStatus();
    }
    const absl::Span<const Channel> out = fabric_->channels(from);
    if (out.empty()) return BrokenAt(from, to, from);
    visit(out[0].index);
    here = out[0].to;
    if (here == to) return absl::OkStatus();
  }
  const Destination destination = Resolve(to);
  VertexIndex remembered = here;
  uint32_t hops = 0;
  uint32_t next_memory = 1;
  while (fabric_->IsSwitch(here)) {
    const ChannelIndex channel = Step(fabric_->AsSwitch(here), destination);
    if (channel == kNoChannel) return BrokenAt(from, to, here);
    visit(channel);
    here = fabric_->channel_to(channel);
    if (here == to) return absl::OkStatus();
    if (here == remembered) {
      return absl::NotFoundError(
          absl::StrCat("no route by ", ToString(kind_), " from ", Describe(*fabric_, from), " to ",
                       Describe(*fabric_, to), ": it loops through ", Describe(*fabric_, here)));
    }
    if (++hops == next_memory) {
      remembered = here;
      next_memory *= 2;
    }
  }
  return BrokenAt(from, to, here);
}

absl::Status Routes::Append(VertexIndex from, VertexIndex to,
                            std::vector<ChannelIndex>& path) const {
  const size_t before = path.size();
  absl::Status status = Walk(from, to, [&path](ChannelIndex c) { path.push_back(c); });
  if (!status.ok()) path.resize(before);
  return status;
}

absl::StatusOr<uint32_t> Routes::Length(VertexIndex from, VertexIndex to) const {
  uint32_t links = 0;
  RETURN_IF_ERROR(Walk(from, to, [&links](ChannelIndex) { ++links; }));
  return links;
}

std::string Describe(const Fabric& fabric, VertexIndex v) {
  if (fabric.IsSwitch(v)) {
    const SwitchInfo& info = fabric.switch_info(fabric.AsSwitch(v));
    return absl::StrCat("switch ", ToString(info.guid), " \"", info.description, "\"");
  }
  const EndpointIndex endpoint = fabric.AsEndpoint(v);
  return absl::StrCat("endpoint ", fabric.host_name(fabric.host(endpoint)), "/",
                      uint32_t{fabric.endpoint(endpoint).port.value()});
}

}  // namespace coppice
