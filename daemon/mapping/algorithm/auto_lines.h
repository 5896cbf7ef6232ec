// What the rounds of "auto" consist of: tasks of one search each, and the searches of "congestion"
// that go on through all rounds.
//
// Where congestion counts, alone or beside others: two searches of "congestion" that go on through
// all rounds of "auto", each where it left off.
//
//     main     as "congestion" would search alone, so that what it reaches is reached here; the
//              best of everybody else is taken over only where it has nothing left to gain
//     scout    the same by another seed; where it gains nothing, anew from another of the best, or
//              from a cut of its own
//
//     deadline, two threads or more    main has one of them to itself, all the time
//     deadline, one thread             in turns; the scout waits as long as main gains
//     no deadline                      in turns: what comes out depends on no clock
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_LINES_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_LINES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/algorithm/auto_incumbent.h"
#include "daemon/mapping/algorithm/congestion.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/search/partition/partition.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// What the rounds of "auto" are made of: one search each, from a start that is given or made, to
// the best that it comes to.

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

  // Another file's algorithm; declines if the table has none of that name. Parameters are clamped
  // to its ranges, and those that it does not have are passed over. A method that minimises the QAP
  // cost gets the distances of the objective.
  PortfolioTask Named(const std::string& name, const Mapping& start, uint64_t seed,
                      Parameters parameters) const;
  // Ranks in the order of their numbers: on the places as they are numbered, as groups have them,
  // and spread over places and groups of the last level.
  std::vector<PortfolioTask> Numberings() const;
  PortfolioTask QuickMultisection(uint64_t seed, bool pack) const;
  // All places at once, and then the parts among them: where groups only approach the distances,
  // the cut of many levels is no better for its trouble.
  PortfolioTask FlatPartition(uint64_t seed) const;
  // Multisections of more and more care.
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

class CongestionLines final {
 public:
  // All must outlive it.
  CongestionLines(const MappingProblem& problem, const AlgorithmOptions& options,
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
  const AlgorithmOptions& options_;
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

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_LINES_H_
