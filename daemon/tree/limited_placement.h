// One level of a hierarchical k-nomial tree when no rank may serve more than so many children:
// places aligned blocks in a row of k^n slots within a height and the limits, by exact search.
//
// The picture is that of chain_placement.h, read by cost instead of by level. A chain of cost c
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
//   levels without limits   after every choice: the greedy of chain_placement.h for what is open
//   limits without levels   for every cost: were levels no matter and each q as large as at this
//                           cost, closing in the order above is the best there is, since a block
//                           that spawns more makes room for the one it displaces one cost deeper
//
// Worst case exponential in the kinds of blocks, hence bounded: kGaveUp after so many steps, each
// O(kinds * n + n^2). Knows neither ranks nor nested groups (limited_groups.h).
#ifndef COPPICE_DAEMON_TREE_LIMITED_PLACEMENT_H_
#define COPPICE_DAEMON_TREE_LIMITED_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"

namespace coppice {

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

#endif  // COPPICE_DAEMON_TREE_LIMITED_PLACEMENT_H_
