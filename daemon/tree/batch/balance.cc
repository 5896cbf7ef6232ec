// Steepest descent from the worst link: take a communicator off it, plan it anew under what is
// left, keep that if (greatest load, links that carry it) falls lexicographically. Each step lowers
// that pair, so it ends; a link that nobody can leave ends it, because the greatest load then
// stays.
//
// Spending entries is the same descent with another move: one more switch below the link serves.
// What it sends falls from p packets to max(1, p - K + 1), and with it every load up to the next
// switch that serves.
#include "daemon/tree/batch/balance.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/tree/batch/tree_builder.h"

namespace coppice {
namespace {

constexpr uint32_t kRootsOfBalance = 16;
constexpr size_t kMostTried = 32;  // communicators of one link

using Height = std::pair<uint32_t, uint32_t>;

Height HeightOf(const BatchState& state) {
  return {state.loads().most(), state.loads().carriers_of_most()};
}

// Those that send over a channel, those with fewest packets first.
std::vector<uint32_t> SendersOver(const BatchState& state, ChannelIndex channel) {
  std::vector<std::pair<uint32_t, uint32_t>> senders;
  for (uint32_t c = 0; c < state.size(); ++c) {
    if (!state.tree(c)) continue;
    const BatchTree& tree = *state.tree(c);
    const std::vector<ChannelIndex>& up = tree.physical.up;
    const auto at = std::find(up.begin(), up.end(), channel);
    if (at == up.end()) continue;
    const uint32_t packets = tree.packets[static_cast<size_t>(at - up.begin())];
    if (packets > 0) senders.emplace_back(packets, c);
  }
  std::stable_sort(senders.begin(), senders.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<uint32_t> order;
  for (const auto& [packets, c] : senders) order.push_back(c);
  return order;
}

bool MoveOff(const BatchShape& shape, uint32_t c, RootReach reach, BatchState& state,
             BatchOffers& offers) {
  const Height before = HeightOf(state);
  const uint32_t extra_hops = state.tree(c)->extra_hops;
  const size_t entries = state.tree(c)->serving.size();
  state.ForgetJournal();
  state.Replace(c, std::nullopt);
  const bool any = reach == RootReach::kAny;
  std::optional<BatchOffer> offer = any || extra_hops > 0 ? offers.Any(shape, kRootsOfBalance)
                                                          : offers.Nearest(shape, kRootsOfBalance);
  if (offer && offer->tree.serving.size() <= entries &&
      (any || offer->tree.extra_hops <= extra_hops)) {
    state.Replace(c, std::move(offer->tree));
    if (HeightOf(state) < before) return true;
  }
  state.RevertTo(0);
  return false;
}

// A switch that serves has two packets to make one of.
bool EveryServerReduces(const BatchTree& tree) {
  const SwitchTree& physical = tree.physical;
  std::vector<uint32_t> met(physical.ranks_on);
  for (size_t v = physical.switches.size(); v-- > 1;) {
    met[static_cast<size_t>(physical.parents[v])] += tree.packets[v];
  }
  return std::all_of(tree.serving.begin(), tree.serving.end(),
                     [&](uint32_t v) { return met[v] >= 2; });
}

// [position] whether it is `top` or below it.
std::vector<bool> Below(const SwitchTree& physical, size_t top) {
  std::vector<bool> below(physical.switches.size(), false);
  below[top] = true;
  for (size_t v = top + 1; v < below.size(); ++v) {
    below[v] = below[static_cast<size_t>(physical.parents[v])];
  }
  return below;
}

// `tree` with one more serving switch at or below position `top`, so that least leaves `top`.
// nullopt: none would help.
std::optional<BatchTree> WithOneMore(const BatchTree& tree, size_t top, const BatchState& state) {
  const std::vector<bool> below = Below(tree.physical, top);
  std::optional<BatchTree> best;
  uint32_t least = tree.packets[top];
  for (uint32_t v = static_cast<uint32_t>(top); v < below.size() && least > 1; ++v) {
    // More than one packet leaves whoever could make one of them.
    if (!below[v] || tree.packets[v] < 2 || state.degrees()[tree.physical.switches[v].value()] == 0)
      continue;
    const auto at = std::lower_bound(tree.serving.begin(), tree.serving.end(), v);
    if (at != tree.serving.end() && *at == v) continue;
    BatchTree with = tree;
    with.serving.insert(with.serving.begin() + (at - tree.serving.begin()), v);
    CountPackets(state.limits(), with);
    if (with.packets[top] >= least || !EveryServerReduces(with)) continue;
    least = with.packets[top];
    best = std::move(with);
  }
  return best;
}

}  // namespace

bool SpendEntryOnLinks(BatchState& state) {
  const ChannelIndex channel = state.loads().MostLoaded();
  std::vector<uint32_t> senders = SendersOver(state, channel);
  for (auto c = senders.rbegin(); c != senders.rend(); ++c) {
    const std::vector<ChannelIndex>& up = state.tree(*c)->physical.up;
    const auto top = static_cast<size_t>(std::find(up.begin(), up.end(), channel) - up.begin());
    std::optional<BatchTree> with = WithOneMore(*state.tree(*c), top, state);
    if (!with) continue;
    state.Replace(*c, std::move(with));
    return true;
  }
  return false;
}

void SpendEntriesOnLinks(uint32_t most_entries, BatchState& state) {
  for (; most_entries > 0 && state.loads().most() > 1 && SpendEntryOnLinks(state); --most_entries) {
    state.ForgetJournal();
  }
}

void BalanceLinks(const BatchShapes& shapes, RootReach reach, BatchState& state,
                  BatchOffers& offers) {
  bool moved = true;
  while (moved && !offers.exhausted() && state.loads().most() > 1) {
    moved = false;
    std::vector<uint32_t> senders = SendersOver(state, state.loads().MostLoaded());
    if (senders.size() > kMostTried) senders.resize(kMostTried);
    for (const uint32_t c : senders) {
      moved = MoveOff(shapes.shapes[shapes.shape_of[c]], c, reach, state, offers);
      if (moved || offers.exhausted()) break;
    }
  }
  state.ForgetJournal();
}

}  // namespace coppice
