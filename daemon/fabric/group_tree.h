// A strict tree of switches over the hosts of any fabric, for schedulers that know nothing else.
//
//     dragonfly                       tree
//     g0: a-b   g1: c-d                      root0
//         |x|       |x|                     /     \.
//         e-f ===== g-h               group0       group1      inner switches are none of the
//                                    /| |  \       /| |  \     fabric's: they stand for groups
//                                   a b e   f     c d g   h    leaves are the fabric's switches
//
// Knows no scheduler's file format but for the names, which all of them can read.
#ifndef COPPICE_DAEMON_FABRIC_GROUP_TREE_H_
#define COPPICE_DAEMON_FABRIC_GROUP_TREE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/hierarchy.h"

namespace coppice {

// Invariants: names are plain (IsPlainName) and different from each other and from the hosts'; a
// switch has hosts or children, never both and never neither; children come before their parents,
// and every switch but the roots is the child of one.
struct GroupTree {
  struct Node {
    std::string name;
    std::vector<std::string> hosts;  // sorted as SortNodeNames does
    std::vector<uint32_t> children;  // ascending
  };
  std::vector<Node> nodes;
  std::vector<uint32_t> roots;  // ascending; one for each component that has hosts
  uint32_t host_count = 0;
  // Hosts whose names a scheduler could not read; they are in no switch.
  std::vector<std::string> left_out;
};

// Letters of ASCII, digits and ". _ -", at most 200 of them, and no word that files of schedulers
// give a meaning (ALL, DEFAULT).
bool IsPlainName(absl::string_view name);

// Every host with a channel adapter once: below the leaf switch of its first port in the component
// where most endpoints are, among those of the component. Leaf switches are named as the fabric
// describes them, or "s" and their GUID where that is not plain or not theirs alone. Above them are
// the groups of `hierarchy`, without those that would have one child; leaf switches without any
// group are gathered by distance (leaf_clusters.h). Deterministic; O(hosts log hosts + links), and
// for an irregular component what leaf_clusters.h states.
GroupTree MakeGroupTree(const Fabric& fabric, const Hierarchy& hierarchy);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_GROUP_TREE_H_
