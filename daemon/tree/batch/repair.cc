// Ejection chains. With one serving switch each this is Kuhn's augmenting path between
// communicators and entries, and exact; with several it is a search of bounded depth.
//
//     c wants s1 (full)      d, served by s1, wants s2 (full)      e, served by s2, finds s3 free
//         c --> s1 --d--> s2 --e--> s3              then e, d and c are placed, in this order
//
// A switch from which nobody could be moved stays blocked until somebody is admitted: every switch
// is then searched once per admission, as in Kuhn's proof that dead branches may be skipped.
#include "daemon/tree/batch/repair.h"

#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"

namespace coppice {
namespace {

constexpr uint32_t kDepth = 8;           // longest chain
constexpr uint32_t kRootsOfMove = 4;     // of a move
constexpr uint32_t kRootsSearched = 64;  // before a communicator is given up
constexpr uint32_t kRootsAlone = 64;     // tried to learn what a communicator would take alone
constexpr int kSetsPerRoot = 3;          // serving sets tried in the trees to one root
constexpr uint32_t kMaxPasses = 4;

class BatchRepair {
 public:
  BatchRepair(const BatchShapes& shapes, RootReach reach, BatchState& state, BatchOffers& offers)
      : shapes_(shapes),
        reach_(reach),
        state_(state),
        offers_(offers),
        open_degrees_(state.limits().begin(), state.limits().end()),
        least_alone_(shapes.shapes.size()) {}

  void AdmitMore() {
    for (const bool farther : {false, true}) {
      if (farther && reach_ == RootReach::kNearest) return;
      may_go_farther_ = farther || reach_ == RootReach::kAny;
      UnblockAll();
      for (uint32_t c = 0; c < state_.size(); ++c) {
        if (state_.tree(c) || !shapes_.IsPlannable(c)) continue;
        if (offers_.exhausted()) return;
        if (Settle(c, kDepth)) UnblockAll();
        state_.ForgetJournal();
      }
    }
  }

  void Trade() {
    std::vector<uint32_t> refused, placed;
    for (uint32_t c = 0; c < state_.size(); ++c) {
      if (!shapes_.IsPlannable(c)) continue;
      if (!state_.tree(c)) refused.push_back(c);
      if (state_.tree(c) && state_.tree(c)->serving.size() > 1) placed.push_back(c);
    }
    absl::c_stable_sort(placed, [&](uint32_t a, uint32_t b) {
      return state_.tree(a)->serving.size() > state_.tree(b)->serving.size();
    });
    for (const uint32_t big : placed) {
      if (refused.size() < 2 || offers_.exhausted()) return;
      const uint32_t before = state_.placed();
      state_.ForgetJournal();
      state_.Replace(big, std::nullopt);
      for (const uint32_t c : refused) PlaceDirectly(c);
      if (state_.placed() <= before) {
        state_.RevertTo(0);
        continue;
      }
      std::erase_if(refused, [&](uint32_t c) { return state_.tree(c).has_value(); });
      refused.push_back(big);
    }
  }

  void SaveEntries() {
    may_go_farther_ = reach_ != RootReach::kNearest;
    bool changed = true;
    for (uint32_t pass = 0; changed && pass < kMaxPasses; ++pass) {
      changed = false;
      for (uint32_t c = 0; c < state_.size(); ++c) {
        if (!state_.tree(c) || offers_.exhausted()) continue;
        if (state_.tree(c)->serving.empty() || !MaySave(c)) continue;
        changed |= SaveOn(c);
      }
    }
    state_.ForgetJournal();
  }

 private:
  void Block(SwitchIndex s) {
    open_degrees_[s.value()] = 0;
    blocked_.push_back(s);
  }

  void UnblockAll() {
    for (const SwitchIndex s : blocked_) open_degrees_[s.value()] = state_.limits()[s.value()];
    blocked_.clear();
  }

  bool PlaceDirectly(uint32_t communicator) {
    const BatchShape& shape = shapes_.of(communicator);
    std::optional<BatchOffer> offer =
        may_go_farther_ ? offers_.Any(shape, kRootsOfMove) : offers_.Nearest(shape, kRootsOfMove);
    if (!offer) return false;
    state_.Replace(communicator, std::move(offer->tree));
    return true;
  }

  bool Settle(uint32_t communicator, uint32_t depth) {
    if (PlaceDirectly(communicator)) return true;
    if (depth == 0) return false;
    uint32_t searched = 0;
    for (const SwitchIndex root : shapes_.of(communicator).nearest) {
      if (open_degrees_[root.value()] == 0) continue;
      if (offers_.exhausted() || ++searched > kRootsSearched) return false;
      if (MoveInto(communicator, root, depth)) return true;
    }
    return false;
  }

