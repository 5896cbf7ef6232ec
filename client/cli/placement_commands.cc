// coppicectl placement ...: which nodes to give a job. Scripts of schedulers call these, so each is
// one call to the daemon.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "proto/text/option_words.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

// --- What is asked of a placement: its options, and what their words mean ---

struct PlacementRequestOptions {
  v1::PlacementRequest request;
  std::string candidates, include, avoid, pattern, budget, weights;
};

// Of the message's fields, as the command line writes them.
std::string TermNames() {
  const google::protobuf::Descriptor& terms = *v1::PlacementObjective::descriptor();
  std::vector<std::string> names;
  for (int i = 0; i < terms.field_count(); ++i) {
    names.push_back(absl::StrReplaceAll(std::string(terms.field(i)->name()), {{"_", "-"}}));
  }
  return absl::StrJoin(names, ", ");
}

absl::Status Refuse(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("--weights ", text, ": ", why));
}

absl::Status FillPattern(const std::string& pattern, v1::PlacementTraffic& traffic) {
  std::error_code unknown;
  if (pattern != "-" && !std::filesystem::exists(pattern, unknown)) {
    traffic.set_pattern_name(pattern);
    return absl::OkStatus();
  }
  return FillInputFile(pattern, *traffic.mutable_pattern_file());
}

// `options` outlives the command.
void AddPlacementRequestOptions(CLI::App& command, PlacementRequestOptions& options) {
  using Constraints = v1::PlacementConstraints;
  using Traffic = v1::PlacementTraffic;
  Constraints& c = *options.request.mutable_constraints();
  Traffic& traffic = *options.request.mutable_traffic();
  AddField(command, "--nodes,--count", c, &Constraints::set_node_count, "How many nodes")
      ->required();
  command.add_option(
      "--candidates", options.candidates,
      std::string("Nodes to choose from, ") + kNodeWordsHelp + "; default: all that nobody holds");
  command.add_option("--include", options.include, "Nodes that must be among them");
  command.add_option("--avoid", options.avoid, "Nodes that must not");
  AddField(command, "--nodes-per-leaf", c, &Constraints::set_nodes_per_leaf,
           "Exactly so many on every leaf switch used, the last excepted");
  AddField(command, "--max-nodes-per-leaf", c, &Constraints::set_max_nodes_per_leaf,
           "At most so many on a leaf switch");
  AddField(command, "--max-leaf-switches", c, &Constraints::set_max_leaf_switches,
           "On at most so many leaf switches");
  AddField(command, "--min-leaf-switches", c, &Constraints::set_min_leaf_switches,
           "Spread over at least so many leaf switches");
  AddField(command, "--min-pods", c, &Constraints::set_min_pods, "Over at least so many pods");
  AddField(command, "--same-pod", c, &Constraints::set_same_pod, "All in one pod");
  AddField(command, "--exclusive-switches", c, &Constraints::set_exclusive_switches,
           "On leaf switches that nobody else has nodes on");
  CLI::Option* const pattern =
      command.add_option("--pattern", options.pattern,
                         "Of the job's communication: a file that is there, else the name of a "
                         "stored one");
  AddField(command, "--ranks-per-node", traffic, &Traffic::set_ranks_per_node,
           "Ranks on each node; default 1");
  AddField(command, "--trees", traffic, &Traffic::set_trees,
           "Aggregation trees of type II that the job will ask for");
  command.add_option("--weights", options.weights,
                     "Of the terms of the cost, as leaf-switches=1,distance=2; terms not named "
                     "weigh nothing; default: the daemon's. Terms: " +
                         TermNames());
  command.add_option("--budget", options.budget, "Time of a search with a pattern; default 1s")
      ->needs(pattern);
  command.add_option("--account", *options.request.mutable_account(),
                     "The account that pays; default: the user's own (coppicectl account list)");
  AddPartitionOption(command, "the one that all candidates share",
                     [&options](uint32_t partition) { options.request.set_partition(partition); });
  AddField(command, "--seed", options.request, &v1::PlacementRequest::set_seed, "Of a search");
}

// Reads the words into options.request. INVALID_ARGUMENT names option and word; NOT_FOUND: a file.
absl::Status CompleteRequest(PlacementRequestOptions& options) {
  v1::PlacementConstraints& c = *options.request.mutable_constraints();
  absl::Status status = FillNodes(options.candidates, *c.mutable_candidates());
  status.Update(FillNodes(options.include, *c.mutable_include()));
  status.Update(FillNodes(options.avoid, *c.mutable_avoid()));
  if (!options.pattern.empty()) {
    status.Update(FillPattern(options.pattern, *options.request.mutable_traffic()));
  }
  if (!options.weights.empty()) {
    const auto weights = ParseWeights(options.weights);
    status.Update(weights.status());
    if (weights.ok()) *options.request.mutable_objective() = *weights;
  }
  status.Update(FillDuration("--budget", options.budget, options.request,
                             &v1::PlacementRequest::mutable_budget));
  return status;
}

