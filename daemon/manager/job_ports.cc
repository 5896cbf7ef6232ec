#include "daemon/manager/job_ports.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"

namespace coppice {
namespace {

// "n0003/1 (0002c90300000012)".
std::string NameOf(const Snapshot& snapshot, Guid port) {
  const Fabric& fabric = *snapshot.fabric;
  if (const auto endpoint = fabric.FindEndpoint(port)) {
    return absl::StrCat(EndpointName(fabric, *endpoint), " (", ToString(port), ")");
  }
  if (const auto found = fabric.FindSwitch(port)) {
    return absl::StrCat(ToString(port), " \"", fabric.switch_info(*found).description, "\"");
  }
  return ToString(port);
}

std::string ListOf(absl::Span<const PartitionNum> partitions) {
  std::string list;
  for (const PartitionNum partition : partitions) {
    absl::StrAppend(&list, list.empty() ? "" : ", ", ToString(partition));
  }
  return list.empty() ? "none" : list;
}

// Ascending, each once.
std::vector<PartitionNum> PartitionsOf(absl::Span<const uint16_t> table) {
  std::vector<PartitionNum> partitions;
  for (const uint16_t key : table) {
    if (const auto partition = PartitionOf(key)) partitions.push_back(*partition);
  }
  std::sort(partitions.begin(), partitions.end());
  partitions.erase(std::unique(partitions.begin(), partitions.end()), partitions.end());
  return partitions;
}

absl::Status NotInPartition(const Snapshot& snapshot, PartitionNum partition, Guid port) {
  return absl::FailedPreconditionError(
      absl::StrCat("partition ", ToString(partition), ": port ", NameOf(snapshot, port),
                   " is not in it; add it in the subnet manager's partitions.conf, or leave it "
                   "out"));
}

absl::Status BothLimited(const Snapshot& snapshot, PartitionNum partition, Guid a, Guid b) {
  return absl::FailedPreconditionError(
      absl::StrCat("partition ", ToString(partition), ": ports ", NameOf(snapshot, a), " and ",
                   NameOf(snapshot, b),
                   " are limited members, as all that are asked for, and "
                   "cannot speak; make one of them a full member, or add one that is"));
}

// Each once, in order of their first rank.
std::vector<Guid> Distinct(absl::Span<const Guid> ports) {
  std::vector<Guid> distinct;
  absl::flat_hash_set<Guid> seen;
  for (const Guid port : ports) {
    if (seen.insert(port).second) distinct.push_back(port);
  }
  return distinct;
}

absl::Status CheckPartition(const Snapshot& snapshot, absl::Span<const Guid> ports,
                            PartitionNum partition) {
  bool is_any_full = false;
  for (const Guid port : ports) {
    const Membership membership = snapshot.partitions->Of(port, partition);
    if (membership == Membership::kNone) return NotInPartition(snapshot, partition, port);
    is_any_full |= membership == Membership::kFull;
  }
  if (is_any_full || ports.size() < 2) return absl::OkStatus();
  return BothLimited(snapshot, partition, ports[0], ports[1]);
}

// Of distinct ports: those that all are in, or the first port that has none in common with those
// before it.
absl::StatusOr<std::vector<PartitionNum>> CommonPartitions(const Snapshot& snapshot,
                                                           absl::Span<const Guid> ports) {
  std::vector<PartitionNum> common = PartitionsOf(snapshot.partitions->TableOf(ports.front()));
  for (const Guid port : ports) {
    const absl::Span<const uint16_t> table = snapshot.partitions->TableOf(port);
    std::vector<PartitionNum> rest = common;
    std::erase_if(rest, [&](PartitionNum partition) {
      return std::none_of(table.begin(), table.end(),
                          [&](uint16_t key) { return PartitionOf(key) == partition; });
    });
    if (rest.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("no partition has all ports: ", NameOf(snapshot, port), " is in ",
                       ListOf(PartitionsOf(table)), ", and those before it share ", ListOf(common),
                       ", as ", NameOf(snapshot, ports.front()),
                       "; leave one of them out, or see `coppicectl fabric partitions`"));
    }
    common = std::move(rest);
  }
  return common;
}

// Of distinct ports: those in which all can speak, one at least.
absl::StatusOr<std::vector<PartitionNum>> UsablePartitions(const Snapshot& snapshot,
                                                           absl::Span<const Guid> ports) {
  ASSIGN_OR_RETURN(const std::vector<PartitionNum> common, CommonPartitions(snapshot, ports));
  std::vector<PartitionNum> usable;
  absl::Status why_not;
  for (const PartitionNum partition : common) {
    absl::Status status = CheckPartition(snapshot, ports, partition);
    if (status.ok()) usable.push_back(partition);
    if (why_not.ok() || partition != kDefaultPartition) why_not.Update(std::move(status));
  }
  if (usable.empty()) return why_not;
  return usable;
}

}  // namespace