  // Frees what the least tree to `root` needs and places the communicator there. Undoes everything
  // if that fails.
  bool MoveInto(uint32_t communicator, SwitchIndex root, uint32_t depth) {
    const BatchShape& shape = shapes_.of(communicator);
    for (int set = 0; set < kSetsPerRoot && open_degrees_[root.value()] > 0; ++set) {
      std::optional<BatchTree> tree =
          offers_.TreeTo(shape, root, shape.nearest_hops, open_degrees_);
      if (!tree) return false;
      const size_t mark = state_.Mark();
      std::vector<SwitchIndex> held;
      const bool has_room = HoldAll(*tree, depth, held);
      for (const SwitchIndex s : held) state_.Release(s);
      if (has_room) {
        state_.Replace(communicator, *std::move(tree));
        return true;
      }
      state_.RevertTo(mark);
    }
    return false;
  }

  bool HoldAll(const BatchTree& tree, uint32_t depth, std::vector<SwitchIndex>& held) {
    std::vector<SwitchIndex> full;
    for (const uint32_t v : tree.serving) {
      const SwitchIndex s = tree.physical.switches[v];
      if (state_.free_entries()[s.value()] <= 0) {
        full.push_back(s);
        continue;
      }
      state_.Hold(s);
      held.push_back(s);
    }
    for (const SwitchIndex s : full) {
      if (offers_.exhausted() || !FreeOne(s, depth)) return false;
      held.push_back(s);
    }
    return true;
  }

  // Moves one communicator off `s` and holds the entry.
  bool FreeOne(SwitchIndex s, uint32_t depth) {
    Block(s);
    std::vector<uint32_t> hopeless;  // shapes
    const std::vector<uint32_t> served = state_.served_by(s);
    for (const uint32_t other : served) {
      const uint32_t shape = shapes_.shape_of[other];
      if (absl::c_find(hopeless, shape) != hopeless.end()) continue;
      const size_t mark = state_.Mark();
      state_.Replace(other, std::nullopt);
      state_.Hold(s);
      if (Settle(other, depth - 1)) return true;
      state_.Release(s);
      state_.RevertTo(mark);
      hopeless.push_back(shape);
    }
    return false;
  }

  // False if the communicator has what it would have alone.
  bool MaySave(uint32_t communicator) {
    const BatchShape& shape = shapes_.of(communicator);
    const BatchTree& tree = *state_.tree(communicator);
    if (tree.serving.size() <= shape.fewest &&
        (tree.extra_hops == 0 || reach_ == RootReach::kAny)) {
      return false;
    }
    std::optional<uint32_t>& least = least_alone_[shapes_.shape_of[communicator]];
    if (!least) least = offers_.LeastAlone(shape, kRootsAlone).value_or(0);
    const bool comes_nearer = tree.extra_hops > 0 && reach_ != RootReach::kAny;
    return *least > 0 && (comes_nearer || tree.serving.size() > *least);
  }

  // True if the batch is better off: fewer farther roots where these count, then fewer entries.
  bool SaveOn(uint32_t communicator) {
    const auto cost = [&] {
      return std::make_tuple(reach_ == RootReach::kAny ? 0 : state_.farther(), state_.entries());
    };
    const auto before = cost();
    state_.ForgetJournal();
    state_.Replace(communicator, std::nullopt);
    const BatchShape& shape = shapes_.of(communicator);
    std::optional<BatchOffer> offer = may_go_farther_ ? offers_.Any(shape, kRootsSearched)
                                                      : offers_.Nearest(shape, kRootsSearched);
    if (offer) state_.Replace(communicator, std::move(offer->tree));
    if (offer && cost() < before) return true;
    state_.RevertTo(0);
    UnblockAll();
    state_.Replace(communicator, std::nullopt);
    uint32_t searched = 0;
    for (const SwitchIndex root : shape.nearest) {
      if (offers_.exhausted() || ++searched > kRootsOfMove) break;
      const size_t mark = state_.Mark();
      if (MoveInto(communicator, root, 2) && cost() < before) return true;
      state_.RevertTo(mark);
    }
    state_.RevertTo(0);
    return false;
  }

  const BatchShapes& shapes_;
  const RootReach reach_;
  BatchState& state_;
  BatchOffers& offers_;
  bool may_go_farther_ = false;
  std::vector<uint32_t> open_degrees_;  // [switch] limit; 0 if nobody there could be moved
  std::vector<SwitchIndex> blocked_;    // where open_degrees_ was set to 0
  // [shape] BatchOffers::LeastAlone, 0 if no tree to a nearest root works; nullopt: not asked yet.
  std::vector<std::optional<uint32_t>> least_alone_;
};

}  // namespace

void AdmitMore(const BatchShapes& shapes, RootReach reach, BatchState& state, BatchOffers& offers) {
  BatchRepair repair(shapes, reach, state, offers);
  repair.AdmitMore();
  repair.Trade();
}

void SaveEntries(const BatchShapes& shapes, RootReach reach, BatchState& state,
                 BatchOffers& offers) {
  BatchRepair(shapes, reach, state, offers).SaveEntries();
}

}  // namespace coppice
