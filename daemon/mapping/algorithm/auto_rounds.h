// The rounds of "auto": tasks that run side by side and are merged in their order.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_ROUNDS_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_ROUNDS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/algorithm/auto_incumbent.h"
#include "daemon/mapping/search/sparse_cost.h"
#include "daemon/mapping/search/sparse_problem.h"

namespace coppice {

class Rounds final {
 public:
  // All four must outlive it.
  Rounds(const MappingProblem& problem, const SparseProblem& sparse,
         const AlgorithmOptions& options, const SearchControl& control, Incumbent& incumbent);

  // The given numbering and a quick multisection, polished: what must be there within
  // milliseconds.
  absl::Status Begin();
  // A round of the kind that suits the problem, with about twice the work of round - 1.
  absl::Status Round(uint32_t round);

 private:
  struct Task {
    std::string name;
    std::function<absl::StatusOr<Mapping>()> run;
  };
  // [task] what it came to, merged into the incumbent in order; a task that declines is noted by
  // nothing.
  absl::Status RunAll(const std::vector<Task>& tasks);

  // Another file's algorithm from `start`; declines if the table has none of that name. With
  // `effort` 1 it does the least that it is for, with each more twice as much: its options
  // "rounds", "epochs" and "steps" are set so, if it has them.
  Task Named(const std::string& name, const Mapping& start, uint64_t seed, uint32_t effort) const;
  Task Numbering(const std::string& name, std::vector<uint32_t> order) const;
  std::vector<Task> Numberings() const;
  Task QuickMultisection(uint64_t seed, bool pack) const;
  Task FlatPartition(uint64_t seed) const;
  Task Polish(const Mapping& start, uint64_t seed) const;
  Task AnnealFrom(const Mapping& start, uint64_t seed, double proposals) const;
  Task AnnealMultisection(uint64_t seed, double proposals) const;
  void Settle(uint64_t seed, Seats& seats) const;
  Task Settling(const Mapping& start, uint64_t seed) const;
  Task CarefulMultisection(uint64_t seed, uint32_t care) const;
  Task Combination(uint64_t seed) const;
  void AddOthers(std::vector<Task>& tasks) const;
  void Remember(const Mapping& mapping);
  bool IsDense() const;

  const MappingProblem& problem_;
  const SparseProblem& sparse_;
  const AlgorithmOptions& options_;
  const SearchControl& control_;
  Incumbent& incumbent_;
  SearchControl streaming_;  // stops as control_, offers to the incumbent's stream

  struct Member {
    double score;
    Mapping mapping;
  };
  std::vector<Member> population_;  // by score; what combinations are made of
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_ROUNDS_H_