// --- How placements are shown ---

std::string TermText(const v1::Placement& placement) {
  if (placement.state() != v1::PLACEMENT_STATE_HELD) return "-";
  return absl::StrCat(placement.term_left().seconds(), " of ", placement.term().seconds(), " s");
}

double NumberOf(const v1::PlacementMeasures& measures,
                const google::protobuf::FieldDescriptor& field) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& fields = *measures.GetReflection();
  if (field.cpp_type() == Field::CPPTYPE_UINT32) return fields.GetUInt32(measures, &field);
  if (field.cpp_type() == Field::CPPTYPE_INT32) return fields.GetInt32(measures, &field);
  return fields.GetDouble(measures, &field);
}

// What came after the measures that have words of their own: a line each, unless it is 0.
void PrintOtherMeasures(const v1::PlacementMeasures& measures) {
  const google::protobuf::Descriptor& all = *measures.GetDescriptor();
  for (int i = 0; i < all.field_count(); ++i) {
    if (all.field(i)->number() <= v1::PlacementMeasures::kCostFieldNumber) continue;
    const double value = NumberOf(measures, *all.field(i));
    if (value == 0) continue;
    const std::string name = absl::StrReplaceAll(all.field(i)->name(), {{"_", " "}});
    std::cout << absl::StrFormat("%-10s %s\n", name, Fixed(value));
  }
}

// The columns that -o wide adds: to a listing since when, and the nodes; to what was asked for just
// now what is alike for all.
const std::vector<size_t> kRestOfListing = {7, 8}, kRestOfGranted = {2, 3, 6, 7};

template <class Placements>
void PrintPlacements(const Session& session, const Placements& placements,
                     std::vector<size_t> rest) {
  PrintRows(session,
            {"PLACEMENT", "NAME", "OWNER", "STATE", "JOB", "NODES", "TERM LEFT", "SINCE", "LIST"},
            std::move(rest), placements, [](const v1::Placement& p) {
              return CellsOf(p.id(), p.display_name(), p.owner(), Word(p.state()),
                             p.job_id().empty() ? "-" : p.job_id(), p.nodes_size(), TermText(p),
                             TimeText(p.create_time()), p.node_list());
            });
}

// What it costs, and why.
void PrintMeasures(const v1::Placement& placement) {
  const v1::PlacementMeasures& m = placement.measures();
  PrintField(std::cout, "nodes", placement.node_list());
  if (!placement.account().empty()) PrintField(std::cout, "account", placement.account());
  if (placement.partition() != 0) {
    PrintField(std::cout, "partition", PartitionText(placement.partition()));
  }
  std::cout << "switches   " << Counted(m.leaf_switches(), "leaf switch", "es") << " of at least "
            << m.least_leaf_switches() << ", " << Counted(m.pods(), "pod") << "\n"
            << "distance   " << Fixed(m.mean_distance()) << " links between two of them\n"
            << "load       " << Fixed(100 * m.mean_load(), 1) << " %, most "
            << Fixed(100 * m.most_load(), 1) << " %; " << Counted(m.shared_links(), "link")
            << " shared with others\n";
  PrintOtherMeasures(m);
  std::cout << "cost       " << Fixed(m.cost()) << (placement.is_optimal() ? ", optimal" : "")
            << "\n";
  if (!placement.reason().empty()) PrintField(std::cout, "reason", placement.reason());
}

// All of it, or why there is none.
int ShowPlacement(Session& session, const absl::StatusOr<v1::Placement>& placement) {
  return Show(session, placement, [&](const v1::Placement& shown) {
    PrintPlacements(session, absl::MakeConstSpan(&shown, 1), kRestOfListing);
    PrintMeasures(shown);
  });
}

// --- The commands ---

constexpr int kMaxColumns = 16;  // of a matrix for people

struct CreateOptions : PlacementRequestOptions {
  v1::CreatePlacementRequest create;
  std::string term;
};

