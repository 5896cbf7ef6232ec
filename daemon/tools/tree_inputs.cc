#include "daemon/tools/tree_inputs.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"
#include "proto/text/node_list.h"
#include "proto/text/option_words.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

constexpr size_t kMaxQuoted = 128;  // characters of a file that an error repeats

absl::Status AtLine(absl::string_view origin, uint32_t line, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(origin, ", line ", line, ": ", status.message()));
}

// Calls `visit(line)` for each line that says something; its error is given origin and line.
template <class Visitor>
absl::Status ForEachLine(absl::string_view text, absl::string_view origin, const Visitor& visit) {
  for (const TextLine& line : LinesOf(text)) {
    const absl::Status status = visit(line.text);
    if (!status.ok()) return AtLine(origin, line.number, status);
  }
  return absl::OkStatus();
}

// The index that `resolve(fabric, line)` gives for each line that says something.
template <class Index, class Resolver>
absl::StatusOr<std::vector<Index>> ReadNames(const Fabric& fabric, absl::string_view text,
                                             absl::string_view origin, const Resolver& resolve) {
  std::vector<Index> found;
  RETURN_IF_ERROR(ForEachLine(text, origin, [&](absl::string_view line) -> absl::Status {
    ASSIGN_OR_RETURN(const Index index, resolve(fabric, line));
    found.push_back(index);
    return absl::OkStatus();
  }));
  return found;
}

// 16 hex digits, or up to 16 after 0x: ibnetdiscover prints GUIDs in both forms.
std::optional<Guid> ParseGuid(absl::string_view text) {
  const bool has_prefix = absl::ConsumePrefix(&text, "0x") || absl::ConsumePrefix(&text, "0X");
  const bool is_hex = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isxdigit(static_cast<unsigned char>(c));
  });
  uint64_t value;
  if (!is_hex || text.size() > 16 || (!has_prefix && text.size() < 16)) return std::nullopt;
  if (!absl::SimpleHexAtoi(text, &value)) return std::nullopt;
  return Guid(value);
}

absl::StatusOr<ChannelIndex> ChannelLeaving(const Fabric& fabric, Guid node, uint32_t port) {
  if (const std::optional<SwitchIndex> s = fabric.FindSwitch(node)) {
    const uint32_t ports = fabric.switch_info(*s).port_count;
    if (port <= ports) {
      const ChannelIndex channel = fabric.channel_at(*s, PortNum(static_cast<uint8_t>(port)));
      if (channel != kNoChannel) return channel;
    }
    return absl::NotFoundError(absl::StrCat("nothing is cabled to port ", port, " of switch ",
                                            ToString(node), ", which has ", ports, " ports"));
  }
  if (port <= UINT8_MAX) {
    const auto endpoint = fabric.FindEndpoint(node, PortNum(static_cast<uint8_t>(port)));
    if (endpoint) {
      const absl::Span<const Channel> cables = fabric.channels(fabric.Vertex(*endpoint));
      if (!cables.empty()) return cables.front().index;
    }
  }
  return absl::NotFoundError(absl::StrCat("the fabric has no switch ", ToString(node),
                                          " and no adapter of that GUID with a cable in port ",
                                          port));
}

absl::Status AddLoad(const Fabric& fabric, absl::string_view line, std::vector<float>& load,
                     std::vector<bool>& seen) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(WithoutComment(line), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  std::optional<Guid> node;
  uint32_t port = 0;
  float utilisation = 0;
  if (words.size() == 3) node = ParseGuid(words[0]);
  if (!node || !absl::SimpleAtoi(words[1], &port) || !absl::SimpleAtof(words[2], &utilisation)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", line.substr(0, kMaxQuoted),
                                                   "\" is not NODE-GUID PORT UTILISATION, such as "
                                                   "0002c9020040b0e0 3 0.25"));
  }
  if (!(utilisation >= 0 && utilisation <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("utilisation ", words[2], " of port ", port,
                                                   " of node ", ToString(*node),
                                                   " is not between 0 and 1"));
  }
  ASSIGN_OR_RETURN(const ChannelIndex channel, ChannelLeaving(fabric, *node, port));
  if (seen[channel.value()]) {
    return absl::InvalidArgumentError(absl::StrCat("port ", port, " of node ", ToString(*node),
                                                   " is named twice; keep one of the lines"));
  }
  seen[channel.value()] = true;
  load[channel.value()] = utilisation;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadNodesText(const std::string& value) {
  if (IsFileOfNodes(value)) return ReadTextFile(value);
  return value;
}

