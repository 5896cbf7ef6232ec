// What the rounds of "auto" are made of: one search each, from a start that is given or made, to
// the best that it comes to.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_TASKS_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_TASKS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/search/sparse/sparse_cost.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

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
  double CostOf(const Mapping& mapping) const;
  PortfolioTask AnnealFrom(const Mapping& start, uint64_t seed, double proposals) const;
  PortfolioTask AnnealMultisection(uint64_t seed, double proposals) const;
  PortfolioTask Settling(const Mapping& start, uint64_t seed) const;
  // Of two mappings, the better one first, joined only where both agree.
  PortfolioTask Combination(const Mapping& better, const Mapping& other, uint64_t seed) const;

 private:
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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_TASKS_H_
