// coppicectl placement batch: several placements in one call, as a file of JSON asks for them. The
// file is a BatchCreatePlacementsRequest in the JSON form of Protocol Buffers, with the names of
// placements.proto, so that a scheduler needs nothing but JSON in and JSON out.
#include <google/protobuf/util/json_util.h>

#include <iostream>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/input_file.h"
#include "client/cli/output.h"
#include "client/cli/placement_output.h"

namespace coppice {
namespace {

using Stub = v1::Placements::StubInterface;

struct BatchOptions {
  std::string file;
  bool advise = false;
};

absl::StatusOr<v1::BatchCreatePlacementsRequest> ReadRequests(const std::string& path) {
  const auto text = ReadText(path);
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
  if (!answer.ok()) return Fail(answer.status());
  if (session.json) return PrintJson(std::cout, *answer), 0;
  PrintPlacements(answer->placements());
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
  CLI::App* command = placement.add_subcommand(
      "batch", "Choose nodes for several jobs, each beside those before it: all of them or none");
  AddJsonFlag(*command, session);
  auto options = std::make_shared<BatchOptions>();
  command
      ->add_option("FILE", options->file,
                   "JSON: {\"requests\": [{\"request_id\": \"a\", \"placement\": {\"constraints\": "
                   "{\"node_count\": 4}}}]}, fields as in placements.proto; - for stdin")
      ->required();
  command->add_flag("--advise", options->advise,
                    "Take nothing; a request that cannot be met is said why, and those behind it "
                    "are planned without it");
  command->callback([&session, options] {
    session.run = [&session, options](Connection& connection) {
      const auto request = ReadRequests(options->file);
      if (!request.ok()) return Fail(request.status());
      return options->advise ? Advise(session, connection, *request)
                             : Create(session, connection, *request);
    };
  });
}

}  // namespace coppice
