// Better mappings by exchanging slots: annealing of the smooth congestion, with the exchanges that
// matter tried first.
//
//      worst channel  ==x==>     u: a rank whose bytes cross it, every other time any rank
//         u --> ... q            slot: near one of u's peers q, or anywhere
//
// Now and then two whole places change their ranks: what belongs together moves together.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_CONGESTION_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_CONGESTION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/search/links/traffic_state.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// The objective as Score() counts it, from a state's values.
class LinkObjective final {
 public:
  // `present` are the values of the present order.
  LinkObjective(const Objective& objective, const TrafficState::Values& present);

  // Lower is better; of two mappings with one objective, the one with fewer hop-bytes is.
  using Value = std::pair<double, double>;
  Value Of(const TrafficState::Values& values) const {
    return {congestion_ * values.congestion + Sums(values), values.hop_bytes};
  }
  // What a search goes down: the smooth congestion, and beside it `slope` times the hop-bytes over
  // those of the present order, where the objective has none.
  double Smooth(const TrafficState::Values& values, double slope) const {
    return congestion_ * values.soft + Sums(values) + slope * slope_ * values.hop_bytes;
  }
  bool congestion_only() const { return hop_bytes_ == 0 && qap_cost_ == 0; }
  bool with_qap_cost() const { return qap_cost_ > 0; }

 private:
  double Sums(const TrafficState::Values& values) const {
    return hop_bytes_ * values.hop_bytes + qap_cost_ * values.qap_cost;
  }
  double congestion_, hop_bytes_, qap_cost_;  // weights of the values as they are
  double slope_;
};

struct AnnealOptions {
  uint64_t steps = 0;
  // Temperatures from first to last, as parts of the mean change of an exchange at the start.
  double first = 0.5, last = 0.001;
  double slope = 0.001;  // LinkObjective::Smooth
};

// For one thread.
class CongestionSearch {
 public:
  // Errors as TrafficState::Make. The problem must outlive the search.
  static absl::StatusOr<CongestionSearch> Make(const MappingProblem& problem, const Mapping& start,
                                               uint64_t seed);

  // Tries options.steps exchanges from the best so far, and stops early when told to, or when the
  // best congestion is down at `enough` and nothing else counts.
  void Anneal(const AnnealOptions& options, double enough, const SearchControl& control);

  // From now on the best of those with one objective is the one with less smooth congestion, and of
  // these the one with fewer hop-bytes (mapping_metrics.h).
  void PreferSmooth() { prefers_smooth_ = true; }

  // Goes on from `mapping`, which becomes the best if it is.
  void Visit(const Mapping& mapping);

  const Mapping& best() const { return best_; }
  LinkObjective::Value best_value() const { return best_value_; }
  bool Reached(double enough) const {
    return objective_.congestion_only() && best_congestion_ <= enough * (1 + 1e-12);
  }

 private:
  CongestionSearch(const MappingProblem& problem, TrafficState state, LinkObjective objective,
                   uint64_t seed);
  void FindNear();
  double MeanChange();
  bool Propose(uint32_t& rank, uint32_t& slot);
  uint32_t RankOverWorst();
  void FindWorst();
  bool Crosses(uint32_t rank, uint32_t channel);
  bool Accepts(double smooth, double next, double temperature);
  double ExchangePlaces(double smooth, double temperature);
  void Take(uint32_t rank, uint32_t slot);
  void Look(double smooth);
  bool IsBetter(const TrafficState::Values& now) const;
  void TakeDown(const TrafficState::Values& now);

  const MappingProblem& problem_;
  TrafficState state_;
  LinkObjective objective_;
  Xoshiro random_;
  std::vector<uint32_t> near_begin_, near_;  // [place] slots near it
  std::vector<uint32_t> place_of_channel_;   // [channel] whose port it is; kNobody: a switch's
  ChannelIndex worst_ = kNoChannel;
  std::vector<uint32_t> over_worst_;  // some ranks whose bytes crossed it when it was found

  Mapping best_;
  LinkObjective::Value best_value_ = {-1, 0};
  double best_congestion_ = 0;
  double best_soft_ = 0;  // the least of all bests of this value
  bool prefers_smooth_ = false;
  double best_smooth_ = 0;
  double slope_ = 0;             // of the annealing at hand
  std::vector<uint32_t> moved_;  // ranks moved since the best
  bool offered_ = true;
  bool shared_places_ = false;  // some place takes several ranks
};

// A search of "congestion" that goes on where it left off, for whoever gives it its time piece by
// piece: as many annealings come to the same in one go as in many.
//
//     start, quick methods, cuts along         the best of them is where the search begins
//     what the cables carry
//                   |
//     anneal with heat 0.001, 1, 0.1, ...      each from the best so far, again while it gains;
//                   |                          first with the hop-bytes beside the congestion,
//                   |                          then almost without; then all twice as long
//
// Little heat polishes what is best, much heat leaves it and comes down elsewhere: neither alone
// did as well. Heat is the first temperature over the mean change of an exchange.

// For one thread at a time.
class CongestionLine final : public CongestionSearch {
 public:
  struct Options {
    uint64_t seed = 1;
    uint32_t threads = 1;  // of the quick methods
    bool starts = true;    // begins with the best of start and quick methods
    uint32_t cuts = 4;     // of the pattern along the cables' capacities to begin with
  };

  // Errors as CongestionSearch::Make. The problem must outlive it.
  static absl::StatusOr<CongestionLine> Make(const MappingProblem& problem, const Mapping& start,
                                             const Options& options);

  // The starts, as far as there is time.
  void Begin(const SearchControl& control);
  // One annealing, which stops early at a congestion of `enough`. Begin() comes first.
  void Anneal(double enough, const SearchControl& control);
  // Of its first annealing.
  static uint64_t FirstSteps(const MappingProblem& problem) {
    return std::max<uint64_t>(256, 64 * uint64_t{problem.rank_count()});
  }
  // Of the next annealing.
  uint64_t steps() const { return steps_; }
  // It has done twice as much since it last gained anything as before, and tried every heat thrice.
  bool converged() const;

 private:
  CongestionLine(const MappingProblem& problem, const Mapping& start, const Options& options,
                 CongestionSearch search);
  void VisitStarts(const SearchControl& control);
  void VisitCuts(const SearchControl& control);

  const MappingProblem& problem_;
  const Mapping start_;
  const Options options_;
  uint64_t steps_;
  size_t heat_ = 0, slope_ = 0;
  uint32_t stale_ = 0;                    // annealings since one gained anything
  uint64_t done_ = 0, done_at_gain_ = 0;  // steps
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_CONGESTION_H_
