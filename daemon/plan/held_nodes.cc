#include "daemon/tools/place_inputs.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/node_list.h"
#include "daemon/mapping/input/pattern_file.h"
#include "daemon/placement/job_links.h"
#include "daemon/tools/command.h"
#include "daemon/tools/map_options.h"
#include "daemon/tools/tree_inputs.h"
#include "daemon/tools/tree_options.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

double* TermOf(absl::string_view name, PlacementObjective& objective) {
  const std::string wanted = absl::StrReplaceAll(name, {{"-", "_"}});
  for (const PlacementTerm& term : kPlacementTerms) {
    if (wanted == term.name) return &(objective.*term.weight);
  }
  return nullptr;
}

// "leaf-switches=1, pods=4, ...": each with its weight by default, on as many lines as it takes.
std::string TermNames() {
  return absl::StrJoin(kPlacementTerms, ", ", [](std::string* out, const PlacementTerm& term) {
    absl::StrAppend(out, absl::StrReplaceAll(term.name, {{"_", "-"}}), "=", term.preset);
  });
}

void AddNodeOptions(CLI::App& command, PlaceOptions& options) {
  AddText(command, "--fabric", options.fabric, "file:PATH or model:NAME(ARGUMENT=VALUE,...)")
      ->required();
  AddCount(command, "--nodes", options.nodes, "how many nodes")->required();
  AddText(command, "--candidates", options.candidates,
          "nodes to choose from: a list or a file; default all that nobody holds");
  AddText(command, "--include", options.include, "nodes that must be among them");
  AddText(command, "--avoid", options.avoid, "nodes that must not");
  AddCount(command, "--nodes-per-leaf", options.nodes_per_leaf,
           "exactly so many on every leaf switch used, the last one excepted");
  AddCount(command, "--max-nodes-per-leaf", options.max_nodes_per_leaf,
           "at most so many on a leaf switch");
  AddCount(command, "--max-leaf-switches", options.max_leaf_switches, "leaf switches at most");
  AddCount(command, "--min-leaf-switches", options.min_leaf_switches, "leaf switches at least");
  AddCount(command, "--min-pods", options.min_pods, "pods at least");
  command.add_flag("--same-pod", options.same_pod, "all of one pod");
  command.add_flag("--exclusive-switches", options.exclusive_switches,
                   "of leaf switches that nobody else holds nodes of");
}

void AddMachineOptions(CLI::App& command, PlaceOptions& options) {
  AddText(command, "--held", options.held, "who holds what: a file");
  AddText(command, "--down", options.down, "nodes that are not to be given: a list or a file");
  AddText(command, "--routes", options.routes,
          "shortest, dimension-order, or a file as dump_lfts or ibroute prints it, or a directory "
          "of such");
  AddText(command, "--load", options.load, "utilisation of links: a file, as for tree");
  AddCount(command, "--entries", options.entries,
           "aggregation entries left in every switch; default enough");
  AddText(command, "--full-switches", options.full_switches,
          "switches without an entry left: a file, as for tree");
}

void AddJobOptions(CLI::App& command, PlaceOptions& options) {
  AddCount(command, "--trees", options.trees, "type II trees that the job will ask for");
  AddText(command, "--pattern", options.pattern, "who sends how much to whom: a file, as for map");
  AddCount(command, "--ranks-per-node", options.ranks_per_node, "with --pattern; default 1");
  command.add_option("--budget", options.budget, "time for a search with a pattern; default 1s")
      ->check(Understood(ParseBudget, "a duration such as 500ms"));
  command
      .add_option("--weights", options.weights,
                  absl::StrCat("of the terms of the cost, as pods=4,leaf-switches=1; default ",
                               TermNames()))
      ->check([](const std::string& text) {
        return ParseWeights(text) ? std::string()
                                  : absl::StrCat("\"", text,
                                                 "\" is not a list of weights such as "
                                                 "pods=4,leaf-switches=1");
      });
  AddCount(command, "--seed", options.seed, "of all that is random; default 1");
  command.add_flag("--json", options.json, "print JSON");
}

}  // namespace

