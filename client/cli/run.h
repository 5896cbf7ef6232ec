// From a command line to an exit status: what coppicectl and coppice-plan do alike with a line, and
// with the command that it names. The commands are in commands.h, the statuses in output.h.
#ifndef COPPICE_CLIENT_CLI_RUN_H_
#define COPPICE_CLIENT_CLI_RUN_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "client/cli/commands.h"
#include "client/connection.h"

namespace coppice {

// The exit status, if the line is wrong, with words on stderr, or asks for help only. Standard
// input may be read once.
std::optional<int> ParseLine(CLI::App& app, int argc, char** argv);

// Runs what the line asked for. Once a call takes longer than a second, `wait` is on stderr: on a
// terminal with the seconds, renewed and wiped at the end. Output that cannot be written is an
// error.
int RunCommand(const Session& session, Connection& connection, const std::string& wait);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_RUN_H_
