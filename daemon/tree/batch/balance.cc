// Steepest descent from the worst link: take a communicator off it, plan it anew under what is
// left, keep that if (greatest load, links that carry it) falls lexicographically. Each step lowers
// that pair, so it ends; a link that nobody can leave ends it, because the greatest load then
// stays.
//
// Spending entries is the same descent with another move: one more switch below the link serves.
// What it sends falls from p packets to max(1, p - K + 1), and with it every load up to the next
// switch that serves.
#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "daemon/tree/batch/repair.h"
#include "daemon/tree/batch/reroute.h"
#include "daemon/tree/batch/tree_builder.h"

namespace coppice {
namespace {

constexpr uint32_t kRootsOfBalance = 16;
constexpr size_t kMaxTried = 32;  // communicators of one link

using BatchHeight = std::pair<uint32_t, uint32_t>;

BatchHeight HeightOf(const BatchState& state) {
  return {state.loads().most(), state.loads().carriers_of_most()};
}

// Those that send over a channel, those with fewest packets first.
std::vector<uint32_t> SendersOver(const BatchState& state, ChannelIndex channel) {
  std::vector<std::pair<uint32_t, uint32_t>> senders;
  for (uint32_t c = 0; c < state.size(); ++c) {
    if (!state.tree(c)) continue;
    const BatchTree& tree = *state.tree(c);
    const std::vector<ChannelIndex>& up = tree.physical.up;
    const auto at = absl::c_find(up, channel);
    if (at == up.end()) continue;
    const uint32_t packets = tree.packets[static_cast<size_t>(at - up.begin())];
    if (packets > 0) senders.emplace_back(packets, c);
  }
  absl::c_stable_sort(senders, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<uint32_t> order;
  for (const auto& [packets, c] : senders) order.push_back(c);
  return order;
}

bool MoveOff(const BatchShape& shape, uint32_t c, RootReach reach, BatchState& state,
             BatchOffers& offers) {
  const BatchHeight before = HeightOf(state);
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
  return absl::c_all_of(tree.serving, [&](uint32_t v) { return met[v] >= 2; });
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
    const auto at = absl::c_lower_bound(tree.serving, v);
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
    const auto top = static_cast<size_t>(absl::c_find(up, channel) - up.begin());
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
    if (senders.size() > kMaxTried) senders.resize(kMaxTried);
    for (const uint32_t c : senders) {
      moved = MoveOff(shapes.of(c), c, reach, state, offers);
      if (moved || offers.exhausted()) break;
    }
  }
  state.ForgetJournal();
}

// Two searches by turns, until the greatest load M is as low as counting allows or has not fallen
// for a few rounds:
//
//     all trees once under exponential prices                       (reroute.cc)
//     steepest descent from the worst links, as above:
//       communicators over a link with M, those with fewest packets there first: planned anew
//         for (its own greatest load, added squares); kept if (M, links that carry it) falls
//       nobody can leave: entries, one by one, to the trees over M; taken back unless M falls
//
// For one communicator: its own root and servers with other paths, then a few roots of each
// distance, as far as the first where its links all stay below M.
//
// Ends at the latest where counting forbids more (LeastMostPackets): 16 for process grids whose
// lines fill leaf switches of 16 ports, where a line's fewest entries are less than its leaf
// switches.

namespace {

constexpr size_t kRootsPerDistance = 3;
constexpr uint32_t kMaxInVain = 64;       // attempts in a row before entries are spent
constexpr uint32_t kMaxRoundsInVain = 6;  // in a row without a lower greatest load

class Unloader {
 public:
  Unloader(const Snapshot& snapshot, const BatchShapes& shapes, RootReach reach,
           uint64_t most_entries, BatchState& state, BatchOffers& offers)
      : shapes_(shapes),
        reach_(reach),
        most_entries_(std::max(most_entries, state.entries())),
        state_(state),
        offers_(offers),
        candidates_(snapshot, shapes, state),
        rerouter_(snapshot, shapes, reach, state, offers, candidates_),
        tried_(shapes.shapes.size(), 0) {}

  void Run() {
    const uint32_t least = LeastPossible();
    const auto goes_on = [&] { return state_.loads().most() > least && !offers_.exhausted(); };
    for (uint32_t in_vain = 0; in_vain < kMaxRoundsInVain && goes_on();) {
      const uint32_t most = state_.loads().most();
      const bool changed = rerouter_.Pass();
      moves_ += changed ? 1 : 0;
      if (!(goes_on() && Lower()) && !changed) break;
      in_vain = state_.loads().most() < most ? 0 : in_vain + 1;
    }
    state_.ForgetJournal();
  }

 private:
  struct Choice {
    uint32_t peak = UINT32_MAX;
    BatchOffer offer;
  };

  const BatchShape& ShapeOf(uint32_t c) const { return shapes_.of(c); }
  bool IsPlanned(uint32_t c) const {
    return state_.tree(c).has_value() && !state_.tree(c)->serving.empty();
  }