int Create(Session& session, Connection& connection, CreateOptions& options) {
  absl::Status status = CompleteRequest(options);
  status.Update(FillDuration("--term", options.term, options.create,
                             &v1::CreatePlacementRequest::mutable_term));
  if (!status.ok()) return Fail(status);
  *options.create.mutable_placement() = options.request;
  const auto placement = connection.Call(&PlacementsStub::CreatePlacement, options.create);
  if (placement.ok()) {
    session.done = absl::StrCat("placement ", placement->id(), " holds its nodes");
  }
  return ShowPlacement(session, placement);
}

int Advise(Session& session, Connection& connection, PlacementRequestOptions& options) {
  if (const absl::Status status = CompleteRequest(options); !status.ok()) return Fail(status);
  v1::AdvisePlacementRequest request;
  *request.add_requests() = options.request;
  const auto answer = connection.Call(&PlacementsStub::AdvisePlacement, request);
  if (!answer.ok()) return Fail(answer.status());
  const v1::Placement& advice = answer->placements(0);
  if (session.json) PrintJson(std::cout, advice);
  if (!advice.why_not().empty()) return Fail(absl::ResourceExhaustedError(advice.why_not()));
  if (!session.json) PrintMeasures(advice);
  return 0;
}

int ListPlacements(Session& session, Connection& connection) {
  return Show(session, ListAll(connection, &PlacementsStub::ListPlacements),
              [&](const auto& all) { PrintPlacements(session, all.placements(), kRestOfListing); });
}

// --- Start ---

struct StartOptions {
  v1::StartPlacementRequest request;
  std::string lease;
  bool keep = false;
};

// Renews the job's lease until the job is over. A daemon that is away for a while is waited for.
int Keep(Connection& connection, const v1::Job& job) {
  const auto pause = std::chrono::milliseconds(
      (job.lease().seconds() * 1000 + job.lease().nanos() / 1'000'000) / 3 + 1);
  for (;;) {
    std::this_thread::sleep_for(pause);
    const auto response = connection.KeepAlive(job.id());
    if (!response.ok() && !absl::IsUnavailable(response.status()) &&
        !absl::IsDeadlineExceeded(response.status())) {
      return Fail(response.status());
    }
    if (response.ok() && response->state() != v1::JOB_STATE_ACTIVE) return 0;
  }
}

int Start(Session& session, Connection& connection, StartOptions& options) {
  const absl::Status lease = FillDuration("--lease", options.lease, options.request,
                                          &v1::StartPlacementRequest::mutable_lease);
  if (!lease.ok()) return Fail(lease);
  const auto job = connection.Call(&PlacementsStub::StartPlacement, options.request);
  const int status = Show(session, job, [](const v1::Job& started) {
    Table table({"JOB", "NAME", "OWNER", "STATE", "RANKS", "LEASE"});
    table.Add(CellsOf(started.id(), started.display_name(), started.owner(), Word(started.state()),
                      started.rank_count(), absl::StrCat(started.lease().seconds(), " s")));
    table.Print(std::cout);
  });
  if (!job.ok()) return status;
  session.done = absl::StrCat("job ", job->id(), " is registered");
  // Nobody could end a job whose number nobody has read: its lease is to run out.
  return std::cout.flush() && options.keep ? Keep(connection, *job) : 0;
}

void AddStart(CLI::App& placement, Session& session) {
  using Request = v1::StartPlacementRequest;
  auto [start, options] =
      AddCommand<StartOptions>(placement, session, "start", "Register a job on the nodes", Start,
                               [&session](StartOptions& asked) { session.endless = asked.keep; });
  Request& request = options.request;
  start->add_option("PLACEMENT", *request.mutable_id(), "Its number")->required();
  AddField(*start, "--arrange-ranks", request, &Request::set_arrange_ranks,
           "Ranks in the order found for the placement's pattern");
  AddField(*start, "--ranks-per-node", request, &Request::set_ranks_per_node,
           "Ranks on each node; default: as the placement was asked for");
  start->add_option("--lease", options.lease,
                    "Term of the job's lease: 90s, 10m, 24h; default the daemon's, as a rule 60s");
  start->add_option("--name", *request.mutable_display_name(),
                    "What to call the job; default: as the placement");
  start->add_option("--request-id", *request.mutable_request_id(), "Of the job");
  start->add_flag("--keep", options.keep, "Stay and renew the job's lease until the job is over");
}

int Release(Session& session, Connection& connection, const std::string& id) {
  return Show(session, CallOn(connection, id, &PlacementsStub::ReleasePlacement),
              [&](auto&) { std::cout << "placement " << id << " is released\n"; });
}

// --- Distances ---

struct DistanceOptions {
  v1::GetNodeDistancesRequest request;
  std::string nodes;
};

