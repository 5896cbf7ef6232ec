// The best mapping so far of a portfolio, whose it is, and what everybody else reached.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_INCUMBENT_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_INCUMBENT_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/search/sparse_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

class Incumbent final {
 public:
  // Begins with the present order. `sparse` is of `problem`. Errors as Measure.
  static absl::StatusOr<std::unique_ptr<Incumbent>> Make(const MappingProblem& problem,
                                                         const SparseProblem& sparse,
                                                         const SearchControl& control);

  // The objective against the present order, whose value is 1, or 0 where nothing can be better.
  // By the cost alone where that is the objective. Thread-safe.
  absl::StatusOr<double> ScoreOf(const Mapping& mapping) const;

  // Tells the caller of `mapping` if it is better than all it was told of. Thread-safe.
  void Stream(const Mapping& mapping);

  // What `name` has come to; taken if it is better. By one thread.
  absl::Status Merge(const std::string& name, const Mapping& mapping);

  const Mapping& best() const { return best_; }
  double score() const { return score_; }
  // Nothing can be better: nothing costs anything.
  bool perfect() const { return score_ == 0; }
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
      : problem_(problem), sparse_(sparse), control_(control) {}

  const MappingProblem& problem_;
  const SparseProblem& sparse_;
  const SearchControl& control_;
  MappingMeasures present_;
  double present_cost_ = 0;
  Mapping best_;
  double score_ = 1;
  std::string winner_ = "the present order";
  std::vector<Runner> runners_;
  std::mutex stream_mutex_;
  double streamed_ = 1;  // guarded by stream_mutex_
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_INCUMBENT_H_
