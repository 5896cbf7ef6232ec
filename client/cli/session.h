// The commands of coppicectl and coppice-plan. Each Add... declares its subcommands and options on
// `app` and leaves in `session.run` what to do once the line is parsed; main.cc runs it.
#ifndef COPPICE_CLIENT_CLI_SESSION_H_
#define COPPICE_CLIENT_CLI_SESSION_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "client/server_address.h"

namespace coppice {

class Connection;

// One invocation of the program.
struct Session {
  bool json = false;
  bool is_wide = false;     // all columns, all that there is to tell
  bool endless = false;     // runs until it is interrupted: it is not late after a second
  bool is_offline = false;  // coppice-plan: who names no job gets one of the members, for the call
  // coppice-plan: only the cost profile is asked; there is no answer without a fabric.
  bool is_of_profile = false, needs_fabric = true;
  // Returns the exit status.
  std::function<int(Connection&)> run;
  // What was granted or is kept from now on, for who does not get to read the answer: "tree 3 of
  // job 1 is granted". Empty: nothing.
  std::string done;
};

// Those that coppicectl and coppice-plan have alike.
void AddCommands(CLI::App& app, Session& session);

void AddStatusCommand(CLI::App& app, Session& session);
void AddReloadCommand(CLI::App& app, Session& session);
void AddAccountCommands(CLI::App& app, Session& session);
void AddQuotaCommand(CLI::App& app, Session& session);
void AddReservationCommands(CLI::App& app, Session& session);
void AddAuditCommand(CLI::App& app, Session& session);
void AddFabricCommands(CLI::App& app, Session& session);
void AddEntriesCommand(CLI::App& app, Session& session);
void AddTypeTableCommand(CLI::App& app, Session& session);
void AddWatchCommand(CLI::App& fabric, Session& session);     // below `fabric`
void AddCounterCommands(CLI::App& fabric, Session& session);  // below `fabric`
void AddEventsCommand(CLI::App& app, Session& session);
void AddExportCommands(CLI::App& app, Session& session);
void AddJobCommands(CLI::App& app, Session& session);
void AddAgentCommands(CLI::App& app, Session& session);
void AddDistanceCommands(CLI::App& app, Session& session);
void AddMapCommand(CLI::App& app, Session& session);
void AddPatternCommands(CLI::App& app, Session& session);
void AddPlacementCommands(CLI::App& app, Session& session);
void AddPlacementBatchCommand(CLI::App& placement, Session& session);  // below `placement`
void AddTreeCommands(CLI::App& app, Session& session);
void AddBatchCommand(CLI::App& tree, Session& session);  // below `tree`
void AddCalibrateCommand(CLI::App& app, Session& session);

// --- From a command line to an exit status (proto/text/exit_status.h) ---

// The exit status, if the line asks for help only or is wrong, which is told on stderr: in words,
// or in JSON if --json is on the line. Standard input may be read once.
std::optional<int> ParseLine(CLI::App& app, int argc, char** argv);

// Whom to ask: the daemon behind `channel`, which errors call `server`.
struct Target {
  std::string server;
  absl::Duration deadline;  // of each call
  std::shared_ptr<grpc::Channel> channel;
  std::string user;  // empty: whoever runs this; else in whose name (Connection::CallAs)
};

// Runs what the line asked for, on a connection to `target`. Once a call takes longer than a
// second, `wait` is on stderr: on a terminal with the seconds, renewed and wiped at the end. Output
// that cannot be written is an error, which says what was done all the same.
int RunCommand(const Session& session, const Target& target, const std::string& wait);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_SESSION_H_