void AddPlacementOptions(CLI::App& command, PlaceOptions& options) {
  AddNodeOptions(command, options);
  AddMachineOptions(command, options);
  AddJobOptions(command, options);
}

std::optional<PlacementObjective> ParseWeights(absl::string_view text) {
  PlacementObjective objective;
  absl::flat_hash_set<std::string> seen;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const auto one = ParseParameter(part);
    if (!one || !std::isfinite(one->second) || one->second < 0) return std::nullopt;
    double* const term = TermOf(one->first, objective);
    if (term == nullptr || !seen.insert(one->first).second) return std::nullopt;
    *term = one->second;
  }
  if (objective == PlacementObjective{}) return std::nullopt;
  return objective;
}

namespace {

constexpr size_t kNamed = 3;  // unknown hosts that an error lists

absl::StatusOr<std::vector<HostIndex>> ResolveHosts(const Fabric& fabric, absl::string_view list) {
  // A host may be called by what reads as a list.
  if (const auto whole = fabric.FindHost(list)) return std::vector<HostIndex>{*whole};
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ParseNodeList(list));
  std::vector<HostIndex> hosts;
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    if (const auto host = fabric.FindHost(name)) {
      hosts.push_back(*host);
    } else {
      unknown.push_back(name);
    }
  }
  if (unknown.empty()) return hosts;
  const size_t count = unknown.size();
  unknown.resize(std::min(count, kNamed));
  return absl::NotFoundError(absl::StrCat("the fabric has no host ", absl::StrJoin(unknown, ", "),
                                          count > kNamed ? ", ..." : ""));
}

absl::StatusOr<std::vector<HostIndex>> LoadHostList(const Fabric& fabric, const std::string& value,
                                                    const char* option) {
  if (value.empty()) return std::vector<HostIndex>();
  ASSIGN_OR_RETURN(const std::string text, ReadNodesText(value));
  return ReadHostList(fabric, text, text == value ? option : value);
}

// Each line that says something, with its number from 1.
template <class Visit>
absl::Status ForEachListLine(absl::string_view text, const Visit& visit) {
  uint32_t number = 0;
  for (const absl::string_view whole : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(whole);
    if (line.empty() || line.front() == '#') continue;
    RETURN_IF_ERROR(visit(line, number));
  }
  return absl::OkStatus();
}

absl::Status LoadOccupancy(const PlaceOptions& options, PlaceQuestion& question) {
  const Fabric& fabric = *question.snapshot->fabric;
  Occupancy& occupancy = question.occupancy;
  occupancy.holder.assign(fabric.host_count(), Occupancy::kFree);
  if (!options.held.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.held));
    ASSIGN_OR_RETURN(occupancy.holder, ReadHolders(fabric, text, options.held));
  }
  std::vector<std::vector<HostIndex>> hosts_of;
  for (uint32_t h = 0; h < occupancy.holder.size(); ++h) {
    const uint32_t holder = occupancy.holder[h];
    if (holder >= hosts_of.size()) hosts_of.resize(holder + 1);
    if (holder != Occupancy::kFree) hosts_of[holder].push_back(HostIndex(h));
  }
  for (const auto& hosts : hosts_of) {
    if (!hosts.empty()) {
      AddHolder(*question.snapshot, *question.index, hosts, occupancy.channel_users);
    }
  }
  ASSIGN_OR_RETURN(const auto down, LoadHostList(fabric, options.down, "--down"));
  occupancy.is_out.assign(fabric.host_count(), false);
  for (const HostIndex h : down) occupancy.is_out[h.value()] = true;
  if (!options.entries && options.full_switches.empty()) return absl::OkStatus();
  occupancy.entries_left.assign(fabric.switch_count(), options.entries.value_or(UINT32_MAX));
  if (options.full_switches.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.full_switches));
  ASSIGN_OR_RETURN(const auto full, ReadSwitches(fabric, text, options.full_switches));
  for (const SwitchIndex s : full) occupancy.entries_left[s.value()] = 0;
  return absl::OkStatus();
}