  uint32_t LeastPossible() const {
    std::vector<uint32_t> planned;
    for (uint32_t c = 0; c < state_.size(); ++c) {
      if (IsPlanned(c)) planned.push_back(c);
    }
    return std::max(LeastMostPackets(shapes_, planned, most_entries_), 1U);
  }

  // True if the greatest load fell.
  bool Lower() {
    const uint32_t most = state_.loads().most();
    state_.ForgetJournal();
    if (MoveAway(most)) return true;
    const size_t mark = state_.Mark();
    while (state_.entries() < most_entries_ && SpendEntryOnLinks(state_)) {
      if (state_.loads().most() < most) return true;
    }
    state_.RevertTo(mark);
    return false;
  }

  bool MoveAway(uint32_t most) {
    uint32_t in_vain = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (const uint32_t c : OverMostLoaded()) {
        if (offers_.exhausted() || in_vain > kMaxInVain) return false;
        uint32_t& tried = tried_[shapes_.shape_of[c]];
        if (tried == moves_ || PeakOf(*state_.tree(c), state_.loads(), true) < most) continue;
        const bool worked = Move(c);
        if (state_.loads().most() < most) return true;
        in_vain = worked ? 0 : in_vain + 1;
        moved |= worked;
        moves_ += worked ? 1 : 0;
        if (!worked) tried = moves_;
      }
    }
    return false;
  }

  // Communicators with packets on links that carry the greatest load, those with fewest packets
  // there first, then those over most such links.
  std::vector<uint32_t> OverMostLoaded() const {
    std::vector<std::tuple<uint32_t, uint32_t, uint32_t>> found;
    for (uint32_t c = 0; c < state_.size(); ++c) {
      if (!IsPlanned(c)) continue;
      const BatchTree& tree = *state_.tree(c);
      uint32_t links = 0, most = 0;
      tree.ForEachLink([&](uint32_t, ChannelIndex up, uint32_t packets) {
        if (state_.loads().on(up) != state_.loads().most()) return;
        ++links;
        most = std::max(most, packets);
      });
      if (links > 0) found.emplace_back(most, UINT32_MAX - links, c);
    }
    absl::c_sort(found);
    std::vector<uint32_t> order;
    order.reserve(found.size());
    for (const auto& [packets, links, c] : found) order.push_back(c);
    return order;
  }

  bool Move(uint32_t c) {
    const BatchHeight before = HeightOf(state_);
    const size_t mark = state_.Mark();
    const BatchTree old = *state_.tree(c);
    state_.Replace(c, std::nullopt);
    Choice best = Best(c, old, before.first);
    if (best.peak != UINT32_MAX) {
      state_.Replace(c, std::move(best.offer.tree));
      if (HeightOf(state_) < before) return true;
    }
    state_.RevertTo(mark);
    return false;
  }

  // For a communicator without a tree: one with at most as many entries as the old one.
  Choice Best(uint32_t c, const BatchTree& old, uint32_t most) {
    const BatchShape& shape = ShapeOf(c);
    const uint32_t s = shapes_.shape_of[c];
    const size_t entries = old.serving.size();
    Choice best;
    Consider(rerouter_.Spread(c, old), old.extra_hops, entries, best);
    const uint32_t most_extra = reach_ == RootReach::kAny ? UINT32_MAX : old.extra_hops;
    for (const uint32_t hops : candidates_.Distances(s, most_extra)) {
      if (best.peak < most) break;
      for (const SwitchIndex root : candidates_.PutForward(s, hops, kRootsPerDistance)) {
        std::optional<BatchTree> tree = offers_.TreeTo(shape, root, hops, state_.degrees());
        if (!tree) continue;
        const uint32_t extra = tree->extra_hops;
        Consider(rerouter_.Spread(c, *tree), extra, entries, best);
        Consider(std::move(tree), extra, entries, best);
      }
    }
    return best;
  }

  void Consider(std::optional<BatchTree> tree, uint32_t extra_hops, size_t most_entries,
                Choice& best) const {
    if (!tree || tree->serving.size() > most_entries) return;
    tree->extra_hops = extra_hops;
    const uint32_t peak = PeakOf(*tree, state_.loads(), false);
    if (peak > best.peak) return;
    BatchOffer offer = offers_.Price(*std::move(tree));
    if (peak == best.peak && offer.added_squares >= best.offer.added_squares) return;
    best = {peak, std::move(offer)};
  }

  const BatchShapes& shapes_;
  const RootReach reach_;
  const uint64_t most_entries_;
  BatchState& state_;
  BatchOffers& offers_;
  RootCandidates candidates_;
  TreeRerouter rerouter_;
  uint32_t moves_ = 1;           // that worked, and passes
  std::vector<uint32_t> tried_;  // [shape] moves_ when it could not be moved
};

}  // namespace

void UnloadLinks(const Snapshot& snapshot, const BatchShapes& shapes, RootReach reach,
                 uint64_t most_entries, BatchState& state, BatchOffers& offers) {
  Unloader(snapshot, shapes, reach, most_entries, state, offers).Run();
}

}  // namespace coppice
