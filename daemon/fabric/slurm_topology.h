// A fabric as the plugin topology/tree of Slurm reads it: the text of a topology.conf(5).
#ifndef COPPICE_DAEMON_FABRIC_SLURM_TOPOLOGY_H_
#define COPPICE_DAEMON_FABRIC_SLURM_TOPOLOGY_H_

#include <string>

#include "absl/strings/string_view.h"
#include "daemon/fabric/group_tree.h"

namespace coppice {

// One line a switch, children before parents, after a comment that says what the fabric is
// (`shape`: Hierarchy's) and whom Slurm could not name. The text holds nothing that changes without
// the tree: no time and no version. O(hosts).
std::string WriteSlurmTopology(const GroupTree& tree, absl::string_view shape);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_SLURM_TOPOLOGY_H_
