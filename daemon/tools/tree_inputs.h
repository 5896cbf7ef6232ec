// The small text files behind coppice-plan: members or hosts, full switches and link loads. Each
// reader takes the text, so that tests need no files, and names `origin` and the line in every
// error.
//
// In all of them blank lines and lines that begin with # are skipped, blanks around a line (with
// them the \r of a Windows file) and a byte order mark are not part of it. In members and loads a
// blank and # begin a comment; a switch's description may hold both. Knows nothing of trees.
#ifndef COPPICE_DAEMON_TOOLS_TREE_INPUTS_H_
#define COPPICE_DAEMON_TOOLS_TREE_INPUTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/snapshot.h"

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_TREE_INPUTS_H_
