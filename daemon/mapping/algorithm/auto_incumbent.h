// The best mapping so far of a portfolio, whose it is, and what everybody else reached. A mapping
// is scored once, whoever made it: on large problems that alone takes as long as some budgets.
//
//     task --Offer--> Attempt --score--> best of the task --Merge, in order--> Incumbent
//                        \--if better than all before--> caller
//
// And what says that nothing is better: a bound of the cost, and all mappings of a few ranks.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_INCUMBENT_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_INCUMBENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

struct ScoredMapping : MappingStanding {
  Mapping mapping;
};

class Incumbent final {
 public:
  // Begins with the present order. `sparse` is of `problem`. Errors as Measure.
  static absl::StatusOr<std::unique_ptr<Incumbent>> Make(const MappingProblem& problem,
                                                         const SparseProblem& sparse,
                                                         const SearchControl& control);

  // The objective against the present order, whose value is 1, or 0 where nothing can be better.
  // By the cost alone where that is the objective. Thread-safe.
  absl::StatusOr<ScoredMapping> ScoreOf(Mapping mapping) const;

  // A cost as a score, where the cost is the objective.
  double AsScore(double cost) const { return present_cost_ > 0 ? cost / present_cost_ : cost; }

  // Whether a score can be had in time: many of them while a search goes on, or the `last` one of a
  // task, which may come a little late. Thread-safe.
  bool WorthScoring(bool last) const;
  // Whether there is time for what takes so many times as long as a score. Thread-safe.
  bool TimeForScores(double count) const;

  // Tells the caller of `mapping` if it is better than all it was told of. Thread-safe.
  void Stream(const MappingStanding& standing, const Mapping& mapping);

  // What `name` has come to; taken if it is better. By one thread.
  void Merge(const std::string& name, const ScoredMapping& found);

  // No mapping has a lower score than this, for this reason. The greatest counts. By one thread,
  // while others may ask for the bound.
  void SetBound(double least, std::string reason);
  // So good that nothing is better. Thread-safe.
  bool Proven(double score) const { return score <= least_ * (1 + 1e-12); }

  // The bound as a congestion, where that alone is the objective. Thread-safe.
  double least_congestion() const { return least_ * present_.max_congestion.value_or(0); }

  const Mapping& best() const { return best_; }
  double score() const { return standing_.score; }
  const MappingStanding& standing() const { return standing_; }
  const std::string& winner() const { return winner_; }
  const MappingMeasures& present() const { return present_; }  // unless the cost is the objective
  const std::string& bound_reason() const { return bound_reason_; }
  // "annealing at 0.71 of the present order; ran block 0.93, multisection 0.80 (3 times), ...".
  std::string Summary() const;

 private:
  struct Runner {
    std::string name;
    double best;
    uint32_t times;
  };
  Incumbent(const MappingProblem& problem, const SparseProblem& sparse,
            const SearchControl& control)
      : problem_(problem), sparse_(sparse), control_(control), budget_(control.remaining()) {}

  const MappingProblem& problem_;
  const SparseProblem& sparse_;
  const SearchControl& control_;
  const double budget_;  // seconds, infinite without a deadline
  MappingMeasures present_;
  double present_cost_ = 0;
  mutable std::atomic<double> scoring_ = 0;  // seconds, the most so far; 0 without a deadline
  Mapping best_;
  MappingStanding standing_;  // of best_; its `smooth` the least of all bests of this score
  std::atomic<double> least_ = 0;
  std::string bound_reason_ = "nothing costs anything any more";
  std::string winner_ = "the present order";
  std::vector<Runner> runners_;
  std::mutex stream_mutex_;
  MappingStanding streamed_;  // guarded by stream_mutex_
};

// What one task has come to.
class Attempt final {
 public:
  // `keeps`: what is offered on the way may be the task's result. Only for tasks that offer the
  // same whatever the number of threads.
  Attempt(Incumbent& incumbent, bool keeps) : incumbent_(incumbent), keeps_(keeps) {}

  // Thread-safe.
  void Offer(const Mapping& mapping);
  // The task's own answer, which is taken if it is as good as anything offered. One that cannot be
  // measured, as two ranks of it have no route, is none; so is one that comes too late.
  void Finish(Mapping mapping);

  const ScoredMapping& best() const { return best_; }
  // What it has kept so far, while it goes on. Thread-safe.
  ScoredMapping best_so_far() const;

 private:
  Incumbent& incumbent_;
  const bool keeps_;
  mutable std::mutex mutex_;
  ScoredMapping best_;
};

// What no seating costs less than: a search that reaches it can stop.
//
// The row minima of P. C. Gilmore, "Optimal and suboptimal algorithms for the quadratic assignment
// problem", 1962, without the assignment of rows that follows there:
//
//     rank u:   9 7 2         the partners of u sit in other slots, at best the heaviest in the
//     place p:  2 2 4 4 4     nearest:  9*2 + 7*2 + 2*4;  the least over all places p, half of it
//                             for u and half for its partners, summed over u
//
// Reached by grids on grids, rings on rings; far below the optimum of most others. 0 if there are
// so many ranks and places that it is not worth its time. O(places^2 log + pairs * places).
double LeastCost(const SparseProblem& problem);

inline constexpr uint32_t kFewRanks = 8;

// True: incumbent's mapping is an optimum, which it now is or was. False: stopped, or beyond the
// number of branches that are tried. Problems of at most kFewRanks ranks. Memory: O(ranks * pairs).
absl::StatusOr<bool> TryAllMappings(const MappingProblem& problem, const SparseProblem& sparse,
                                    const SearchControl& control, Incumbent& incumbent);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_INCUMBENT_H_
