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
// group are gathered by distance. Deterministic; O(hosts log hosts + links), and
// for an irregular component what is stated there.
GroupTree MakeGroupTree(const Fabric& fabric, const Hierarchy& hierarchy);

// Leaf switches of a fabric without any regular structure, gathered by distance: near ones come
// together early.
//
//     a - b     c - d       two far ends, a and c; all are ordered by how much nearer they are to
//     | x |     | x |       the one than to the other, and parted where the step is largest, near
//     e - f --- g - h       the middle: {a b e f} {c d g h}, and so on in each part

// A part of the leaves: of leaves themselves, or of two parts, by position in LeafClusters.
struct LeafCluster {
  std::vector<SwitchIndex> leaves;  // ascending; empty if it has parts
  std::vector<uint32_t> parts;
};

// Parts of `leaves`, which are different and of one component; the last one is the whole. No part
// of more than four leaves stays whole, unless all in it are equally far from its ends: then
// nothing can be told. No part of several leaves holds less than a third of what it was parted
// from. Deterministic; O(leaves) breadth-first searches, each as wide as its part.
std::vector<LeafCluster> ClusterLeaves(const Fabric& fabric, std::vector<SwitchIndex> leaves);

// As the plugin topology/tree of Slurm reads it, topology.conf(5). One line a switch, children
// before parents, after a comment that says what the fabric is
// (`shape`: Hierarchy's) and whom Slurm could not name. The text holds nothing that changes without
// the tree: no time and no version. O(hosts).
std::string WriteSlurmTopology(const GroupTree& tree, absl::string_view shape);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_GROUP_TREE_H_
