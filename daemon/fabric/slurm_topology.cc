#include "daemon/fabric/slurm_topology.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/fabric/node_list.h"

namespace coppice {

std::string WriteSlurmTopology(const GroupTree& tree, absl::string_view shape) {
  std::string text =
      absl::StrCat("# Switches of the fabric for Slurm's topology/tree, as Coppice sees it.\n# ",
                   shape, ": ", tree.host_count, " hosts, ", tree.nodes.size(), " switches, ",
                   tree.roots.size(), tree.roots.size() == 1 ? " root\n" : " roots\n");
  for (const std::string& host : tree.left_out) {
    absl::StrAppend(&text, "# Left out, no name for Slurm: \"", absl::CHexEscape(host), "\"\n");
  }
  for (const GroupTree::Node& node : tree.nodes) {
    absl::StrAppend(&text, "SwitchName=", node.name);
    if (node.children.empty()) {
      absl::StrAppend(&text, " Nodes=", FormatNodeList(node.hosts), "\n");
      continue;
    }
    std::vector<std::string> children;
    for (const uint32_t child : node.children) children.push_back(tree.nodes[child].name);
    SortNodeNames(children);
    absl::StrAppend(&text, " Switches=", FormatNodeList(children), "\n");
  }
  return text;
}

}  // namespace coppice