absl::StatusOr<std::vector<EndpointIndex>> ReadMembers(const Fabric& fabric, absl::string_view text,
                                                       absl::string_view origin) {
  std::vector<EndpointIndex> members;
  RETURN_IF_ERROR(ForEachLine(text, origin, [&](absl::string_view line) -> absl::Status {
    if (const absl::StatusOr<EndpointIndex> whole = ResolveEndpoint(fabric, line); whole.ok()) {
      members.push_back(*whole);
      return absl::OkStatus();
    }
    std::vector<std::string> names = {std::string(WithoutComment(line))};
    if (LooksLikeNodeList(names.front())) {
      ASSIGN_OR_RETURN(names, ParseNodeList(names.front()));
    }
    for (const std::string& name : names) {
      ASSIGN_OR_RETURN(const EndpointIndex member, ResolveEndpoint(fabric, name));
      members.push_back(member);
    }
    return absl::OkStatus();
  }));
  if (!members.empty()) return members;
  return absl::InvalidArgumentError(
      absl::StrCat(origin, ": no members; write one endpoint on each line"));
}

absl::StatusOr<std::vector<std::string>> ReadHostNames(absl::string_view text,
                                                       absl::string_view origin) {
  std::vector<std::string> names;
  RETURN_IF_ERROR(ForEachLine(text, origin, [&](absl::string_view line) -> absl::Status {
    ASSIGN_OR_RETURN(std::vector<std::string> listed, ParseNodeList(WithoutComment(line)));
    std::move(listed.begin(), listed.end(), std::back_inserter(names));
    return absl::OkStatus();
  }));
  if (!names.empty()) return names;
  return absl::InvalidArgumentError(
      absl::StrCat(origin, ": no hosts; write one host on each line"));
}

absl::StatusOr<SwitchIndex> ResolveSwitch(const Fabric& fabric, absl::string_view name) {
  if (const std::optional<Guid> guid = ParseGuid(absl::StripPrefix(name, "switch:"))) {
    if (const std::optional<SwitchIndex> s = fabric.FindSwitch(*guid)) return *s;
  }
  std::optional<SwitchIndex> found;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    if (fabric.switch_info(SwitchIndex(s)).description != name) continue;
    if (found) {
      return absl::InvalidArgumentError(absl::StrCat(
          "switch \"", name.substr(0, kMaxQuoted),
          "\" is ambiguous: ", ToString(fabric.switch_info(*found).guid), " and ",
          ToString(fabric.switch_info(SwitchIndex(s)).guid), " are both called so; give a GUID"));
    }
    found = SwitchIndex(s);
  }
  if (found) return *found;
  return absl::NotFoundError(
      absl::StrCat("no switch is called \"", name.substr(0, kMaxQuoted),
                   "\"; give the GUID or description of one of the fabric's ",
                   fabric.switch_count(), " switches"));
}

absl::StatusOr<std::vector<SwitchIndex>> ReadSwitches(const Fabric& fabric, absl::string_view text,
                                                      absl::string_view origin) {
  return ReadNames<SwitchIndex>(fabric, text, origin, ResolveSwitch);
}

absl::StatusOr<std::vector<float>> ReadLinkLoad(const Fabric& fabric, absl::string_view text,
                                                absl::string_view origin) {
  std::vector<float> load(fabric.channel_count());
  std::vector<bool> seen(fabric.channel_count());
  RETURN_IF_ERROR(ForEachLine(
      text, origin, [&](absl::string_view line) { return AddLoad(fabric, line, load, seen); }));
  return load;
}

}  // namespace coppice
