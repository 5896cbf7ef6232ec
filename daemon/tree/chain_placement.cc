#include "daemon/tree/chain_placement.h"

#include <algorithm>

namespace coppice {
namespace {

// k^exponent, or 2^64 - 1 if that is less.
uint64_t Power(uint32_t width, uint32_t exponent) {
  uint64_t power = 1;
  for (uint32_t i = 0; i < exponent; ++i) {
    if (power > std::numeric_limits<uint64_t>::max() / width) {
      return std::numeric_limits<uint64_t>::max();
    }
    power *= width;
  }
  return power;
}

uint32_t MostHeight(absl::Span<const Block> blocks) {
  uint32_t most = 0;
  for (const Block& block : blocks) most = std::max(most, block.height);
  return most;
}

}  // namespace

uint32_t ChainPlacement::ExponentFor(absl::Span<const Block> sorted_blocks, uint32_t width) {
  uint32_t exponent = sorted_blocks.back().exponent;
  uint64_t sum = 0;  // of the blocks so far, in units of k^exponent, rounded up
  for (size_t i = sorted_blocks.size(); i-- > 0;) {
    for (; exponent < sorted_blocks[i].exponent; ++exponent) {
      if (sum <= 1) {
        exponent = sorted_blocks[i].exponent;
        break;
      }
      sum = (sum - 1) / width + 1;
    }
    ++sum;
  }
  for (; sum > 1; ++exponent) sum = (sum - 1) / width + 1;
  return exponent;
}

uint32_t ChainPlacement::Place(absl::Span<const Block> blocks, uint32_t width, uint32_t n) {
  uint32_t height = MostHeight(blocks);
  while (!Feasible(blocks, width, n, height)) ++height;
  Construct(blocks, width, n, height, Limits{});
  OrderAlike(blocks);
  FillPlaces(blocks);
  return height;
}

std::optional<uint32_t> ChainPlacement::PlaceLimited(absl::Span<const Block> blocks, uint32_t width,
                                                     uint32_t n, uint32_t degree_limit,
                                                     uint32_t root_limit) {
  const uint32_t most = MostHeight(blocks) + n;
  for (uint32_t height = MostHeight(blocks); height <= most; ++height) {
    if (!Feasible(blocks, width, n, height)) continue;
    for (const bool dearest : {true, false}) {
      for (const Reserve reserve : {Reserve::kMost, Reserve::kFewest, Reserve::kInOrder}) {
        const Limits limits = {
            .degree = degree_limit, .root = root_limit, .reserve = reserve, .dearest = dearest};
        if (!Construct(blocks, width, n, height, limits)) continue;
        OrderAlike(blocks);
        FillPlaces(blocks);
        return height;
      }
    }
  }
  return std::nullopt;
}

// Construct() without limits, by the number of open chains of each cost.
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

bool ChainPlacement::Construct(absl::Span<const Block> blocks, uint32_t width, uint32_t n,
                               uint32_t height, const Limits& limits) {
  chains_.clear();
  chains_.push_back({.parent = 0, .cost = 0, .spawned = 0, .offset = 0, .block = kOpen});
  if (open_.size() < n + 2) open_.resize(n + 2);
  for (std::vector<uint32_t>& chains : open_) chains.clear();
  open_[0].push_back(0);
  chain_of_.assign(blocks.size(), kOpen);
  uint32_t level = n;
  for (uint32_t i = 0; i < blocks.size();) {
    if (blocks[i].exponent == level) {
      if (!Take(blocks, i++, height, limits)) return false;
      continue;
    }
    --level;
    if (limits.bind()) SetReserves(blocks.subspan(i), limits.reserve);
    if (!Split(blocks, width, Power(width, level), blocks.size() - i, limits)) return false;
  }
  return true;
}

// Closes the dearest open chain that `block` may stand on; among equals the one that has spawned
// most, as it has the least left to give.
bool ChainPlacement::Take(absl::Span<const Block> blocks, uint32_t block, uint32_t height,
                          const Limits& limits) {
  const Block& taken = blocks[block];
  if (taken.height > height) return false;
  const uint32_t cap = std::min<uint32_t>(height - taken.height, open_.size() - 1);
  for (uint32_t step = 0; step <= cap; ++step) {
    std::vector<uint32_t>& chains = open_[limits.dearest ? cap - step : step];
    if (chains.empty()) continue;
    auto best = chains.end();
    if (!limits.bind()) {
      best = chains.end() - 1;
    } else {
      for (auto it = chains.begin(); it != chains.end(); ++it) {
        const uint64_t degree = uint64_t{chains_[*it].spawned} + taken.root_degree;
        if (degree > limits.degree || (*it == 0 && degree > limits.root)) continue;
        if (best == chains.end() || chains_[*it].spawned > chains_[*best].spawned) best = it;
      }
    }
    if (best == chains.end()) continue;
    chain_of_[block] = *best;
    chains_[*best].block = block;
    *best = chains.back();
    chains.pop_back();
    return true;
  }
  return false;
}

void ChainPlacement::SetReserves(absl::Span<const Block> remaining, Reserve reserve) {
  reserves_.clear();
  for (const Block& block : remaining) reserves_.push_back(block.root_degree);
  std::sort(reserves_.begin(), reserves_.end());
  if (reserve == Reserve::kInOrder) return;
  const uint32_t one = reserve == Reserve::kMost ? reserves_.back() : reserves_.front();
  std::fill(reserves_.begin(), reserves_.end(), one);
}

// Chains that an open chain, the position-th cheapest, can still spawn within the limits.
uint64_t ChainPlacement::MaySpawn(uint32_t chain, uint32_t position, const Limits& limits) const {
  const uint32_t limit = LimitOf(chain, limits);
  if (limit == kNoLimit) return kNoLimit;
  const uint64_t serves = uint64_t{chains_[chain].spawned} + reserves_[position];
  return serves < limit ? limit - serves : 0;
}

// Opens the next level, of `unit` slots a node, and keeps the `wanted` cheapest chains: of one cost
// those that exist rather than new ones. False: a chain could not be dropped within the limits.
bool ChainPlacement::Split(absl::Span<const Block> blocks, uint32_t width, uint64_t unit,
                           uint64_t wanted, const Limits& limits) {
  kept_.assign(open_.size(), 0);
  fresh_.assign(open_.size(), 0);
  before_.assign(open_.size() + 1, 0);
  for (size_t c = 0; c < open_.size() && wanted > 0; ++c) {
    kept_[c] = static_cast<uint32_t>(std::min<uint64_t>(open_[c].size(), wanted));
    before_[c + 1] = before_[c] + kept_[c];
    wanted -= kept_[c];
    if (c == 0) continue;
    uint64_t can_spawn = 0;
    for (uint32_t p = 0; p < kept_[c - 1] && can_spawn < wanted; ++p) {
      can_spawn +=
          std::min<uint64_t>(width - 1, MaySpawn(open_[c - 1][p], before_[c - 1] + p, limits));
    }
    fresh_[c] = static_cast<uint32_t>(std::min(can_spawn, wanted));
    wanted -= fresh_[c];
  }
  for (uint32_t c = static_cast<uint32_t>(open_.size()); c-- > 0;) {
    if (!Drop(blocks, c, kept_[c], limits)) return false;
  }
  for (uint32_t c = 1; c < open_.size(); ++c) {
    if (fresh_[c] > 0) Spawn(c - 1, fresh_[c], width, unit, limits);
  }
  return true;
}

uint32_t ChainPlacement::LimitOf(uint32_t chain, const Limits& limits) {
  return chain == 0 ? std::min(limits.degree, limits.root) : limits.degree;
}

// Leaves `kept` open chains of this cost; those of higher cost were dropped before. Chains without
// children go first.
bool ChainPlacement::Drop(absl::Span<const Block> blocks, uint32_t cost, uint32_t kept,
                          const Limits& limits) {
  std::vector<uint32_t>& chains = open_[cost];
  if (chains.size() <= kept) return true;
  std::stable_partition(chains.begin(), chains.end(),
                        [&](uint32_t chain) { return chains_[chain].spawned > 0; });
  for (; chains.size() > kept; chains.pop_back()) {
    Chain& dropped = chains_[chains.back()];
    if (dropped.spawned > 0) {
      if (!MoveLastChildInto(blocks, chains.back(), limits)) return false;
      continue;
    }
    dropped.block = kGone;
    --chains_[dropped.parent].spawned;
  }
  return true;
}

// The chain that `chain` spawned last is taken; its block and all chains below it move up. Since
// nothing was spawned later, `chain` has all those slots free. Chains stand after their parents.
bool ChainPlacement::MoveLastChildInto(absl::Span<const Block> blocks, uint32_t chain,
                                       const Limits& limits) {
  uint32_t child = static_cast<uint32_t>(chains_.size()) - 1;
  while (chains_[child].parent != chain || chains_[child].block == kGone) --child;
  Chain& into = chains_[chain];
  Chain& from = chains_[child];
  const uint64_t degree =
      uint64_t{into.spawned} - 1 + from.spawned + blocks[from.block].root_degree;
  if (degree > LimitOf(chain, limits)) return false;
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
  return true;
}

// Lets the kept chains of one cost spawn `wanted` chains in turn, so that none serves more than it
// must.
void ChainPlacement::Spawn(uint32_t parent_cost, uint32_t wanted, uint32_t width, uint64_t unit,
                           const Limits& limits) {
  for (uint32_t digit = 1; wanted > 0; ++digit) {
    for (uint32_t p = 0; p < kept_[parent_cost] && wanted > 0; ++p) {
      const uint32_t parent = open_[parent_cost][p];
      if (MaySpawn(parent, before_[parent_cost] + p, limits) == 0) continue;
      open_[parent_cost + 1].push_back(static_cast<uint32_t>(chains_.size()));
      ++chains_[parent].spawned;
      chains_.push_back({.parent = parent,
                         .cost = parent_cost + 1,
                         .spawned = 0,
                         .offset = chains_[parent].offset + digit * unit,
                         .block = kOpen});
      --wanted;
    }
    if (digit + 1 == width) break;
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

void ChainPlacement::FillPlaces(absl::Span<const Block> blocks) {
  places_.resize(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Chain& chain = chains_[chain_of_[i]];
    places_[i] = {
        .parent = chains_[chain.parent].block, .offset = chain.offset, .cost = chain.cost};
  }
}

}  // namespace coppice
