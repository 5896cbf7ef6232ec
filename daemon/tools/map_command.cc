// coppice-plan map: the order of ranks that puts heavy communication on short, idle links, from
// files alone. The search runs beside the thread that watches the clock and tells standard error
// how it goes.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "daemon/base/clock.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/output/launch_file.h"
#include "daemon/mapping/output/mapping_answer.h"
#include "daemon/tools/command.h"
#include "daemon/tools/map_inputs.h"
#include "daemon/tools/map_options.h"
#include "daemon/tools/map_report.h"

namespace coppice {
namespace {

constexpr char kHelp[] =
    "Files (- is standard input):\n"
    "  --pattern   Matrix Market (row r, column s: bytes that rank r - 1 sends to rank s - 1),\n"
    "              METIS graph (an edge's weight: bytes of both directions together), or a dense\n"
    "              matrix, one row a line, before it the number of ranks\n"
    "  --hosts     one endpoint a line in rank order: host, host/port or port GUID; repeated "
    "lines\n"
    "              are more ranks there\n"
    "  --distance  a dense matrix, a row and a column for each host in the order of --hosts\n"
    "  --load      NODE-GUID PORT UTILISATION a line, as for tree\n"
    "The order is given as the new position of every rank. --emit writes it for a launcher:\n"
    "  rankfile      mpirun --rankfile FILE (Open MPI)\n"
    "  hostfile      mpirun --hostfile FILE --map-by seq (Open MPI)\n"
    "  machinefile   mpiexec -f FILE (MPICH, MVAPICH, Intel MPI)\n"
    "  slurm         SLURM_HOSTFILE=FILE srun --distribution=arbitrary";

constexpr absl::Duration kFirstProgress = absl::Milliseconds(1500);
constexpr absl::Duration kProgressEvery = absl::Seconds(1);
constexpr int kProgressShare = 20;  // of the time, one part in so many goes into measuring progress

// The newest order that the search offered.
class BestSoFar {
 public:
  void Take(const Mapping& mapping) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    mapping_ = mapping;
    ++offers_;
  }
  // Measures it; "" if there is none.
  std::string Describe(const MappingProblem& problem) const ABSL_LOCKS_EXCLUDED(mutex_) {
    Mapping mapping;
    uint64_t offers = 0;
    {
      const absl::MutexLock lock(&mutex_);
      mapping = mapping_;
      offers = offers_;
    }
    if (offers == 0) return "";
    const auto before = Measure(problem, problem.present()), now = Measure(problem, mapping);
    if (!before.ok() || !now.ok()) return "";
    return absl::StrFormat(", order %d at %.2f %% of the present one", offers,
                           100 * Score(problem.objective, *now, *before));
  }

 private:
  mutable absl::Mutex mutex_;
  Mapping mapping_ ABSL_GUARDED_BY(mutex_);
  uint64_t offers_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Tells standard error of a search that goes on for over a second until `done`.
void TellProgress(const MappingProblem& problem, const BestSoFar& best, absl::Duration begin,
                  absl::Duration budget, absl::Notification& done) {
  absl::Duration wait = kFirstProgress;
  while (!done.WaitForNotificationWithTimeout(wait)) {
    const absl::Duration now = SystemClock().Monotonic();
    const std::string order = best.Describe(problem);
    std::fprintf(stderr, "coppice-plan: %.1f s of %s%s\n", absl::ToDoubleSeconds(now - begin),
                 absl::FormatDuration(budget).c_str(), order.c_str());
    wait = std::max(kProgressEvery, kProgressShare * (SystemClock().Monotonic() - now));
  }
}

struct Search {
  const MappingAlgorithm* algorithm = nullptr;
  const MappingAlgorithm* start = nullptr;  // null: the present order
  AlgorithmOptions options;
  absl::Duration budget;
};

absl::StatusOr<Search> MakeSearch(const MapOptions& options) {
  Search search;
  ASSIGN_OR_RETURN(search.algorithm, FindMappingAlgorithm(options.algorithm));
  if (!options.start.empty()) {
    ASSIGN_OR_RETURN(search.start, FindMappingAlgorithm(options.start));
  }
  search.options.seed = options.seed.value_or(1);
  search.options.threads =
      options.threads.value_or(std::max(1u, std::thread::hardware_concurrency()));
  for (const std::string& text : options.parameters) {
    search.options.parameters.push_back(*ParseParameter(text));
  }
  search.budget = *ParseBudget(options.budget);
  return search;
}

absl::StatusOr<MappingAnswer> RunSearch(const MappingProblem& problem, const Search& search,
                                        const SearchControl& control) {
  Mapping start;
  if (search.start != nullptr) {
    AlgorithmOptions options = search.options;
    options.parameters.clear();  // they are the other algorithm's
    ASSIGN_OR_RETURN(Mapped mapped, RunAlgorithm(*search.start, problem, {}, options, control));
    start = std::move(mapped.mapping);
  }
  return AnswerMapping(problem, *search.algorithm, start, search.options, control);
}

absl::StatusOr<MappingAnswer> RunWatched(const MappingProblem& problem, const Search& search) {
  const absl::Duration begin = SystemClock().Monotonic(), end = begin + search.budget;
  BestSoFar best;
  const SearchControl control([end] { return SystemClock().Monotonic() >= end; },
                              [&best](const Mapping& mapping) { best.Take(mapping); });
  absl::StatusOr<MappingAnswer> answer = absl::UnknownError("");
  absl::Notification done;
  std::thread worker([&] {
    answer = RunSearch(problem, search, control);
    done.Notify();
  });
  TellProgress(problem, best, begin, search.budget, done);
  worker.join();
  return answer;
}

absl::Status RunMap(const MapOptions& options) {
  if (options.list) return PrintText(options.json ? AlgorithmsToJson() : AlgorithmsToText());
  ASSIGN_OR_RETURN(const Search search, MakeSearch(options));
  ASSIGN_OR_RETURN(const MapQuestion question, LoadMapQuestion(options));
  const absl::Duration begin = SystemClock().Monotonic();
  ASSIGN_OR_RETURN(const MappingAnswer answer, RunWatched(question.problem, search));
  const absl::Duration took = SystemClock().Monotonic() - begin;
  if (!options.emit.empty()) {
    ASSIGN_OR_RETURN(const std::string text, LaunchText(*ParseLaunchFormat(options.emit),
                                                        question.HostOfSlot(), answer.slots));
    if (options.out.empty()) return PrintText(text);
    RETURN_IF_ERROR(WriteTextFile(options.out, text));
  }
  return PrintText(options.json ? MapToJson(question.problem, answer, took)
                                : MapToText(question.problem, answer, took));
}

}  // namespace

void RegisterMapCommand(CLI::App& app, CommandOutcome& outcome) {
  CLI::App* const command =
      app.add_subcommand("map", "The order of ranks that puts heavy communication on short links");
  const auto options = std::make_shared<MapOptions>();
  AddMapOptions(*command, *options);
  command->footer(kHelp);
  command->callback([options, &outcome] {
    CheckUsage(*options);
    outcome.status = RunMap(*options);
  });
}

}  // namespace coppice
