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
// them cheaper. The least H is found from below; each try costs O(m * n).
//
// Knows neither ranks nor nested groups (group_slots.h); of limits on degrees LimitedPlacement
// alone.
#ifndef COPPICE_DAEMON_TREE_CHAIN_PLACEMENT_H_
#define COPPICE_DAEMON_TREE_CHAIN_PLACEMENT_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_set.h"
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

  bool Construct(absl::Span<const Block> blocks, uint32_t width, uint32_t n, uint32_t height);
  bool Take(const Block& block, uint32_t index, uint32_t height);
  void Split(uint32_t width, uint64_t unit, uint64_t wanted);
  void Drop(uint32_t cost, uint32_t kept);
  void MoveLastChildInto(uint32_t chain);
  void Spawn(uint32_t parent_cost, uint32_t wanted, uint64_t unit);
  void OrderAlike(absl::Span<const Block> blocks);
  void FillPlaces();

  std::vector<Chain> chains_;
  std::vector<std::vector<uint32_t>> open_;  // [cost] open chains
  std::vector<uint32_t> kept_, fresh_;       // [cost] chains to keep and to spawn in a split
  std::vector<uint32_t> chain_of_;           // [block]
  std::vector<bool> moved_;                  // [chain]
  std::vector<BlockPlace> places_;           // [block]
};

// One level of a hierarchical k-nomial tree when no rank may serve more than so many children:
// places aligned blocks in a row of k^n slots within a height and the limits, by exact search.
//
// The picture is that above, read by cost instead of by level. A chain of cost c
// that begins at level s and is closed by a block of level e can spawn k-1 chains of cost c+1 at
// each of the levels s-1 ... e, but no more than its block has children left:
//
//   q(block, c) = limit - children of its first slot inside, arranged no higher than H - c
//
//   k = 3, closed at level 0 with q = 5     level 2   o     begins here
//                                           level 1   o--o--o     2 chains of level 1
//                                           level 0   o--o--o     2 of level 0; the fifth child
//                                                                 has no chain to stand on
//
// A chain that begins higher can do whatever a lower one can, so a block spawns as high as it may;
// which blocks close the chains of cost c, and which of these each, then says what chains of cost
// c + 1 there are. The search chooses that for c = 0, 1, ...; alike blocks are counted, not told
// apart, and states that failed are remembered. It first closes with the blocks that may stand no
// deeper, then with those that spawn most. Two relaxations end most of it, each exact where what it
// leaves out does not matter:
//   levels without limits   after every choice: ChainPlacement's greedy for what is open
//   limits without levels   for every cost: were levels no matter and each q as large as at this
//                           cost, closing in the order above is the best there is, since a block
//                           that spawns more makes room for the one it displaces one cost deeper
//
// Worst case exponential in the kinds of blocks, hence bounded: kGaveUp after so many steps, each
// O(kinds * n + n^2). Knows neither ranks nor nested groups (group_slots.h).

// One way to arrange the inside of a block.
struct BlockShape {
  uint32_t height = 0;       // occupied height
  uint32_t root_degree = 0;  // children of its first slot
  friend auto operator<=>(const BlockShape&, const BlockShape&) = default;
};

// Blocks that are alike: k^exponent slots, and the shapes that their inside can take, heights
// rising and degrees falling.
struct BlockKind {
  uint32_t exponent = 0;
  std::vector<BlockShape> shapes;
  friend auto operator<=>(const BlockKind&, const BlockKind&) = default;
};

struct BlockTally {
  const BlockKind* kind = nullptr;
  uint32_t count = 0;
};

// Reusable: keeps its memory between calls. Not thread-safe.
class LimitedPlacement {
 public:
  struct Bounds {
    uint32_t width = 2, n = 0;  // k^n slots
    uint32_t height = 0;        // most occupied height
    uint32_t degree = 0;        // most children of a first slot, those inside its block included
    uint32_t root_degree = 0;   // the same at slot 0; at most `degree`
  };
  enum class Answer : uint8_t { kPlaced, kImpossible, kGaveUp };
  struct Place {
    uint32_t tally = 0;     // index of the block's kind in what was searched
    uint32_t parent = 0;    // place whose first slot is the k-nomial parent; its own at slot 0
    uint32_t level = 0;     // where its chain begins
    uint32_t cost = 0;      // non-zero digits of `offset`
    uint32_t children = 0;  // places below it
    uint64_t offset = 0;    // first slot; only meaningful if k^n < 2^64
  };

  // Deterministic: the same question takes the same steps. No count is 0.
  Answer Search(absl::Span<const BlockTally> blocks, const Bounds& bounds, uint64_t most_steps);
  uint64_t steps() const { return steps_; }
  // Of the last search, which was kPlaced: parents first, one for every block.
  std::vector<Place> Places() const;

 private:
  // Blocks of one kind on chains of one level.
  struct Choice {
    uint32_t tally = 0, level = 0;
    uint64_t chains = 0;          // that they spawn, each
    bool last_of_urgent = false;  // what is left of the kind must stand here
  };
  struct Layer {  // the chains of one cost
    uint32_t cost = 0;
    std::vector<uint64_t> open;     // [level] chains not yet closed
    std::vector<uint64_t> spawned;  // [level] chains of the next cost, by blocks closed so far
    std::vector<Choice> choices;
  };
  struct Closed {
    uint32_t cost = 0, tally = 0, level = 0;
    uint64_t count = 0;
  };

  void SetRoom(uint32_t tally);
  void SetOrder();
  int64_t room(uint32_t tally, uint32_t cost) const {
    return cost < costs_ ? room_[tally * costs_ + cost] : -1;
  }
  uint64_t Spawns(uint32_t tally, uint32_t cost, uint32_t level, uint32_t at) const;
  uint64_t SpawnsInAll(uint32_t tally, uint32_t cost, uint32_t level) const;
  bool Open(uint32_t cost, std::vector<uint64_t> chains);
  bool MayFinish(uint32_t cost, absl::Span<const uint64_t> chains) const;
  bool SetChoices(Layer& layer) const;
  bool Fill(Layer& layer, size_t next);
  bool HasChains(const Layer& layer);
  void Close(Layer& layer, const Choice& choice, uint64_t count);
  void Reopen(Layer& layer);
  bool LeavesAChainInVain(const Layer& layer) const;
  bool Descend(const Layer& layer);

  absl::Span<const BlockTally> blocks_;
  Bounds bounds_;
  uint32_t costs_ = 0;          // costs that a chain may have: 0 ... costs_ - 1
  std::vector<int64_t> room_;   // [tally][cost] q; below 0: may not stand there
  std::vector<uint64_t> left_;  // [tally] blocks not yet placed
  uint64_t blocks_left_ = 0;
  std::vector<Closed> closed_;     // costs rising
  std::vector<uint32_t> order_;    // tallies
  std::vector<int64_t> deepest_;   // [tally] greatest cost that it may have, -1: none
  std::vector<uint64_t> by_cost_;  // [cost] open chains, while counting
  absl::flat_hash_set<std::vector<uint64_t>> failed_;
  uint64_t steps_ = 0, most_steps_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_CHAIN_PLACEMENT_H_
