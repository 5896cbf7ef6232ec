// coppicectl map: an order of a job's ranks for its communication pattern, found by the daemon on
// the fabric as it is now. Options that `coppice-plan map` has, too, are in proto/text/map_words.h.
#include <signal.h>

#include <atomic>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "google/protobuf/util/time_util.h"
#include "proto/text/command_line.h"
#include "proto/text/map_report.h"
#include "proto/text/map_words.h"
#include "proto/text/option_words.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

struct MapOptions : MapWords {
  v1::MapRanksRequest request;
  std::string evaluate;
  bool stored = false;
  const CLI::App* command = nullptr;
};

// The daemon takes no weights at all for congestion, but whoever writes them down means them.
absl::Status FillObjective(const std::string& text, v1::MappingObjective& objective) {
  const MappingWeights weights = *ParseObjective(text);
  objective.set_congestion(weights.congestion);
  objective.set_dilation(weights.dilation);
  objective.set_qap(weights.qap);
  if (objective.congestion() != 0 || objective.dilation() != 0 || objective.qap() != 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--objective ", text,
      ": the objective weighs nothing; give congestion, dilation or qap a weight above 0"));
}

absl::Status FillDistance(const std::string& text, v1::MappingTask& task) {
  if (text.empty() || text == "hops") return absl::OkStatus();
  if (text == "routes") {
    task.set_distance(v1::PLACE_DISTANCE_ROUTES);
  } else if (text == "measured") {
    task.set_distance(v1::PLACE_DISTANCE_MEASURED);
  } else {
    return FillInputFile(text, *task.mutable_distance_file());
  }
  return absl::OkStatus();
}

absl::Status FillTask(const MapOptions& options, v1::MappingTask& task) {
  absl::Status status = FillNodes(options.hosts, *task.mutable_hosts());
  if (status.ok() && !options.pattern.empty()) {
    status = FillInputFile(options.pattern, *task.mutable_pattern_file());
  }
  if (status.ok() && !options.messages.empty()) {
    status = FillInputFile(options.messages, *task.mutable_messages_file());
  }
  if (status.ok()) status = FillDistance(options.distance, task);
  if (status.ok() && !options.objective.empty()) {
    status = FillObjective(options.objective, *task.mutable_objective());
  }
  if (options.ranks_per_host) task.set_ranks_per_host(*options.ranks_per_host);
  v1::TrafficModel traffic = v1::TRAFFIC_MODEL_UNSPECIFIED;  // the daemon's preset
  v1::TrafficModel_Parse("TRAFFIC_MODEL_" + absl::AsciiStrToUpper(options.traffic), &traffic);
  task.set_traffic(traffic);
  return status;
}

MapFigures FiguresOf(const v1::MappingMeasures& m) {
  return {m.max_congestion(), m.average_dilation(), m.hop_bytes(),         m.qap_cost(),
          m.max_dilation(),   m.inter_node_bytes(), m.inter_switch_bytes()};
}

std::vector<uint32_t> OrderOf(const google::protobuf::RepeatedField<uint32_t>& permutation) {
  return {permutation.begin(), permutation.end()};
}

MapReport ReportOf(const v1::MappingResult& result) {
  MapReport report;
  report.algorithm = result.algorithm();
  report.reason = result.reason();
  report.before = FiguresOf(result.before());
  report.after = FiguresOf(result.after());
  report.seconds = result.seconds();
  report.score = result.score();
  report.permutation = OrderOf(result.permutation());
  report.fabric_version = result.fabric_version();
  return report;
}

void PrintTable(const TextTable& table) {
  for (const std::string& line : table.Lines(IsForPeople())) std::cout << line << "\n";
}

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

