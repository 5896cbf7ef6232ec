// Bytes over every channel under a mapping: what congestion is counted from (Hoefler 2011, eq. 3-5,
// section 2.5 and algorithm 3).
#ifndef COPPICE_DAEMON_MAPPING_LINK_TRAFFIC_H_
#define COPPICE_DAEMON_MAPPING_LINK_TRAFFIC_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/mapping/mapping_problem.h"

namespace coppice {

// [channel] capacity in Gb/s, as mapping_metrics.h counts it; with problem.use_load less by the
// measured load, but never below a hundredth of it. `problem` has a fabric.
std::vector<double> ChannelCapacities(const MappingProblem& problem);

struct LinkTraffic {
  std::vector<double> bytes;  // [channel]; their sum is the hop-bytes
  uint32_t longest = 0;       // links of the longest route that carries any
};

// Under `mapping`, by problem.traffic. NOT_FOUND as Routes::Append.
absl::StatusOr<LinkTraffic> CountLinkTraffic(const MappingProblem& problem,
                                             absl::Span<const PlaceIndex> mapping);

// The traffic of a mapping, gathered by where it goes: ranks share places and places share leaf
// switches, so that what is walked over the fabric is a few flows and not every pair of ranks.
//
//     ranks --> links of hosts (counted here) --> [leaf switch ~> destination] bytes --> a model
struct SwitchFlow {
  SwitchIndex from;  // the leaf switch of the senders
  double bytes;
};

// One place at a switch that flows end at, and the flows to it, one for each leaf switch.
struct DestinationFlows {
  EndpointIndex to;       // any endpoint that hears, if flows end at switches
  SwitchIndex to_switch;  // its leaf switch
  EndpointIndex from;     // any endpoint that speaks, to name in an error
  absl::Span<const SwitchFlow> flows;
};

enum class FlowsEndAt : uint8_t { kEndpoints, kLeafSwitches };

// Adds the links of hosts to `traffic` and calls `push` for every destination that anything is sent
// to; `push` adds the links between switches and raises traffic.longest. Endpoints that are cabled
// back to back are counted here altogether. Errors: those of `push`, and Routes::Append's between
// such endpoints. O(pairs + ranks + destinations), and memory O(ranks + switches).
absl::Status ForEachDestination(const MappingProblem& problem, absl::Span<const PlaceIndex> mapping,
                                FlowsEndAt end, LinkTraffic& traffic,
                                absl::FunctionRef<absl::Status(const DestinationFlows&)> push);

// Calls visit(channel) for the first channels of all shortest paths from switch `s` to another
// switch `t` that it can reach.
template <class Visit>
void ForEachChannelNearer(const SwitchDistances& distances, SwitchIndex s, SwitchIndex t,
                          const Visit& visit) {
  const Fabric& fabric = distances.fabric();
  const absl::Span<const Channel> channels = fabric.switch_channels(s);
  const uint8_t here = distances.Between(s, t);
  if (here == 1) {  // rows of classes do not tell `t` from its twins
    for (const Channel& channel : channels) {
      if (channel.to == fabric.Vertex(t)) visit(channel);
    }
    return;
  }
  const TwinClasses& classes = distances.classes();
  const absl::Span<const uint32_t> beside = classes.classes_beside(s);
  const absl::Span<const uint8_t> row = distances.ClassRowTo(classes.class_of(t));
  for (size_t i = 0; i < channels.size(); ++i) {
    if (row[beside[i]] + 1 == here) visit(channels[i]);
  }
}

// Why nothing leads from one endpoint to another.
absl::Status NoPath(const Routes& routes, EndpointIndex from, EndpointIndex to);

// The models (traffic_routes.cc, link_traffic.cc).
absl::Status OverEvenShortestPaths(const MappingProblem& problem,
                                   absl::Span<const PlaceIndex> mapping, LinkTraffic& traffic);
absl::Status OverLeastLoadedPaths(const MappingProblem& problem,
                                  absl::Span<const PlaceIndex> mapping, LinkTraffic& traffic);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_LINK_TRAFFIC_H_