absl::Status LoadRequest(const PlaceOptions& options, const Fabric& fabric,
                         PlacementRequest& request) {
  PlacementConstraints& c = request.constraints;
  c.host_count = options.nodes.value_or(0);
  ASSIGN_OR_RETURN(c.candidates, LoadHostList(fabric, options.candidates, "--candidates"));
  ASSIGN_OR_RETURN(c.include, LoadHostList(fabric, options.include, "--include"));
  ASSIGN_OR_RETURN(c.avoid, LoadHostList(fabric, options.avoid, "--avoid"));
  if (!options.candidates.empty() && c.candidates.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--candidates ", options.candidates,
                                                   " names no node: leave the option out "
                                                   "to choose from all that nobody holds"));
  }
  c.hosts_per_leaf = options.nodes_per_leaf.value_or(0);
  c.max_hosts_per_leaf = options.max_nodes_per_leaf.value_or(0);
  c.max_leaf_switches = options.max_leaf_switches.value_or(0);
  c.min_leaf_switches = options.min_leaf_switches.value_or(0);
  c.min_pods = options.min_pods.value_or(0);
  c.same_pod = options.same_pod;
  c.exclusive_switches = options.exclusive_switches;
  if (!options.weights.empty()) request.objective = *ParseWeights(options.weights);
  request.trees = options.trees.value_or(0);
  request.ranks_per_host = options.ranks_per_node.value_or(1);
  request.seed = options.seed.value_or(1);
  if (options.pattern.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.pattern));
  ASSIGN_OR_RETURN(request.pattern, ReadPattern(text, options.pattern));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<HostIndex>> ReadHostList(const Fabric& fabric, absl::string_view text,
                                                    absl::string_view origin) {
  std::vector<HostIndex> hosts;
  RETURN_IF_ERROR(ForEachListLine(text, [&](absl::string_view line, uint32_t number) {
    const auto found = ResolveHosts(fabric, line);
    if (found.ok()) hosts.insert(hosts.end(), found->begin(), found->end());
    return Annotate(found.status(), absl::StrCat(origin, ", line ", number));
  }));
  return hosts;
}

absl::StatusOr<std::vector<uint32_t>> ReadHolders(const Fabric& fabric, absl::string_view text,
                                                  absl::string_view origin) {
  std::vector<uint32_t> holder(fabric.host_count(), Occupancy::kFree);
  absl::flat_hash_map<std::string, uint32_t> numbers;
  const auto add = [&](absl::string_view line) -> absl::Status {
    const size_t blank = line.find_last_of(" \t");
    if (blank == absl::string_view::npos) {
      return absl::InvalidArgumentError("not NODES HOLDER, as in: n[001-128] job7");
    }
    const std::string name(line.substr(blank + 1));
    const uint32_t number = numbers.try_emplace(name, numbers.size() + 1).first->second;
    ASSIGN_OR_RETURN(const auto hosts,
                     ResolveHosts(fabric, absl::StripAsciiWhitespace(line.substr(0, blank))));
    for (const HostIndex h : hosts) {
      if (holder[h.value()] != Occupancy::kFree) {
        return absl::InvalidArgumentError(
            absl::StrCat("host ", fabric.host_name(h), " is held twice: name each once"));
      }
      holder[h.value()] = number;
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachListLine(text, [&](absl::string_view line, uint32_t number) {
    return Annotate(add(line), absl::StrCat(origin, ", line ", number));
  }));
  return holder;
}

absl::StatusOr<PlaceQuestion> LoadPlaceQuestion(const PlaceOptions& options) {
  TreeOptions source;
  source.fabric = options.fabric;
  source.routes = options.routes;
  source.load = options.load;
  ASSIGN_OR_RETURN(Snapshot loaded, LoadSnapshot(source));
  PlaceQuestion question;
  question.snapshot = std::make_shared<const Snapshot>(std::move(loaded));
  question.index = PlacementIndex::Make(*question.snapshot);
  RETURN_IF_ERROR(LoadOccupancy(options, question));
  RETURN_IF_ERROR(LoadRequest(options, *question.snapshot->fabric, question.request));
  return question;
}

}  // namespace coppice
