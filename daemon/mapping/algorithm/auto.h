// The parts of "auto": the best mapping so far (auto_incumbent.cc), the tasks that its rounds
// consist of, and the searches of "congestion" that go on through all rounds (auto_lines.cc). A
// mapping is scored once, whoever made it: on large problems that alone takes as long as some
// budgets.
//
//     task --Offer--> Attempt --score--> best of the task --Merge, in order--> Incumbent
//                        \--if better than all before--> caller
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/algorithm/congestion.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/search/partition/partition.h"
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

// One search from a start that is given or made to the best that it comes to.
struct PortfolioTask {
  std::string name;
  // What it offers on the way does not depend on the number of threads.
  bool keeps_offers = true;
  // An error: it declines. A task that is stopped comes to its best so far.
  std::function<absl::StatusOr<Mapping>(uint32_t threads, const SearchControl& control)> run;
};

// Tasks keep pointers to problem and sparse problem, which must outlive them, and share what they
// start from.
class PortfolioTasks final {
 public:
  using Parameters = std::vector<std::pair<std::string, double>>;

  PortfolioTasks(const MappingProblem& problem, const SparseProblem& sparse);

  // An algorithm of the table. Parameters are clamped to its ranges. A method that minimises the
  // QAP cost gets the distances of the objective.
  PortfolioTask Named(const std::string& name, const Mapping& start, uint64_t seed,
                      Parameters parameters) const;
  // Ranks in the order of their numbers: on the places as they are numbered, as groups have them,
  // and spread over places and groups of the last level.
  std::vector<PortfolioTask> Numberings() const;
  PortfolioTask QuickMultisection(uint64_t seed, bool pack) const;
  // All places at once: where groups only approach the distances, the cut of many levels is no
  // better for its trouble.
  PortfolioTask FlatPartition(uint64_t seed) const;
  PortfolioTask CarefulMultisection(uint64_t seed, uint32_t care) const;
  // A multisection and swaps, each cut the best of some.
  PortfolioTask SwappedMultisection(uint64_t seed, uint32_t tries) const;
  // Given up where the first few swaps do not come down to `worth`.
  PortfolioTask Polish(const Mapping& start, uint64_t seed, double worth) const;
  PortfolioTask AnnealFrom(const Mapping& start, uint64_t seed, double proposals) const;
  PortfolioTask AnnealMultisection(uint64_t seed, double proposals) const;
  PortfolioTask Settling(const Mapping& start, uint64_t seed) const;
  // Of two mappings, the better one first, joined only where both agree.
  PortfolioTask Combination(const Mapping& better, const Mapping& other, uint64_t seed) const;

 private:
  // What goes on from the seats of a start, or of a cut of the pattern.
  using Refine = std::function<void(const SearchControl& control, Seats& seats)>;
  PortfolioTask From(const char* name, const Mapping& start, Refine refine) const;
  PortfolioTask Cut(const char* name, const MultisectionOptions& options, Refine refine) const;
  PortfolioTask Numbering(const std::string& name, std::vector<uint32_t> order) const;
  // The swaps that gain most for their time, offered, and if they come down to `worth` the others.
  void Swap(uint64_t seed, double worth, const SearchControl& control, Seats& seats) const;
  // Where places take several ranks, all of one against all of another.
  void ExchangePlaces(uint64_t seed, const SearchControl& control, Seats& seats) const;
  void Settle(uint64_t seed, const SearchControl& control, Seats& seats) const;

  const MappingProblem& problem_;
  const SparseProblem& sparse_;
  MappingProblem by_cost_;  // the problem with the distances of the objective
};

// Where congestion counts, alone or beside others: two searches of "congestion" that go on through
// all rounds, each where it left off.
//
//     main     as "congestion" would search alone, so that what it reaches is reached here; the
//              best of everybody else is taken over only where it has nothing left to gain
//     scout    the same by another seed; where it gains nothing, anew from another of the best, or
//              from a cut of its own
//
//     deadline, two threads or more    main has one of them to itself, all the time
//     deadline, one thread             in turns; the scout waits as long as main gains
//     no deadline                      in turns: what comes out depends on no clock
class CongestionLines final {
 public:
  // All must outlive it.
  CongestionLines(const MappingProblem& problem, const MethodOptions& options,
                  const SearchControl& control, Incumbent& incumbent);
  ~CongestionLines();

  // Gives main its own thread if there is one to spare and only the deadline is to end the rounds.
  // Once, before the first of them.
  void Start();
  // Of the threads that the caller has.
  uint32_t threads_left() const;

  // What the lines do in the next round: some annealings each. `others` are the best mappings so
  // far, in any order.
  void AddTo(std::vector<PortfolioTask>& tasks, absl::Span<const ScoredMapping> others);
  // Main has not gained anything for a while: there is time for others. Thread-safe.
  bool converged() const { return converged_; }

  // What main has come to on its own thread goes to the incumbent. By the incumbent's one thread.
  void Merge();
  // Main has come to what is proven to be the best, on its own thread. Thread-safe.
  bool proven() const { return proven_; }
  // Ends main's thread and merges.
  void Finish();
  // The congestion cannot be less: from now on the lines look for orders with as much that have
  // fewer channels nearly as full, and fewer hop-bytes. Finishes first.
  void RefineEquals();

 private:
  struct Line {
    CongestionLine::Options options;
    Mapping start;
    std::unique_ptr<CongestionLine> search;  // null until its first round
  };
  PortfolioTask TaskOf(Line& line, uint64_t steps);
  absl::Status Continue(Line& line, uint64_t steps, const SearchControl& control);
  void Restart(absl::Span<const ScoredMapping> others);

  const MappingProblem& problem_;
  const MethodOptions& options_;
  const SearchControl& control_;
  Incumbent& incumbent_;
  Line main_, scout_;
  uint64_t restarts_ = 0;
  std::atomic<bool> converged_ = false;
  bool refines_equals_ = false;

  // Of main's own thread.
  std::thread thread_;
  Attempt attempt_;
  std::atomic<bool> finish_ = false, proven_ = false;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_H_
