#include "daemon/tree/chain_placement.h"

#include <algorithm>

namespace coppice {

uint64_t SlotsOf(uint32_t width, uint32_t exponent) {
  uint64_t power = 1;
  for (uint32_t i = 0; i < exponent; ++i) {
    if (power > std::numeric_limits<uint64_t>::max() / width) {
      return std::numeric_limits<uint64_t>::max();
    }
    power *= width;
  }
  return power;
}

uint32_t ChainPlacement::ExponentFor(absl::Span<const Block> blocks, uint32_t width) {
  uint32_t exponent = blocks.back().exponent;
  uint64_t sum = 0;  // of the blocks so far, in units of k^exponent, rounded up
  for (size_t i = blocks.size(); i-- > 0;) {
    for (; exponent < blocks[i].exponent; ++exponent) {
      if (sum <= 1) {
        exponent = blocks[i].exponent;
        break;
      }
      sum = (sum - 1) / width + 1;
    }
    ++sum;
  }
  for (; sum > 1; ++exponent) sum = (sum - 1) / width + 1;
  return exponent;
}

uint32_t ChainPlacement::LeastHeight(absl::Span<const Block> blocks, uint32_t width, uint32_t n) {
  uint32_t height = 0;
  for (const Block& block : blocks) height = std::max(height, block.height);
  while (!Feasible(blocks, width, n, height)) ++height;
  return height;
}

uint32_t ChainPlacement::Place(absl::Span<const Block> blocks, uint32_t width, uint32_t n) {
  const uint32_t height = LeastHeight(blocks, width, n);
  Construct(blocks, width, n, height);
  OrderAlike(blocks);
  FillPlaces();
  return height;
}

// Whether Construct() succeeds, by the number of open chains of each cost.
bool ChainPlacement::Feasible(absl::Span<const Block> blocks, uint32_t width, uint32_t n,
                              uint32_t height) {
  count_.assign(n + 1, 0);
  count_[0] = 1;
  uint32_t top = 0;  // greatest cost of an open chain
  uint32_t level = n;
  for (size_t i = 0; i < blocks.size();) {
    if (blocks[i].exponent < level) {
      uint64_t wanted = blocks.size() - i;
      --level;
      top = std::min(top + 1, n);
      uint64_t below = 0;  // chains of cost c-1 before the split
      for (uint32_t c = 0; c <= top; ++c) {
        const uint64_t before = count_[c];
        const uint64_t now = std::min(wanted, before + below * (width - 1));
        below = before;
        count_[c] = now;
        wanted -= now;
      }
      continue;
    }
    size_t end = i;  // of the blocks that are alike
    while (end < blocks.size() && blocks[end].exponent == level &&
           blocks[end].height == blocks[i].height) {
      ++end;
    }
    if (blocks[i].height > height) return false;
    for (uint32_t cost = std::min(height - blocks[i].height, top) + 1; cost-- > 0 && i < end;) {
      const uint64_t taken = std::min<uint64_t>(count_[cost], end - i);
      count_[cost] -= taken;
      i += taken;
    }
    if (i < end) return false;
  }
  return true;
}

void ChainPlacement::Construct(absl::Span<const Block> blocks, uint32_t width, uint32_t n,
                               uint32_t height) {
  chains_.clear();
  chains_.push_back({.parent = 0, .cost = 0, .spawned = 0, .offset = 0, .block = kOpen});
  if (open_.size() < n + 2) open_.resize(n + 2);
  for (std::vector<uint32_t>& chains : open_) chains.clear();
  open_[0].push_back(0);
  chain_of_.assign(blocks.size(), kOpen);
  uint32_t level = n;
  for (uint32_t i = 0; i < blocks.size();) {
    if (blocks[i].exponent == level) {
      Take(blocks[i], i, height);
      ++i;
      continue;
    }
    --level;
    Split(width, SlotsOf(width, level), blocks.size() - i);
  }
}

// Closes the dearest open chain that `block` may stand on.
void ChainPlacement::Take(const Block& block, uint32_t index, uint32_t height) {
  uint32_t cost = std::min<uint32_t>(height - block.height, open_.size() - 1);
  while (open_[cost].empty()) --cost;
  chain_of_[index] = open_[cost].back();
  chains_[open_[cost].back()].block = index;
  open_[cost].pop_back();
}

// Opens the next level, of `unit` slots a node, and keeps the `wanted` cheapest chains: of one cost
// those that exist rather than new ones.
void ChainPlacement::Split(uint32_t width, uint64_t unit, uint64_t wanted) {
  kept_.assign(open_.size(), 0);
  fresh_.assign(open_.size(), 0);
  for (size_t c = 0; c < open_.size() && wanted > 0; ++c) {
    kept_[c] = static_cast<uint32_t>(std::min<uint64_t>(open_[c].size(), wanted));
    wanted -= kept_[c];
    if (c == 0) continue;
    fresh_[c] = static_cast<uint32_t>(std::min(uint64_t{kept_[c - 1]} * (width - 1), wanted));
    wanted -= fresh_[c];
  }
  for (uint32_t c = static_cast<uint32_t>(open_.size()); c-- > 0;) Drop(c, kept_[c]);
  for (uint32_t c = 1; c < open_.size(); ++c) {
    if (fresh_[c] > 0) Spawn(c - 1, fresh_[c], unit);
  }
}

// Leaves `kept` open chains of this cost; those of higher cost were dropped before. Chains without
// children go first.
void ChainPlacement::Drop(uint32_t cost, uint32_t kept) {
  std::vector<uint32_t>& chains = open_[cost];
  if (chains.size() <= kept) return;
  std::stable_partition(chains.begin(), chains.end(),
                        [&](uint32_t chain) { return chains_[chain].spawned > 0; });
  for (; chains.size() > kept; chains.pop_back()) {
    Chain& dropped = chains_[chains.back()];
    if (dropped.spawned > 0) {
      MoveLastChildInto(chains.back());
      continue;
    }
    dropped.block = kGone;
    --chains_[dropped.parent].spawned;
  }
}

// The chain that `chain` spawned last is taken; its block and all chains below it move up. Since
// nothing was spawned later, `chain` has all those slots free. Chains stand after their parents.
void ChainPlacement::MoveLastChildInto(uint32_t chain) {
  uint32_t child = static_cast<uint32_t>(chains_.size()) - 1;
  while (chains_[child].parent != chain || chains_[child].block == kGone) --child;
  Chain& into = chains_[chain];
  Chain& from = chains_[child];
  const uint64_t shift = from.offset - into.offset;
  into.spawned += from.spawned - 1;
  into.block = from.block;
  chain_of_[into.block] = chain;
  from.block = kGone;
  moved_.assign(chains_.size(), false);
  moved_[child] = true;
  for (uint32_t c = child + 1; c < chains_.size(); ++c) {
    if (!moved_[chains_[c].parent] || chains_[c].block == kGone) continue;
    moved_[c] = true;
    chains_[c].offset -= shift;
    --chains_[c].cost;
    if (chains_[c].parent == child) chains_[c].parent = chain;
  }
}

// Lets the kept chains of one cost spawn `wanted` chains in turn, so that none serves more than it
// must.
void ChainPlacement::Spawn(uint32_t parent_cost, uint32_t wanted, uint64_t unit) {
  for (uint32_t digit = 1; wanted > 0; ++digit) {
    for (uint32_t p = 0; p < kept_[parent_cost] && wanted > 0; ++p, --wanted) {
      const uint32_t parent = open_[parent_cost][p];
      open_[parent_cost + 1].push_back(static_cast<uint32_t>(chains_.size()));
      ++chains_[parent].spawned;
      chains_.push_back({.parent = parent,
                         .cost = parent_cost + 1,
                         .spawned = 0,
                         .offset = chains_[parent].offset + digit * unit,
                         .block = kOpen});
    }
  }
}

// Blocks that are alike are interchangeable: the lower index gets the earlier chain, so that rank 0
// is the root wherever that is free.
void ChainPlacement::OrderAlike(absl::Span<const Block> blocks) {
  for (size_t begin = 0, end = 0; begin < blocks.size(); begin = end) {
    for (end = begin; end < blocks.size(); ++end) {
      if (blocks[end].exponent != blocks[begin].exponent ||
          blocks[end].height != blocks[begin].height ||
          blocks[end].root_degree != blocks[begin].root_degree) {
        break;
      }
    }
    std::sort(chain_of_.begin() + begin, chain_of_.begin() + end);
    for (size_t i = begin; i < end; ++i) chains_[chain_of_[i]].block = static_cast<uint32_t>(i);
  }
}

void ChainPlacement::FillPlaces() {
  places_.resize(chain_of_.size());
  for (size_t i = 0; i < chain_of_.size(); ++i) {
    const Chain& chain = chains_[chain_of_[i]];
    places_[i] = {
        .parent = chains_[chain.parent].block, .offset = chain.offset, .cost = chain.cost};
  }
}

}  // namespace coppice
