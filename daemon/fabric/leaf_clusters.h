// Leaf switches of a fabric without any regular structure, gathered by distance: near ones come
// together early.
//
//     a - b     c - d       two far ends, a and c; all are ordered by how much nearer they are to
//     | x |     | x |       the one than to the other, and parted where the step is largest, near
//     e - f --- g - h       the middle: {a b e f} {c d g h}, and so on in each part
#ifndef COPPICE_DAEMON_FABRIC_LEAF_CLUSTERS_H_
#define COPPICE_DAEMON_FABRIC_LEAF_CLUSTERS_H_

#include <cstdint>
#include <vector>

#include "daemon/fabric/fabric.h"

namespace coppice {

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_LEAF_CLUSTERS_H_
