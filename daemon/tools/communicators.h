// The communicators that a command is about, as options name them: lines of a process grid, a file
// that lists them, random groups, or one of all members.
#ifndef COPPICE_DAEMON_TOOLS_COMMUNICATORS_H_
#define COPPICE_DAEMON_TOOLS_COMMUNICATORS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/tree/batch/batch.h"

namespace coppice {

struct CommunicatorOptions {
  std::string grid, list, random, axes;
  std::string order = "last";
  std::optional<uint32_t> seed;  // of `random`
};

// For the footer of a command that takes --list.
extern const char kCommunicatorListHelp[];

// --grid, --list and --random in a group of their own, which is returned, --axes and --order beside
// it. The seed has no option here: commands draw other things, too.
CLI::App* AddCommunicatorOptions(CLI::App& command, CommunicatorOptions& options);

// Ranks are positions in `members`. None of grid, list and random: one communicator of all.
// INVALID_ARGUMENT names the option, or file and line.
absl::StatusOr<std::vector<BatchCommunicator>> LoadCommunicators(
    const CommunicatorOptions& options, absl::Span<const EndpointIndex> members);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_COMMUNICATORS_H_
