#include "daemon/tools/map_search.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <limits>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "daemon/base/clock.h"
#include "daemon/base/status_macros.h"
#include "daemon/tools/command.h"
#include "proto/text/command_line.h"
#include "proto/text/map_report.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

constexpr absl::Duration kFirstProgress = absl::Milliseconds(1500);
constexpr absl::Duration kProgressEvery = absl::Seconds(1);
constexpr int kProgressShare = 20;  // of the time, one part in so many goes into measuring progress

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

// Takes SIGINT over as long as it lives.
class Interruptible {
 public:
  Interruptible() {
    interrupted = false;
    struct sigaction action = {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = SA_RESETHAND | SA_RESTART;
    sigaction(SIGINT, &action, &before_);
  }
  ~Interruptible() { sigaction(SIGINT, &before_, nullptr); }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  struct sigaction before_ = {};
};

// The newest order that the search offered.
class BestSoFar {
 public:
  void Take(const Mapping& mapping) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    mapping_ = mapping;
  }
  // Measures it; nullopt: there is none.
  std::optional<double> ScoreOf(const MappingProblem& problem, const MappingMeasures& before) const
      ABSL_LOCKS_EXCLUDED(mutex_) {
    std::optional<Mapping> mapping;
    {
      const absl::MutexLock lock(&mutex_);
      mapping = mapping_;
    }
    if (!mapping) return std::nullopt;
    const auto now = Measure(problem, *mapping);
    if (!now.ok()) return std::nullopt;
    return Score(problem.objective, *now, before);
  }

 private:
  mutable absl::Mutex mutex_;
  std::optional<Mapping> mapping_ ABSL_GUARDED_BY(mutex_);
};

// Tells standard error of a search that goes on for over a second until `done`.
void TellProgress(const MappingProblem& problem, const MappingMeasures& before,
                  const MapSearch& search, const BestSoFar& best, absl::Duration begin,
                  absl::Notification& done) {
  if (search.program == nullptr) return;
  absl::Duration wait = kFirstProgress;
  while (!done.WaitForNotificationWithTimeout(wait)) {
    const absl::Duration now = SystemClock().Monotonic();
    const std::string progress = MapProgressText(absl::ToDoubleSeconds(now - begin), search.budget,
                                                 best.ScoreOf(problem, before));
    std::fprintf(stderr, "%s: %s\n", search.program, progress.c_str());
    wait = std::max(kProgressEvery, kProgressShare * (SystemClock().Monotonic() - now));
  }
}

absl::StatusOr<MappingAnswer> Answer(const MappingProblem& problem, const MappingMeasures& before,
                                     const MapSearch& search, const SearchControl& alone,
                                     const SearchControl& control) {
  Mapping start;
  if (search.start != nullptr) {
    AlgorithmOptions options = search.options;
    options.parameters.clear();  // they are the other algorithm's
    ASSIGN_OR_RETURN(Mapped mapped, RunAlgorithm(*search.start, problem, {}, options, alone));
    start = std::move(mapped.mapping);
  }
  return AnswerMapping(problem, before, *search.algorithm, start, search.options, control);
}

// "forwarding tables", "even shares of shortest paths", ...
std::string TrafficName(const MappingProblem& problem) {
  switch (problem.traffic) {
    case TrafficModel::kRoutes:
      return std::string(ToString(problem.snapshot->routes->kind()));
    case TrafficModel::kEvenShortestPaths:
      return "even shares of all shortest paths";
    case TrafficModel::kApproximate:
      return "shortest paths, approximately";
  }
  return "";
}

MapFigures FiguresOf(const MappingMeasures& m) {
  return {m.max_congestion, m.average_dilation, m.hop_bytes,         m.qap_cost,
          m.max_dilation,   m.inter_node_bytes, m.inter_switch_bytes};
}

absl::StatusOr<MapReport> ReportOf(const MapOptions& options, const MappingProblem& problem,
                                   const MapResult& result) {
  const MappingAnswer& answer = result.answer;
  MapReport report;
  report.algorithm = answer.algorithm;
  report.reason = answer.reason;
  report.before = FiguresOf(answer.before);
  report.after = FiguresOf(answer.after);
  report.seconds = absl::ToDoubleSeconds(result.took);
  report.score = answer.score;
  report.permutation = answer.slots;
  report.order = WhereOrderIs(options);
  report.places = problem.places->count();
  if (problem.snapshot != nullptr) report.traffic = TrafficName(problem);
  if (!options.links) return report;
  const size_t most = *options.links > 0 ? *options.links : std::numeric_limits<size_t>::max();
  ASSIGN_OR_RETURN(const std::vector<BusyLink> busiest,
                   FindBusyLinks(problem, answer.mapping, most));
  report.links.emplace();
  for (const BusyLink& link : busiest) {
    report.links->push_back(
        {link.from, link.to, link.bytes, link.capacity_gbps, link.congestion, link.share});
  }
  return report;
}

