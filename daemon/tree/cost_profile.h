// The constants of the cost model (Chen 2024, 2.2), as one value: built in, read from text, or
// fitted to measurements.
#ifndef COPPICE_DAEMON_TREE_COST_PROFILE_H_
#define COPPICE_DAEMON_TREE_COST_PROFILE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coppice {

// What a tree node of one kind costs. All times in microseconds.
struct NodeCost {
  double forward_us = 0;  // phi(S) = forward_us + S * forward_us_per_byte
  double forward_us_per_byte = 0;
  double match_us = 0;            // theta, per packet
  double reduce_us_per_byte = 0;  // gamma
  double send_us = 0;             // c_send, per copy sent downwards

  double ForwardUs(uint64_t bytes) const {
    return forward_us + static_cast<double>(bytes) * forward_us_per_byte;
  }
  double MatchUs(uint64_t reduced_bytes) const {
    return match_us + static_cast<double>(reduced_bytes) * reduce_us_per_byte;
  }
};

struct NodeField {
  absl::string_view name;
  double NodeCost::*member;
};
inline constexpr std::array<NodeField, 5> kNodeFields = {{
    {"forward_us", &NodeCost::forward_us},
    {"forward_us_per_byte", &NodeCost::forward_us_per_byte},
    {"match_us", &NodeCost::match_us},
    {"reduce_us_per_byte", &NodeCost::reduce_us_per_byte},
    {"send_us", &NodeCost::send_us},
}};

struct CostProfile {
  std::string name;
  bool is_estimate = false;  // true: constants are plausible, not measured
  // Those of `switch_` were measured on the switches that carry trees here.
  bool switch_is_measured = false;
  NodeCost nic, switch_;
  double init_us = 0;  // T_init
  double link_us = 0;  // l, per link
  // An edge between two ports of one host on one switch costs this alone, in place of phi, links
  // and serialisation: nothing is stored and forwarded. Its parent still pays for every packet that
  // it takes (theta + S*gamma) or sends (c_send).
  double same_host_us = 0;
  double mean_route_links = 4;  // delta, for the closed forms
  double port_gbps = 0;         // B_port where the fabric does not know a link's capacity
  uint32_t mtu_bytes = 2048;    // payload of one packet; longer ones are pipelined (tree_metrics.h)
  // Keeps a wire or port busy beside each packet's payload. Not in S/B_min: l and phi are measured
  // with whole packets.
  uint32_t header_bytes = 0;
  bool forward_includes_serialisation = false;  // phi already holds S/B_min
  uint32_t nic_degree = 64;         // most children of a NIC, unless the request says otherwise
  double width_tolerance_us = 0.1;  // epsilon of the width interval
};

// S / B: what the payload of a packet adds to its time under way; 0 where the rate is unknown.
inline double SerialisationUs(uint64_t bytes, double gbps) {
  return gbps > 0 ? static_cast<double>(bytes) * 8e-3 / gbps : 0;
}
// How long a packet keeps a wire or port from others: its header does so, too. (That one header is
// under way is in l and phi, which are measured with whole packets.)
inline double WireUs(const CostProfile& profile, uint64_t bytes, double gbps) {
  return SerialisationUs(bytes + profile.header_bytes, gbps);
}

// A link in use counts as at most so busy: what waits before a full one has no bound.
inline constexpr double kMaxUtilisation = 0.99;

// "paper" (a = 1.12 us, b = 0.01 us for 8 B Bcast, delta = 4: Chen 2024, 3.1) and "hdr" (a generic
// InfiniBand HDR fabric, an estimate).
std::vector<std::string> BuiltInProfileNames();
// NOT_FOUND names the profile and lists those that exist.
absl::StatusOr<CostProfile> BuiltInProfile(absl::string_view name);
// From TOML text with the fields' names as keys; unset keys keep the values of `base = "NAME"`
// (default "hdr"). INVALID_ARGUMENT names `origin`, line and key.
absl::StatusOr<CostProfile> ParseProfile(absl::string_view text, absl::string_view origin);

// Text that ParseProfile reads back to an equal profile, if its numbers are such as ParseProfile
// takes and its name is UTF-8 (an empty name is left out).
std::string ProfileToToml(const CostProfile& profile);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_COST_PROFILE_H_
