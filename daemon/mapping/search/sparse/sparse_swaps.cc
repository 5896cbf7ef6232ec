#include "daemon/mapping/search/sparse/sparse_swaps.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_cost.h"
#include "daemon/mapping/search/sparse/sparse_occupants.h"

namespace coppice {
namespace {

// A place of more slots is asked for a partner of a swap only by those who would gain by
// themselves: one of the two always does.
constexpr uint32_t kFewSlots = 8;
constexpr uint32_t kAskedOccupants = 512;
// Smaller changes, against the sizes of what is added up, are rounding.
template <class Cost>
class SwapSearch final {
 public:
  SwapSearch(const Cost& cost, const SparseProblem& problem, const SwapOptions& options,
             const SearchControl& control, const Seats& seats)
      : cost_(cost),
        links_(cost.graph.links),
        problem_(problem),
        options_(options),
        control_(control),
        occupants_(problem.capacities, seats),
        seen_(problem.capacities.size(), 0),
        queued_(seats.size(), true),
        queue_(seats.size()) {
    std::iota(queue_.begin(), queue_.end(), 0);
    Xoshiro random(options.seed);
    for (auto i = static_cast<uint32_t>(queue_.size()); i > 1; --i) {
      std::swap(queue_[i - 1], queue_[random.Below(i)]);
    }
    least_ = kCostRounding * CostOf(cost, seats);
  }

  double Run(Seats& seats) {
    double gained = 0;
    for (size_t head = 0; head < queue_.size(); ++head) {
      if ((head & 15) == 0 && control_.stopped()) break;
      const uint32_t u = queue_[head];
      queued_[u] = false;
      for (Change best = Best(u); best.delta < -least_; best = Best(u)) {
        gained -= best.delta;
        Apply(u, best);
        if (control_.stopped()) break;
      }
      if (head > 2 * occupants_.seats().size()) Forget(head);
    }
    seats = occupants_.seats();
    return gained;
  }

 private:
  struct Change {
    double delta = 0;
    uint32_t to = 0;
    uint32_t with = kNoRank;
  };

  // Drops what is done of the queue.
  void Forget(size_t& head) {
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<ptrdiff_t>(head) + 1);
    head = static_cast<size_t>(-1);
  }

  Change Best(uint32_t u) {
    Change best;
    ++stamp_;
    seen_[occupants_.seats()[u]] = stamp_;
    ForEachPartner(u, [&](uint32_t v) {
      problem_.near.ForEach(occupants_.seats()[v], options_.near, [&](uint32_t place) {
        if (seen_[place] == stamp_) return;
        seen_[place] = stamp_;
        Try(u, place, best);
      });
    });
    return best;
  }

  template <class Visit>
  void ForEachPartner(uint32_t u, const Visit& visit) {
    const size_t begin = links_.begin[u], end = links_.begin[u + 1];
    if (end - begin <= options_.partners) {
      for (size_t e = begin; e < end; ++e) visit(links_.neighbours[e]);
      return;
    }
    heaviest_.clear();
    for (size_t e = begin; e < end; ++e) heaviest_.emplace_back(-links_.weights[e], e);
    const auto cut = heaviest_.begin() + options_.partners;
    std::nth_element(heaviest_.begin(), cut, heaviest_.end());
    for (auto it = heaviest_.begin(); it != cut; ++it) visit(links_.neighbours[it->second]);
  }

  void Try(uint32_t u, uint32_t place, Change& best) {
    const Seats& seats = occupants_.seats();
    const double mine = MoveDelta(cost_, seats, u, place);
    if (occupants_.free(place) > 0 && mine < best.delta) best = {mine, place, kNoRank};
    const absl::Span<const uint32_t> others = occupants_.of(place);
    if (others.size() > kFewSlots && mine >= -least_) return;
    for (const uint32_t w : others.subspan(0, kAskedOccupants)) {
      const double delta = mine + SwapRest(cost_, seats, u, w);
      if (delta < best.delta) best = {delta, place, w};
    }
  }

  void Apply(uint32_t u, const Change& change) {
    if (change.with == kNoRank) {
      occupants_.Move(u, change.to);
    } else {
      occupants_.Swap(u, change.with);
      Queue(change.with);
      QueuePartners(change.with);
    }
    QueuePartners(u);
  }

  void QueuePartners(uint32_t u) {
    ForEachPartner(u, [&](uint32_t v) { Queue(v); });
  }

  void Queue(uint32_t u) {
    if (queued_[u]) return;
    queued_[u] = true;
    queue_.push_back(u);
  }

  const Cost cost_;
  const WeightedGraph& links_;
  const SparseProblem& problem_;
  const SwapOptions options_;
  const SearchControl& control_;
  Occupants occupants_;
  std::vector<uint32_t> seen_;  // [place] stamp of the rank that has tried it last
  uint32_t stamp_ = 0;
  std::vector<bool> queued_;  // [rank]
  std::vector<uint32_t> queue_;
  std::vector<std::pair<double, size_t>> heaviest_;  // scratch
  double least_ = 0;
};

}  // namespace

double SwapUntilLocalOptimum(const SparseProblem& problem, const SwapOptions& options,
                             const SearchControl& control, Seats& seats) {
  return VisitCost(*problem.distances, problem.graph, [&](const auto& cost) {
    return SwapSearch(cost, problem, options, control, seats).Run(seats);
  });
}

}  // namespace coppice
