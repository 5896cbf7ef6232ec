// The rounds of "auto": tasks that run side by side and are merged in their order.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_ROUNDS_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_ROUNDS_H_

#include <array>
#include <vector>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/algorithm/auto_incumbent.h"
#include "daemon/mapping/algorithm/auto_lines.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"

namespace coppice {

class AutoRounds final {
 public:
  // All must outlive it.
  AutoRounds(const MappingProblem& problem, const SparseProblem& sparse,
             const AlgorithmOptions& options, const SearchControl& control, Incumbent& incumbent);

  // The given numbering and quick methods, polished: what must be there within milliseconds.
  void Begin();
  // A round of the kind that suits the problem, with about twice the work of round - 1.
  void Round(uint32_t round);
  // The congestion is proven: of orders with as much RoundOfEquals looks for those with fewer
  // channels nearly as full and with fewer hop-bytes. Round is over then.
  void RefineEquals();
  // `round` from 0; `seed` differs from that of any other round.
  void RoundOfEquals(uint32_t round, uint64_t seed);
  // The search for congestion, where that is all that counts, has not gained anything for long.
  bool converged() const { return lines_.converged(); }
  // After the last one.
  void Finish() { lines_.Finish(); }

 private:
  using Tasks = std::vector<PortfolioTask>;

  // Runs tasks on all threads and merges what they come to in their order, so that threads change
  // nothing but the time. Once a task has come to what is proven to be the best, those after it are
  // stopped.
  void RunAll(const Tasks& tasks);
  void Remember(const ScoredMapping& found);

  void AddCongestion(uint32_t round, uint64_t seed, Tasks& tasks);
  void AddForLargePlaces(uint32_t round, uint64_t seed, Tasks& tasks) const;
  void AddAnnealing(uint32_t round, uint64_t seed, Tasks& tasks) const;
  void AddOthers(Tasks& tasks);
  void AddByCost(uint32_t round, uint64_t seed, Tasks& tasks);
  void AddDense(uint32_t round, uint64_t seed, Tasks& tasks);
  // After rounds without gain: what suits dense problems, and the exchanges of whole places of
  // "congestion", for any problem that is small enough.
  void AddForStale(uint64_t seed, Tasks& tasks);
  void CountStale();
  bool OnFabric() const;
  bool IsDense() const;
  // A search for the QAP cost says something of the objective.
  bool CostMatters() const;
  // Congestion counts, and there is time to make searches for it ready.
  bool SearchesLines() const;

  // The ways of a dense problem. Whichever found the last improvement gets all rounds, the others
  // every third, as long as there are improvements; what each does grows with its own turns.
  struct Way {
    std::vector<const char*> names;  // of its tasks
    uint32_t turns = 0;
  };
  bool Turn(uint32_t way, uint32_t round);

  const MappingProblem& problem_;
  const AlgorithmOptions& options_;
  const SearchControl& control_;
  Incumbent& incumbent_;
  const PortfolioTasks make_;
  const bool large_places_, exact_groups_, dense_;
  CongestionLines lines_;
  bool others_ran_ = false;      // AddOthers
  bool refines_equals_ = false;  // a proven score ends nothing
  std::array<Way, 3> ways_;
  double last_score_ = std::numeric_limits<double>::infinity();
  uint32_t stale_rounds_ = 0;              // in which last_score_ stayed
  uint32_t stale_turns_ = 0;               // AddForStale
  std::vector<ScoredMapping> population_;  // by score; what combinations are made of
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_ROUNDS_H_
