// Files that people name on the command line: sent to the daemon as they are, or read as lines.
#ifndef COPPICE_CLIENT_CLI_INPUT_FILE_H_
#define COPPICE_CLIENT_CLI_INPUT_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace coppice {

// All of it; "-" is standard input. NOT_FOUND names the file that cannot be read; INVALID_ARGUMENT:
// it is a folder or a device, or larger than 1 GiB.
absl::StatusOr<std::string> ReadText(const std::string& path);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_INPUT_FILE_H_
