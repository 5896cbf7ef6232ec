// coppicectl placement create|advise|list|show|start|renew|release|distances: which nodes to give a
// job. Scripts of schedulers call these, so each is one call to the daemon.
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/member_file.h"
#include "client/cli/output.h"
#include "client/cli/words.h"

namespace coppice {
namespace {

using Stub = v1::Placements::StubInterface;

constexpr int kMostColumns = 16;  // of a matrix for people

// --- What is shown ---

std::string StateWord(v1::PlacementState state) {
  switch (state) {
    case v1::PLACEMENT_STATE_HELD:
      return "held";
    case v1::PLACEMENT_STATE_STARTED:
      return "started";
    case v1::PLACEMENT_STATE_RELEASED:
      return "released";
    case v1::PLACEMENT_STATE_EXPIRED:
      return "expired";
    default:
      return "unknown";
  }
}

std::string TermText(const v1::Placement& placement) {
  if (placement.state() != v1::PLACEMENT_STATE_HELD) return "-";
  return absl::StrCat(placement.term_left().seconds(), " of ", placement.term().seconds(), " s");
}

void PrintPlacements(const google::protobuf::RepeatedPtrField<v1::Placement>& placements) {
  Table table(
      {"PLACEMENT", "NAME", "OWNER", "STATE", "JOB", "NODES", "TERM LEFT", "SINCE", "LIST"});
  for (const v1::Placement& p : placements) {
    table.Add({p.id(), p.display_name(), p.owner(), StateWord(p.state()),
               p.job_id().empty() ? "-" : p.job_id(), absl::StrCat(p.nodes_size()), TermText(p),
               TimeText(p.create_time()), p.node_list()});
  }
  table.Print(std::cout);
}

void PrintMeasures(const v1::Placement& placement) {
  const v1::PlacementMeasures& m = placement.measures();
  std::cout << "nodes      " << placement.node_list() << "\n"
            << "switches   " << Counted(m.leaf_switches(), "leaf switch", "es") << " of at least "
            << m.least_leaf_switches() << ", " << Counted(m.pods(), "pod") << "\n"
            << "distance   " << Fixed(m.mean_distance()) << " links between two of them\n"
            << "load       " << Fixed(100 * m.mean_load(), 1) << " %, most "
            << Fixed(100 * m.most_load(), 1) << " %; " << Counted(m.shared_links(), "link")
            << " shared with others\n"
            << "cost       " << Fixed(m.cost()) << (placement.is_optimal() ? ", optimal" : "")
            << "\n";
  if (!placement.reason().empty()) std::cout << "reason     " << placement.reason() << "\n";
}

int Show(Session& session, absl::StatusOr<v1::Placement> placement) {
  if (!placement.ok()) return Fail(placement.status());
  if (session.json) return PrintJson(std::cout, *placement), 0;
  google::protobuf::RepeatedPtrField<v1::Placement> one;
  *one.Add() = *placement;
  PrintPlacements(one);
  PrintMeasures(*placement);
  return 0;
}

// --- What is asked ---

absl::Status ReadDuration(const std::string& option, const std::string& text,
                          google::protobuf::Duration& to) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " ", text, ": write a duration such as 90s, 10m or 24h"));
  }
  to.set_seconds(absl::ToInt64Seconds(duration));
  to.set_nanos(static_cast<int32_t>((duration - absl::Floor(duration, absl::Seconds(1))) /
                                    absl::Nanoseconds(1)));
  return absl::OkStatus();
}

// A file of that name, line by line, else a list as it is: the daemon reads it.
absl::Status ReadNodes(const std::string& text,
                       google::protobuf::RepeatedPtrField<std::string>& nodes) {
  if (text.empty()) return absl::OkStatus();
  std::error_code unreadable;
  if (text != "-" && !std::filesystem::is_regular_file(text, unreadable)) {
    nodes.Add(std::string(text));
    return absl::OkStatus();
  }
  const auto lines = ReadMemberFile(text);
  if (!lines.ok()) return lines.status();
  for (const std::string& line : *lines) nodes.Add(std::string(line));
  return absl::OkStatus();
}

struct RequestOptions {
  v1::PlacementRequest request;
  std::string candidates, include, avoid, budget;
};

constexpr char kNodes[] = "such as n[001-128,130], or a file with one or more a line; - for stdin";

