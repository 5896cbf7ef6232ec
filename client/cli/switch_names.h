// Switches as people name them on the command line.
#ifndef COPPICE_CLIENT_CLI_SWITCH_NAMES_H_
#define COPPICE_CLIENT_CLI_SWITCH_NAMES_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/connection.h"

namespace coppice {

// The GUID of the switch that is called so: by its GUID (16 digits, or up to 16 after 0x or, as a
// drawn tree has it, "switch:"), or by a description that only it has. NOT_FOUND: none is described
// so; INVALID_ARGUMENT: several are; errors of the call.
absl::StatusOr<std::string> FindSwitch(Connection& connection, const std::string& name);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_SWITCH_NAMES_H_
