// What this node is: its name, its InfiniBand ports, its cores.
#ifndef COPPICE_AGENTS_NODE_NODE_FACTS_H_
#define COPPICE_AGENTS_NODE_NODE_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace coppice {

struct NodeFacts {
  std::string host;                     // as the fabric names it
  std::vector<std::string> port_guids;  // 16 hex digits, ascending
  uint32_t cores = 0, packages = 0, numa_nodes = 0;
};

// What the node itself says: host name up to its first dot, ports, cores.
NodeFacts ReadNodeFacts();

// Ports of link layer InfiniBand below `root`, which is laid out as /sys/class/infiniband. Ports
// without a GUID are left out.
std::vector<std::string> ReadPortGuids(const std::string& root);

// The port GUID in a GID as sysfs prints it ("fe80:...:0002:c903:00a1:b2c3"), as 16 hex digits;
// empty: it is none, or zero.
std::string GuidOfGid(absl::string_view gid);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_NODE_FACTS_H_
