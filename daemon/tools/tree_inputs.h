// What coppice-plan reads: the options of a fabric and of a tree, and the small text files that
// they name: members or hosts, full switches and link loads. Each reader takes the text, so that
// tests need no files, and names `origin` and the line in every error.
//
// In all of them blank lines and lines that begin with # are skipped, blanks around a line (with
// them the \r of a Windows file) and a byte order mark are not part of it. In members and loads a
// blank and # begin a comment; a switch's description may hold both.
#ifndef COPPICE_DAEMON_TOOLS_TREE_INPUTS_H_
#define COPPICE_DAEMON_TOOLS_TREE_INPUTS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"

namespace coppice {

// What an option that names nodes means: the text of a file, if it is meant as one
// (option_words.h), else the value itself, a list of them as node_list.h has it. Errors as
// ReadTextFile.
absl::StatusOr<std::string> ReadNodesText(const std::string& value);

// One endpoint a line in rank order, named as endpoint_names.h says, or a list of them as
// node_list.h does; a host whose name holds a blank and # is found by its whole name.
// INVALID_ARGUMENT: no member, an ambiguous one, or a list that cannot be read; NOT_FOUND: no such
// endpoint.
absl::StatusOr<std::vector<EndpointIndex>> ReadMembers(const Fabric& fabric, absl::string_view text,
                                                       absl::string_view origin);

// The same names in rank order where there is no fabric to find them in. INVALID_ARGUMENT: no host,
// or a list that cannot be read.
absl::StatusOr<std::vector<std::string>> ReadHostNames(absl::string_view text,
                                                       absl::string_view origin);

// A switch by GUID (16 hex digits, or 1 to 16 after 0x), by the ID that a printed tree gives it
// (switch:GUID) or by description. NOT_FOUND: none is named so; INVALID_ARGUMENT: several are
// described so.
absl::StatusOr<SwitchIndex> ResolveSwitch(const Fabric& fabric, absl::string_view name);

// One switch a line. Errors as ResolveSwitch.
absl::StatusOr<std::vector<SwitchIndex>> ReadSwitches(const Fabric& fabric, absl::string_view text,
                                                      absl::string_view origin);

// "NODE-GUID PORT UTILISATION" a line: the direction that leaves that port, 0 to 1. The GUID is a
// switch's or an adapter's. Links that are not named carry nothing. INVALID_ARGUMENT: another form,
// a utilisation out of range or a port named twice; NOT_FOUND: no such node, or nothing is cabled
// to the port. O(lines + endpoints).
absl::StatusOr<std::vector<float>> ReadLinkLoad(const Fabric& fabric, absl::string_view text,
                                                absl::string_view origin);

// --- What a request for a tree is made of on the command line ---

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

#endif  // COPPICE_DAEMON_TOOLS_TREE_INPUTS_H_
