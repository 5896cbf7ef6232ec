// Flows to a switch over all shortest paths in equal shares (Hoefler 2011, section 2.5): the
// measure and the searches that follow it share this. The picture is in link_traffic_even.cc.
#ifndef COPPICE_DAEMON_MAPPING_LINK_TRAFFIC_EVEN_H_
#define COPPICE_DAEMON_MAPPING_LINK_TRAFFIC_EVEN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "daemon/fabric/distances.h"
#include "daemon/mapping/link_traffic_flows.h"

namespace coppice {

// Keeps scratch space of the size of the switches from call to call. Not thread-safe.
class EvenPaths final {
 public:
  // `distances` must outlive this.
  explicit EvenPaths(const SwitchDistances& distances);

  // Calls visit(channel, bytes), once a channel, for what the flows to `t` put on every channel
  // between switches. The links of the longest path; nullopt, without any call, if a flow has no
  // path. O(channels of the switches on shortest paths).
  std::optional<uint32_t> Spread(SwitchIndex t, absl::Span<const SwitchFlow> flows,
                                 absl::FunctionRef<void(ChannelIndex channel, double bytes)> visit);

 private:
  void Reach(SwitchIndex s, uint32_t distance);
  void FindShortestPaths(SwitchIndex t, uint32_t farthest);
  void CountPaths(SwitchIndex t, uint32_t farthest);
  void SendDown(SwitchIndex t, uint32_t farthest,
                absl::FunctionRef<void(ChannelIndex channel, double bytes)> visit);

  const SwitchDistances& distances_;
  std::vector<double> paths_, flows_;             // [switch], all 0 between calls
  std::vector<std::vector<SwitchIndex>> layers_;  // [distance to the destination]
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_LINK_TRAFFIC_EVEN_H_
