// Steepest descent from the worst links, as in balance.cc, with other moves and an order of them:
//
//     every tree's paths anew, same root and servers          (spread_paths)
//     while the greatest load M falls:
//       communicators over a link with M, those with fewest packets there first: planned anew
//         for (its own greatest load, added squares); kept if (M, links that carry it) falls
//       nobody can leave: entries, one by one, to the trees over M; taken back unless M falls
//
// The small ones go first because big ones have fewer places to go. For one communicator: its own
// root and servers with other paths, then at each distance the root through which least is promised
// and others by turns; the first distance where its links all stay below M ends it, so that roots
// stay as near as links allow.
//
// Ends at the latest where counting forbids more (LeastMostPackets): 16 for process grids whose
// lines fill leaf switches of 16 ports, where a line's fewest entries are less than its leaf
// switches.
#include "daemon/tree/batch/unload.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/tree/batch/balance.h"
#include "daemon/tree/batch/spread_paths.h"
#include "daemon/tree/root_choice.h"

namespace coppice {
namespace {

constexpr size_t kRootsPerDistance = 3;
constexpr uint32_t kMostInVain = 64;          // attempts in a row before entries are spent
constexpr size_t kTurn = 7919;                // prime: visits all of any shorter list
constexpr uint32_t kMostRootsKept = 4 << 20;  // 48 MiB

using Height = std::pair<uint32_t, uint32_t>;

Height HeightOf(const BatchState& state) {
  return {state.loads().most(), state.loads().carriers_of_most()};
}

// The greatest load of the links that the tree sends over; `is_counted`: it has its own packets.
uint32_t PeakOf(const BatchTree& tree, const LinkLoads& loads, bool is_counted) {
  uint32_t peak = 0;
  for (size_t v = 1; v < tree.packets.size(); ++v) {
    if (tree.packets[v] == 0) continue;
    peak = std::max(peak, loads.on(tree.physical.up[v]) + (is_counted ? 0 : tree.packets[v]));
  }
  return peak;
}

class Unloader {
 public:
  Unloader(const Snapshot& snapshot, const BatchShapes& shapes, RootReach reach,
           uint64_t most_entries, BatchState& state, BatchOffers& offers)
      : snapshot_(snapshot),
        shapes_(shapes),
        reach_(reach),
        most_entries_(std::max(most_entries, state.entries())),
        state_(state),
        offers_(offers),
        spreader_(snapshot, state.loads()),
        most_lists_(kMostRootsKept / std::max(snapshot.fabric->switch_count(), 1U) + 1),
        tried_(shapes.shapes.size(), 0) {}

  void Run() {
    const uint32_t least = LeastPossible();
    const auto goes_on = [&] { return state_.loads().most() > least && !offers_.exhausted(); };
    for (uint32_t c = 0; c < state_.size() && goes_on(); ++c) SpreadPaths(c);
    while (goes_on() && Lower()) {
    }
    state_.ForgetJournal();
  }

 private:
  struct Root {
    uint32_t hops, mean_hops;  // to the farthest rank, to all of them on average
    SwitchIndex index;
  };
  struct Candidate {
    uint32_t mean_hops;
    uint64_t through;
    SwitchIndex root;
    bool operator<(const Candidate& other) const {
      return std::tie(mean_hops, through, root) <
             std::tie(other.mean_hops, other.through, other.root);
    }
  };
  struct Choice {
    uint32_t peak = UINT32_MAX;
    BatchOffer offer;
  };

  const BatchShape& ShapeOf(uint32_t c) const { return shapes_.shapes[shapes_.shape_of[c]]; }
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

  // Same root, same servers, other paths; kept if that spreads packets.
  void SpreadPaths(uint32_t c) {
    if (!IsPlanned(c)) return;
    state_.ForgetJournal();
    const auto before = std::make_pair(state_.loads().squares(), state_.entries());
    const uint32_t most = state_.loads().most();
    const BatchTree old = *state_.tree(c);
    state_.Replace(c, std::nullopt);
    if (std::optional<BatchTree> tree = Spread(ShapeOf(c), old)) {
      tree->extra_hops = old.extra_hops;
      state_.Replace(c, std::move(tree));
      const bool is_better = state_.loads().most() <= most && state_.entries() <= before.second;
      if (is_better && state_.loads().squares() < before.first) return;
    }
    state_.RevertTo(0);
  }

  std::optional<BatchTree> Spread(const BatchShape& shape, const BatchTree& like) {
    servers_.assign(state_.limits().size(), 0);
    for (const uint32_t v : like.serving) {
      const uint32_t s = like.physical.switches[v].value();
      servers_[s] = state_.limits()[s];
    }
    offers_.Count();
    return spreader_.Build(shape, like.physical.root(), servers_);
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
        if (offers_.exhausted() || in_vain > kMostInVain) return false;
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
      uint32_t links = 0, packets = 0;
      for (size_t v = 1; v < tree.packets.size(); ++v) {
        if (tree.packets[v] == 0) continue;
        if (state_.loads().on(tree.physical.up[v]) != state_.loads().most()) continue;
        ++links;
        packets = std::max(packets, tree.packets[v]);
      }
      if (links > 0) found.emplace_back(packets, UINT32_MAX - links, c);
    }
    std::sort(found.begin(), found.end());
    std::vector<uint32_t> order;
    order.reserve(found.size());
    for (const auto& [packets, links, c] : found) order.push_back(c);
    return order;
  }

