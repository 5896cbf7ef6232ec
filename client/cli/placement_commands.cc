// coppicectl placement create|advise|list|show|start|renew|release|distances: which nodes to give a
// job. Scripts of schedulers call these, so each is one call to
// the daemon.
#include <google/protobuf/util/json_util.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/placement_options.h"
#include "client/cli/words.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

using Stub = v1::Placements::StubInterface;

constexpr int kMaxColumns = 16;  // of a matrix for people

struct CreateOptions : PlacementRequestOptions {
  v1::CreatePlacementRequest create;
  std::string term;
};

int Create(Session& session, Connection& connection, CreateOptions& options) {
  absl::Status status = CompleteRequest(options);
  if (!options.term.empty()) {
    status.Update(ReadDurationOption("--term", options.term, *options.create.mutable_term()));
  }
  if (!status.ok()) return Fail(status);
  *options.create.mutable_placement() = options.request;
  return ShowPlacement(
      session, connection.Call(connection.placements(), &Stub::CreatePlacement, options.create));
}

int Advise(Session& session, Connection& connection, PlacementRequestOptions& options) {
  if (const absl::Status status = CompleteRequest(options); !status.ok()) return Fail(status);
  v1::AdvisePlacementRequest request;
  *request.add_requests() = options.request;
  const auto answer = connection.Call(connection.placements(), &Stub::AdvisePlacement, request);
  if (!answer.ok()) return Fail(answer.status());
  const v1::Placement& advice = answer->placements(0);
  if (session.json) PrintJson(std::cout, advice);
  if (!advice.why_not().empty()) return Fail(absl::ResourceExhaustedError(advice.why_not()));
  if (!session.json) PrintMeasures(advice);
  return 0;
}

int ListPlacements(Session& session, Connection& connection) {
  const auto all = ListAll(connection, connection.placements(), &Stub::ListPlacements,
                           v1::ListPlacementsRequest());
  if (const auto status = Settled(session, all)) return *status;
  PrintPlacements(all->placements(), PlacementColumns::kListing, session.is_wide);
  return 0;
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
  if (!options.lease.empty()) {
    const absl::Status status =
        ReadDurationOption("--lease", options.lease, *options.request.mutable_lease());
    if (!status.ok()) return Fail(status);
  }
  const auto job = connection.Call(connection.placements(), &Stub::StartPlacement, options.request);
  if (!job.ok()) return Fail(job.status());
  if (session.json) {
    PrintJson(std::cout, *job);
  } else {
    Table table({"JOB", "NAME", "OWNER", "STATE", "RANKS", "LEASE"});
    table.Add({job->id(), job->display_name(), job->owner(), Word(job->state()),
               absl::StrCat(job->rank_count()), absl::StrCat(job->lease().seconds(), " s")});
    table.Print(std::cout);
  }
  std::cout.flush();
  return options.keep ? Keep(connection, *job) : 0;
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
  start->add_option("--lease", options.lease, "Term of the job's lease: 90s, 10m, 24h");
  start->add_option("--name", *request.mutable_display_name(),
                    "What to call the job; default: as the placement");
  start->add_option("--request-id", *request.mutable_request_id(), "Of the job");
  start->add_flag("--keep", options.keep, "Stay and renew the job's lease until the job is over");
}

int Release(Session& session, Connection& connection, const std::string& id) {
  v1::ReleasePlacementRequest request;
  request.set_id(id);
  const auto response = connection.Call(connection.placements(), &Stub::ReleasePlacement, request);
  if (const auto status = Settled(session, response)) return *status;
  std::cout << "placement " << id << " is released\n";
  return 0;
}

// --- Distances ---

struct DistanceOptions {
  v1::GetNodeDistancesRequest request;
  std::string nodes;
};

int Distances(Session& session, Connection& connection, DistanceOptions& options) {
  const absl::Status read = ReadNodesOption(options.nodes, *options.request.mutable_nodes());
  if (!read.ok()) return Fail(read);
  const auto answer =
      connection.Call(connection.placements(), &Stub::GetNodeDistances, options.request);
  if (const auto status = Settled(session, answer)) return *status;
  const int count = answer->nodes_size();
  if (count > kMaxColumns) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        count, " nodes are a table too wide to read; take --json or at most ", kMaxColumns)));
  }
  std::vector<std::string> heading = {"",
                                      "LINKS TO"};  // a node is a number there, as names are long
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

}  // namespace

