// Routes are walked, never stored: InfiniBand forwards by destination, so that a route is a chain
// of one decision a switch (Step), taken from the tables, from the distances to the
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

#include <algorithm>
#include <array>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"

namespace coppice {

namespace {

absl::Status BadSwitch(const Fabric& fabric, uint32_t s, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(Describe(fabric, VertexIndex(s)), ": ", what,
                   "; dimension order needs descriptions such as \"sw(0,1;4x4 torus)\", use "
                   "shortest paths on another fabric"));
}

}  // namespace

// Switches of a torus, mesh or hypercube by their coordinates, for dimension-order routing (W.
// Dally, B. Towles, "Principles and Practices of Interconnection Networks", section 8.4): correct
// the lowest wrong coordinate first. Knows positions and not cables: whether two neighbours are
// joined is the fabric's matter.
//
//      (0,1)---(1,1)---(2,1)       from (0,0) to (2,1) in a mesh: x first, (1,0), (2,0), then
//        |       |       ^         y, (2,1). In a torus of extent 3 the way down is shorter:
//      (0,0)-->(1,0)-->(2,0)       (0,0) -> (2,0) over the cable round the end, then (2,1).
class GridLayout {
 public:
  // Reads the position of every switch from its description. INVALID_ARGUMENT, naming the switch:
  // no position, another grid's, or one that another switch has. O(switches * dimensions).
  static absl::StatusOr<GridLayout> FromDescriptions(const Fabric& fabric) {
    GridLayout layout;
    absl::flat_hash_map<std::vector<int32_t>, uint32_t> switch_at;
    for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
      const auto position = ParsePosition(fabric.switch_info(SwitchIndex(s)).description);
      if (!position) return BadSwitch(fabric, s, "its description names no position on a grid");
      if (s == 0) layout.grid_ = *position;
      if (position->extents != layout.grid_.extents || position->kind != layout.grid_.kind) {
        return BadSwitch(
            fabric, s, absl::StrCat("its grid is not that of ", Describe(fabric, VertexIndex(0))));
      }
      const auto [other, is_new] = switch_at.try_emplace(position->at, s);
      if (!is_new) {
        return BadSwitch(fabric, s,
                         absl::StrCat("its position is that of ",
                                      Describe(fabric, VertexIndex(other->second)), ", too"));
      }
      layout.at_.insert(layout.at_.end(), position->at.begin(), position->at.end());
    }
    layout.neighbours_.assign(2 * layout.at_.size(), kNobody);
    for (const auto& [position, s] : switch_at) {
      std::vector<int32_t> next = position;
      for (size_t d = 0; d < next.size(); ++d) {
        const int32_t extent = layout.grid_.extents[d];
        for (const int32_t up : {0, 1}) {
          next[d] = position[d] + (up == 1 ? 1 : -1);
          if (layout.grid_.kind == GridKind::kTorus) next[d] = (next[d] + extent) % extent;
          const auto it = switch_at.find(next);
          if (it == switch_at.end() || it->second == s) continue;
          layout.neighbours_[2 * (next.size() * s + d) + up] = it->second;
        }
        next[d] = position[d];
      }
    }
    return layout;
  }

  // The switch that a packet at `s` for `to` goes to: along the lowest dimension in which the two
  // differ, the shorter way round, upwards if both are equally long. nullopt if s is `to` or no
  // switch has that position. O(dimensions).
  std::optional<SwitchIndex> Next(SwitchIndex s, SwitchIndex to) const {
    const size_t dimensions = grid_.extents.size();
    const int32_t* const here = &at_[s.value() * dimensions];
    const int32_t* const there = &at_[to.value() * dimensions];
    const size_t d = std::mismatch(here, here + dimensions, there).first - here;
    if (d == dimensions) return std::nullopt;
    bool up = there[d] > here[d];
    if (grid_.kind == GridKind::kTorus) {
      const int32_t extent = grid_.extents[d];
      up = 2 * ((there[d] - here[d] + extent) % extent) <= extent;
    }
    const uint32_t next = neighbours_[2 * (dimensions * s.value() + d) + (up ? 1 : 0)];
    if (next == kNobody) return std::nullopt;
    return SwitchIndex(next);
  }

 private:
  static constexpr uint32_t kNobody = 0xffffffff;

  GridPosition grid_;                 // of the first switch: all have its extents and kind
  std::vector<int32_t> at_;           // [switch][dimension]
  std::vector<uint32_t> neighbours_;  // [switch][dimension][0 down, 1 up], kNobody
};

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
  Lid lid;                        // for forwarding tables
  std::optional<SwitchIndex> at;  // the switch itself, or the one that the endpoint is on
  Hop last;                       // from `at` to an endpoint
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
  if (kind_ == RouteKind::kForwardingTables) destination.lid = fabric_->lid(to);
  if (fabric_->IsSwitch(to)) {
    destination.at = fabric_->AsSwitch(to);
  } else if (const Channel& up = fabric_->channels(to).front(); fabric_->IsSwitch(up.to)) {
    destination.at = fabric_->AsSwitch(up.to);
    destination.last = {Fabric::Reverse(up.index), to};
  }
  return destination;
}

