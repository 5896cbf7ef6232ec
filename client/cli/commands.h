// The commands of coppicectl. Each Add... declares its subcommands and options on `app` and leaves
// in `session.run` what to do once the line is parsed; main.cc runs it.
#ifndef COPPICE_CLIENT_CLI_COMMANDS_H_
#define COPPICE_CLIENT_CLI_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "client/connection.h"

namespace coppice {

// One invocation of the program.
struct Session {
  bool json = false;
  // Returns the exit status: 0 done, 1 the request failed. (2, wrong usage, is main's.)
  std::function<int(Connection&)> run;
};

void AddStatusCommand(CLI::App& app, Session& session);
void AddFabricCommands(CLI::App& app, Session& session);
void AddEntriesCommand(CLI::App& app, Session& session);
void AddTypeTableCommand(CLI::App& app, Session& session);
void AddEventsCommand(CLI::App& app, Session& session);
void AddJobCommands(CLI::App& app, Session& session);
void AddTreeCommands(CLI::App& app, Session& session);

// Adds --json, as every command has it.
void AddJsonFlag(CLI::App& command, Session& session);

// Fetches all pages of a listing. `add` takes one page and returns its next_page_token.
template <class Stub, class Request, class Response, class Add>
absl::Status ForEachPage(Connection& connection, Stub& stub,
                         grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                      Response*),
                         Request request, Add add) {
  do {
    absl::StatusOr<Response> page = connection.Call(stub, method, request);
    if (!page.ok()) return page.status();
    request.set_page_token(page->next_page_token());
    add(*page);
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_COMMANDS_H_