constexpr char kMapHelp[] =
    "Files (- is standard input):\n"
    "  --pattern   Matrix Market (row r, column s: bytes that rank r - 1 sends to rank\n"
    "              s - 1), METIS graph (an edge's weight: bytes of both directions\n"
    "              together), a dense matrix, one row a line, before it the number of\n"
    "              ranks, or a trace of a run\n"
    "  --hosts     one endpoint a line in rank order: host, host/port or port GUID;\n"
    "              repeated lines are more ranks there; default all hosts of the fabric\n"
    "  --distance  a dense matrix, a row and a column for each host in the order of\n"
    "              --hosts\n"
    "  --load      NODE-GUID PORT UTILISATION a line, as for tree\n"
    "The order is given as the new position of every rank. --emit writes it for a\n"
    "launcher:\n"
    "  rankfile      mpirun --rankfile FILE (Open MPI)\n"
    "  hostfile      mpirun --hostfile FILE --map-by seq (Open MPI)\n"
    "  machinefile   mpiexec -f FILE (MPICH, MVAPICH, Intel MPI)\n"
    "  slurm         SLURM_HOSTFILE=FILE srun --distribution=arbitrary\n"
    "For the jobs, stored patterns and stored orders of a daemon: coppicectl map.";

absl::Status RunMap(const MapOptions& options) {
  if (options.list) return ListAlgorithms(options);
  RETURN_IF_ERROR(CheckOut(options));
  ASSIGN_OR_RETURN(const MapSearch search, MakeMapSearch(options));
  ASSIGN_OR_RETURN(const MapQuestion question, LoadMapQuestion(options));
  ASSIGN_OR_RETURN(const MapResult result, RunMapSearch(question.problem, search));
  return PrintMap(options, question, result);
}

}  // namespace

absl::StatusOr<MapSearch> MakeMapSearch(const MapOptions& options) {
  MapSearch search;
  ASSIGN_OR_RETURN(search.algorithm, FindMappingAlgorithm(options.algorithm));
  if (!options.start.empty()) {
    ASSIGN_OR_RETURN(search.start, FindMappingAlgorithm(options.start));
  }
  search.options.seed = options.seed.value_or(1);
  search.options.threads =
      options.threads.value_or(std::max(1U, std::thread::hardware_concurrency()));
  for (const std::string& text : options.parameters) {
    search.options.parameters.push_back(*ParseParameter(text));
  }
  search.budget = BudgetOf(options);
  return search;
}

absl::StatusOr<MapResult> RunMapSearch(const MappingProblem& problem, const MapSearch& search) {
  ASSIGN_OR_RETURN(const MappingMeasures before, Measure(problem, problem.present()));
  const Interruptible interruptible;
  const absl::Duration begin = SystemClock().Monotonic(), end = begin + search.budget;
  BestSoFar best;
  const auto control = [&](SearchTeam* team) {
    return SearchControl([end] { return interrupted || SystemClock().Monotonic() >= end; },
                         [&best](const Mapping& mapping) { best.Take(mapping); },
                         [end] { return absl::ToDoubleSeconds(end - SystemClock().Monotonic()); },
                         team);
  };
  absl::StatusOr<MappingAnswer> answer = absl::UnknownError("the search has not begun");
  absl::Notification done;
  std::thread worker([&] {
    answer = Answer(problem, before, search, control(nullptr), control(search.team));
    done.Notify();
  });
  TellProgress(problem, before, search, best, begin, done);
  worker.join();
  const absl::Duration took = SystemClock().Monotonic() - begin;
  RETURN_IF_ERROR(answer.status());
  if (interrupted) absl::StrAppend(&answer->reason, "; interrupted, the best so far");
  return MapResult{*std::move(answer), took};
}

absl::Status PrintMap(const MapOptions& options, const MapQuestion& question,
                      const MapResult& result) {
  if (!options.emit.empty()) {
    ASSIGN_OR_RETURN(
        const std::string text,
        LaunchText(*ParseLaunchFormat(options.emit), question.HostOfSlot(), result.answer.slots));
    ASSIGN_OR_RETURN(const bool is_all, WriteOrder(options, text));
    if (is_all) return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const MapReport report, ReportOf(options, question.problem, result));
  return PrintText(options.json ? MapJson(report) : MapText(report, IsForPeople()));
}

absl::Status ListAlgorithms(const MapOptions& options) {
  std::vector<AlgorithmLine> lines;
  for (const MappingAlgorithm* algorithm : MappingAlgorithms()) {
    AlgorithmLine& line = lines.emplace_back();
    line.name = std::string(algorithm->name);
    line.source = std::string(algorithm->source);
    line.refines = algorithm->refines;
    for (const AlgorithmParameter& p : algorithm->parameters) {
      line.options.push_back(
          {std::string(p.name), p.preset, p.least, p.greatest, std::string(p.meaning)});
    }
  }
  return PrintText(options.json ? AlgorithmsJson(lines) : AlgorithmsText(lines, IsForPeople()));
}

// --- coppice-plan map ---

void RegisterMapCommand(CLI::App& app, PlanCommand& chosen) {
  CLI::App* const command =
      app.add_subcommand("map", "The order of ranks that puts heavy communication on short links");
  const auto options = std::make_shared<MapOptions>();
  AddMapOptions(*command, *options);
  command->footer(kMapHelp);
  command->callback([options, command, &chosen] {
    CheckUsage(*command, *options);
    chosen.json = options->json;
    chosen.run = [options] { return RunMap(*options); };
  });
}

}  // namespace coppice
