// What the subcommands of coppice-plan share that only files are asked: how they are registered.
// main.cc owns the parser; a subcommand is a file with one Register function.
#ifndef COPPICE_DAEMON_TOOLS_COMMAND_H_
#define COPPICE_DAEMON_TOOLS_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>

#include "absl/status/status.h"

namespace coppice {

// What the subcommand that was named does, once the whole line is read; main.cc runs it, prints an
// error on stderr and exits with its status (proto/text/exit_status.h).
struct PlanCommand {
  bool json = false;  // errors, too
  std::function<absl::Status()> run;
};

// Each adds one subcommand to `app`. `chosen` must live as long as `app`.
void RegisterDescribeCommand(CLI::App& fabric, PlanCommand& chosen);  // below `fabric`
void RegisterMapCommand(CLI::App& app, PlanCommand& chosen);
void RegisterSimulateCommand(CLI::App& app, PlanCommand& chosen);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_COMMAND_H_
