#include "daemon/tree/chain_placement.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"

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
  for (size_t i = blocks.size(); i-- > 0; ++sum) {
    for (; exponent < blocks[i].exponent; ++exponent) sum = (sum - 1) / width + 1;
  }
  for (; sum > 1; ++exponent) sum = (sum - 1) / width + 1;
  return exponent;
}

uint32_t ChainPlacement::LeastHeight(absl::Span<const Block> blocks, uint32_t width, uint32_t n) {
  uint32_t height = 0;
  for (const Block& block : blocks) height = std::max(height, block.height);
  while (!Construct(blocks, width, n, height)) ++height;
  return height;
}

uint32_t ChainPlacement::Place(absl::Span<const Block> blocks, uint32_t width, uint32_t n) {
  const uint32_t height = LeastHeight(blocks, width, n);
  OrderAlike(blocks);
  FillPlaces();
  return height;
}

// False: some block finds no chain.
bool ChainPlacement::Construct(absl::Span<const Block> blocks, uint32_t width, uint32_t n,
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
      if (!Take(blocks[i], i, height)) return false;
      ++i;
      continue;
    }
    --level;
    Split(width, SlotsOf(width, level), blocks.size() - i);
  }
  return true;
}

// Closes the dearest open chain that `block` may stand on.
bool ChainPlacement::Take(const Block& block, uint32_t index, uint32_t height) {
  uint32_t cost = std::min<uint32_t>(height - block.height, open_.size() - 1);
  while (open_[cost].empty()) {
    if (cost-- == 0) return false;
  }
  chain_of_[index] = open_[cost].back();
  chains_[open_[cost].back()].block = index;
  open_[cost].pop_back();
  return true;
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
  absl::c_stable_partition(chains, [&](uint32_t chain) { return chains_[chain].spawned > 0; });
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

LimitedPlacement::Answer LimitedPlacement::Search(absl::Span<const BlockTally> blocks,
                                                  const Bounds& bounds, uint64_t most_steps) {
  blocks_ = blocks;
  bounds_ = bounds;
  costs_ = std::min(bounds.n, bounds.height) + 1;
  steps_ = 0;
  most_steps_ = most_steps;
  closed_.clear();
  failed_.clear();
  room_.assign(blocks.size() * costs_, -1);
  left_.clear();
  blocks_left_ = 0;
  for (uint32_t t = 0; t < blocks.size(); ++t) {
    SetRoom(t);
    left_.push_back(blocks[t].count);
    blocks_left_ += blocks[t].count;
  }
  std::vector<uint64_t> chains(bounds.n + 1, 0);
  chains[bounds.n] = 1;
  SetOrder();
  if (Open(0, std::move(chains))) return Answer::kPlaced;
  return steps_ > most_steps_ ? Answer::kGaveUp : Answer::kImpossible;
}

// A chain of cost c begins at level n - c or lower.
void LimitedPlacement::SetRoom(uint32_t tally) {
  const BlockKind& kind = *blocks_[tally].kind;
  for (uint32_t cost = 0; cost < costs_ && cost + kind.exponent <= bounds_.n; ++cost) {
    int64_t& room = room_[tally * costs_ + cost];
    for (const BlockShape& shape : kind.shapes) {
      if (shape.height + cost > bounds_.height) break;
      room = int64_t{cost == 0 ? bounds_.root_degree : bounds_.degree} - shape.root_degree;
    }
  }
}

// ChainPlacement's order: large blocks first, of one size those that may stand least deep.
void LimitedPlacement::SetOrder() {
  order_.clear();
  deepest_.clear();
  for (uint32_t t = 0; t < blocks_.size(); ++t) {
    int64_t deepest = int64_t{costs_} - 1;
    while (deepest >= 0 && room(t, static_cast<uint32_t>(deepest)) < 0) --deepest;
    deepest_.push_back(deepest);
    order_.push_back(t);
  }
  absl::c_sort(order_, [&](uint32_t x, uint32_t y) {
    const uint32_t size_x = blocks_[x].kind->exponent, size_y = blocks_[y].kind->exponent;
    return size_x != size_y ? size_x > size_y : deepest_[x] < deepest_[y];
  });
}

// Chains of level `at` that a block spawns whose chain begins at `level`.
uint64_t LimitedPlacement::Spawns(uint32_t tally, uint32_t cost, uint32_t level,
                                  uint32_t at) const {
  if (at >= level || at < blocks_[tally].kind->exponent) return 0;
  const auto room = static_cast<uint64_t>(room_[tally * costs_ + cost]);
  const uint64_t each = bounds_.width - 1, above = each * (level - 1 - at);
  return room > above ? std::min(each, room - above) : 0;
}

uint64_t LimitedPlacement::SpawnsInAll(uint32_t tally, uint32_t cost, uint32_t level) const {
  const uint64_t levels = level - std::min(level, blocks_[tally].kind->exponent);
  return std::min<uint64_t>(room_[tally * costs_ + cost], (bounds_.width - 1) * levels);
}

bool LimitedPlacement::Open(uint32_t cost, std::vector<uint64_t> chains) {
  if (blocks_left_ == 0) return true;
  steps_ += blocks_.size();
  if (cost >= costs_ || (cost > 0 && !MayFinish(cost, chains))) return false;
  std::vector<uint64_t> state = chains;
  state.push_back(cost);
  state.insert(state.end(), left_.begin(), left_.end());
  if (failed_.contains(state)) return false;
  Layer layer = {.cost = cost, .open = std::move(chains), .spawned = {}, .choices = {}};
  layer.spawned.assign(layer.open.size(), 0);
  if (SetChoices(layer) && Fill(layer, 0)) return true;
  if (steps_ <= most_steps_) failed_.insert(std::move(state));
  return false;
}

// Whether the blocks that are left have chains, were there no limits for those not yet closed: the
// greedy of ChainPlacement, from the open chains of this cost and those of the next.
bool LimitedPlacement::HasChains(const Layer& layer) {
  by_cost_.assign(costs_ + 1, 0);
  for (size_t level = layer.open.size(), next = 0; level-- > 0;) {
    uint64_t wanted = blocks_left_, below = 0;
    for (uint32_t cost = layer.cost; cost < costs_; ++cost) {
      const uint64_t before = by_cost_[cost];
      uint64_t now = before + below * (bounds_.width - 1);
      if (cost == layer.cost) now += layer.open[level];
      if (cost == layer.cost + 1) now += layer.spawned[level];
      by_cost_[cost] = std::min(now, wanted);
      wanted -= by_cost_[cost];
      below = before;
    }
    for (; next < order_.size() && blocks_[order_[next]].kind->exponent == level; ++next) {
      uint64_t left = left_[order_[next]];
      for (int64_t cost = deepest_[order_[next]]; left > 0 && cost >= layer.cost; --cost) {
        const uint64_t taken = std::min(by_cost_[cost], left);
        by_cost_[cost] -= taken;
        left -= taken;
      }
      if (left > 0) return false;
    }
  }
  return true;
}

// Whether counting alone allows the blocks that are left: see the head of LimitedPlacement.
bool LimitedPlacement::MayFinish(uint32_t cost, absl::Span<const uint64_t> chains) const {
  struct Rest {
    uint64_t count, spawns;
    uint32_t deepest;
  };
  uint64_t open = 0;
  uint32_t highest = 0;
  for (uint32_t level = 0; level < chains.size(); ++level) {
    open += chains[level];
    if (chains[level] > 0) highest = level;
  }
  std::vector<Rest> rests;
  for (uint32_t t = 0; t < blocks_.size(); ++t) {
    if (left_[t] == 0) continue;
    if (room(t, cost) < 0) return false;
    rests.push_back({.count = left_[t],
                     .spawns = SpawnsInAll(t, cost, highest),
                     .deepest = static_cast<uint32_t>(deepest_[t])});
  }
  absl::c_sort(rests, [](const Rest& x, const Rest& y) {
    return x.spawns != y.spawns ? x.spawns > y.spawns : x.deepest < y.deepest;
  });
  for (uint64_t left = blocks_left_; left > 0; ++cost) {
    uint64_t next = 0;
    const auto close = [&](Rest& rest) {
      const uint64_t taken = std::min(open, rest.count);
      rest.count -= taken;
      open -= taken;
      left -= taken;
      next += taken * rest.spawns;
    };
    for (Rest& rest : rests) {
      if (rest.deepest > cost) continue;
      close(rest);
      if (rest.count > 0) return false;
    }
    for (Rest& rest : rests) close(rest);
    open = std::min(next, left);
  }
  return true;
}

// False: a block that may stand no deeper has no chain.
bool LimitedPlacement::SetChoices(Layer& layer) const {
  struct Order {
    bool later;  // may stand deeper
    uint64_t spawns;
    uint32_t tally;
  };
  std::vector<Order> order;
  for (uint32_t t = 0; t < blocks_.size(); ++t) {
    if (left_[t] == 0 || room(t, layer.cost) < 0) continue;
    order.push_back({.later = room(t, layer.cost + 1) >= 0,
                     .spawns = SpawnsInAll(t, layer.cost, bounds_.n - layer.cost),
                     .tally = t});
  }
  absl::c_sort(order, [](const Order& x, const Order& y) {
    if (x.later != y.later) return y.later;
    return x.spawns != y.spawns ? x.spawns > y.spawns : x.tally < y.tally;
  });
  for (const Order& kind : order) {
    const size_t begin = layer.choices.size();
    for (uint32_t level = blocks_[kind.tally].kind->exponent; level < layer.open.size(); ++level) {
      if (layer.open[level] == 0) continue;
      layer.choices.push_back({.tally = kind.tally,
                               .level = level,
                               .chains = SpawnsInAll(kind.tally, layer.cost, level)});
    }
    // Of the chains that let it spawn most, the lowest.
    std::stable_sort(layer.choices.begin() + begin, layer.choices.end(),
                     [](const Choice& x, const Choice& y) { return x.chains > y.chains; });
    if (kind.later) continue;
    if (layer.choices.size() == begin) return false;
    layer.choices.back().last_of_urgent = true;
  }
  return true;
}

bool LimitedPlacement::Fill(Layer& layer, size_t next) {
  for (; next < layer.choices.size(); ++next) {
    const Choice& choice = layer.choices[next];
    uint64_t& open = layer.open[choice.level];
    uint64_t& left = left_[choice.tally];
    const uint64_t most = std::min(open, left), least = choice.last_of_urgent ? left : 0;
    if (least > most) return false;
    if (most == 0) continue;
    for (uint64_t count = most;; --count) {
      if (++steps_ > most_steps_) return false;
      Close(layer, choice, count);
      if (HasChains(layer) && Fill(layer, next + 1)) return true;
      Reopen(layer);
      if (count == least || steps_ > most_steps_) return false;
    }
  }
  return !LeavesAChainInVain(layer) && Descend(layer);
}

// A chain stays open on which any of the blocks that are left could stand: whichever of them ends
// without children may as well stand there.
bool LimitedPlacement::LeavesAChainInVain(const Layer& layer) const {
  if (blocks_left_ == 0) return false;
  uint32_t highest = 0;
  for (uint32_t t = 0; t < blocks_.size(); ++t) {
    if (left_[t] == 0) continue;
    if (room(t, layer.cost) < 0) return false;
    highest = std::max(highest, blocks_[t].kind->exponent);
  }
  for (uint32_t level = highest; level < layer.open.size(); ++level) {
    if (layer.open[level] > 0) return true;
  }
  return false;
}

void LimitedPlacement::Close(Layer& layer, const Choice& choice, uint64_t count) {
  layer.open[choice.level] -= count;
  left_[choice.tally] -= count;
  blocks_left_ -= count;
  for (uint32_t at = choice.level; at-- > blocks_[choice.tally].kind->exponent;) {
    layer.spawned[at] += count * Spawns(choice.tally, layer.cost, choice.level, at);
  }
  closed_.push_back({layer.cost, choice.tally, choice.level, count});
}

void LimitedPlacement::Reopen(Layer& layer) {
  const Closed closed = closed_.back();
  closed_.pop_back();
  for (uint32_t at = closed.level; at-- > blocks_[closed.tally].kind->exponent;) {
    layer.spawned[at] -= closed.count * Spawns(closed.tally, layer.cost, closed.level, at);
  }
  layer.open[closed.level] += closed.count;
  left_[closed.tally] += closed.count;
  blocks_left_ += closed.count;
}

// On to the chains that this layer's blocks spawn; no more than there are blocks, the highest.
bool LimitedPlacement::Descend(const Layer& layer) {
  std::vector<uint64_t> chains = layer.spawned;
  uint64_t wanted = blocks_left_;
  for (size_t at = chains.size(); at-- > 0;) {
    chains[at] = std::min(chains[at], wanted);
    wanted -= chains[at];
  }
  return Open(layer.cost + 1, std::move(chains));
}

// Blocks of one cost spawn in turn, so that none serves more than it must.
std::vector<LimitedPlacement::Place> LimitedPlacement::Places() const {
  std::vector<Place> places;
  size_t parents = 0;  // where the places of the cost before begin
  for (size_t begin = 0, end = 0; begin < closed_.size(); begin = end) {
    const uint32_t cost = closed_[begin].cost;
    while (end < closed_.size() && closed_[end].cost == cost) ++end;
    const auto first = static_cast<uint32_t>(places.size());
    for (uint32_t level = bounds_.n + 1; level-- > 0;) {
      uint64_t digit = 0;
      size_t parent = first;
      for (size_t i = begin; i < end; ++i) {
        if (closed_[i].level != level) continue;
        for (uint64_t placed = 0; placed < closed_[i].count; ++placed) {
          Place place = {.tally = closed_[i].tally, .level = level, .cost = cost};
          if (cost > 0) {
            const auto spawns = [&](const Place& p) {
              return Spawns(p.tally, cost - 1, p.level, level);
            };
            do {
              if (++parent >= first) {
                parent = parents;
                ++digit;
              }
            } while (spawns(places[parent]) < digit);
            place.parent = static_cast<uint32_t>(parent);
            place.offset = places[parent].offset + digit * SlotsOf(bounds_.width, level);
            ++places[parent].children;
          }
          places.push_back(place);
        }
      }
    }
    parents = first;
  }
  return places;
}

}  // namespace coppice
