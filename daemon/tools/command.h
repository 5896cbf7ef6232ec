// What every subcommand of coppice-plan shares: how it is registered, how it reports, what it exits
// with. main.cc owns the parser; a subcommand is a file pair with one Register function.
#ifndef COPPICE_DAEMON_TOOLS_COMMAND_H_
#define COPPICE_DAEMON_TOOLS_COMMAND_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

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

// Writes `text` to standard output, all of it, as it may be shown (proto/text/plain_text.h): a full
// disk or a closed pipe is an error.
absl::Status PrintText(absl::string_view text);

// Adds an option whose value is any text but the empty one: an empty value is a shell variable that
// was never set, and must not pass for an option that was never given.
CLI::Option* AddText(CLI::App& command, const std::string& name, std::string& value,
                     const std::string& meaning);

// Adds an option whose value is a whole number from 0 to 4294967295 in decimal digits.
CLI::Option* AddCount(CLI::App& command, const std::string& name, std::optional<uint32_t>& value,
                      const std::string& meaning);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_COMMAND_H_
