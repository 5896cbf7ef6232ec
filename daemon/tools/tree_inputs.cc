#include "daemon/tools/tree_inputs.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/forwarding_tables.h"
#include "proto/text/command_line.h"
#include "proto/text/node_list.h"
#include "proto/text/option_words.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

constexpr size_t kMaxQuoted = 128;  // characters of a file that an error repeats

// Calls `visit(line)` for each line that says something; its error is given origin and line.
template <class Visitor>
absl::Status ForEachLine(absl::string_view text, absl::string_view origin, const Visitor& visit) {
  for (const TextLine& line : LinesOf(text)) {
    RETURN_IF_ERROR(Annotate(visit(line.text), absl::StrCat(origin, ", line ", line.number)));
  }
  return absl::OkStatus();
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

// The file, or the files of the directory by name, without those that begin with a dot.
// NOT_FOUND: there is none.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code unknown;
    const std::string name = at->path().filename().string();
    if (at->is_regular_file(unknown) && name.front() != '.') files.push_back(at->path().string());
  }
  if (error) return absl::FailedPreconditionError(absl::StrCat(path, ": ", error.message()));
  std::sort(files.begin(), files.end());
  if (!files.empty()) return files;
  return absl::NotFoundError(
      absl::StrCat(path,
                   ": this directory has no file; give one with what ibroute prints, a file a "
                   "switch, or a file as dump_lfts prints it"));
}

absl::StatusOr<ForwardingTables> ReadTables(const Fabric& fabric, const std::string& path) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOf(path));
  ForwardingTableReader reader(fabric);
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file));
    RETURN_IF_ERROR(Annotate(reader.Read(text), file));
  }
  if (reader.skipped() > 0) {
    std::cerr << path << ": passed over " << reader.skipped()
              << (reader.skipped() == 1 ? " line" : " lines")
              << " in which ibroute says that it failed (iberror)\n";
  }
  return reader.Take();
}

absl::StatusOr<std::vector<float>> LoadFromFile(const Fabric& fabric, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  return ReadLinkLoad(fabric, text, path);
}

absl::StatusOr<std::vector<SwitchIndex>> SwitchesFromFile(const Fabric& fabric,
                                                          const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  return ReadSwitches(fabric, text, path);
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
      ASSIGN_OR_RETURN(members.emplace_back(), ResolveEndpoint(fabric, name));
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
  std::vector<SwitchIndex> found;
  RETURN_IF_ERROR(ForEachLine(text, origin, [&](absl::string_view line) -> absl::Status {
    ASSIGN_OR_RETURN(found.emplace_back(), ResolveSwitch(fabric, line));
    return absl::OkStatus();
  }));
  return found;
}

absl::StatusOr<std::vector<float>> ReadLinkLoad(const Fabric& fabric, absl::string_view text,
                                                absl::string_view origin) {
  std::vector<float> load(fabric.channel_count());
  std::vector<bool> seen(fabric.channel_count());
  RETURN_IF_ERROR(ForEachLine(
      text, origin, [&](absl::string_view line) { return AddLoad(fabric, line, load, seen); }));
  return load;
}

const char kTreeFilesHelp[] =
    "Files (- is standard input; blank lines and lines that begin with # are skipped):\n"
    "  --members        one endpoint a line in rank order: host, host/port or port\n"
    "                   GUID; or no file but a list, n[001-128,130];\n"
    "                   repeated lines are several ranks on one port\n"
    "  --full-switches  one switch a line: GUID or description\n"
    "  --load           NODE-GUID PORT UTILISATION a line: how busy, 0 to 1, the\n"
    "                   direction is that leaves that port of that switch or adapter\n"
    "In --members and --load a blank and # begin a comment.";

void AddFabricOptions(CLI::App& command, TreeOptions& options) {
  AddCount(command, "--switch-degree", options.switch_degree,
           absl::StrCat("Most children of a switch in one tree; default ", kDefaultSwitchDegree));
  AddCount(command, "--entries", options.entries,
           absl::StrCat("Tree entries of every switch; default ", kDefaultEntries));
  AddText(command, "--full-switches", options.full_switches, "Switches with no free entry");
  AddText(command, "--profile", options.profile,
          absl::StrCat("Costs: a TOML file or one of ", absl::StrJoin(BuiltInProfileNames(), ", "),
                       "; default ", options.profile));
  AddText(command, "--routes", options.routes,
          "shortest, dimension-order, or a file as dump_lfts or ibroute prints it, or a directory "
          "of such");
  AddText(command, "--load", options.load, "Utilisation of links");
}

absl::StatusOr<Snapshot> LoadSnapshot(const TreeOptions& options) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Fabric> fabric, LoadFabric(options.fabric));
  return LoadSnapshot(options, std::move(fabric));
}

absl::StatusOr<Snapshot> LoadSnapshot(const TreeOptions& options,
                                      std::shared_ptr<const Fabric> fabric) {
  Snapshot snapshot;
  snapshot.fabric = std::move(fabric);
  snapshot.hierarchy = DeriveHierarchy(*snapshot.fabric);
  if (options.routes == "shortest") {
    snapshot.routes = Routes::ShortestPaths(snapshot.fabric);
  } else if (options.routes == "dimension-order") {
    ASSIGN_OR_RETURN(snapshot.routes, Routes::DimensionOrder(snapshot.fabric));
  } else {
    auto tables = ReadTables(*snapshot.fabric, options.routes);
    RETURN_IF_ERROR(Annotate(tables.status(), "--routes"));
    ASSIGN_OR_RETURN(snapshot.routes,
                     Routes::FromTables(snapshot.fabric, std::make_shared<const ForwardingTables>(
                                                             *std::move(tables))));
  }
  std::vector<float> load;
  if (!options.load.empty()) {
    auto read = LoadFromFile(*snapshot.fabric, options.load);
    RETURN_IF_ERROR(Annotate(read.status(), "--load"));
    load = *std::move(read);
  }
  snapshot.load = std::make_shared<const LinkLoad>(load);
  return snapshot;
}

absl::StatusOr<std::vector<SwitchIndex>> LoadFullSwitches(const TreeOptions& options,
                                                          const Fabric& fabric) {
  if (options.full_switches.empty()) return std::vector<SwitchIndex>();
  auto read = SwitchesFromFile(fabric, options.full_switches);
  RETURN_IF_ERROR(Annotate(read.status(), "--full-switches"));
  return read;
}

absl::StatusOr<CostProfile> LoadProfile(const std::string& name) {
  absl::StatusOr<CostProfile> built_in = BuiltInProfile(name);
  if (built_in.ok()) return built_in;
  const absl::StatusOr<std::string> text = ReadTextFile(name);
  if (text.ok()) return ParseProfile(*text, name);
  // With a slash it is meant as a file's name.
  const bool is_a_word = absl::IsNotFound(text.status()) && !absl::StrContains(name, '/');
  if (!is_a_word) return Annotate(text.status(), "--profile");
  return absl::InvalidArgumentError(absl::StrCat("--profile ", name, ": neither a file nor one of ",
                                                 absl::StrJoin(BuiltInProfileNames(), ", ")));
}

}  // namespace coppice