void AddRequestOptions(CLI::App& command, RequestOptions& options) {
  v1::PlacementConstraints& c = *options.request.mutable_constraints();
  const auto number = [&](const char* name, auto setter, const char* help) {
    return command.add_option_function<uint32_t>(name, setter, help);
  };
  number(
      "--nodes", [&c](uint32_t n) { c.set_node_count(n); }, "How many nodes")
      ->required();
  command.add_option(
      "--candidates", options.candidates,
      std::string("Nodes to choose from, ") + kNodes + "; default: all that nobody holds");
  command.add_option("--include", options.include, "Nodes that must be among them");
  command.add_option("--avoid", options.avoid, "Nodes that must not");
  number(
      "--nodes-per-leaf", [&c](uint32_t n) { c.set_nodes_per_leaf(n); },
      "Exactly so many on every leaf switch used, the last excepted");
  number(
      "--max-nodes-per-leaf", [&c](uint32_t n) { c.set_max_nodes_per_leaf(n); },
      "At most so many on a leaf switch");
  number(
      "--max-leaf-switches", [&c](uint32_t n) { c.set_max_leaf_switches(n); },
      "On at most so many leaf switches");
  number(
      "--min-leaf-switches", [&c](uint32_t n) { c.set_min_leaf_switches(n); },
      "Spread over at least so many leaf switches");
  number(
      "--min-pods", [&c](uint32_t n) { c.set_min_pods(n); }, "Over at least so many pods");
  command.add_flag_callback(
      "--same-pod", [&c] { c.set_same_pod(true); }, "All in one pod");
  command.add_flag_callback(
      "--exclusive-switches", [&c] { c.set_exclusive_switches(true); },
      "On leaf switches that nobody else has nodes on");
  v1::PlacementTraffic& traffic = *options.request.mutable_traffic();
  command.add_option("--pattern", *traffic.mutable_pattern_name(),
                     "Stored pattern of the job's communication (coppicectl pattern)");
  number(
      "--ranks-per-node", [&traffic](uint32_t n) { traffic.set_ranks_per_node(n); },
      "Ranks on each node; default 1");
  number(
      "--trees", [&traffic](uint32_t n) { traffic.set_trees(n); },
      "Aggregation trees of type II that the job will ask for");
  command.add_option("--budget", options.budget, "Time of a search with a pattern; default 1s");
  command.add_option_function<uint64_t>(
      "--seed", [&options](uint64_t seed) { options.request.set_seed(seed); }, "Of a search");
}

absl::Status Complete(RequestOptions& options) {
  v1::PlacementConstraints& c = *options.request.mutable_constraints();
  absl::Status status = ReadNodes(options.candidates, *c.mutable_candidates());
  status.Update(ReadNodes(options.include, *c.mutable_include()));
  status.Update(ReadNodes(options.avoid, *c.mutable_avoid()));
  if (!options.budget.empty()) {
    status.Update(ReadDuration("--budget", options.budget, *options.request.mutable_budget()));
  }
  return status;
}

struct CreateOptions : RequestOptions {
  v1::CreatePlacementRequest create;
  std::string term;
};

int Create(Session& session, Connection& connection, CreateOptions& options) {
  absl::Status status = Complete(options);
  if (!options.term.empty()) {
    status.Update(ReadDuration("--term", options.term, *options.create.mutable_term()));
  }
  if (!status.ok()) return Fail(status);
  *options.create.mutable_placement() = options.request;
  return Show(session,
              connection.Call(connection.placements(), &Stub::CreatePlacement, options.create));
}

int Advise(Session& session, Connection& connection, RequestOptions& options) {
  if (const absl::Status status = Complete(options); !status.ok()) return Fail(status);
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

int List(Session& session, Connection& connection) {
  const auto all = ListAll(connection, connection.placements(), &Stub::ListPlacements,
                           v1::ListPlacementsRequest());
  if (!all.ok()) return Fail(all.status());
  if (session.json) return PrintJson(std::cout, *all), 0;
  PrintPlacements(all->placements());
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
        ReadDuration("--lease", options.lease, *options.request.mutable_lease());
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

int Release(Session& session, Connection& connection, const std::string& id) {
  v1::ReleasePlacementRequest request;
  request.set_id(id);
  const auto response = connection.Call(connection.placements(), &Stub::ReleasePlacement, request);
  if (!response.ok()) return Fail(response.status());
  if (session.json) return PrintJson(std::cout, *response), 0;
  std::cout << "placement " << id << " is released\n";
  return 0;
}

// --- Distances ---

struct DistanceOptions {
  v1::GetNodeDistancesRequest request;
  std::string nodes;
};

int Distances(Session& session, Connection& connection, DistanceOptions& options) {
  const absl::Status status = ReadNodes(options.nodes, *options.request.mutable_nodes());
  if (!status.ok()) return Fail(status);
  const auto answer =
      connection.Call(connection.placements(), &Stub::GetNodeDistances, options.request);
  if (!answer.ok()) return Fail(answer.status());
  if (session.json) return PrintJson(std::cout, *answer), 0;
  const int count = answer->nodes_size();
  if (count > kMostColumns) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        count, " nodes are a table too wide to read; take --json or at most ", kMostColumns)));
  }
  std::vector<std::string> heading = {"LINKS"};
  heading.insert(heading.end(), answer->nodes().begin(), answer->nodes().end());
  Table table(std::move(heading));
  for (int row = 0; row < count; ++row) {
    std::vector<std::string> cells = {answer->nodes(row)};
    for (int column = 0; column < count; ++column) {
      const uint32_t hops = answer->hops(row * count + column);
      cells.push_back(hops == UINT32_MAX ? "-" : absl::StrCat(hops));
    }
    table.Add(std::move(cells));
  }
  table.Print(std::cout);
  return 0;
}

