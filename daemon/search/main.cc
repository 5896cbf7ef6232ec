// coppice-search: a search for an order of ranks on many nodes at once, an MPI program. Rank 0
// reads the command line and the input and prints; the others hear from it what to do.
// Exit status: proto/text/exit_status.h; the reason is on stderr.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/base/clock.h"
#include "daemon/search/mpi_team.h"
#include "daemon/search/search_options.h"
#include "daemon/search/search_run.h"
#include "daemon/tools/command.h"
#include "daemon/tools/map_search.h"
#include "proto/text/environment.h"
#include "proto/text/exit_status.h"

namespace coppice {
namespace {

constexpr char kFooter[] =
    "Start it on the nodes of the job, one rank a node:\n"
    "  mpirun --hostfile nodes --map-by node coppice-search --job 7 --application cfd\n"
    "Workers are counted for each rank: more ranks search more in the same time. Equal seeds and\n"
    "equally many workers in all give equal results, unless the budget ends the search.";

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
  app.footer(absl::StrCat(kFooter, "\n", ExitStatusHelp()));
  app.set_version_flag("--version", "coppice-search " COPPICE_VERSION);
  app.failure_message(
      [](const CLI::App*, const CLI::Error& error) { return UsageError(error.what()); });
  std::fputs(UnknownVariables(environ).c_str(), stderr);
  SearchOptions options;
  AddSearchOptions(app, options);
  try {
    app.parse(argc, argv);
    if (!options.map.list) CheckUsage(options);
  } catch (const CLI::ParseError& error) {
    return Dismiss(team, app.exit(error) == 0 ? kDone : kWrongUsage);
  }
  if (options.map.list) {
    const absl::Status printed =
        PrintText(options.map.json ? AlgorithmsToJson() : AlgorithmsToText());
    return Dismiss(team, ExitStatusOf(printed));
  }
  const absl::StatusOr<LeadersQuestion> question = MakeQuestion(options);
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
