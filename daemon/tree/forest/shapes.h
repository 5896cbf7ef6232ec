// How the trees of a forest are made. Hosts are counted, not ranks: the ports of one host on one
// switch reach each other without a link, so that one rank a tree speaks for its host.
//
//   in turn     hosts in order of their place, dealt out: tree i has every K-th host as inner node,
//               so some of every leaf switch; each host is one in as many trees
//   one a leaf  tree i has of every leaf switch its i-th host
//   all         every host: with fan-out 1 chains, which begin at different hosts
//   halves      every host: of two halves the one without the root sends through the host that has
//               the root's place in it, and so on within each. With as many trees as hosts that is
//               recursive halving and doubling (Rabenseifner 2004), packet by packet
//
//   top      inner nodes join within each group and then between groups, or all at once, as a tree
//            of `fanout`; its root is who has least to do so far
//   leaves   hang on an inner node of their leaf switch. In turn: only while it has less than its
//            part; else on the nearest one, over the links least used, that has
//
// An inner node of a forest in turn of K trees over H hosts has about K children, each with 1 / K
// of the message, so that every host receives (H - 1) / H of it on the way up, the least there can
// be, whatever K is: few trees are deep, as many as hosts are stars.
#ifndef COPPICE_DAEMON_TREE_FOREST_SHAPES_H_
#define COPPICE_DAEMON_TREE_FOREST_SHAPES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/forest/forest.h"
#include "daemon/tree/forest/routes.h"
#include "daemon/tree/tree.h"

namespace coppice {

// The hosts of a communicator in order of place: whoever is near is near in number.
struct ForestHosts {
  std::vector<std::vector<uint32_t>> ranks;   // [host]
  std::vector<std::vector<uint32_t>> groups;  // [level][host] from leaf switches outwards; the last
                                              // one is all
  uint32_t count() const { return static_cast<uint32_t>(ranks.size()); }
};
ForestHosts FindForestHosts(const Snapshot& snapshot, const MemberPlaces& places);

// A tree by its ranks' parents.
struct ShapedTree {
  std::vector<int32_t> parents;  // [rank]; kNoParent for the root
  double share = 1;
};

// `hosts` has two hosts at least. NOT_FOUND: ranks without a route. O(trees * hosts * inner).
absl::StatusOr<std::vector<ShapedTree>> BuildForest(const ForestHosts& hosts,
                                                    const ForestShape& shape, ForestRoutes& routes);

// Shapes worth a look, of at most `max_trees` trees.
std::vector<ForestShape> ShapesToTry(const ForestHosts& hosts, uint32_t max_trees);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_FOREST_SHAPES_H_
