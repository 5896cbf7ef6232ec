// coppice-search: a search for an order of ranks on many nodes at once, an MPI program.
//
// Only rank 0 reads files and the command line, speaks to a daemon or prints, so that other nodes
// need neither, and what is wrong with the input is said once. All return the same order
// (SearchTeam). Exit status: proto/text/exit_status.h; the reason is on stderr.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "coppice/v1/search.pb.h"
#include "daemon/base/clock.h"
#include "daemon/base/status_macros.h"
#include "daemon/search/job_question.h"
#include "daemon/search/mpi_team.h"
#include "daemon/tools/map_search.h"
#include "google/protobuf/util/time_util.h"
#include "proto/text/command_line.h"
#include "proto/text/environment.h"
#include "proto/text/exit_status.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

// What rank 0 knows before the others hear of it.
struct LeadersQuestion {
  MapQuestion map;                   // with the fabric, if there is one
  std::unique_ptr<JobQuestion> job;  // null: from files
  const MappingAlgorithm* start = nullptr;
  v1::SearchAssignment assignment;
};

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

// In rank 0 alone. NOT_FOUND: no such algorithm; INVALID_ARGUMENT: one that does not span
// processes (lists those that do), an option it does not know; RESOURCE_EXHAUSTED: too many slots;
// errors of LoadMapQuestion and JobQuestion::Ask.
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

// Collective. Rank 0 tells its question, or, with null, that there is none. The others give null;
// theirs returns nullptr when there is nothing to do.
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

// Collective. Rank 0 gives its question, the others null. Any error ends the run for all ranks.
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

// In rank 0: to the daemon, to files, to standard output.
absl::Status Report(const SearchOptions& options, const LeadersQuestion& question,
                    MapResult& result) {
  if (question.job != nullptr) {
    RETURN_IF_ERROR(question.job->Measure(result.answer));
    RETURN_IF_ERROR(question.job->Put(result.answer));
  }
  return PrintMap(options.map, question.map, result);
}

constexpr char kFooter[] =
    "Start it on the nodes of the job, one rank a node:\n"
    "  mpirun --hostfile nodes --map-by node coppice-search --job 7 --application cfd\n"
    "Workers are counted for each rank: more ranks search more in the same time.\n"
    "Equal seeds and equally many workers in all give equal results, unless the budget\n"
    "ends the search.";

// A rank that fails alone gives rank 0 so long to say what is wrong with all of them.
constexpr absl::Duration kRankZeroFirst = absl::Seconds(2);

// MPICH's launcher may drop what it has not read yet when it is told to abort.
constexpr absl::Duration kUntilRead = absl::Milliseconds(500);

void Say(uint32_t rank, const absl::Status& status) {
  const absl::Status told =
      rank == 0 ? status
                : absl::Status(status.code(), absl::StrCat("rank ", rank, ": ", status.message()));
  std::fprintf(stderr, "%s\n", ErrorLine(told).c_str());
  std::fflush(stderr);
}

// The others may be in the middle of the search: all end.
int EndAll(uint32_t rank, const absl::Status& status) {
  if (rank != 0) absl::SleepFor(kRankZeroFirst);
  Say(rank, status);
  absl::SleepFor(kUntilRead);
  MpiTeam::Abort(ExitStatusOf(status));
  return ExitStatusOf(status);
}

int Follow(MpiTeam& team) {
  const auto assignment = ShareAssignment(nullptr, team);
  if (!assignment.ok()) return EndAll(team.process(), assignment.status());
  if (*assignment == nullptr) return kDone;
  const absl::StatusOr<MapResult> result = SearchTogether(**assignment, nullptr, team);
  return result.ok() ? kDone : EndAll(team.process(), result.status());
}

// There is no search: the others end well.
int Dismiss(MpiTeam& team, int exit_status) {
  const auto told = ShareAssignment(nullptr, team);
  return told.ok() ? exit_status : EndAll(0, told.status());
}

int Lead(int argc, char** argv, MpiTeam& team) {
  CLI::App app(
      "Searches for an order of ranks that puts heavy communication on short ways, on all ranks of "
      "an MPI job",
      "coppice-search");
  FitHelp(app);
  app.footer(absl::StrCat(kFooter, "\n", ExitStatusHelp()));
  app.set_version_flag("--version", "coppice-search " COPPICE_VERSION);
  std::fputs(UnknownVariables(environ).c_str(), stderr);
  SearchOptions options;
  AddSearchOptions(app, options);
  try {
    app.parse(argc, argv);
    CheckUsage(app, options);
  } catch (const CLI::ParseError& error) {
    return Dismiss(team, EndLine(app, error));
  }
  if (options.map.list) {
    const absl::Status printed = ListAlgorithms(options.map);
    if (!printed.ok()) Say(0, printed);
    return Dismiss(team, ExitStatusOf(printed));
  }
  const absl::Status may_write = CheckOut(options.map);
  const absl::StatusOr<LeadersQuestion> question =
      may_write.ok() ? MakeQuestion(options) : may_write;
  if (!question.ok()) {
    Say(0, question.status());
    return Dismiss(team, ExitStatusOf(question.status()));
  }
  const auto told = ShareAssignment(&question->assignment, team);
  if (!told.ok()) return EndAll(0, told.status());
  absl::StatusOr<MapResult> result = SearchTogether(**told, &*question, team);
  if (!result.ok()) return EndAll(0, result.status());
  const absl::Status reported = Report(options, *question, *result);
  if (!reported.ok()) Say(0, reported);
  return ExitStatusOf(reported);
}

int Main(int argc, char** argv) {
  GuardStandardStreams();
  const bool takes_threads = MpiTeam::Start(argc, argv);
  MpiTeam team(&SystemClock());
  if (!takes_threads) {
    return EndAll(team.process(),
                  absl::FailedPreconditionError("this MPI allows no calls from a second thread; "
                                                "build it with support for threads"));
  }
  const int exit_status = team.process() == 0 ? Lead(argc, argv, team) : Follow(team);
  MpiTeam::Finish();
  return exit_status;
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) { return coppice::Main(argc, argv); }
