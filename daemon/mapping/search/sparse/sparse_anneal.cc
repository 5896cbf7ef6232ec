#include "daemon/mapping/search/sparse/sparse_anneal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_occupants.h"

namespace coppice {
namespace {

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

double Anneal(const SparseProblem& problem, const SparseAnnealOptions& options,
              const SearchControl& control, Seats& seats) {
  return VisitCost(*problem.distances, problem.graph, [&](const auto& cost) {
    return Annealing(cost, problem, options, control, seats).Run(seats);
  });
}

}  // namespace coppice