// From here on SIGINT asks for the best so far; a second one ends the program.
void TakeInterrupts() {
  struct sigaction action = {};
  sigaction(SIGINT, nullptr, &action);
  if (action.sa_handler == SIG_IGN) return;  // as a shell's background commands have it
  action = {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

// What an interrupted search had: the daemon measures it once more.
absl::StatusOr<v1::MappingResult> ResultOf(Connection& connection,
                                           const v1::MapRanksRequest& request,
                                           const v1::MapRanksProgress& best, double seconds) {
  v1::EvaluateMappingRequest evaluate;
  *evaluate.mutable_task() = request.task();
  *evaluate.mutable_permutation() = best.permutation();
  evaluate.set_emit(request.emit());
  const auto measured = connection.Call(&MappingStub::EvaluateMapping, evaluate);
  if (!measured.ok()) return measured.status();
  v1::MappingResult result;
  result.set_algorithm(request.algorithm().empty() ? "auto" : request.algorithm());
  *result.mutable_before() = measured->before();
  *result.mutable_after() = measured->after();
  *result.mutable_permutation() = best.permutation();
  result.set_seconds(seconds);
  result.set_reason("Interrupted: the best so far.");
  result.set_fabric_version(measured->fabric_version());
  result.set_score(measured->score());
  result.set_launch_text(measured->launch_text());
  return result;
}

// The daemon's result, or after SIGINT the best that it has told of. Before it has told of any
// SIGINT ends the program.
absl::StatusOr<v1::MappingResult> FindOrder(Connection& connection, const MapOptions& options) {
  v1::MapRanksRequest request = options.request;
  request.set_stream_orders(true);
  absl::StatusOr<v1::MappingResult> result =
      absl::DataLossError("the daemon's answer ended without a result");
  v1::MapRanksProgress best;
  double seconds = 0;
  // No deadline: the budget is one.
  const auto each = [&](const v1::MapRanksUpdate& update) {
    if (update.has_result()) result = update.result();
    if (!update.has_progress()) return true;
    seconds = Seconds(update.progress().elapsed());
    if (update.progress().permutation_size() > 0) {
      if (best.permutation().empty()) TakeInterrupts();
      best = update.progress();
    }
    ShowProgress(MapProgressText(seconds, BudgetOf(options), update.progress().score()));
    return !interrupted;
  };
  const absl::Status status = connection.Watch(&MappingStub::MapRanks, request, each);
  ShowProgress("");
  if (result.ok() || (status.ok() && !interrupted)) return result;
  if (!interrupted) return status;
  return ResultOf(connection, request, best, seconds);
}

// The order as a launcher reads it, and what `report(*answer)` tells of it, as they are wanted.
template <class Answer, class Report>
int ShowOrder(const MapOptions& options, const absl::StatusOr<Answer>& answer,
              const Report& report) {
  if (!answer.ok()) return Fail(answer.status());
  const absl::StatusOr<bool> is_all = WriteOrder(options, answer->launch_text());
  if (!is_all.ok()) return Fail(is_all.status());
  if (!*is_all) report(*answer);
  return 0;
}

int Search(Session& session, Connection& connection, const MapOptions& options) {
  return ShowOrder(options, FindOrder(connection, options), [&](const auto& result) {
    MapReport report = ReportOf(result);
    report.order = WhereOrderIs(options);
    std::cout << (session.json ? MapJson(report) : MapText(report, IsForPeople()));
  });
}

void PrintEvaluation(const v1::MappingEvaluation& answer) {
  PrintTable(FiguresTable(FiguresOf(answer.before()), FiguresOf(answer.after())));
  std::vector<MapLink> links;
  for (const v1::BusyLink& link : answer.busiest()) {
    const double congestion = link.capacity_gbps() > 0 ? link.bytes() / link.capacity_gbps() : 0;
    const double most = links.empty() ? congestion : links.front().congestion;
    links.push_back({.from = link.from(),
                     .to = link.to(),
                     .bytes = link.bytes(),
                     .capacity_gbps = link.capacity_gbps(),
                     .congestion = congestion,
                     .share = most > 0 ? congestion / most : 0});
  }
  std::cout << "\n";
  PrintTable(LinksTable(links));
}

int Evaluate(Session& session, Connection& connection, const MapOptions& options) {
  v1::EvaluateMappingRequest request;
  *request.mutable_task() = options.request.task();
  const absl::StatusOr<std::string> text = ReadTextFile(options.evaluate);
  if (!text.ok()) return Fail(text.status());
  request.set_emit(options.request.emit());
  for (const absl::string_view word :
       absl::StrSplit(*text, absl::ByAnyChar(" \t\r\n,[]"), absl::SkipEmpty())) {
    uint32_t position = 0;
    if (!absl::SimpleAtoi(word, &position)) {
      return Fail(absl::InvalidArgumentError(absl::StrCat(
          options.evaluate, ": \"", word, "\" is no position; write a number for each rank")));
    }
    request.add_permutation(position);
  }
  return ShowOrder(options, connection.Call(&MappingStub::EvaluateMapping, request),
                   [&](const v1::MappingEvaluation& answer) {
                     session.json ? PrintJson(std::cout, answer) : PrintEvaluation(answer);
                   });
}

int List(Session& session, Connection& connection) {
  const auto listed = connection.Call(&MappingStub::ListAlgorithms);
  if (!listed.ok()) return Fail(listed.status());
  std::vector<AlgorithmLine> lines;
  for (const v1::Algorithm& algorithm : listed->algorithms()) {
    lines.push_back({algorithm.name(), algorithm.source(), algorithm.refines(), {}});
    for (const v1::AlgorithmOption& o : algorithm.options()) {
      lines.back().options.push_back({o.name(), o.preset(), o.least(), o.greatest(), o.meaning()});
    }
  }
  std::cout << (session.json ? AlgorithmsJson(lines) : AlgorithmsText(lines, IsForPeople()));
  return 0;
}

// What coppice-search left for the job.
int ShowStored(Session& session, Connection& connection, const MapOptions& options) {
  v1::GetOrderRequest request;
  request.set_job_id(options.request.task().job_id());
  request.set_emit(options.emit);
  return ShowOrder(options, connection.Call(&MappingStub::GetOrder, request),
                   [&](const auto& order) {
                     if (session.json) return PrintJson(std::cout, order);
                     if (!order.note().empty()) std::cout << order.note() << "\n";
                     std::cout << MovesText(OrderOf(order.permutation())) << "; "
                               << WhereOrderIs(options) << "\n";
                   });
}

int Map(Session& session, Connection& connection, MapOptions& options) {
  if (options.list) return List(session, connection);
  if (const absl::Status may = CheckOut(options); !may.ok()) return Fail(may);
  if (options.stored) return ShowStored(session, connection, options);
  v1::MapRanksRequest& request = options.request;
  const absl::Status status = FillTask(options, *request.mutable_task());
  if (!status.ok()) return Fail(status);
  request.set_algorithm(options.algorithm);
  request.set_emit(options.emit);
  if (options.seed) request.set_seed(*options.seed);
  if (!options.budget.empty()) {
    *request.mutable_budget() = google::protobuf::util::TimeUtil::NanosecondsToDuration(
        absl::ToInt64Nanoseconds(BudgetOf(options)));
  }
  for (const std::string& option : options.parameters) {
    const auto [name, value] = *ParseParameter(option);
    (*request.mutable_options())[name] = value;
  }
  if (!options.evaluate.empty()) return Evaluate(session, connection, options);
  return Search(session, connection, options);
}

void CheckUsage(const MapOptions& options) {
  const CLI::App& command = *options.command;
  CheckMapWords(command, options);
  if (options.list) return;
  const v1::MappingTask& task = options.request.task();
  if (options.stored) {
    CheckNoneBut(command, "--stored", {"--job", "--emit", "--out", "--json"});
    if (task.job_id().empty()) throw CLI::RequiredError("--job");
    return;
  }
  if (!options.evaluate.empty()) {
    CheckNoneOf(command, "--evaluate", {"--algorithm", "--budget", "--seed", "--option"});
  }
  if (task.job_id().empty() && options.hosts.empty()) throw CLI::RequiredError("--job or --hosts");
  if (options.pattern.empty() && task.pattern_name().empty()) {
    throw CLI::RequiredError("--pattern or --application");
  }
}

struct PatternFiles {
  v1::PutPatternRequest request;
  std::string file, messages;
};

template <class Patterns>
void PrintPatterns(const Session& session, const Patterns& patterns) {
  PrintRows(session,
            {"APPLICATION", "OWNER", "RANKS", "PAIRS", "BYTES", "MESSAGES", "STORED", "SINCE"},
            {6, 7}, patterns, [](const v1::StoredPattern& pattern) {
              return CellsOf(pattern.name(), pattern.owner(), pattern.rank_count(),
                             pattern.pair_count(), absl::StrFormat("%.6g", pattern.total_bytes()),
                             absl::StrFormat("%.6g", pattern.total_messages()),
                             pattern.stored_bytes(), TimeText(pattern.create_time()));
            });
}

int ShowPattern(Session& session, const absl::StatusOr<v1::StoredPattern>& pattern) {
  return Show(session, pattern, [&](const v1::StoredPattern& kept) {
    PrintPatterns(session, absl::MakeConstSpan(&kept, 1));
  });
}

int PutPattern(Session& session, Connection& connection, PatternFiles& files) {
  absl::Status status = FillInputFile(files.file, *files.request.mutable_pattern_file());
  if (status.ok() && !files.messages.empty()) {
    status = FillInputFile(files.messages, *files.request.mutable_messages_file());
  }
  if (!status.ok()) return Fail(status);
  const auto pattern = connection.Call(&MappingStub::PutPattern, files.request);
  if (pattern.ok()) session.done = absl::StrCat("pattern ", pattern->name(), " is kept");
  return ShowPattern(session, pattern);
}

int ListPatterns(Session& session, Connection& connection) {
  return Show(session, ListAll(connection, &MappingStub::ListPatterns),
              [&](const auto& list) { PrintPatterns(session, list.patterns()); });
}

}  // namespace

void AddMapCommand(CLI::App& app, Session& session) {
  auto [command, options] = AddCommand<MapOptions>(
      app, session, "map", "Find an order of ranks that puts heavy traffic on short, idle links",
      Map, CheckUsage);
  options.command = command;
  v1::MappingTask& task = *options.request.mutable_task();
  AddMapWords(*command, options);
  // What only a daemon knows.
  AddText(*command, "--job", *task.mutable_job_id(), "Map the ranks of this job, on its hosts")
      ->excludes("--hosts");
  AddText(*command, "--application", *task.mutable_pattern_name(),
          "Instead of --pattern the one that is stored under this name")
      ->excludes("--pattern");
  command->get_option("--messages")->needs("--pattern");
  AddField(*command, "--ignore-load", task, &v1::MappingTask::set_ignore_load,
           "Count links with their whole capacity, whatever else they carry");
  AddText(*command, "--evaluate", options.evaluate,
          "Measure this permutation instead: a file with the new position of each rank");
  command->add_flag("--stored", options.stored,
                    "Search no more: the order that coppice-search left for --job");
  command->footer("Without a daemon, on files: coppice-plan map.");
}

// coppicectl pattern: communication patterns that the daemon keeps by the name of their
// application.

void AddPatternCommands(CLI::App& app, Session& session) {
  CLI::App* patterns =
      app.add_subcommand("pattern", "Communication patterns that are kept for later runs");
  patterns->require_subcommand(1);
  auto [put, files] = AddCommand<PatternFiles>(
      *patterns, session, "put", "Keep a pattern, in place of that name's", PutPattern);
  put->add_option("name", *files.request.mutable_name(), "Of the application")->required();
  put->add_option("file", files.file, "As map --pattern takes it; - for stdin")->required();
  put->add_option("--messages", files.messages, "Matrix of message counts beside it");
  AddWideOption(
      *AddCommand(*patterns, session, "list", "Everybody's patterns, by name", ListPatterns),
      session);
  constexpr char kName[] = "Of the application; another's: OWNER:NAME";
  AddWideOption(*AddCommandOn(*patterns, session, "show", "One pattern", "name", kName,
                              [](Session& s, Connection& c, const std::string& name) {
                                v1::GetPatternRequest get;
                                get.set_name(name);
                                return ShowPattern(s, c.Call(&MappingStub::GetPattern, get));
                              }),
                session);
  AddCommandOn(*patterns, session, "delete", "Forget a pattern", "name", kName,
               [](Session& s, Connection& c, const std::string& name) {
                 v1::DeletePatternRequest drop;
                 drop.set_name(name);
                 return Show(s, c.Call(&MappingStub::DeletePattern, drop), [](const auto&) {});
               });
}

}  // namespace coppice
