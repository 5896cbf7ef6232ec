// What a request for a tree is made of on the command line: fabric, members, operation and sizes,
// what the hardware can do, routes and load. Shared by the subcommands that plan trees.
#ifndef COPPICE_DAEMON_TOOLS_TREE_OPTIONS_H_
#define COPPICE_DAEMON_TOOLS_TREE_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"

namespace coppice {

struct TreeOptions {
  std::string fabric, members, full_switches, root, load;
  std::string operation = "allreduce";
  std::string profile = "hdr", routes = "shortest";
  std::string bytes = "8";  // as ParseByteSizes reads it
  std::optional<uint32_t> width, nic_degree, switch_degree, entries;
  bool json = false;
};

// The files that these options name, for the footer of a subcommand's help.
extern const char kTreeFilesHelp[];

// What a daemon reads or is told by its configuration: --switch-degree, --entries, --full-switches,
// --profile, --routes and --load.
void AddFabricOptions(CLI::App& command, TreeOptions& options);

inline constexpr uint32_t kDefaultEntries = 64, kDefaultSwitchDegree = 64;

// Each reads the files that the options name; errors are those of fabric_source.h, routes.h and
// tree_inputs.h and name the file.
absl::StatusOr<Snapshot> LoadSnapshot(const TreeOptions& options);
// The same on a fabric that was read.
absl::StatusOr<Snapshot> LoadSnapshot(const TreeOptions& options,
                                      std::shared_ptr<const Fabric> fabric);
// --full-switches; none without that option.
absl::StatusOr<std::vector<SwitchIndex>> LoadFullSwitches(const TreeOptions& options,
                                                          const Fabric& fabric);

// The built-in profile of that name, else the TOML file of that name. NOT_FOUND: neither;
// INVALID_ARGUMENT, naming file, line and key: not a profile; codes of absl::ErrnoToStatus: a file
// that cannot be read.
absl::StatusOr<CostProfile> LoadProfile(const std::string& name);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_TREE_OPTIONS_H_
