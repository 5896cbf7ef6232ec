// Which InfiniBand port of the node is measured over, by what the kernel says in
// /sys/class/infiniband. Opens no device: perftest does.
#ifndef COPPICE_AGENTS_NODE_PERFTEST_PERFTEST_PORT_H_
#define COPPICE_AGENTS_NODE_PERFTEST_PERFTEST_PORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/node/node_facts.h"

namespace coppice {

// The first active port to which all of this applies.
struct PortChoice {
  bool is_none = false;                 // none: TCP only
  std::string device;                   // "mlx5_0"; empty: any
  uint8_t port = 0;                     // from 1; 0: any
  std::vector<std::string> port_guids;  // one of these, 16 hex digits each; empty: any
  std::string devices = kDevices;       // laid out as that
};

// "mlx5_0 port 1".
std::string NameOf(const InfinibandPort& port);

// "": any port, "none", "mlx5_0" or "mlx5_0/2". INVALID_ARGUMENT: something else.
absl::StatusOr<PortChoice> ParsePortChoice(absl::string_view text);

// Devices by name. NOT_FOUND: the node has no such port. FAILED_PRECONDITION, naming device and
// port: it is not active.
absl::StatusOr<InfinibandPort> FindPort(const PortChoice& choice);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_PERFTEST_PERFTEST_PORT_H_