// Among the channels to switches at the positions for which wanted(position) is true, the one that
// the tie-break takes.
template <class Wanted>
Routes::Hop Routes::Pick(SwitchIndex s, const Destination& to, const Wanted& wanted) const {
  const absl::Span<const Channel> channels = fabric_->switch_channels(s);
  std::array<uint8_t, 256> positions;  // a switch has at most 254 ports (IBA vol. 1, 14.2.5.3)
  uint32_t count = 0;
  for (uint32_t i = 0; i < channels.size(); ++i) {
    positions[count] = static_cast<uint8_t>(i);
    count += wanted(i) ? 1 : 0;
  }
  if (count == 0) return {};
  const Channel& chosen = channels[positions[to.vertex.value() % count]];
  return {chosen.index, chosen.to};
}

// By one of the cables to the neighbour `next`.
Routes::Hop Routes::StepTo(SwitchIndex s, SwitchIndex next, const Destination& to) const {
  const Channel* const channels = fabric_->switch_channels(s).data();
  const VertexIndex neighbour = fabric_->Vertex(next);
  return Pick(s, to, [=](uint32_t i) { return channels[i].to == neighbour; });
}

// Distances are those of classes, but for the last hop, where only the destination's switch itself
// will do and not another of its class.
Routes::Hop Routes::ShortestStep(SwitchIndex s, const Destination& to) const {
  const uint8_t here = distances_->Between(s, *to.at);
  if (here == SwitchDistances::kUnreachable) return {};
  if (here == 1) return StepTo(s, *to.at, to);
  const TwinClasses& classes = distances_->classes();
  const uint32_t* const beside = classes.classes_beside(s).data();
  const uint8_t* const row = distances_->ClassRowTo(classes.class_of(*to.at)).data();
  return Pick(s, to, [=](uint32_t i) { return row[beside[i]] + 1 == here; });
}

Routes::Hop Routes::GridStep(SwitchIndex s, const Destination& to) const {
  const std::optional<SwitchIndex> next = grid_->Next(s, *to.at);
  return next ? StepTo(s, *next, to) : Hop{};
}

Routes::Hop Routes::TableStep(SwitchIndex s, const Destination& to) const {
  const uint8_t port = to.lid.value() == 0 ? 0 : tables_->port(s, to.lid);
  if (port == 0 || port == ForwardingTables::kNoRoute) return {};
  const ChannelIndex channel = fabric_->channel_at(s, PortNum(port));
  if (channel == kNoChannel) return {};
  return {channel, fabric_->channel_to(channel)};
}

Routes::Hop Routes::Step(SwitchIndex s, const Destination& to) const {
  if (fabric_->Vertex(s) == to.vertex) return {};
  if (kind_ == RouteKind::kForwardingTables) return TableStep(s, to);
  if (!to.at) return {};
  if (*to.at == s) return to.last;
  return kind_ == RouteKind::kShortestPath ? ShortestStep(s, to) : GridStep(s, to);
}

ChannelIndex Routes::NextChannel(SwitchIndex s, VertexIndex to) const {
  return Step(s, Resolve(to)).channel;
}

absl::Status Routes::BrokenAt(VertexIndex from, VertexIndex to, VertexIndex at,
                              bool is_loop) const {
  std::string why = "which has no route to it";
  if (kind_ == RouteKind::kForwardingTables && fabric_->lid(to).value() == 0) {
    why = "because the destination has no LID: let the subnet manager assign one";
  } else if (!fabric_->IsSwitch(at)) {
    why = "which is an end of the fabric";
  }
  return absl::NotFoundError(
      absl::StrCat("no route by ", ToString(kind_), " from ", Describe(*fabric_, from), " to ",
                   Describe(*fabric_, to), is_loop ? ": it loops through " : ": it breaks off at ",
                   Describe(*fabric_, at), is_loop ? "" : ", ", is_loop ? "" : why));
}

// Calls visit(channel) for every channel of the route, in order, until the route ends or breaks.
template <class Visitor>
absl::Status Routes::Walk(VertexIndex from, VertexIndex to, Visitor visit) const {
  if (from == to) return absl::OkStatus();
  VertexIndex here = from;
  if (!fabric_->IsSwitch(from)) {
    if (!fabric_->IsSwitch(to) &&
        fabric_->StayWithinHost(fabric_->AsEndpoint(from), fabric_->AsEndpoint(to))) {
      return absl::OkStatus();
    }
    const Channel& out = fabric_->channels(from).front();
    visit(out.index);
    here = out.to;
    if (here == to) return absl::OkStatus();
  }
  const Destination destination = Resolve(to);
  VertexIndex remembered = here;
  uint32_t hops = 0;
  uint32_t next_memory = 1;
  while (fabric_->IsSwitch(here)) {
    const Hop hop = Step(fabric_->AsSwitch(here), destination);
    if (hop.channel == kNoChannel) return BrokenAt(from, to, here);
    visit(hop.channel);
    here = hop.to;
    if (here == to) return absl::OkStatus();
    if (here == remembered) return BrokenAt(from, to, here, /*is_loop=*/true);
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
  return absl::StrCat("endpoint ", EndpointName(fabric, fabric.AsEndpoint(v)));
}

}  // namespace coppice