absl::Status CheckSpeaking(const Snapshot& snapshot, absl::Span<const Guid> ports) {
  if (snapshot.partitions->empty() || ports.empty()) return absl::OkStatus();
  return UsablePartitions(snapshot, Distinct(ports)).status();
}

absl::StatusOr<PartitionNum> ChoosePartition(const Snapshot& snapshot, absl::Span<const Guid> ports,
                                             PartitionNum wanted) {
  if (snapshot.partitions->empty()) {
    if (wanted == PartitionNum()) return wanted;
    return absl::FailedPreconditionError(
        absl::StrCat("partition ", ToString(wanted),
                     ": no port of this fabric tells its partitions; ask without one"));
  }
  const std::vector<Guid> distinct = Distinct(ports);
  if (distinct.empty()) return wanted;
  if (wanted != PartitionNum()) {
    RETURN_IF_ERROR(CheckPartition(snapshot, distinct, wanted));
    return wanted;
  }
  ASSIGN_OR_RETURN(std::vector<PartitionNum> usable, UsablePartitions(snapshot, distinct));
  if (usable.size() > 1) std::erase(usable, kDefaultPartition);
  if (usable.size() == 1) return usable.front();
  return absl::FailedPreconditionError(absl::StrCat("the ports are in partitions ", ListOf(usable),
                                                    " together; name the one that is meant "
                                                    "(--partition)"));
}

absl::StatusOr<PartitionNum> ChoosePartitionFor(const Snapshot& snapshot,
                                                absl::Span<const Guid> ports,
                                                const Accounts& accounts, absl::string_view account,
                                                PartitionNum wanted) {
  if (!snapshot.partitions->empty()) {
    ASSIGN_OR_RETURN(wanted, accounts.PartitionFor(account, wanted));
  }
  return ChoosePartition(snapshot, ports, wanted);
}

absl::StatusOr<PartitionNum> PartitionOfJob(const Snapshot& snapshot, const JobRecord& job) {
  if (snapshot.partitions->empty()) return PartitionNum();
  if (job.partition != PartitionNum()) return job.partition;
  return ChoosePartition(snapshot, job.endpoints, PartitionNum());
}

std::shared_ptr<const HostPartitions> FindHostPartitions(const Snapshot& snapshot) {
  auto found = std::make_shared<HostPartitions>();
  const Fabric& fabric = *snapshot.fabric;
  std::vector<Guid> ports;
  for (uint32_t h = 0; h < fabric.host_count(); ++h) {
    const absl::Span<const EndpointIndex> cabled = fabric.endpoints_of_host(HostIndex(h));
    if (cabled.empty()) continue;
    const Guid port = fabric.endpoint(cabled.front()).port_guid;
    ports.push_back(port);
    for (const PartitionNum partition : PartitionsOf(snapshot.partitions->TableOf(port))) {
      if (snapshot.partitions->Of(port, partition) != Membership::kFull) continue;
      found->full_members[partition].emplace_back(h);
    }
  }
  found->of_all = ChoosePartition(snapshot, ports, PartitionNum());
  return found;
}

std::shared_ptr<const JobPorts> FindJobPorts(const Snapshot& snapshot, const JobRecord& job) {
  const Fabric& fabric = *snapshot.fabric;
  auto ports = std::make_shared<JobPorts>();
  ports->fabric_version = fabric.version();
  ports->endpoints.reserve(job.endpoints.size());
  for (const Guid guid : job.endpoints) {
    ports->endpoints.push_back(fabric.FindEndpoint(guid).value_or(JobPorts::kGone));
  }
  const absl::StatusOr<PartitionNum> partition = PartitionOfJob(snapshot, job);
  ports->no_partition = partition.status();
  ports->partition = partition.value_or(PartitionNum());
  if (ports->partition == PartitionNum()) return ports;
  ports->memberships.reserve(job.endpoints.size());
  for (const Guid guid : job.endpoints) {
    ports->memberships.push_back(snapshot.partitions->Of(guid, ports->partition));
  }
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    const Guid guid = fabric.switch_info(SwitchIndex(s)).guid;
    if (snapshot.partitions->Of(guid, ports->partition) != Membership::kFull) {
      ports->foreign_switches.emplace_back(s);
    }
  }
  return ports;
}

