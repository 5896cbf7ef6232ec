#include "daemon/mapping/output/mapping_answer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/mapping_check.h"

namespace coppice {
namespace {

// Why there is nothing to search for; "" if there is.
std::string WhyNothing(const Pattern& pattern) {
  if (pattern.rank_count() == 1) return "one rank has nobody to talk to: the present order stays";
  if (pattern.pair_count() > 0) return "";
  for (uint32_t rank = 0; rank < pattern.rank_count(); ++rank) {
    if (pattern.self_bytes(rank) > 0) return "";  // may cost more on one place than on another
  }
  return "no rank sends anything: all orders are alike, the present one stays";
}

std::string Reason(const MappingAlgorithm& algorithm, double score) {
  const bool is_shown = score < 0.99995 || score > 1.00005;  // as 0.01 %
  if (score == 1 || !is_shown) {
    return absl::StrCat(algorithm.name, "'s order is as good as the present one");
  }
  if (score < 1) {
    return absl::StrFormat("%s's order is %.2f %% better than the present one by the objective",
                           algorithm.name, 100 * (1 - score));
  }
  return absl::StrFormat("%s's order is %.2f %% worse than the present one by the objective",
                         algorithm.name, 100 * (score - 1));
}

void AddNote(const std::string& note, std::string& reason) {
  if (!note.empty()) absl::StrAppend(&reason, reason.empty() ? "" : "; ", note);
}

}  // namespace

absl::StatusOr<MappingAnswer> AnswerMapping(const MappingProblem& problem,
                                            const MappingAlgorithm& algorithm, const Mapping& start,
                                            const AlgorithmOptions& options,
                                            const SearchControl& control) {
  RETURN_IF_ERROR(CheckProblem(problem));
  MappingAnswer answer;
  answer.algorithm = std::string(algorithm.name);
  answer.mapping = problem.present();
  ASSIGN_OR_RETURN(answer.before, Measure(problem, answer.mapping));
  answer.after = answer.before;
  answer.reason = WhyNothing(*problem.pattern);
  if (answer.reason.empty()) {
    ASSIGN_OR_RETURN(Mapped mapped, RunAlgorithm(algorithm, problem, start, options, control));
    ASSIGN_OR_RETURN(const MappingMeasures after, Measure(problem, mapped.mapping));
    answer.score = Score(problem.objective, after, answer.before);
    answer.reason = Reason(algorithm, answer.score);
    if (algorithm.name == kAutoAlgorithm && !(answer.score < 1)) {
      answer.score = 1;
      answer.reason = "nothing better than the present order was found: it stays";
    } else {
      answer.mapping = std::move(mapped.mapping);
      answer.after = after;
    }
    AddNote(mapped.note, answer.reason);
  }
  answer.slots = AssignSlots(*problem.places, answer.mapping);
  RETURN_IF_ERROR(CheckMapping(*problem.places, problem.rank_count(), answer.mapping));
  RETURN_IF_ERROR(CheckSlots(*problem.places, answer.slots));
  return answer;
}

}  // namespace coppice
