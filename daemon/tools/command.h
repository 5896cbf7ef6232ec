// What every subcommand of coppice-plan shares: how it is registered, how it reports, what it exits
// with. main.cc owns the parser; a subcommand is a file pair with one Register function.
#ifndef COPPICE_DAEMON_TOOLS_COMMAND_H_
#define COPPICE_DAEMON_TOOLS_COMMAND_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coppice {

// Exit statuses of every program of Coppice.
enum ExitStatus : int { kDone = 0, kRequestFailed = 1, kWrongUsage = 2 };

// The outcome of the subcommand that ran. A subcommand's callback sets `status`; main.cc prints an
// error on stderr and exits with kRequestFailed.
struct CommandOutcome {
  absl::Status status;
};

// Each adds one subcommand to `app`. `outcome` must live as long as `app`.
void RegisterFabricCommand(CLI::App& app, CommandOutcome& outcome);
void RegisterTreeCommand(CLI::App& app, CommandOutcome& outcome);

// Replaces the file `path` by `text`. Status codes as absl::ErrnoToStatus gives them; the message
// names the file.
absl::Status WriteTextFile(const std::string& path, absl::string_view text);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_COMMAND_H_
