#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "daemon/tree/chain_placement.h"
#include "daemon/tree/group_slots.h"
#include "daemon/tree/type1.h"

namespace coppice {
namespace {

using Answer = LimitedPlacement::Answer;
using Bounds = LimitedPlacement::Bounds;

constexpr uint64_t kMaxSteps = 20'000, kFewSteps = 1'000, kStepsInAll = 1'000'000;

// A host's ranks fill its slots in order: one shape.
BlockKind KindOfHost(uint32_t ranks, uint32_t width) {
  BlockKind kind = {.exponent = DigitsFor(ranks, width), .shapes = {{}}};
  BlockShape& shape = kind.shapes.front();
  std::vector<uint32_t> heights(ranks, 0);
  for (uint64_t slot = 1; slot < ranks; ++slot) {
    const uint64_t parent = KnomialParent(slot, width);
    heights[slot] = heights[parent] + 1;
    shape.height = std::max(shape.height, heights[slot]);
    shape.root_degree += parent == 0 ? 1 : 0;
  }
  return kind;
}

class Placer {
 public:
  Placer(const NestedGroups& groups, uint32_t width, uint32_t degree_limit)
      : groups_(groups), width_(width), limit_(degree_limit) {}

  LimitedPlaces Place() {
    const bool found = FindKinds();
    if (found) PlaceParts();
    return {.found = found, .proven = proven_, .of = std::move(places_)};
  }

 private:
  using Tally = std::vector<std::pair<uint32_t, uint32_t>>;  // (kind, blocks of it), kinds rising
  using Inside = std::pair<bool, Tally>;                     // is the whole, parts

  // What groups with the same inside share.
  struct Solved {
    uint32_t kind = 0;
    std::map<BlockShape, std::vector<LimitedPlacement::Place>> places;  // once asked for
  };

  // False: a group has no shape.
  bool FindKinds() {
    kind_of_.reserve(groups_.rank_count + groups_.groups.size());
    kind_of_.assign(groups_.rank_count, IdOf({.exponent = 0, .shapes = {{}}}));
    solved_of_.resize(groups_.groups.size());
    for (size_t g = 0; g < groups_.groups.size(); ++g) {
      const NestedGroups::Group& group = groups_.groups[g];
      if (group.ordered) {
        BlockKind host = KindOfHost(group.end - group.begin, width_);
        // Its first rank has the most children.
        if (host.shapes.front().root_degree > limit_) return false;
        kind_of_.push_back(IdOf(std::move(host)));
        continue;
      }
      inside_.first = g + 1 == groups_.groups.size();
      TallyParts(group);
      auto known = solved_.find(inside_);
      if (known == solved_.end()) {
        BlockKind kind = Solve(inside_.second, inside_.first);
        if (kind.shapes.empty()) return false;
        known = solved_.try_emplace(inside_).first;
        known->second.kind = IdOf(std::move(kind));
      }
      kind_of_.push_back(known->second.kind);
      solved_of_[g] = &*known;
    }
    return true;
  }

  uint32_t IdOf(BlockKind kind) {
    const auto [at, is_new] =
        ids_.try_emplace(std::move(kind), static_cast<uint32_t>(kinds_.size()));
    if (is_new) kinds_.push_back(&at->first);
    return at->second;
  }

  // Into inside_.
  void TallyParts(const NestedGroups::Group& group) {
    Tally& tally = inside_.second;
    tally.clear();
    size_t at = 0;
    for (const uint32_t part : groups_.parts_of(group)) {
      const uint32_t kind = kind_of_[part];
      if (at == tally.size() || tally[at].first != kind) {
        at = IndexOf(tally, kind);
        if (at == tally.size() || tally[at].first != kind) {
          tally.insert(tally.begin() + static_cast<ptrdiff_t>(at), {kind, 0});
        }
      }
      ++tally[at].second;
    }
  }

  // Of `kind`, or where it would stand.
  static size_t IndexOf(const Tally& tally, uint32_t kind) {
    return absl::c_lower_bound(tally, std::pair(kind, 0U)) - tally.begin();
  }

  std::vector<BlockTally> BlocksOf(const Tally& tally) const {
    std::vector<BlockTally> blocks;
    for (const auto& [kind, count] : tally) blocks.push_back({kinds_[kind], count});
    return blocks;
  }

  // The shapes of a group; of the whole, whose first rank serves nobody outside, the lowest only.
  BlockKind Solve(const Tally& tally, bool is_whole) {
    const std::vector<BlockTally> blocks = BlocksOf(tally);
    std::vector<Block> lowest;
    uint32_t highest = 0, fewest = limit_;
    for (const BlockTally& alike : blocks) {
      const std::vector<BlockShape>& shapes = alike.kind->shapes;
      const Block block = {.exponent = alike.kind->exponent, .height = shapes.front().height};
      lowest.insert(lowest.end(), alike.count, block);
      highest = std::max(highest, shapes.back().height);
      fewest = std::min(fewest, shapes.back().root_degree);
    }
    absl::c_sort(lowest, [](const Block& x, const Block& y) {
      return x.exponent != y.exponent ? x.exponent > y.exponent : x.height > y.height;
    });
    if (lowest.size() > 1) ++fewest;
    BlockKind kind = {.exponent = ChainPlacement::ExponentFor(lowest, width_), .shapes = {}};
    Bounds bounds = {.width = width_, .n = kind.exponent, .degree = limit_, .root_degree = limit_};
    bounds.height = unlimited_.LeastHeight(lowest, width_, kind.exponent);
    for (; bounds.height <= highest + kind.exponent; ++bounds.height) {
      if (!Feasible(blocks, bounds)) continue;
      if (!is_whole) bounds.root_degree = FewestChildren(blocks, bounds, fewest);
      kind.shapes.push_back({.height = bounds.height, .root_degree = bounds.root_degree});
      if (is_whole || bounds.root_degree <= fewest) break;
      --bounds.root_degree;
    }
    return kind;
  }

