// What this node is: its name, its InfiniBand ports, its cores.
#ifndef COPPICE_AGENTS_NODE_NODE_FACTS_H_
#define COPPICE_AGENTS_NODE_NODE_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coppice {

struct NodeFacts {
  std::string host;                     // as the fabric names it
  std::vector<std::string> port_guids;  // 16 hex digits, ascending
  uint32_t cores = 0, packages = 0, numa_nodes = 0;
};

// Where the kernel shows devices and their ports.
constexpr char kDevices[] = "/sys/class/infiniband";

// What the node itself says: host name up to its first dot, ports below `devices`, cores.
NodeFacts ReadNodeFacts(const std::string& devices = kDevices);

struct InfinibandPort {
  std::string device;                      // "mlx5_0"
  uint8_t number = 0;                      // from 1
  std::string guid;                        // 16 hex digits
  std::string subnet_prefix;               // likewise
  std::string state;                       // "4: ACTIVE"
  std::optional<uint32_t> key_index = {};  // of the partition that was asked for
};

// Ports of link layer InfiniBand below `root`, which is laid out as /sys/class/infiniband, by
// device and number. Ports without a GUID are left out.
std::vector<InfinibandPort> ReadInfinibandPorts(const std::string& root);
// Their GUIDs, ascending.
std::vector<std::string> ReadPortGuids(const std::string& root);

// The port GUID in a GID as sysfs prints it ("fe80:...:0002:c903:00a1:b2c3"), as 16 hex digits;
// empty: it is none, or zero.
std::string GuidOfGid(absl::string_view gid);

// Which port is measured over by perftest: the first active one to which all of this applies.
struct PortChoice {
  bool is_none = false;                 // none: TCP only
  std::string device;                   // "mlx5_0"; empty: any
  uint8_t port = 0;                     // from 1; 0: any
  std::vector<std::string> port_guids;  // one of these, 16 hex digits each; empty: any
  std::string devices = kDevices;       // laid out as that
  uint16_t partition = 0;               // which it has to be in; 0: any
};

// "mlx5_0 port 1".
std::string NameOf(const InfinibandPort& port);

// "": any port, "none", "mlx5_0" or "mlx5_0/2". INVALID_ARGUMENT: something else.
absl::StatusOr<PortChoice> ParsePortChoice(absl::string_view text);

// Devices by name. NOT_FOUND: the node has no such port. FAILED_PRECONDITION, naming device and
// port: it is not active, or not in the partition.
absl::StatusOr<InfinibandPort> FindPort(const PortChoice& choice);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_NODE_FACTS_H_
