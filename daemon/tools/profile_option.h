// --profile NAME|FILE: the constants that a plan or a table is made with. Shared by the subcommands
// that predict times.
#ifndef COPPICE_DAEMON_TOOLS_PROFILE_OPTION_H_
#define COPPICE_DAEMON_TOOLS_PROFILE_OPTION_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/tree/cost_profile.h"

namespace coppice {

// Adds --profile, which sets `profile`; what that holds now is the default and named as such.
void AddProfileOption(CLI::App& command, std::string& profile);

// The built-in profile of that name, else the TOML file of that name. NOT_FOUND: neither;
// INVALID_ARGUMENT, naming file, line and key: not a profile; codes of absl::ErrnoToStatus: a file
// that cannot be read.
absl::StatusOr<CostProfile> LoadProfile(const std::string& name);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_PROFILE_OPTION_H_