void AddPlacementCommands(CLI::App& app, Session& session) {
  CLI::App* placement = app.add_subcommand("placement", "Choose and hold nodes for jobs to come");
  placement->require_subcommand(1);
  auto [create, wanted] = AddCommand<CreateOptions>(*placement, session, "create",
                                                    "Choose nodes and hold them", Create);
  AddWideOption(*create, session);
  AddPlacementRequestOptions(*create, wanted);
  create->add_option("--term", wanted.term, "How long they are held: 90s, 5m, 24h");
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
  CLI::App* show =
      with_id("show", "One placement", [](Session& s, Connection& c, const std::string& id) {
        v1::GetPlacementRequest request;
        request.set_id(id);
        return ShowPlacement(s, c.Call(c.placements(), &Stub::GetPlacement, request));
      });
  AddWideOption(*show, session);
  CLI::App* renew =
      with_id("renew", "Begin the term anew", [](Session& s, Connection& c, const std::string& id) {
        v1::RenewPlacementRequest request;
        request.set_id(id);
        return ShowPlacement(s, c.Call(c.placements(), &Stub::RenewPlacement, request));
      });
  AddWideOption(*renew, session);
  with_id("release", "Release the nodes", Release);
  auto [distances, options] = AddCommand<DistanceOptions>(
      *placement, session, "distances", "How many links nodes are from each other", Distances);
  CLI::Option_group* const which = distances->add_option_group("Nodes", "One of them is needed");
  which->require_option(1);
  which->add_option("--nodes", options.nodes, std::string("Nodes, ") + kNodeWordsHelp);
  which->add_option("--job", *options.request.mutable_job_id(), "Those of a job");
  which->add_option("--placement", *options.request.mutable_placement_id(), "Of a placement");
}

// coppicectl placement batch: several placements in one call, as a file of JSON asks for them. The
// file is a BatchCreatePlacementsRequest in the JSON form of Protocol Buffers, with the names of
// placements.proto, so that a scheduler needs nothing but JSON in and JSON out.

namespace {

using Stub = v1::Placements::StubInterface;

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

int Create(Session& session, Connection& connection,
           const v1::BatchCreatePlacementsRequest& request) {
  const auto answer =
      connection.Call(connection.placements(), &Stub::BatchCreatePlacements, request);
  if (const auto status = Settled(session, answer)) return *status;
  PrintPlacements(answer->placements(), PlacementColumns::kGranted, session.is_wide);
  return 0;
}

void PrintAdvice(const v1::AdvisePlacementResponse& answer) {
  Table table({"REQUEST", "NODES", "LEAF SWITCHES", "PODS", "COST", "LIST"});
  for (int i = 0; i < answer.placements_size(); ++i) {
    const v1::Placement& p = answer.placements(i);
    if (!p.why_not().empty()) continue;
    table.Add({absl::StrCat(i), absl::StrCat(p.nodes_size()),
               absl::StrCat(p.measures().leaf_switches()), absl::StrCat(p.measures().pods()),
               Fixed(p.measures().cost()), p.node_list()});
  }
  table.Print(std::cout);
}

int Advise(Session& session, Connection& connection,
           const v1::BatchCreatePlacementsRequest& batch) {
  v1::AdvisePlacementRequest request;
  for (const v1::CreatePlacementRequest& one : batch.requests()) {
    *request.add_requests() = one.placement();
  }
  const auto answer = connection.Call(connection.placements(), &Stub::AdvisePlacement, request);
  if (!answer.ok()) return Fail(answer.status());
  if (session.json) {
    PrintJson(std::cout, *answer);
  } else {
    PrintAdvice(*answer);
  }
  int status = 0;
  for (int i = 0; i < answer->placements_size(); ++i) {
    const std::string& why_not = answer->placements(i).why_not();
    if (why_not.empty()) continue;
    status = Fail(absl::ResourceExhaustedError(absl::StrCat("requests[", i, "]: ", why_not)));
  }
  return status;
}

}  // namespace

void AddPlacementBatchCommand(CLI::App& placement, Session& session) {
  auto [command, options] = AddCommand<PlacementBatchOptions>(
      placement, session, "batch",
      "Choose nodes for several jobs, each beside those before it: all of them or none",
      [](Session& s, Connection& connection, PlacementBatchOptions& asked) {
        const auto request = ReadRequests(asked.file);
        if (!request.ok()) return Fail(request.status());
        return asked.advise ? Advise(s, connection, *request) : Create(s, connection, *request);
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