absl::Status FillMembers(const Snapshot& snapshot, const JobRecord& job, const JobPorts& ports,
                         absl::Span<const uint32_t> ranks, TreeRequest& request) {
  RETURN_IF_ERROR(ports.no_partition);
  const size_t count = ranks.empty() ? ports.endpoints.size() : ranks.size();
  request.members.clear();
  request.members.reserve(count);
  request.leaf_ranks.clear();
  const auto rank_at = [&](size_t i) {
    return ranks.empty() ? static_cast<uint32_t>(i) : ranks[i];
  };
  for (size_t i = 0; i < count; ++i) {
    const uint32_t rank = rank_at(i);
    const EndpointIndex endpoint = ports.endpoints[rank];
    if (endpoint == JobPorts::kGone) {
      return absl::FailedPreconditionError(absl::StrCat(
          "rank ", rank, " of job ", job.id.value(), ": its port ", ToString(job.endpoints[rank]),
          " is not in the fabric any more; leave the rank out or bring the port back"));
    }
    request.members.push_back(endpoint);
    if (ports.memberships.empty() || ports.memberships[rank] == Membership::kFull) continue;
    if (ports.memberships[rank] == Membership::kNone) {
      return Annotate(NotInPartition(snapshot, ports.partition, job.endpoints[rank]),
                      absl::StrCat("rank ", rank, " of job ", job.id.value()));
    }
    request.leaf_ranks.push_back(static_cast<uint32_t>(i));
  }
  if (request.leaf_ranks.size() < count || count < 2) {
    if (count < 2) request.leaf_ranks.clear();
    return absl::OkStatus();
  }
  return BothLimited(snapshot, ports.partition, job.endpoints[rank_at(0)],
                     job.endpoints[rank_at(count - 1)]);
}

std::string PartitionWords(const JobPorts& ports, uint32_t barred_switches,
                           const TreeRequest& request, TreeType type) {
  std::string words;
  if (type == TreeType::kTypeI && !request.leaf_ranks.empty()) {
    absl::StrAppend(&words, "; ", request.leaf_ranks.size(), " of ", request.members.size(),
                    " ranks are leaves, as limited members of partition ",
                    ToString(ports.partition));
  }
  if (barred_switches > 0 && request.type != TreeType::kTypeI) {
    absl::StrAppend(&words, "; ", barred_switches,
                    barred_switches == 1 ? " switch cannot serve, as its port 0 is"
                                         : " switches cannot serve, as their ports 0 are",
                    " no full member of partition ", ToString(ports.partition),
                    " (ALL_SWITCHES=full in partitions.conf)");
  }
  return words;
}

absl::Status CheckMemberships(const Snapshot& snapshot, PartitionNum partition,
                              const AggregationTree& tree) {
  if (partition == PartitionNum() || snapshot.partitions->empty()) return absl::OkStatus();
  const Fabric& fabric = *snapshot.fabric;
  std::vector<bool> is_inner(tree.node_count());
  for (const int32_t parent : tree.parents) {
    if (parent != AggregationTree::kNoParent) is_inner[static_cast<size_t>(parent)] = true;
  }
  for (uint32_t node = 0; node < tree.node_count(); ++node) {
    const VertexIndex v = tree.vertices[node];
    const Guid guid = fabric.IsSwitch(v) ? fabric.switch_info(fabric.AsSwitch(v)).guid
                                         : fabric.endpoint(fabric.AsEndpoint(v)).port_guid;
    const Membership membership = snapshot.partitions->Of(guid, partition);
    if (membership == Membership::kFull) continue;
    if (membership == Membership::kLimited && !is_inner[node]) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "partition ", ToString(partition), ": ", fabric.IsSwitch(v) ? "switch " : "port ",
        NameOf(snapshot, guid),
        membership == Membership::kNone ? " is not in it" : " has children as a limited member"));
  }
  return absl::OkStatus();
}

absl::Status CheckPassage(const Snapshot& snapshot, PartitionNum partition,
                          absl::Span<const ChannelUse> uses) {
  if (partition == PartitionNum() || !snapshot.partitions->IsEnforcedAnywhere()) {
    return absl::OkStatus();
  }
  const Fabric& fabric = *snapshot.fabric;
  const auto passes = [&](ChannelIndex leaving, bool outbound) {
    const VertexIndex v = fabric.channel_from(leaving);
    return !fabric.IsSwitch(v) ||
           snapshot.partitions->Passes(fabric.switch_info(fabric.AsSwitch(v)).guid,
                                       fabric.channel_from_port(leaving), partition, outbound);
  };
  for (const ChannelUse& use : uses) {
    for (const bool outbound : {true, false}) {
      const ChannelIndex at = outbound ? use.channel : Fabric::Reverse(use.channel);
      if (passes(at, outbound)) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "partition ", ToString(partition), ": port ", fabric.channel_from_port(at).value(),
          " of switch ",
          NameOf(snapshot, fabric.switch_info(fabric.AsSwitch(fabric.channel_from(at))).guid),
          " does not let it ", outbound ? "out" : "in",
          ", and routes between members lead there; add the switch's port to the partition, or "
          "route around it"));
    }
  }
  return absl::OkStatus();
}

}  // namespace coppice