int Distances(Session& session, Connection& connection, DistanceOptions& options) {
  const absl::Status read = FillNodes(options.nodes, *options.request.mutable_nodes());
  if (!read.ok()) return Fail(read);
  const auto answer = connection.Call(&PlacementsStub::GetNodeDistances, options.request);
  if (!answer.ok() || session.json) return Show(session, answer, [](auto&) {});
  const int count = answer->nodes_size();
  if (count > kMaxColumns) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        count, " nodes are a table too wide to read; take --json or at most ", kMaxColumns)));
  }
  std::vector<std::string> heading = {"", "LINKS TO"};  // a node by its number: names are long
  for (int column = 0; column < count; ++column) heading.push_back(absl::StrCat(column));
  Table table(std::move(heading));
  for (int row = 0; row < count; ++row) {
    std::vector<std::string> cells = {absl::StrCat(row), answer->nodes(row)};
    for (int column = 0; column < count; ++column) {
      const uint32_t hops = answer->hops(row * count + column);
      cells.push_back(hops == UINT32_MAX ? "-" : absl::StrCat(hops));
    }
    table.Add(std::move(cells));
  }
  table.Print(std::cout);
  return 0;
}

struct PlacementBatchOptions {
  std::string file;
  bool advise = false;
};

absl::StatusOr<v1::BatchCreatePlacementsRequest> ReadRequests(const std::string& path) {
  const auto text = ReadTextFile(path);
  if (!text.ok()) return text.status();
  v1::BatchCreatePlacementsRequest request;
  const auto read = google::protobuf::util::JsonStringToMessage(*text, &request);
  if (!read.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", std::string(read.message()),
                     "; write {\"requests\": [{\"placement\": {\"constraints\": "
                     "{\"node_count\": 4}}}]}, fields as in placements.proto"));
  }
  if (request.requests_size() > 0) return request;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": no \"requests\"; write one for each placement"));
}

int CreateAll(Session& session, Connection& connection,
              const v1::BatchCreatePlacementsRequest& request) {
  const auto made = connection.Call(&PlacementsStub::BatchCreatePlacements, request);
  if (made.ok()) {
    session.done =
        absl::StrCat("nodes are held by ", Counted(made->placements_size(), "placement"));
  }
  return Show(session, made, [&](const auto& answer) {
    PrintPlacements(session, answer.placements(), kRestOfGranted);
  });
}

void PrintAdvice(const v1::AdvisePlacementResponse& answer) {
  Table table({"REQUEST", "NODES", "LEAF SWITCHES", "PODS", "COST", "LIST"});
  for (int i = 0; i < answer.placements_size(); ++i) {
    const v1::Placement& p = answer.placements(i);
    if (!p.why_not().empty()) continue;
    table.Add(CellsOf(i, p.nodes_size(), p.measures().leaf_switches(), p.measures().pods(),
                      Fixed(p.measures().cost()), p.node_list()));
  }
  table.Print(std::cout);
}

int AdviseAll(Session& session, Connection& connection,
              const v1::BatchCreatePlacementsRequest& batch) {
  v1::AdvisePlacementRequest request;
  for (const v1::CreatePlacementRequest& one : batch.requests()) {
    *request.add_requests() = one.placement();
  }
  const auto answer = connection.Call(&PlacementsStub::AdvisePlacement, request);
  int status = Show(session, answer, PrintAdvice);
  if (!answer.ok()) return status;
  for (int i = 0; i < answer->placements_size(); ++i) {
    const std::string& why_not = answer->placements(i).why_not();
    if (why_not.empty()) continue;
    status = Fail(absl::ResourceExhaustedError(absl::StrCat("requests[", i, "]: ", why_not)));
  }
  return status;
}

}  // namespace

absl::StatusOr<v1::PlacementObjective> ParseWeights(absl::string_view text) {
  v1::PlacementObjective objective;
  const google::protobuf::Descriptor& terms = *objective.GetDescriptor();
  const google::protobuf::Reflection& reflection = *objective.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> named;
  double sum = 0;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> words = absl::StrSplit(part, '=');
    if (words.size() != 2) {
      return Refuse(text, absl::StrCat("\"", part, "\" is no weight; write it as distance=2"));
    }
    const std::string name =
        absl::StrReplaceAll(absl::StripAsciiWhitespace(words[0]), {{"-", "_"}});
    const google::protobuf::FieldDescriptor* const term = terms.FindFieldByName(name);
    if (term == nullptr) {
      return Refuse(text,
                    absl::StrCat("there is no term \"", words[0], "\"; there are ", TermNames()));
    }
    if (absl::c_linear_search(named, term)) {
      return Refuse(text, absl::StrCat(words[0], " is named twice"));
    }
    named.push_back(term);
    double weight = 0;
    if (!absl::SimpleAtod(words[1], &weight) || !std::isfinite(weight) || weight < 0) {
      return Refuse(text, absl::StrCat("the weight \"", words[1], "\" of ", words[0],
                                       " is not a number from 0 up"));
    }
    reflection.SetDouble(&objective, term, weight);
    sum += weight;
  }
  if (sum > 0) return objective;
  return Refuse(text, "all are 0, which stands for the daemon's weights; give one above 0");
}

