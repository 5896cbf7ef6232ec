#include "daemon/tools/place_options.h"

#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/tools/command.h"
#include "daemon/tools/map_options.h"

namespace coppice {
namespace {

double* TermOf(absl::string_view name, PlacementObjective& objective) {
  if (name == "leaf_switches") return &objective.leaf_switches;
  if (name == "pods") return &objective.pods;
  if (name == "distance") return &objective.distance;
  if (name == "shared_links") return &objective.shared_links;
  if (name == "load") return &objective.load;
  if (name == "entries") return &objective.entries;
  if (name == "fragmentation") return &objective.fragmentation;
  if (name == "traffic") return &objective.traffic;
  return nullptr;
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
      ->check([](const std::string& text) {
        return ParseBudget(text) ? std::string()
                                 : absl::StrCat("\"", text, "\" is not a duration such as 500ms");
      });
  command
      .add_option("--weights", options.weights,
                  "of the terms of the cost, as pods=4,leaf_switches=1; terms: leaf_switches, "
                  "pods, distance, shared_links, load, entries, fragmentation, traffic")
      ->check([](const std::string& text) {
        return ParseWeights(text) ? std::string()
                                  : absl::StrCat("\"", text,
                                                 "\" is not a list of weights such as "
                                                 "pods=4,leaf_switches=1");
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

}  // namespace coppice
