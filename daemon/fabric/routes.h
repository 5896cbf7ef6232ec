// The path that a packet takes: over the subnet's forwarding tables where they are known, else over
// a shortest path or, on a torus, mesh or hypercube, in dimension order. Every answer can say
// which.
#ifndef COPPICE_DAEMON_FABRIC_ROUTES_H_
#define COPPICE_DAEMON_FABRIC_ROUTES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/distances.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/forwarding_tables.h"
#include "daemon/fabric/hierarchy.h"

namespace coppice {

enum class RouteKind : uint8_t { kForwardingTables, kShortestPath, kDimensionOrder };

// "forwarding tables", "shortest path", "dimension order".
absl::string_view ToString(RouteKind kind);

class GridLayout;  // of routes.cc

// Immutable; thread-safe.
class Routes final {
 public:
  // INVALID_ARGUMENT: the tables are for another number of switches.
  static absl::StatusOr<std::shared_ptr<const Routes>> FromTables(
      std::shared_ptr<const Fabric> fabric, std::shared_ptr<const ForwardingTables> tables);

  // One shortest path per pair. Tie-break: among the channels to a neighbour one hop nearer, sorted
  // by port, the one at position (index of the destination vertex) modulo their number. It depends
  // on the destination only, so that the routes to one destination form a tree, as InfiniBand's do.
  static std::shared_ptr<const Routes> ShortestPaths(std::shared_ptr<const Fabric> fabric);

  // Lowest dimension first, the shorter way round; needs the coordinates that the torus, mesh and
  // hypercube models write into switch descriptions. INVALID_ARGUMENT: a switch without them.
  static absl::StatusOr<std::shared_ptr<const Routes>> DimensionOrder(
      std::shared_ptr<const Fabric> fabric);

  RouteKind kind() const { return kind_; }

  // Appends the channels from `from` to `to`, in order. Appends nothing if they are one vertex or
  // two endpoints whose packets stay within their host (Fabric::StayWithinHost). NOT_FOUND: no
  // route, and the message names both ends and the switch where the route breaks off; `path` is
  // then unchanged. A forwarding loop is such an error. Cost: the length of the route, times a
  // switch's ports for shortest paths, whose first route to a new class of switches
  // (distances.h) also computes its distances.
  absl::Status Append(VertexIndex from, VertexIndex to, std::vector<ChannelIndex>& path) const;

  // The channel that switch `s` sends a packet for `to` through; kNoChannel: none, or `to` is `s`.
  ChannelIndex NextChannel(SwitchIndex s, VertexIndex to) const;

  // Links on the route, without its channels. Errors as Append.
  absl::StatusOr<uint32_t> Length(VertexIndex from, VertexIndex to) const;

  const Fabric& fabric() const { return *fabric_; }
  const SwitchDistances& distances() const { return *distances_; }
  const ForwardingTables* tables() const { return tables_.get(); }  // null unless kForwardingTables

 private:
  struct Destination;  // what a route asks at every hop, found once
  struct Hop {         // a channel and where it leads; kNoChannel: nowhere
    ChannelIndex channel = kNoChannel;
    VertexIndex to;
  };
  Routes(std::shared_ptr<const Fabric> fabric, RouteKind kind);
  Destination Resolve(VertexIndex to) const;
  Hop Step(SwitchIndex s, const Destination& to) const;
  Hop TableStep(SwitchIndex s, const Destination& to) const;
  Hop ShortestStep(SwitchIndex s, const Destination& to) const;
  Hop GridStep(SwitchIndex s, const Destination& to) const;
  Hop StepTo(SwitchIndex s, SwitchIndex next, const Destination& to) const;
  template <class Wanted>
  Hop Pick(SwitchIndex s, const Destination& to, const Wanted& wanted) const;
  template <class Visitor>
  absl::Status Walk(VertexIndex from, VertexIndex to, Visitor visit) const;
  absl::Status BrokenAt(VertexIndex from, VertexIndex to, VertexIndex at,
                        bool is_loop = false) const;

  std::shared_ptr<const Fabric> fabric_;
  std::shared_ptr<const SwitchDistances> distances_;
  std::shared_ptr<const ForwardingTables> tables_;
  std::shared_ptr<const GridLayout> grid_;  // null unless kDimensionOrder
  RouteKind kind_;
};

// A vertex as messages name it: `switch 0002c9020040b0e0 "leaf3"`, `endpoint node17/1`.
std::string Describe(const Fabric& fabric, VertexIndex v);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_ROUTES_H_
