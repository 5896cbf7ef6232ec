#include "daemon/search/search_run.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/clock.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/output/mapping_answer.h"
#include "daemon/search/job_question.h"
#include "daemon/tools/map_search.h"
#include "google/protobuf/util/time_util.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

using google::protobuf::util::TimeUtil;

// What a rank may take, beside the grace, to read the question; some hundred MB a second.
constexpr absl::Duration kReading = absl::Seconds(10);

google::protobuf::Duration MessageOf(absl::Duration duration) {
  return TimeUtil::NanosecondsToDuration(absl::ToInt64Nanoseconds(duration));
}

absl::Duration DurationOf(const google::protobuf::Duration& duration) {
  return absl::Nanoseconds(TimeUtil::DurationToNanoseconds(duration));
}

absl::StatusOr<const MappingAlgorithm*> FindSpanning(const std::string& name) {
  ASSIGN_OR_RETURN(const MappingAlgorithm* const algorithm, FindMappingAlgorithm(name));
  if (algorithm->spans_processes) return algorithm;
  std::string names;
  for (const MappingAlgorithm* one : MappingAlgorithms()) {
    if (one->spans_processes) absl::StrAppend(&names, names.empty() ? "" : ", ", one->name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "algorithm ", name, " does not span processes; choose one of ", names, ", or coppice-plan"));
}

absl::Status LoadMap(const SearchOptions& options, LeadersQuestion& question) {
  if (options.job.empty()) {
    ASSIGN_OR_RETURN(question.map, LoadMapQuestion(options.map));
    question.map.problem.objective = {.qap_cost = 1};
    return ToProto(question.map.problem, *question.assignment.mutable_problem());
  }
  ASSIGN_OR_RETURN(question.job, JobQuestion::Ask(options));
  const v1::MappingProblem& problem = question.job->problem();
  ASSIGN_OR_RETURN(question.map.problem, FromProto(problem));
  question.map.host_of_place = {problem.host_of_place().begin(), problem.host_of_place().end()};
  *question.assignment.mutable_problem() = problem;
  return absl::OkStatus();
}

// What the node's processors allow each of its ranks.
absl::StatusOr<uint32_t> ThreadsOf(const v1::SearchAssignment& assignment, MpiTeam& team) {
  ASSIGN_OR_RETURN(const uint32_t ranks, team.RanksOfNode());  // collective: asked in any case
  if (assignment.threads() > 0) return assignment.threads();
  return std::max(1U, std::thread::hardware_concurrency() / ranks);
}

}  // namespace

absl::StatusOr<LeadersQuestion> MakeQuestion(const SearchOptions& options) {
  LeadersQuestion question;
  ASSIGN_OR_RETURN(const MapSearch search, MakeMapSearch(options.map));
  RETURN_IF_ERROR(FindSpanning(options.map.algorithm).status());
  RETURN_IF_ERROR(CheckParameters(*search.algorithm, search.options));
  RETURN_IF_ERROR(LoadMap(options, question));
  question.start = search.start;
  v1::SearchAssignment& assignment = question.assignment;
  assignment.set_algorithm(options.map.algorithm);
  assignment.set_seed(search.options.seed);
  for (const auto& [name, value] : search.options.parameters) {
    (*assignment.mutable_options())[name] = value;
  }
  assignment.set_threads(options.map.threads.value_or(0));
  *assignment.mutable_budget() = MessageOf(search.budget);
  *assignment.mutable_grace() = MessageOf(*ParseBudget(options.grace));
  return question;
}

absl::StatusOr<std::unique_ptr<v1::SearchAssignment>> ShareAssignment(
    const v1::SearchAssignment* assignment, MpiTeam& team) {
  std::string text = assignment == nullptr ? "" : assignment->SerializeAsString();
  if (assignment != nullptr) {  // the others wait until they are told
    team.WaitUntil(SystemClock().Monotonic() + kReading + DurationOf(assignment->grace()));
  }
  RETURN_IF_ERROR(team.Broadcast(text));
  if (text.empty() && assignment != nullptr) {  // protobuf wrote nothing; the others end well
    return absl::ResourceExhaustedError(absl::StrCat(
        "the question takes ", assignment->ByteSizeLong(),
        " bytes to send to the ranks, less than 2 GiB at most; give a smaller pattern"));
  }
  if (text.empty()) return nullptr;
  auto told = std::make_unique<v1::SearchAssignment>();
  if (!told->ParseFromString(text)) {
    return absl::InternalError(
        "what rank 0 told cannot be read; are all ranks the same coppice-search?");
  }
  return told;
}

absl::StatusOr<MapResult> SearchTogether(const v1::SearchAssignment& assignment,
                                         const LeadersQuestion* question, MpiTeam& team) {
  MapSearch search;
  ASSIGN_OR_RETURN(search.algorithm, FindSpanning(assignment.algorithm()));
  search.options.seed = assignment.seed();
  const absl::Duration grace = DurationOf(assignment.grace());
  team.WaitUntil(SystemClock().Monotonic() + kReading + grace);
  ASSIGN_OR_RETURN(search.options.threads, ThreadsOf(assignment, team));
  search.options.parameters = {assignment.options().begin(), assignment.options().end()};
  search.budget = DurationOf(assignment.budget());
  search.team = &team;
  search.program = nullptr;
  MappingProblem problem;
  if (question != nullptr) {
    problem = question->map.problem;
    search.start = question->start;  // the others go on from what it makes of it
    search.program = "coppice-search";
  } else {
    ASSIGN_OR_RETURN(problem, FromProto(assignment.problem()));
  }
  // All are ready: from here on their clocks run, and nobody is waited for much longer.
  RETURN_IF_ERROR(team.Any(false).status());
  team.WaitUntil(SystemClock().Monotonic() + search.budget + grace);
  return RunMapSearch(problem, search);
}

absl::Status Report(const SearchOptions& options, const LeadersQuestion& question,
                    MapResult& result) {
  if (question.job != nullptr) {
    RETURN_IF_ERROR(question.job->Measure(result.answer));
    RETURN_IF_ERROR(question.job->Put(result.answer));
  }
  return PrintMap(options.map, question.map, result);
}

}  // namespace coppice
