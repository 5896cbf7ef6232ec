#include "daemon/tools/tree_inputs.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"

namespace coppice {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 30;
constexpr size_t kMaxQuoted = 128;  // characters of a file that an error repeats

absl::Status AtLine(absl::string_view origin, uint32_t line, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(origin, ", line ", line, ": ", status.message()));
}

// Calls `visit(line)` for each line that says something; its error is given origin and line.
template <class Visitor>
absl::Status ForEachLine(absl::string_view text, absl::string_view origin, const Visitor& visit) {
  uint32_t number = 0;
  for (const absl::string_view whole : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(whole);
    if (line.empty() || line.front() == '#') continue;
    const absl::Status status = visit(line);
    if (!status.ok()) return AtLine(origin, number, status);
  }
  return absl::OkStatus();
}

std::optional<Guid> ParseGuid(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "0x")) absl::ConsumePrefix(&text, "0X");
  uint64_t value;
  if (text.size() != 16 || text.front() == '-' || text.front() == '+') return std::nullopt;
  if (!absl::SimpleHexAtoi(text, &value)) return std::nullopt;
  return Guid(value);
}

absl::StatusOr<ChannelIndex> ChannelLeaving(const Fabric& fabric, Guid node, uint32_t port) {
  ChannelIndex channel = kNoChannel;
  if (const std::optional<SwitchIndex> s = fabric.FindSwitch(node)) {
    if (port <= fabric.switch_info(*s).port_count) {
      channel = fabric.channel_at(*s, PortNum(static_cast<uint8_t>(port)));
    }
  } else if (port <= 255) {
    const auto e = fabric.FindEndpoint(node, PortNum(static_cast<uint8_t>(port)));
    if (e) {
      const absl::Span<const Channel> cables = fabric.channels(fabric.Vertex(*e));
      if (!cables.empty()) channel = cables.front().index;
    }
  }
  if (channel != kNoChannel) return channel;
  return absl::NotFoundError(absl::StrCat("nothing is cabled to port ", port, " of node ",
                                          ToString(node),
                                          ", or the fabric has no switch or adapter of that GUID"));
}

absl::Status AddLoad(const Fabric& fabric, absl::string_view line, LinkLoad& load,
                     std::vector<bool>& seen) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
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

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  const auto close = [](std::FILE* f) { std::fclose(f); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "rb"), close);
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  std::string text;
  std::string block(size_t{1} << 16, '\0');
  while (const size_t size = std::fread(block.data(), 1, block.size(), file.get())) {
    text.append(block, 0, size);
    if (text.size() > kMaxFileBytes) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": larger than ", kMaxFileBytes,
                                                     " bytes; is it the file that you meant?"));
    }
  }
  if (std::ferror(file.get()) == 0) return text;
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
}

absl::StatusOr<std::vector<EndpointIndex>> ReadMembers(const Fabric& fabric, absl::string_view text,
                                                       absl::string_view origin) {
  std::vector<EndpointIndex> members;
  RETURN_IF_ERROR(ForEachLine(text, origin, [&](absl::string_view line) -> absl::Status {
    ASSIGN_OR_RETURN(const EndpointIndex member, ResolveEndpoint(fabric, line));
    members.push_back(member);
    return absl::OkStatus();
  }));
  if (!members.empty()) return members;
  return absl::InvalidArgumentError(
      absl::StrCat(origin, ": no members; write one endpoint on each line"));
}

absl::StatusOr<SwitchIndex> ResolveSwitch(const Fabric& fabric, absl::string_view name) {
  if (const std::optional<Guid> guid = ParseGuid(name)) {
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
  std::vector<SwitchIndex> switches;
  RETURN_IF_ERROR(ForEachLine(text, origin, [&](absl::string_view line) -> absl::Status {
    ASSIGN_OR_RETURN(const SwitchIndex s, ResolveSwitch(fabric, line));
    switches.push_back(s);
    return absl::OkStatus();
  }));
  return switches;
}

absl::StatusOr<LinkLoad> ReadLinkLoad(const Fabric& fabric, absl::string_view text,
                                      absl::string_view origin) {
  LinkLoad load(fabric.channel_count());
  std::vector<bool> seen(fabric.channel_count());
  RETURN_IF_ERROR(ForEachLine(
      text, origin, [&](absl::string_view line) { return AddLoad(fabric, line, load, seen); }));
  return load;
}

}  // namespace coppice
