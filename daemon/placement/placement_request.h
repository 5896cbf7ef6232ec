// What is asked of a placement, and who holds which hosts when it is planned: plain values in
// indices of one fabric.
#ifndef COPPICE_DAEMON_PLACEMENT_PLACEMENT_REQUEST_H_
#define COPPICE_DAEMON_PLACEMENT_PLACEMENT_REQUEST_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/fabric/fabric.h"
#include "daemon/mapping/pattern.h"
#include "daemon/placement/placement_terms.h"

namespace coppice {

// What must hold of the hosts; 0 or empty: no such demand. A host's leaf switch and pod are those
// of its first endpoint (levels 1 and 2 of the hierarchy; without a level between leaf switch and
// component, and on grids, whose lines are no pods, the component counts as the pod). Whatever is
// asked for, the hosts have paths to each other.
struct PlacementConstraints {
  uint32_t host_count = 0;
  std::vector<HostIndex> candidates;  // distinct; empty: all hosts that nobody holds
  std::vector<HostIndex> include, avoid;
  uint32_t hosts_per_leaf = 0;  // exactly so many on every leaf switch used, the last one excepted
  uint32_t max_hosts_per_leaf = 0;
  uint32_t max_leaf_switches = 0, min_leaf_switches = 0, min_pods = 0;
  bool same_pod = false;
  bool exclusive_switches = false;  // no leaf switch used has a host that is held
};

struct PlacementRequest {
  PlacementConstraints constraints;
  PlacementObjective objective;
  std::shared_ptr<const Pattern>
      pattern;  // null: unknown; at most host_count * ranks_per_host ranks
  uint32_t ranks_per_host = 1;
  uint32_t trees = 0;  // of type II that the job will ask for
  uint64_t seed = 1;
};

// Who holds which hosts of a fabric, and what is left in its switches, at one instant: what a
// placement is planned against. A plain value that the manager (or a replay) fills; it belongs to
// one fabric and knows no jobs, only that hosts with the same holder communicate.
struct Occupancy {
  static constexpr uint32_t kFree = 0;

  // [host] kFree, or a number of whoever holds it. Two jobs on one host: that of the first.
  std::vector<uint32_t> holder;
  // [host] held by another placement: never given, even if it is named as a candidate.
  std::vector<bool> is_placed;
  // [host] never given: its ports do not answer, or an administrator keeps it out.
  std::vector<bool> is_out;
  // [channel] how many holders' routes use it; empty: not known, counts as none.
  std::vector<uint32_t> channel_users;
  // [switch] aggregation entries left; empty: not known, counts as enough.
  std::vector<uint32_t> entries_left;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PLACEMENT_REQUEST_H_
