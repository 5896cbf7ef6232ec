// Steepest descent from the worst link: take a communicator off it, plan it anew under what is
// left, keep that if (greatest load, links that carry it) falls lexicographically. Each step lowers
// that pair, so it ends; a link that nobody can leave ends it, because the greatest load then
// stays.
#include "daemon/tree/batch/balance.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace coppice {
namespace {

constexpr uint32_t kRootsCompared = 16;
constexpr size_t kMostTried = 32;  // communicators of one link

using Height = std::pair<uint32_t, uint32_t>;

Height HeightOf(const BatchState& state) {
  return {state.loads().most(), state.loads().carriers_of_most()};
}

// Those that send over `c`, with how many packets, most first.
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
  std::optional<BatchOffer> offer = any || extra_hops > 0 ? offers.Any(shape, kRootsCompared)
                                                          : offers.Nearest(shape, kRootsCompared);
  if (offer && offer->tree.serving.size() <= entries &&
      (any || offer->tree.extra_hops <= extra_hops)) {
    state.Replace(c, std::move(offer->tree));
    if (HeightOf(state) < before) return true;
  }
  state.RevertTo(0);
  return false;
}

}  // namespace

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
