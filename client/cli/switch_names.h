// Switches as people name them on the command line.
#ifndef COPPICE_CLIENT_CLI_SWITCH_NAMES_H_
#define COPPICE_CLIENT_CLI_SWITCH_NAMES_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "client/connection.h"

namespace coppice {

// The GUID of the switch that is called so: by its GUID (16 digits, or up to 16 after 0x or, as a
// drawn tree has it, "switch:"), or by a description that only it has. NOT_FOUND: none is described
// so; INVALID_ARGUMENT: several are; errors of the call.
absl::StatusOr<std::string> FindSwitch(Connection& connection, const std::string& name);

// Node GUID -> description. A switch that is not in it is shown by its GUID.
using SwitchNames = absl::flat_hash_map<uint64_t, std::string>;

// Of all switches. Empty if they cannot be listed: a tree may be granted, and must be shown.
SwitchNames NamesOfSwitches(Connection& connection);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_SWITCH_NAMES_H_
