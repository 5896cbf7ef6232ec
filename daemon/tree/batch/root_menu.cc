// Hops to all ranks count what crosses links: of equally far leaf switches the one with most of the
// ranks beside it spares the links of their part of the fabric most.
#include "daemon/tree/batch/root_menu.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "daemon/tree/root_choice.h"

namespace coppice {
namespace {

constexpr size_t kNear = 32;                  // roots of a distance that take turns
constexpr size_t kTurn = 7919;                // prime: visits all of any shorter list
constexpr uint32_t kMostRootsKept = 2 << 20;  // 48 MiB

}  // namespace

RootMenu::RootMenu(const Snapshot& snapshot, const BatchShapes& shapes, const BatchState& state)
    : snapshot_(snapshot),
      shapes_(shapes),
      state_(state),
      most_lists_(kMostRootsKept / std::max(snapshot.fabric->switch_count(), 1U) + 1) {}

absl::Span<const uint32_t> RootMenu::Distances(uint32_t shape, uint32_t most_extra) {
  const std::vector<uint32_t>& all = RootsOf(shape).distances;
  const uint64_t most = uint64_t{shapes_.shapes[shape].nearest_hops} + most_extra;
  const auto end = std::upper_bound(all.begin(), all.end(), most);
  return absl::MakeConstSpan(all).first(static_cast<size_t>(end - all.begin()));
}

bool RootMenu::IsBefore(const Root& a, const Root& b) const {
  const auto key = [&](const Root& r) {
    return std::make_tuple(r.total_hops, state_.loads().through(r.index), r.index);
  };
  return key(a) < key(b);
}

absl::Span<const SwitchIndex> RootMenu::PutForward(uint32_t shape, uint32_t hops, size_t wanted) {
  const std::vector<Root>& all = RootsOf(shape).all;
  near_.clear();
  forward_.clear();
  auto r = std::lower_bound(all.begin(), all.end(), hops,
                            [](const Root& root, uint32_t h) { return root.hops < h; });
  for (; r != all.end() && r->hops == hops; ++r) {
    if (state_.degrees()[r->index.value()] == 0) continue;
    if (near_.size() >= kNear && r->total_hops > near_[0].total_hops) break;
    near_.push_back(*r);
  }
  if (near_.empty()) return forward_;
  const auto first = std::min_element(near_.begin(), near_.end(),
                                      [&](const Root& a, const Root& b) { return IsBefore(a, b); });
  std::swap(near_[0], *first);
  for (size_t i = 0; i < wanted && i < near_.size(); ++i) {
    if (i > 0) {
      turn_ += kTurn;
      std::swap(near_[i], near_[i + turn_ % (near_.size() - i)]);
    }
    forward_.push_back(near_[i].index);
  }
  return forward_;
}

const RootMenu::Roots& RootMenu::RootsOf(uint32_t shape) {
  if (const auto known = roots_.find(shape); known != roots_.end()) return known->second;
  if (roots_.size() >= most_lists_) roots_.clear();
  Roots& roots = roots_[shape];
  const BatchShape& of = shapes_.shapes[shape];
  const SwitchDistances& distances = snapshot_.routes->distances();
  const TwinClasses& twins = distances.classes();
  // Of twins the rows say 0 hops; they are 2 apart.
  std::vector<uint64_t> total;                                     // [class]
  std::vector<uint32_t> own(snapshot_.fabric->switch_count(), 0);  // [switch] ranks on it
  for (size_t i = 0; i < of.leaves.size(); ++i) {
    const uint32_t leaf_class = twins.class_of(of.leaves[i]);
    const absl::Span<const uint8_t> row = distances.ClassRowTo(leaf_class);
    total.resize(row.size(), 0);
    for (size_t k = 0; k < row.size(); ++k) total[k] += uint64_t{row[k]} * of.ranks_on[i];
    total[leaf_class] += uint64_t{2} * of.ranks_on[i];
    own[of.leaves[i].value()] = of.ranks_on[i];
  }
  const std::vector<uint8_t> farthest = FarthestHops(snapshot_, of.leaves);
  roots.all.reserve(farthest.size());
  for (uint32_t s = 0; s < farthest.size(); ++s) {
    if (farthest[s] == SwitchDistances::kUnreachable) continue;
    const uint64_t all_hops = total[twins.class_of(SwitchIndex(s))] - uint64_t{2} * own[s];
    roots.all.push_back({farthest[s], all_hops, SwitchIndex(s)});
  }
  std::sort(roots.all.begin(), roots.all.end(), [](const Root& a, const Root& b) {
    return std::tie(a.hops, a.total_hops, a.index) < std::tie(b.hops, b.total_hops, b.index);
  });
  for (const Root& root : roots.all) {
    if (roots.distances.empty() || roots.distances.back() < root.hops) {
      roots.distances.push_back(root.hops);
    }
  }
  return roots;
}

}  // namespace coppice
