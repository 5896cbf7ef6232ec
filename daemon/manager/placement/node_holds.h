// Who holds which node, and which leaf switches are held whole: where placements that were planned
// at the same time meet. Each plan knows the number of the state that it was made on, its
// generation, and takes its nodes only if none was taken since.
//
//   plan A (generation 7)  n1 n2         Take: generation 8
//   plan B (generation 7)     n2 n3      Take: n2 was taken at 8 > 7: false, plan again
//
// Not thread-safe; the lock of Placements guards it. Knows no fabric: leaf switches are GUIDs.
#ifndef COPPICE_DAEMON_MANAGER_PLACEMENT_NODE_HOLDS_H_
#define COPPICE_DAEMON_MANAGER_PLACEMENT_NODE_HOLDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/base/strong_id.h"

namespace coppice {

class NodeHolds {
 public:
  struct Wish {
    std::vector<std::string> nodes;  // distinct
    std::vector<Guid> leaves;        // of these nodes, distinct
    bool is_exclusive = false;       // of the leaf switches
  };

  uint64_t generation() const { return generation_; }

  // Takes the nodes of all wishes, or none: one is held, or was taken after `since`; a leaf switch
  // is another's alone, or wanted alone and was used after `since` or is. Wishes of one call may
  // meet each other, too. What is refused leaves no trace: it makes nobody else plan again.
  // O(nodes).
  bool TakeAll(const std::vector<const Wish*>& wishes, uint64_t since);
  // What was taken, exactly.
  void Free(const Wish& wish);
  // What an earlier run of the daemon had taken.
  void Restore(const Wish& wish);

  // Nodes that are held.
  uint64_t count() const { return count_; }

 private:
  struct Node {
    bool is_held = false;
    uint64_t taken = 0;  // generation of the last time
  };
  struct Leaf {
    uint32_t users = 0, exclusive_users = 0;
    uint64_t used = 0, used_alone = 0;  // generations of the last times
  };
  bool MayTake(const Wish& wish, uint64_t since) const;
  void Hold(const Wish& wish);   // until Free
  void Stamp(const Wish& wish);  // as taken now

  uint64_t generation_ = 0;
  uint64_t count_ = 0;
  // Entries stay when nobody holds them: as many as nodes were ever taken.
  absl::flat_hash_map<std::string, Node> nodes_;
  absl::flat_hash_map<Guid, Leaf> leaves_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PLACEMENT_NODE_HOLDS_H_