// --- The commands ---

void AddCreate(CLI::App& placement, Session& session) {
  CLI::App* create = placement.add_subcommand("create", "Choose nodes and hold them");
  AddJsonFlag(*create, session);
  auto options = std::make_shared<CreateOptions>();
  AddRequestOptions(*create, *options);
  create->add_option("--term", options->term, "How long they are held: 90s, 5m, 24h");
  create->add_option("--name", *options->create.mutable_display_name(), "What to call it");
  create->add_option("--request-id", *options->create.mutable_request_id(),
                     "Makes a retry harmless: the same id holds nodes once");
  create->callback([&session, options] {
    session.run = [&session, options](Connection& c) { return Create(session, c, *options); };
  });
  CLI::App* advise = placement.add_subcommand("advise", "Choose nodes, take nothing");
  AddJsonFlag(*advise, session);
  auto asked = std::make_shared<RequestOptions>();
  AddRequestOptions(*advise, *asked);
  advise->callback([&session, asked] {
    session.run = [&session, asked](Connection& c) { return Advise(session, c, *asked); };
  });
}

void AddStart(CLI::App& placement, Session& session) {
  CLI::App* start = placement.add_subcommand("start", "Register a job on the nodes");
  AddJsonFlag(*start, session);
  auto options = std::make_shared<StartOptions>();
  start->add_option("PLACEMENT", *options->request.mutable_id(), "Its number")->required();
  start->add_flag_callback(
      "--arrange-ranks", [options] { options->request.set_arrange_ranks(true); },
      "Ranks in the order found for the placement's pattern");
  start->add_option_function<uint32_t>(
      "--ranks-per-node", [options](uint32_t n) { options->request.set_ranks_per_node(n); },
      "Ranks on each node; default: as the placement was asked for");
  start->add_option("--lease", options->lease, "Term of the job's lease: 90s, 10m, 24h");
  start->add_option("--name", *options->request.mutable_display_name(),
                    "What to call the job; default: as the placement");
  start->add_option("--request-id", *options->request.mutable_request_id(), "Of the job");
  start->add_flag("--keep", options->keep, "Stay and renew the job's lease until the job is over");
  start->callback([&session, options] {
    session.endless = options->keep;
    session.run = [&session, options](Connection& c) { return Start(session, c, *options); };
  });
}

void AddDistances(CLI::App& placement, Session& session) {
  CLI::App* distances =
      placement.add_subcommand("distances", "How many links nodes are from each other");
  AddJsonFlag(*distances, session);
  auto options = std::make_shared<DistanceOptions>();
  CLI::Option_group* const which = distances->add_option_group("Nodes", "One of them is needed");
  which->require_option(1);
  which->add_option("--nodes", options->nodes, std::string("Nodes, ") + kNodes);
  which->add_option("--job", *options->request.mutable_job_id(), "Those of a job");
  which->add_option("--placement", *options->request.mutable_placement_id(), "Of a placement");
  distances->callback([&session, options] {
    session.run = [&session, options](Connection& c) { return Distances(session, c, *options); };
  });
}

}  // namespace

void AddPlacementCommands(CLI::App& app, Session& session) {
  CLI::App* placement = app.add_subcommand("placement", "Choose and hold nodes for jobs to come");
  placement->require_subcommand(1);
  AddCreate(*placement, session);
  CLI::App* list = placement->add_subcommand("list", "Placements that hold nodes");
  AddJsonFlag(*list, session);
  list->callback(
      [&session] { session.run = [&session](Connection& c) { return List(session, c); }; });
  AddStart(*placement, session);
  const auto with_id = [&](const char* name, const char* what, auto action) {
    CLI::App* command = placement->add_subcommand(name, what);
    AddJsonFlag(*command, session);
    auto id = std::make_shared<std::string>();
    command->add_option("PLACEMENT", *id, "Its number")->required();
    command->callback([&session, id, action] {
      session.run = [&session, id, action](Connection& c) { return action(session, c, *id); };
    });
  };
  with_id("show", "One placement", [](Session& s, Connection& c, const std::string& id) {
    v1::GetPlacementRequest request;
    request.set_id(id);
    return Show(s, c.Call(c.placements(), &Stub::GetPlacement, request));
  });
  with_id("renew", "Begin the term anew", [](Session& s, Connection& c, const std::string& id) {
    v1::RenewPlacementRequest request;
    request.set_id(id);
    return Show(s, c.Call(c.placements(), &Stub::RenewPlacement, request));
  });
  with_id("release", "Give the nodes free", Release);
  AddDistances(*placement, session);
}

}  // namespace coppice
