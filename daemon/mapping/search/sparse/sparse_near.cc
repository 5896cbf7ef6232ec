#include "daemon/mapping/search/sparse/sparse_near.h"

#include <limits>
#include <numeric>
#include <utility>
#include <variant>

#include "daemon/mapping/search/links/leaf_rings.h"

namespace coppice {
namespace {

constexpr uint32_t kAround = 256;  // places on either side that are looked at in the groups

// The `listed` nearest of `candidates` to place `p`, itself first, ties in the order of the groups;
// again from the beginning if there are fewer.
template <class Distances>
class NearestLists final {
 public:
  NearestLists(const PlaceGroups& groups, const Distances& d, bool symmetric, uint32_t listed,
               const SearchControl& control)
      : groups_(groups),
        d_(d),
        symmetric_(symmetric),
        listed_(listed),
        control_(control),
        lists_(groups.order.size() * listed) {}

  // Positions in the order of the groups.
  void List(uint32_t p, absl::Span<const uint32_t> candidates) {
    if (stopped_ || (stopped_ = control_.stopped())) return lists_.clear();
    // Most likely as far as the last one's were, so that most candidates need not be sorted.
    Collect(p, candidates, farthest_);
    if (by_distance_.size() < listed_) Collect(p, candidates, kAnywhere);
    const size_t found = std::min<size_t>(listed_, by_distance_.size());
    const auto end = by_distance_.begin() + static_cast<ptrdiff_t>(found);
    std::nth_element(by_distance_.begin(), end - 1, by_distance_.end());
    std::sort(by_distance_.begin(), end);
    farthest_ = (end - 1)->first;
    for (uint32_t i = 0; i < listed_; ++i) {
      lists_[size_t{p} * listed_ + i] = groups_.order[by_distance_[i % found].second];
    }
  }
  std::vector<uint32_t> lists() && { return std::move(lists_); }

 private:
  static constexpr double kAnywhere = std::numeric_limits<double>::infinity();

  // Those of the candidates that are no farther than `farthest`.
  void Collect(uint32_t p, absl::Span<const uint32_t> candidates, double farthest) {
    by_distance_.clear();
    for (const uint32_t i : candidates) {
      const uint32_t q = groups_.order[i];
      const double length = symmetric_ ? d_(p, q) : 0.5 * (d_(p, q) + d_(q, p));
      if (p == q || length <= farthest) by_distance_.emplace_back(p == q ? -1.0 : length, i);
    }
  }

  const PlaceGroups& groups_;
  const Distances& d_;
  const bool symmetric_;
  const uint32_t listed_;
  const SearchControl& control_;
  double farthest_ = kAnywhere;
  bool stopped_ = false;
  std::vector<uint32_t> lists_;
  std::vector<std::pair<double, uint32_t>> by_distance_;
};

uint32_t PositionOf(const PlaceGroups& groups, uint32_t place) {
  return groups.nodes[groups.leaf[place]].begin;
}

// Calls list(place, candidates) for every place, with all places, or those around it in the groups.
template <class List>
void FromGroups(const PlaceGroups& groups, const List& list) {
  const auto count = static_cast<uint32_t>(groups.order.size());
  std::vector<uint32_t> positions(count);
  std::iota(positions.begin(), positions.end(), 0);
  for (uint32_t p = 0; p < count; ++p) {
    if (count <= kAllPairs) {
      list(p, positions);
      continue;
    }
    const uint32_t at = PositionOf(groups, p), first = at - std::min(at, kAround);
    list(p, absl::MakeConstSpan(positions).subspan(first, std::min(count, at + kAround) - first));
  }
}

// The same with the places of the leaf switches around it.
template <class List>
void FromCables(const PlaceGroups& groups, const ClassDistances& d, const Places& places,
                const Fabric& fabric, uint32_t listed, const List& list) {
  std::vector<uint32_t> seats;
  std::vector<std::vector<uint32_t>> positions;  // [unit]
  for (uint32_t p = 0; p < places.count(); ++p) {
    const uint32_t unit = d.from_classes[p];  // numbered by their first place
    if (unit == seats.size()) {
      seats.push_back(p);
      positions.emplace_back();
    }
    positions[unit].push_back(PositionOf(groups, p));
  }
  LeafRings rings(fabric, places, seats);
  if (!rings.complete()) return FromGroups(groups, list);
  std::vector<uint32_t> weights, candidates;
  for (const std::vector<uint32_t>& of_unit : positions) {
    weights.push_back(static_cast<uint32_t>(of_unit.size()));
  }
  for (uint32_t unit = 0; unit < seats.size(); ++unit) {
    candidates.clear();
    for (const uint32_t near : rings.Around(unit, weights, listed)) {
      candidates.insert(candidates.end(), positions[near].begin(), positions[near].end());
    }
    for (const uint32_t i : positions[unit]) list(groups.order[i], candidates);
  }
}

}  // namespace

NearPlaces::NearPlaces(const PlaceGroups& groups, const PlaceDistances& distances,
                       const Places& places, const Fabric* fabric, const SearchControl& control)
    : groups_(&groups) {
  if (groups.exact) return;
  listed_ = std::min<uint32_t>(kListed, distances.count());
  std::visit(
      [&]<class Distances>(const Distances& d) {
        NearestLists<Distances> lists(groups, d, distances.symmetric(), listed_, control);
        const auto list = [&](uint32_t p, absl::Span<const uint32_t> candidates) {
          lists.List(p, candidates);
        };
        if constexpr (std::is_same_v<Distances, ClassDistances>) {
          if (fabric != nullptr && places.has_endpoints() && places.count() > kAllPairs) {
            FromCables(groups, d, places, *fabric, listed_, list);
            lists_ = std::move(lists).lists();
            return;
          }
        }
        FromGroups(groups, list);
        lists_ = std::move(lists).lists();
      },
      distances.form());
}

}  // namespace coppice
