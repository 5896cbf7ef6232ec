// A directed route: the ports to leave by, hop after hop, from the local port to a node (IBA vol.
// 1, 14.2.2). It needs no LIDs, so a subnet can be read before any subnet manager has touched it.
//
//      local port --1--> switch --17--> switch --3--> node         "0,1,17,3"; hop_count = 3
#ifndef COPPICE_DAEMON_IB_DIRECTED_ROUTE_H_
#define COPPICE_DAEMON_IB_DIRECTED_ROUTE_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/base/strong_id.h"

namespace coppice {

struct DirectedRoute {
  // InitialPath has 64 entries of which entry 0 is unused: 63 hops (IBA vol. 1, 14.2.1.2).
  static constexpr int kMaxHops = 63;

  uint8_t hop_count = 0;                   // 0..kMaxHops
  std::array<uint8_t, kMaxHops + 1> port;  // [1..hop_count], port to leave the n-th node by

  DirectedRoute() { port.fill(0); }

  // Requires hop_count < kMaxHops.
  DirectedRoute Then(PortNum next) const {
    DirectedRoute longer = *this;
    longer.port[++longer.hop_count] = next.value();
    return longer;
  }
  friend bool operator==(const DirectedRoute&, const DirectedRoute&) = default;
};

// The way the diagnostics print it: "0,1,17,3"; the local node itself is "0".
inline std::string ToString(const DirectedRoute& route) {
  std::string text = "0";
  for (int hop = 1; hop <= route.hop_count; ++hop) absl::StrAppend(&text, ",", route.port[hop]);
  return text;
}

}  // namespace coppice

#endif  // COPPICE_DAEMON_IB_DIRECTED_ROUTE_H_
