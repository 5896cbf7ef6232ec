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
// did as well on the patterns and allocations that we measured, and which of them wins changes
// from case to case. Heat is the first temperature over the mean change of an exchange.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_CONGESTION_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_CONGESTION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/search/links/congestion_search.h"

namespace coppice {

// For one thread at a time.
class CongestionLine final {
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
  // Of orders with one congestion, those with fewer channels nearly as full come before those with
  // fewer hop-bytes.
  void PreferSmooth() { search_.PreferSmooth(); }
  // Goes on from `mapping` if it is better.
  void Visit(const Mapping& mapping) { search_.Visit(mapping); }

  const CongestionSearch& search() const { return search_; }
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
  CongestionSearch search_;
  uint64_t steps_;
  size_t heat_ = 0, slope_ = 0;
  uint32_t stale_ = 0;                    // annealings since one gained anything
  uint64_t done_ = 0, done_at_gain_ = 0;  // steps
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_CONGESTION_H_
