#include "daemon/tools/tree_options.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/forwarding_tables.h"
#include "daemon/tools/command.h"
#include "daemon/tools/tree_inputs.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

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
    const absl::Status read = reader.Read(text);
    if (!read.ok()) return absl::Status(read.code(), absl::StrCat(file, ": ", read.message()));
  }
  if (reader.skipped() > 0) {
    std::cerr << path << ": passed over " << reader.skipped()
              << (reader.skipped() == 1 ? " line" : " lines")
              << " in which ibroute says that it failed (iberror)\n";
  }
  return reader.Take();
}

}  // namespace

const char kTreeFilesHelp[] =
    "Files (- is standard input; blank lines and lines that begin with # are skipped):\n"
    "  --members        one endpoint a line in rank order: host, host/port or port GUID;\n"
    "                   or no file but a list, n[001-128,130];\n"
    "                   repeated lines are several ranks on one port\n"
    "  --full-switches  one switch a line: GUID or description\n"
    "  --load           NODE-GUID PORT UTILISATION a line: how busy, 0 to 1, the direction is "
    "that\n"
    "                   leaves that port of that switch or adapter\n"
    "In --members and --load a blank and # begin a comment.";

void AddFabricOptions(CLI::App& command, TreeOptions& options) {
  AddCount(command, "--switch-degree", options.switch_degree,
           absl::StrCat("most children of a switch in one tree; default ", kDefaultSwitchDegree));
  AddCount(command, "--entries", options.entries,
           absl::StrCat("tree entries of every switch; default ", kDefaultEntries));
  AddText(command, "--full-switches", options.full_switches, "switches with no free entry");
  AddText(command, "--profile", options.profile,
          absl::StrCat("costs: a TOML file or one of ", absl::StrJoin(BuiltInProfileNames(), ", "),
                       "; default ", options.profile));
  AddText(command, "--routes", options.routes,
          "shortest, dimension-order, or a file as dump_lfts or ibroute prints it, or a directory "
          "of such");
  AddText(command, "--load", options.load, "utilisation of links");
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
    ASSIGN_OR_RETURN(ForwardingTables tables, ReadTables(*snapshot.fabric, options.routes));
    ASSIGN_OR_RETURN(snapshot.routes,
                     Routes::FromTables(snapshot.fabric, std::make_shared<const ForwardingTables>(
                                                             std::move(tables))));
  }
  std::vector<float> load;
  if (!options.load.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.load));
    ASSIGN_OR_RETURN(load, ReadLinkLoad(*snapshot.fabric, text, options.load));
  }
  snapshot.load = std::make_shared<const LinkLoad>(load);
  return snapshot;
}

absl::StatusOr<std::vector<SwitchIndex>> LoadFullSwitches(const TreeOptions& options,
                                                          const Fabric& fabric) {
  if (options.full_switches.empty()) return std::vector<SwitchIndex>();
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.full_switches));
  return ReadSwitches(fabric, text, options.full_switches);
}

absl::StatusOr<CostProfile> LoadProfile(const std::string& name) {
  absl::StatusOr<CostProfile> built_in = BuiltInProfile(name);
  if (built_in.ok()) return built_in;
  const absl::StatusOr<std::string> text = ReadTextFile(name);
  if (text.ok()) return ParseProfile(*text, name);
  if (!absl::IsNotFound(text.status())) return text.status();
  return absl::NotFoundError(absl::StrCat("--profile ", name, ": neither a file nor one of ",
                                          absl::StrJoin(BuiltInProfileNames(), ", ")));
}

}  // namespace coppice