void AddPlacementCommands(CLI::App& app, Session& session) {
  CLI::App* placement = app.add_subcommand("placement", "Choose and hold nodes for jobs to come");
  if (session.is_offline) {
    placement->alias("place")->description(
        "Choose and hold nodes for jobs to come; place is placement advise");
  }
  placement->require_subcommand(1);
  auto [create, wanted] = AddCommand<CreateOptions>(*placement, session, "create",
                                                    "Choose nodes and hold them", Create);
  AddWideOption(*create, session);
  AddPlacementRequestOptions(*create, wanted);
  create->add_option("--term", wanted.term,
                     "How long they are held: 90s, 10m, 24h; default the daemon's, as a rule 5m");
  create->add_option("--name", *wanted.create.mutable_display_name(), "What to call it");
  create->add_option("--request-id", *wanted.create.mutable_request_id(),
                     "Makes a retry harmless: the same id holds nodes once");
  auto [advise, asked] = AddCommand<PlacementRequestOptions>(*placement, session, "advise",
                                                             "Choose nodes, take nothing", Advise);
  AddPlacementRequestOptions(*advise, asked);
  AddPlacementBatchCommand(*placement, session);
  AddWideOption(
      *AddCommand(*placement, session, "list", "Placements that hold nodes", ListPlacements),
      session);
  AddStart(*placement, session);
  const auto with_id = [&](const char* name, const char* help, auto action) {
    return AddCommandOn(*placement, session, name, help, "PLACEMENT", "Its number", action);
  };
  AddWideOption(*with_id("show", "One placement",
                         [](Session& s, Connection& c, const std::string& id) {
                           return ShowPlacement(s, CallOn(c, id, &PlacementsStub::GetPlacement));
                         }),
                session);
  AddWideOption(*with_id("renew", "Begin the term anew",
                         [](Session& s, Connection& c, const std::string& id) {
                           return ShowPlacement(s, CallOn(c, id, &PlacementsStub::RenewPlacement));
                         }),
                session);
  with_id("release", "Release the nodes", Release);
  auto [distances, options] = AddCommand<DistanceOptions>(
      *placement, session, "distances", "How many links nodes are from each other", Distances);
  CLI::Option_group* const which = distances->add_option_group("nodes", "one of them is needed");
  which->require_option(1);
  which->add_option("--nodes", options.nodes, std::string("Nodes, ") + kNodeWordsHelp);
  which->add_option("--job", *options.request.mutable_job_id(), "Those of a job");
  which->add_option("--placement", *options.request.mutable_placement_id(), "Of a placement");
}

// coppicectl placement batch: several placements in one call, as a file of JSON asks for them. The
// file is a BatchCreatePlacementsRequest in the JSON form of Protocol Buffers, with the names of
// placements.proto, so that a scheduler needs nothing but JSON in and JSON out.

void AddPlacementBatchCommand(CLI::App& placement, Session& session) {
  auto [command, options] = AddCommand<PlacementBatchOptions>(
      placement, session, "batch",
      "Choose nodes for several jobs, each beside those before it: all of them or none",
      [](Session& s, Connection& connection, PlacementBatchOptions& asked) {
        const auto request = ReadRequests(asked.file);
        if (!request.ok()) return Fail(request.status());
        return asked.advise ? AdviseAll(s, connection, *request)
                            : CreateAll(s, connection, *request);
      });
  AddWideOption(*command, session);
  command
      ->add_option("FILE", options.file,
                   "JSON: {\"requests\": [{\"request_id\": \"a\", \"placement\": {\"constraints\": "
                   "{\"node_count\": 4}}}]}, fields as in placements.proto; - for stdin")
      ->required();
  command
      ->add_flag("--advise", options.advise,
                 "Take nothing; a request that cannot be met is said why, and those behind it "
                 "are planned without it")
      ->excludes("--output");
}

}  // namespace coppice
