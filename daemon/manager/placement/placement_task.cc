#include "daemon/manager/placement/placement_task.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/fabric/node_list.h"
#include "daemon/manager/fingerprint.h"

namespace coppice {
namespace {

constexpr size_t kMostNamesTold = 5;
constexpr uint32_t kMostRanksPerNode = 1u << 16;
constexpr absl::Duration kDefaultBudget = absl::Seconds(1);  // placements.proto

void Add(const std::vector<std::string>& names, Fingerprint& fingerprint) {
  fingerprint.Add(uint64_t{names.size()});
  for (const std::string& name : names) fingerprint.Add(name);
}

}  // namespace

absl::Status CheckTask(const PlacementTask& task) {
  if (task.constraints.host_count == 0) {
    return absl::InvalidArgumentError("node_count: ask for at least one node");
  }
  if (task.ranks_per_node == 0 || task.ranks_per_node > kMostRanksPerNode) {
    return absl::InvalidArgumentError(
        absl::StrCat("ranks_per_node: ", task.ranks_per_node, "; give 1 to ", kMostRanksPerNode));
  }
  if (task.budget < absl::ZeroDuration() || task.budget > kLongestBudget) {
    return absl::InvalidArgumentError(absl::StrCat("budget: ", absl::FormatDuration(task.budget),
                                                   "; give 1ms to ",
                                                   absl::FormatDuration(kLongestBudget)));
  }
  return absl::OkStatus();
}

absl::Duration CallBudget::NextOf(const PlacementTask& task) {
  const absl::Duration wanted = task.budget == absl::ZeroDuration() ? kDefaultBudget : task.budget;
  if (task.pattern == nullptr) return wanted;  // nothing to search for
  const absl::Duration left = std::max(end_ - clock_->Monotonic(), absl::ZeroDuration());
  const absl::Duration share = left / static_cast<double>(std::max<size_t>(searches_, 1));
  if (searches_ > 0) --searches_;
  return std::min(wanted, share);
}

absl::Status CallBudget::Check() const {
  if (clock_->Monotonic() < latest_) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("requests: planned for ",
                                                  absl::FormatDuration(2 * kLongestBudget),
                                                  " without an end; ask for fewer at once"));
}

absl::StatusOr<std::vector<HostIndex>> ReadNodes(const Fabric& fabric,
                                                 const std::vector<std::string>& names,
                                                 absl::string_view field) {
  ASSIGN_OR_RETURN(const std::vector<std::string> nodes,
                   ExpandEndpointNames(fabric, names, kMaxListedNodes, field));
  if (const std::optional<size_t> twice = FindRepeated(nodes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": node ", nodes[*twice], " is named twice; name it once"));
  }
  std::vector<HostIndex> hosts;
  std::vector<absl::string_view> unknown;
  for (const std::string& node : nodes) {
    const std::optional<HostIndex> host = fabric.FindHost(node);
    if (host) {
      hosts.push_back(*host);
    } else {
      unknown.push_back(node);
    }
  }
  if (unknown.empty()) return hosts;
  const size_t told = std::min(unknown.size(), kMostNamesTold);
  return absl::NotFoundError(absl::StrCat(
      field, ": the fabric has no node ",
      absl::StrJoin(unknown.begin(), unknown.begin() + told, ", "),
      unknown.size() > told ? absl::StrCat(" and ", unknown.size() - told, " more") : "",
      "; `coppicectl fabric nodes` lists those that it has"));
}

absl::StatusOr<PlacementRequest> ReadTask(const Fabric& fabric, const PlacementTask& task,
                                          const PlacementObjective& weights) {
  PlacementRequest request;
  request.constraints = task.constraints;
  ASSIGN_OR_RETURN(request.constraints.candidates,
                   ReadNodes(fabric, task.candidates, "candidates"));
  ASSIGN_OR_RETURN(request.constraints.include, ReadNodes(fabric, task.include, "include"));
  ASSIGN_OR_RETURN(request.constraints.avoid, ReadNodes(fabric, task.avoid, "avoid"));
  request.objective = task.objective == PlacementObjective{} ? weights : task.objective;
  request.pattern = task.pattern;
  request.ranks_per_host = task.ranks_per_node;
  request.trees = task.trees;
  request.seed = task.seed;
  return request;
}

uint64_t FingerprintOf(const CreatePlacementArgs& args) {
  const PlacementTask& task = args.task;
  const PlacementConstraints& c = task.constraints;
  const PlacementObjective& o = task.objective;
  Fingerprint fingerprint;
  fingerprint.Add(args.display_name).Add(args.owner);
  fingerprint.Add(args.term ? absl::ToDoubleSeconds(*args.term) : 0.0);
  for (const auto* names : {&task.candidates, &task.include, &task.avoid}) Add(*names, fingerprint);
  for (const uint32_t number :
       {c.host_count, c.hosts_per_leaf, c.max_hosts_per_leaf, c.max_leaf_switches,
        c.min_leaf_switches, c.min_pods, task.ranks_per_node, task.trees}) {
    fingerprint.Add(uint64_t{number});
  }
  fingerprint.Add(uint64_t{c.same_pod}).Add(uint64_t{c.exclusive_switches});
  for (const double weight : {o.leaf_switches, o.pods, o.distance, o.shared_links, o.load,
                              o.entries, o.fragmentation, o.traffic}) {
    fingerprint.Add(weight);
  }
  fingerprint.Add(task.pattern_name).Add(task.seed);
  fingerprint.Add(absl::ToDoubleSeconds(task.budget));
  if (task.pattern != nullptr && task.pattern_name.empty()) {
    fingerprint.Add(uint64_t{task.pattern->rank_count()}).Add(uint64_t{task.pattern->pair_count()});
    fingerprint.Add(task.pattern->total_bytes());
  }
  return fingerprint.value();
}

}  // namespace coppice
