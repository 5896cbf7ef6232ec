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
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/algorithm/auto_incumbent.h"
#include "daemon/mapping/algorithm/auto_tasks.h"
#include "daemon/mapping/algorithm/congestion.h"

namespace coppice {

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
