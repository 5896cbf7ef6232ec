#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search/sparse/sparse_search.h"

namespace coppice {
namespace {

// A place of more slots is asked for a partner of a swap only by those who would gain by
// themselves: one of the two always does.
constexpr uint32_t kFewSlots = 8;
constexpr uint32_t kAskedOccupants = 512;

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
        queue_(Numbers(seats.size())) {
    Xoshiro random(options.seed);
    Shuffle(queue_, random);
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

constexpr int kStages = 64;
constexpr double kColdest = 0.02;    // of T0
constexpr uint32_t kSamples = 2000;  // proposals that the mean delta is taken from
constexpr double kOutweighs = 30;    // times the median: no part of the mean

// -ln of the middle of each 4,096th of (0, 1).
const std::array<double, 4096>& Logarithms() {
  static const auto* const table = [] {
    auto* const made = new std::array<double, 4096>;
    for (int i = 0; i < 4096; ++i) (*made)[i] = -std::log((i + 0.5) / 4096);
    return made;
  }();
  return *table;
}

template <class Cost>
class Annealing final {
 public:
  Annealing(const Cost& cost, const SparseProblem& problem, const SparseAnnealOptions& options,
            const SearchControl& control, const Seats& seats)
      : cost_(cost),
        links_(cost.graph.links),
        problem_(problem),
        options_(options),
        control_(control),
        random_(options.seed),
        occupants_(problem.capacities, seats) {}

  double Run(Seats& best) {
    const auto ranks = static_cast<uint32_t>(occupants_.seats().size());
    double temperature = options_.hot * MeanDelta();
    if (!(temperature > 0)) return 0;
    const double cooling = std::pow(kColdest, 1.0 / (kStages - 1));
    const auto per_stage = static_cast<uint64_t>(options_.proposals * ranks / kStages) + 1;
    double now = 0, least = 0;
    for (int stage = 0; stage < kStages; ++stage) {
      if (!Stage(temperature, per_stage, now)) break;
      if (now < least * (1 + 1e-12) - least_change_) {
        least = now;
        best = occupants_.seats();
      }
      temperature *= cooling;
    }
    return -least;
  }

 private:
  struct Proposal {
    uint32_t u = kNoRank, with = kNoRank, to = 0;
  };

  // u is kNoRank if there is nothing to try.
  Proposal Propose() {
    const uint32_t u = random_.Below(static_cast<uint32_t>(occupants_.seats().size()));
    const size_t begin = links_.begin[u];
    const auto degree = static_cast<uint32_t>(links_.begin[u + 1] - begin);
    if (degree == 0) return {};
    const uint32_t v = links_.neighbours[begin + random_.Below(degree)];
    const uint32_t from = occupants_.seats()[u], at = occupants_.seats()[v];
    const uint32_t to = problem_.near.Pick(at, random_);
    if (to == from) return {};
    const absl::Span<const uint32_t> others = occupants_.of(to);
    const uint32_t room = occupants_.free(to);
    const uint64_t coin = random_();
    if (room > 0 && (others.empty() || (coin & 1) != 0)) return {u, kNoRank, to};
    // Of many occupants those at the border matter: the partner itself is one.
    if (others.size() > 4 && to == at && (coin & 2) != 0) return {u, v, to};
    return {u, others[random_.Below(static_cast<uint32_t>(others.size()))], to};
  }

  double Delta(const Proposal& p) const {
    const double mine = MoveDelta(cost_, occupants_.seats(), p.u, p.to);
    return p.with == kNoRank ? mine : mine + SwapRest(cost_, occupants_.seats(), p.u, p.with);
  }

  // Of what proposals change that change anything; but for the few that outweigh all others, which
  // are done with at any temperature: a heat of theirs would leave the others molten to the end.
  double MeanDelta() {
    std::vector<double> changes;
    for (uint32_t i = 0; i < kSamples; ++i) {
      const Proposal p = Propose();
      if (p.u == kNoRank) continue;
      const double delta = std::abs(Delta(p));
      if (delta > 0) changes.push_back(delta);
    }
    if (changes.empty()) return 0;
    const auto median = changes.begin() + changes.size() / 2;
    std::nth_element(changes.begin(), median, changes.end());
    const double most = kOutweighs * *median;
    double sum = 0;
    uint32_t counted = 0;
    for (const double change : changes) {
      if (change > most) continue;
      sum += change;
      ++counted;
    }
    const double mean = sum / counted;
    least_change_ = 1e-9 * mean;
    return mean;
  }

  // False: stopped.
  bool Stage(double temperature, uint64_t proposals, double& now) {
    for (uint64_t i = 0; i < proposals; ++i) {
      if ((i & 63) == 0 && control_.stopped()) return false;
      const Proposal p = Propose();
      if (p.u == kNoRank) continue;
      const double delta = Delta(p);
      if (delta > 0 && delta > temperature * logarithms_[random_() >> 52]) continue;
      now += delta;
      if (p.with == kNoRank) {
        occupants_.Move(p.u, p.to);
      } else {
        occupants_.Swap(p.u, p.with);
      }
    }
    return true;
  }

  const Cost cost_;
  const WeightedGraph& links_;
  const SparseProblem& problem_;
  const SparseAnnealOptions options_;
  const SearchControl& control_;
  const std::array<double, 4096>& logarithms_ = Logarithms();
  Xoshiro random_;
  Occupants occupants_;
  double least_change_ = 0;
};

}  // namespace

double SwapUntilLocalOptimum(const SparseProblem& problem, const SwapOptions& options,
                             const SearchControl& control, Seats& seats) {
  return VisitCost(*problem.distances, problem.graph, [&](const auto& cost) {
    return SwapSearch(cost, problem, options, control, seats).Run(seats);
  });
}

double Anneal(const SparseProblem& problem, const SparseAnnealOptions& options,
              const SearchControl& control, Seats& seats) {
  return VisitCost(*problem.distances, problem.graph, [&](const auto& cost) {
    return Annealing(cost, problem, options, control, seats).Run(seats);
  });
}

}  // namespace coppice
