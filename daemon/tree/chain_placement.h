// One level of a hierarchical k-nomial tree: places aligned blocks in a row of k^n slots so that
// the occupied height is least (Chen 2024, 3.3.1, algorithm 2 finds the least n only).
//
// The slots are the leaves of a k-ary trie of depth n; a block of k^e slots is a trie node of level
// e, and blocks are disjoint, so none lies below another. Walking down, digit 0 keeps a node's
// first slot and any other digit adds one non-zero digit. A maximal run of zero digits is a CHAIN:
// it has one first slot and one cost, the non-zero digits of that slot. At every level a chain
// still open can spawn k-1 chains of cost + 1, whose k-nomial parent is its own first slot:
//
//   k = 2, n = 3     level 3   o-------+               chain A at slot 0, cost 0
//                              |       |
//                    level 2   o---+   o---+           A; B at slot 4, cost 1
//                              |   |   |   |
//                    level 1   o   o   o   o           A; C at 2, cost 1; B; D at 6, cost 2
//
// So a block (e, h), h the height inside it, takes a chain of cost <= H - h at level e and closes
// it; H is feasible if every block finds one.
//
// Exact: from the largest blocks to the smallest, the tightest cap H - h first, each block takes
// the dearest open chain that its cap allows. By matroid greedy (the sets of chains that the blocks
// of one level can be matched to are a transversal matroid) the costs taken are, sorted, at least
// those of any other choice, so the costs left are at most; and chains that are cheaper one by one
// can do whatever dearer ones can. With m blocks left only the m cheapest chains matter; the rest
// are dropped. A chain that is dropped after chains that it spawned were taken would leave them
// without parent: then the last of those, with all below it, moves up into it, which only makes
// them cheaper. The least H is found from below; each try costs O(m + n^2) by counting, the last
// O(m * n).
//
// Knows neither ranks nor nested groups (group_slots.h), nor limits on degrees
// (limited_placement.h).
#ifndef COPPICE_DAEMON_TREE_CHAIN_PLACEMENT_H_
#define COPPICE_DAEMON_TREE_CHAIN_PLACEMENT_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"

namespace coppice {

struct Block {
  uint32_t exponent = 0;     // k^exponent slots
  uint32_t height = 0;       // occupied height inside
  uint32_t root_degree = 0;  // children of its first slot inside
  uint32_t label = 0;        // the caller's
  friend bool operator==(const Block&, const Block&) = default;
};

struct BlockPlace {
  uint32_t parent = 0;  // index of the block whose first slot is this one's k-nomial parent;
                        // its own index for the block at slot 0
  uint64_t offset = 0;  // first slot; only meaningful if k^n < 2^64
  uint32_t cost = 0;    // non-zero digits of `offset`
};

// k^exponent, or 2^64 - 1 if that is less.
uint64_t SlotsOf(uint32_t width, uint32_t exponent);

// Reusable: keeps its memory between calls. Not thread-safe. In all calls `blocks` is not empty and
// sorted by (exponent, height) falling, and n = ExponentFor().
class ChainPlacement {
 public:
  // Least n with k^n >= the sum of the blocks.
  static uint32_t ExponentFor(absl::Span<const Block> blocks, uint32_t width);

  uint32_t LeastHeight(absl::Span<const Block> blocks, uint32_t width, uint32_t n);

  // Places the blocks into k^n slots; place i is that of block i. Among blocks that are alike in
  // everything but label the earlier gets the earlier chain. Returns the least height.
  uint32_t Place(absl::Span<const Block> blocks, uint32_t width, uint32_t n);
  absl::Span<const BlockPlace> places() const { return places_; }

 private:
  struct Chain {
    uint32_t parent;  // chain
    uint32_t cost;
    uint32_t spawned;  // chains that it spawned and that are kept
    uint64_t offset;
    uint32_t block;  // kOpen until taken, kGone once dropped
  };
  static constexpr uint32_t kOpen = std::numeric_limits<uint32_t>::max();
  static constexpr uint32_t kGone = kOpen - 1;

  bool Feasible(absl::Span<const Block> blocks, uint32_t width, uint32_t n, uint32_t height);
  void Construct(absl::Span<const Block> blocks, uint32_t width, uint32_t n, uint32_t height);
  void Take(const Block& block, uint32_t index, uint32_t height);
  void Split(uint32_t width, uint64_t unit, uint64_t wanted);
  void Drop(uint32_t cost, uint32_t kept);
  void MoveLastChildInto(uint32_t chain);
  void Spawn(uint32_t parent_cost, uint32_t wanted, uint64_t unit);
  void OrderAlike(absl::Span<const Block> blocks);
  void FillPlaces();

  std::vector<Chain> chains_;
  std::vector<std::vector<uint32_t>> open_;  // [cost] open chains
  std::vector<uint64_t> count_;              // [cost] of open chains, while only counting
  std::vector<uint32_t> kept_, fresh_;       // [cost] chains to keep and to spawn in a split
  std::vector<uint32_t> chain_of_;           // [block]
  std::vector<bool> moved_;                  // [chain]
  std::vector<BlockPlace> places_;           // [block]
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_CHAIN_PLACEMENT_H_