  bool Move(uint32_t c) {
    const Height before = HeightOf(state_);
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
    const size_t entries = old.serving.size();
    Choice best;
    Consider(Spread(shape, old), old.extra_hops, entries, best);
    if (best.peak < most) return best;
    const std::vector<Root>& roots = RootsOf(shapes_.shape_of[c]);
    for (size_t i = 0; i < roots.size() && best.peak >= most;) {
      const uint32_t hops = roots[i].hops, extra = hops - shape.nearest_hops;
      if (reach_ != RootReach::kAny && extra > old.extra_hops) break;
      candidates_.clear();
      for (; i < roots.size() && roots[i].hops == hops; ++i) {
        const SwitchIndex s = roots[i].index;
        if (state_.degrees()[s.value()] == 0) continue;
        candidates_.push_back({roots[i].mean_hops, state_.loads().through(s), s});
      }
      const size_t wanted = PutForward();
      for (size_t k = 0; k < wanted; ++k) {
        std::optional<BatchTree> tree =
            offers_.TreeTo(shape, candidates_[k].root, hops, state_.degrees());
        if (!tree) continue;
        Consider(Spread(shape, *tree), extra, entries, best);
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

  // The first few of candidates_ become those to try: the one nearest to all ranks through which
  // least is promised, then by turns others that are as near. Returns how many.
  size_t PutForward() {
    if (candidates_.empty()) return 0;
    std::swap(candidates_[0], *std::min_element(candidates_.begin(), candidates_.end()));
    const uint32_t near = candidates_[0].mean_hops;
    const auto end = std::partition(candidates_.begin() + 1, candidates_.end(),
                                    [&](const Candidate& c) { return c.mean_hops == near; });
    const auto alike = static_cast<size_t>(end - candidates_.begin());
    size_t wanted = 1;
    for (; wanted < kRootsPerDistance && wanted < alike; ++wanted) {
      turn_ += kTurn;
      std::swap(candidates_[wanted], candidates_[wanted + turn_ % (alike - wanted)]);
    }
    return wanted;
  }

  // Nearest first. Stands until the next call.
  const std::vector<Root>& RootsOf(uint32_t s) {
    if (const auto known = roots_.find(s); known != roots_.end()) return known->second;
    if (roots_.size() >= most_lists_) roots_.clear();
    std::vector<Root>& roots = roots_[s];
    const BatchShape& shape = shapes_.shapes[s];
    const SwitchDistances& distances = snapshot_.routes->distances();
    const TwinClasses& twins = distances.classes();
    std::vector<uint64_t> total;  // [class] of hops to all ranks
    for (size_t i = 0; i < shape.leaves.size(); ++i) {
      const absl::Span<const uint8_t> row = distances.ClassRowTo(twins.class_of(shape.leaves[i]));
      total.resize(row.size(), shape.ranks - 1);
      for (size_t k = 0; k < row.size(); ++k) total[k] += uint64_t{row[k]} * shape.ranks_on[i];
    }
    const std::vector<uint8_t> farthest = FarthestHops(snapshot_, shape.leaves);
    roots.reserve(farthest.size());
    for (uint32_t r = 0; r < farthest.size(); ++r) {
      if (farthest[r] == SwitchDistances::kUnreachable) continue;
      const uint64_t mean = total[twins.class_of(SwitchIndex(r))] / shape.ranks;
      roots.push_back({farthest[r], static_cast<uint32_t>(mean), SwitchIndex(r)});
    }
    std::stable_sort(roots.begin(), roots.end(),
                     [](const Root& a, const Root& b) { return a.hops < b.hops; });
    return roots;
  }

  const Snapshot& snapshot_;
  const BatchShapes& shapes_;
  const RootReach reach_;
  const uint64_t most_entries_;
  BatchState& state_;
  BatchOffers& offers_;
  PathSpreader spreader_;
  const size_t most_lists_;
  absl::flat_hash_map<uint32_t, std::vector<Root>> roots_;  // of shapes lately asked for
  std::vector<Candidate> candidates_;                       // roots at one distance
  std::vector<uint32_t> servers_;  // [switch] degrees of those that serve in one tree
  size_t turn_ = 0;
  uint32_t moves_ = 1;           // that worked
  std::vector<uint32_t> tried_;  // [shape] moves_ when it could not be moved
};

}  // namespace

void UnloadLinks(const Snapshot& snapshot, const BatchShapes& shapes, RootReach reach,
                 uint64_t most_entries, BatchState& state, BatchOffers& offers) {
  Unloader(snapshot, shapes, reach, most_entries, state, offers).Run();
}

}  // namespace coppice
