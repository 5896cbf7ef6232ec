// Where a job's ranks are in one published fabric, and what its partition lets their ports do (IBA
// vol. 1, 10.9).
//
// A job has one partition, which all its ports are in and one of them at least as a full member, so
// that they can speak. Its trees stay in it:
//
//   full member     may have children
//   limited member  speaks with full members only: a leaf
//   switch          serves if its port 0 is a full member; OpenSM's partitions.conf makes it one by
//                   "ALL_SWITCHES=full"
//   switch port     that looks at keys lets the partition's pass, both ways
//
// A port whose table was never read may have any key: nothing new is granted to it, and what it has
// is left alone.
//
// Where no port tells its table, as on a fabric from a file, jobs have no partition and nothing is
// kept from anybody.
#ifndef COPPICE_DAEMON_MANAGER_JOB_PORTS_H_
#define COPPICE_DAEMON_MANAGER_JOB_PORTS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/partitions.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/link_use.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_plan.h"
#include "db/store.h"

namespace coppice {

// The partition of a job on these ports: `wanted` or, if that is 0, the one that all of them share
// and can speak in, the default partition only if there is no other. 0: no port tells its table.
// `ports` has one for each rank. FAILED_PRECONDITION names the port that is not in it or whose
// table is not known, two that are limited members both (or the one of all ranks that is), two that
// have none in common, or the partitions among which to choose. O(ports).
absl::StatusOr<PartitionNum> ChoosePartition(const Snapshot& snapshot, absl::Span<const Guid> ports,
                                             PartitionNum wanted);
// In which two ports are to speak: `wanted` or, if that is 0, as Partitions::Between. 0: the table
// of one is not known, and none is wanted. FAILED_PRECONDITION names both and the partition.
absl::StatusOr<PartitionNum> PartitionOfPair(const Snapshot& snapshot, Guid a, Guid b,
                                             PartitionNum wanted);
// FAILED_PRECONDITION, as ChoosePartition: no partition lets all these ports speak. O(ports).
absl::Status CheckSpeaking(const Snapshot& snapshot, absl::Span<const Guid> ports);
// Of a job that an earlier release registered and that can name none any more: the default
// partition if its ports can speak there, else of those in which they can that of the lowest
// number. Ports whose tables are not known do not count; 0: none counts.
absl::StatusOr<PartitionNum> PartitionOfOldJob(const Snapshot& snapshot, const JobRecord& job);
// `status` that ChoosePartition, PartitionOfOldJob, CheckMemberships or CheckPassage refused with:
// other routes would not help.
bool IsOfPartition(const absl::Status& status);

// The hosts whose first ports, which placements give to jobs, are full members of each partition.
struct HostPartitions {
  absl::StatusOr<PartitionNum> of_all = PartitionNum();  // as ChoosePartition, of all hosts
  absl::flat_hash_map<PartitionNum, std::vector<HostIndex>> full_members;  // ascending
};
// O(keys of all hosts).
std::shared_ptr<const HostPartitions> FindHostPartitions(const Snapshot& snapshot);

struct JobPorts {
  static constexpr EndpointIndex kGone{0xffffffff};
  uint64_t fabric_version = 0;
  std::vector<EndpointIndex> endpoints;  // [rank]; kGone: the port is not in that fabric
  PartitionNum partition;                // 0: none, whoever wants may speak
  std::vector<Membership> memberships;   // [rank]; empty without a partition
  // Whose port 0 is no full member; none without a partition.
  std::vector<SwitchIndex> foreign_switches;
  absl::Status no_partition;  // why no tree can be granted to the job; OK if it has a partition
  bool is_foreign(SwitchIndex s) const {
    return std::binary_search(foreign_switches.begin(), foreign_switches.end(), s);
  }
};

// `partition` is the job's. O(ranks + switches).
std::shared_ptr<const JobPorts> FindJobPorts(const Snapshot& snapshot, const JobRecord& job,
                                             const absl::StatusOr<PartitionNum>& partition);

// Into request.members and request.leaf_ranks, those ranks of the job (empty: all), which it has.
// FAILED_PRECONDITION: a port is gone, not in the job's partition or of an unknown table, or all of
// several are limited members (names two and the partition). A tree of type II would let these
// reduce; but whoever is granted a tree does without when it is revoked, and without it they cannot
// speak.
absl::Status FillMembers(const Snapshot& snapshot, const JobRecord& job, const JobPorts& ports,
                         absl::Span<const uint32_t> ranks, TreeRequest& request);

// What the partition has made of a tree, as a part of its reason or refusal: "" or from "; " on.
// `barred_switches` have entries, and are foreign.
std::string PartitionWords(const JobPorts& ports, uint32_t barred_switches,
                           const TreeRequest& request, TreeType type);

// FAILED_PRECONDITION: a node of the tree that is not in the partition, for all that is known, one
// with children that is
// not a full member, or a port of a switch on the way that does not let the partition pass. `uses`
// is what the tree's messages cross. OK for a partition of 0.
absl::Status CheckMemberships(const Snapshot& snapshot, PartitionNum partition,
                              const AggregationTree& tree);
absl::Status CheckPassage(const Snapshot& snapshot, PartitionNum partition,
                          absl::Span<const ChannelUse> uses);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_JOB_PORTS_H_
