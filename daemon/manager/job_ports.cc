#include "daemon/manager/job_ports.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"

namespace coppice {
namespace {

constexpr char kHowToName[] =
    ": --partition, coppice-partition= in the comment of a job of Slurm, COPPICE_PARTITION for a "
    "program of MPI, `partition` of the API";

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

// Marks what the tables refuse, which no routes mend.
constexpr char kPartitionPayload[] = "coppice.partition";

absl::Status Refusal(std::string message) {
  absl::Status status = absl::FailedPreconditionError(std::move(message));
  status.SetPayload(kPartitionPayload, absl::Cord());
  return status;
}

absl::Status TableUnknown(const Snapshot& snapshot, Guid port) {
  return Refusal(absl::StrCat("port ", NameOf(snapshot, port),
                              ": its table of partitions could not be read; sweep again "
                              "(coppicectl fabric sweep), or leave it out"));
}

// "name n3/2 of the host, which is, ", or "": a host's name stands for its first port.
std::string OtherPort(const Snapshot& snapshot, PartitionNum partition, Guid port) {
  const Fabric& fabric = *snapshot.fabric;
  const auto endpoint = fabric.FindEndpoint(port);
  if (!endpoint) return "";
  for (const EndpointIndex other : fabric.endpoints_of_host(fabric.adapter(*endpoint).host)) {
    if (snapshot.partitions->Of(fabric.endpoint(other).port_guid, partition) == Membership::kNone) {
      continue;
    }
    return absl::StrCat("name ", EndpointName(fabric, other), " of the host, which is, ");
  }
  return "";
}

absl::Status NotInPartition(const Snapshot& snapshot, PartitionNum partition, Guid port) {
  if (!snapshot.partitions->IsKnown(port)) return TableUnknown(snapshot, port);
  return Refusal(absl::StrCat("partition ", ToString(partition), ": port ", NameOf(snapshot, port),
                              " is not in it; ", OtherPort(snapshot, partition, port),
                              "add it in the subnet manager's partitions.conf, or leave it out"));
}

// The ports of several ranks, one at least.
absl::Status AllLimited(const Snapshot& snapshot, PartitionNum partition,
                        absl::Span<const Guid> ports) {
  const auto other =
      std::find_if(ports.begin(), ports.end(), [&](Guid port) { return port != ports.front(); });
  const std::string begin =
      absl::StrCat("partition ", ToString(partition), ": port", other == ports.end() ? " " : "s ",
                   NameOf(snapshot, ports.front()));
  if (other == ports.end()) {
    return Refusal(absl::StrCat(begin,
                                " of all ranks is a limited member, by which they cannot speak; "
                                "make it a full member, or add one that is"));
  }
  return Refusal(absl::StrCat(begin, " and ", NameOf(snapshot, *other),
                              " are limited members, as all that are asked for, and cannot speak; "
                              "make one of them a full member, or add one that is"));
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
  return AllLimited(snapshot, partition, ports);
}

// Of distinct ports: those that all are in, or the first port that has none in common with those
// before it.
absl::StatusOr<std::vector<PartitionNum>> CommonPartitions(const Snapshot& snapshot,
                                                           absl::Span<const Guid> ports) {
  std::vector<PartitionNum> common = PartitionsOf(snapshot.partitions->TableOf(ports.front()));
  for (const Guid port : ports) {
    if (!snapshot.partitions->IsKnown(port)) return TableUnknown(snapshot, port);
    const absl::Span<const uint16_t> table = snapshot.partitions->TableOf(port);
    std::vector<PartitionNum> rest = common;
    std::erase_if(rest, [&](PartitionNum partition) {
      return std::none_of(table.begin(), table.end(),
                          [&](uint16_t key) { return PartitionOf(key) == partition; });
    });
    if (rest.empty()) {
      return Refusal(
          absl::StrCat("no partition has all ports: ", NameOf(snapshot, port), " is in ",
                       ListOf(PartitionsOf(table)), ", and those before it share ", ListOf(common),
                       ", as ", NameOf(snapshot, ports.front()),
                       "; leave one of them out, or see `coppicectl fabric partitions`"));
    }
    common = std::move(rest);
  }
  return common;
}

// Those in which all can speak, one at least, ascending. `ports`: of each rank, one at least.
absl::StatusOr<std::vector<PartitionNum>> UsablePartitions(const Snapshot& snapshot,
                                                           absl::Span<const Guid> ports) {
  ASSIGN_OR_RETURN(const std::vector<PartitionNum> common,
                   CommonPartitions(snapshot, Distinct(ports)));
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

absl::StatusOr<PartitionNum> PartitionOfPair(const Snapshot& snapshot, Guid a, Guid b,
                                             PartitionNum wanted) {
  const Partitions& partitions = *snapshot.partitions;
  if (!partitions.IsKnown(a) || !partitions.IsKnown(b)) return wanted;
  if (wanted != PartitionNum()) {
    RETURN_IF_ERROR(CheckPartition(snapshot, {a, b}, wanted));
    return wanted;
  }
  if (const auto found = partitions.Between(a, b)) return *found;
  return UsablePartitions(snapshot, {a, b}).status();
}

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
  if (ports.empty()) return wanted;
  if (wanted != PartitionNum()) {
    RETURN_IF_ERROR(CheckPartition(snapshot, ports, wanted));
    return wanted;
  }
  ASSIGN_OR_RETURN(std::vector<PartitionNum> usable, UsablePartitions(snapshot, ports));
  if (usable.size() > 1) std::erase(usable, kDefaultPartition);
  if (usable.size() == 1) return usable.front();
  return Refusal(absl::StrCat("the ports are in partitions ", ListOf(usable),
                              " together; name the one that is meant", kHowToName));
}

absl::StatusOr<PartitionNum> PartitionOfOldJob(const Snapshot& snapshot, const JobRecord& job) {
  std::vector<Guid> known = job.endpoints;
  std::erase_if(known, [&](Guid port) { return !snapshot.partitions->IsKnown(port); });
  if (known.empty()) return PartitionNum();
  ASSIGN_OR_RETURN(const std::vector<PartitionNum> usable, UsablePartitions(snapshot, known));
  const bool has_default =
      std::find(usable.begin(), usable.end(), kDefaultPartition) != usable.end();
  return has_default ? kDefaultPartition : usable.front();
}

bool IsOfPartition(const absl::Status& status) {
  return status.GetPayload(kPartitionPayload).has_value();
}

std::shared_ptr<const HostPartitions> FindHostPartitions(const Snapshot& snapshot) {
  auto found = std::make_shared<HostPartitions>();
  const Fabric& fabric = *snapshot.fabric;
  std::vector<Guid> ports;
  for (uint32_t h = 0; h < fabric.host_count(); ++h) {
    const absl::Span<const EndpointIndex> cabled = fabric.endpoints_of_host(HostIndex(h));
    if (cabled.empty()) continue;
    const Guid port = fabric.endpoint(cabled.front()).port_guid;
    if (!snapshot.partitions->IsKnown(port)) continue;
    ports.push_back(port);
    for (const PartitionNum partition : PartitionsOf(snapshot.partitions->TableOf(port))) {
      if (snapshot.partitions->Of(port, partition) != Membership::kFull) continue;
      found->full_members[partition].emplace_back(h);
    }
  }
  found->of_all = ChoosePartition(snapshot, ports, PartitionNum());
  return found;
}

std::shared_ptr<const JobPorts> FindJobPorts(const Snapshot& snapshot, const JobRecord& job,
                                             const absl::StatusOr<PartitionNum>& partition) {
  const Fabric& fabric = *snapshot.fabric;
  auto ports = std::make_shared<JobPorts>();
  ports->fabric_version = fabric.version();
  ports->endpoints.reserve(job.endpoints.size());
  for (const Guid guid : job.endpoints) {
    ports->endpoints.push_back(fabric.FindEndpoint(guid).value_or(JobPorts::kGone));
  }
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
  std::vector<Guid> limited(count);
  for (size_t i = 0; i < count; ++i) limited[i] = job.endpoints[rank_at(i)];
  return AllLimited(snapshot, ports.partition, limited);
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
    if (membership == Membership::kFull || !snapshot.partitions->IsKnown(guid)) continue;
    if (membership == Membership::kLimited && !is_inner[node]) continue;
    return Refusal(absl::StrCat(
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
      return Refusal(absl::StrCat(
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