  // Least number of children for slot 0 of [fewest, bounds.root_degree], the latter feasible.
  uint32_t FewestChildren(absl::Span<const BlockTally> blocks, Bounds bounds, uint32_t fewest) {
    uint32_t low = fewest, high = bounds.root_degree;
    while (low < high) {
      bounds.root_degree = low + (high - low) / 2;
      if (Feasible(blocks, bounds)) {
        high = bounds.root_degree;
      } else {
        low = bounds.root_degree + 1;
      }
    }
    return high;
  }

  bool Feasible(absl::Span<const BlockTally> blocks, const Bounds& bounds) {
    const uint64_t most = steps_in_all_ < kStepsInAll ? kMaxSteps : kFewSteps;
    const Answer answer = search_.Search(blocks, bounds, most);
    steps_in_all_ += search_.steps();
    if (answer == Answer::kGaveUp) proven_ = false;
    return answer == Answer::kPlaced;
  }

  void PlaceParts() {
    const size_t groups = groups_.groups.size();
    places_.resize(groups_.rank_count + groups);
    shapes_.resize(groups);
    shapes_.back() = kinds_[kind_of_.back()]->shapes.front();
    for (size_t g = groups; g-- > 0;) {
      if (!groups_.groups[g].ordered) PlacePartsOf(static_cast<uint32_t>(g));
    }
  }

  void PlacePartsOf(uint32_t g) {
    const NestedGroups::Group& group = groups_.groups[g];
    const Tally& tally = solved_of_[g]->first.second;
    const std::vector<LimitedPlacement::Place>& places = PlacesIn(g);
    SortByKind(group, tally);
    part_at_.clear();
    for (const LimitedPlacement::Place& place : places) {
      const uint32_t part = sorted_[next_[place.tally]++];
      part_at_.push_back(part);
      places_[part] = {
          .parent = part_at_[place.parent], .cost = place.cost, .offset = place.offset};
      if (part < groups_.rank_count) continue;
      const uint32_t limit = place.cost == 0 ? shapes_[g].root_degree : limit_;
      for (const BlockShape& shape : kinds_[tally[place.tally].first]->shapes) {
        shapes_[part - groups_.rank_count] = shape;
        if (shape.root_degree + place.children <= limit) break;
      }
    }
  }

  // Where the parts of a group stand, for the shape that it takes.
  const std::vector<LimitedPlacement::Place>& PlacesIn(uint32_t g) {
    const BlockShape& shape = shapes_[g];
    auto& [inside, solved] = *solved_of_[g];
    const auto [at, is_new] = solved.places.try_emplace(shape);
    if (!is_new) return at->second;
    const Bounds bounds = {.width = width_,
                           .n = kinds_[solved.kind]->exponent,
                           .height = shape.height,
                           .degree = limit_,
                           .root_degree = shape.root_degree};
    // As many steps as Solve() had: it found this one.
    const std::vector<BlockTally> blocks = BlocksOf(inside.second);
    search_.Search(blocks, bounds, kMaxSteps);
    at->second = search_.Places();
    return at->second;
  }

  // sorted_ = the parts of a group, those of a kind together and in order, from next_[tally] on.
  void SortByKind(const NestedGroups::Group& group, const Tally& tally) {
    next_.assign(tally.size() + 1, 0);  // one ahead, so that filling moves each into its place
    for (size_t t = 0; t + 1 < tally.size(); ++t) next_[t + 2] = next_[t + 1] + tally[t].second;
    sorted_.resize(group.end - group.begin);
    size_t at = 0;
    for (const uint32_t part : groups_.parts_of(group)) {
      if (tally[at].first != kind_of_[part]) at = IndexOf(tally, kind_of_[part]);
      sorted_[next_[at + 1]++] = part;
    }
  }

  const NestedGroups& groups_;
  const uint32_t width_, limit_;
  ChainPlacement unlimited_;
  LimitedPlacement search_;
  uint64_t steps_in_all_ = 0;
  bool proven_ = true;
  std::map<BlockKind, uint32_t> ids_;
  std::vector<const BlockKind*> kinds_;  // [id]
  std::vector<uint32_t> kind_of_;        // [part] id
  Inside inside_;                        // of the group at hand
  std::map<Inside, Solved> solved_;
  std::vector<std::pair<const Inside, Solved>*> solved_of_;  // [group] if its parts are not ordered
  std::vector<BlockShape> shapes_;                           // [group] the one it takes
  std::vector<PartPlace> places_;                            // [part]
  std::vector<uint32_t> sorted_, next_, part_at_;            // of the group at hand
};

}  // namespace

LimitedPlaces PlaceWithinLimit(const NestedGroups& groups, uint32_t width, uint32_t degree_limit) {
  return Placer(groups, width, degree_limit).Place();
}

}  // namespace coppice
