// Many communicators planned together, as the rows and columns of a process grid are: who gets a
// type II tree, where its root is and which switches serve, so that all of them share the switches'
// entries and the links (spec: trees, 4, "one batch").
//
// A function of values like PlanTree. Trees are planned on switches alone, with the ranks counted
// at their leaf switches; HangBatchTree hangs the ranks of the trees that somebody wants to see.
//
// Objective, in this order: most communicators admitted; fewest entries; least packets on the most
// loaded link between switches; least sum of squares of all links' packets, which spreads what is
// left; nearest roots. BatchGoal weighs entries and links otherwise. Predicted time enters as hops
// and stages only: exact times are for the trees as they are.
#ifndef COPPICE_DAEMON_TREE_BATCH_BATCH_H_
#define COPPICE_DAEMON_TREE_BATCH_BATCH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree_plan.h"

namespace coppice {

struct BatchCommunicator {
  std::vector<EndpointIndex> members;  // rank order
  bool accepts_type1 = false;          // type I instead of a refusal
};

// Which switches may be roots. Chen 2024, 4.1, takes the ones nearest to the members only. A
// farther one may be the only one with an entry left, and may save many: where packets come
// together before they reach the root, few switches absorb them all.
enum class RootReach : uint8_t {
  kNearest,  // the paper's
  kToAdmit,  // farther ones only to admit more: their number comes before entries in the objective
  kAny,
};

// What comes first once as many as possible are admitted. Packets that few switches absorb cross
// more links before they are absorbed.
enum class BatchGoal : uint8_t {
  kEntries,
  // Links, with at most a twentieth more entries than the fewest found, and those only if the
  // greatest load falls by them. Roots go as far as `reach` allows.
  kBoth,
  kLinks,  // as many entries as are free
};

struct BatchOptions {
  RootReach reach = RootReach::kAny;
  BatchGoal goal = BatchGoal::kBoth;
  // Measured utilisation 1 of a link counts like so many packets of the batch.
  uint32_t packets_at_full_load = 64;
  // Candidate trees that may be built after the first round to admit more, again to save entries
  // and again, but for kEntries, to unload links; as many for each other plan that kLinks compares,
  // and entries that each may spend. Bounds the time.
  uint32_t most_candidates = 100000;
};

// How packets of one communicator reach its root, over switches only: the physical tree without its
// leaves.
struct SwitchTree {
  std::vector<SwitchIndex> switches;  // root first, parents before children
  std::vector<int32_t> parents;       // [position] -1 for the root
  std::vector<ChannelIndex> up;       // [position] to the parent; kNoChannel for the root
  std::vector<uint32_t> ranks_on;     // [position] ranks on this very switch's endpoints

  SwitchIndex root() const { return switches[0]; }
};

struct BatchTree {
  SwitchTree physical;
  std::vector<uint32_t> serving;  // positions, ascending; one entry each
  std::vector<uint32_t> packets;  // [position] that one reduction sends over `up`
  uint32_t extra_hops = 0;        // of the farthest member, more than from the nearest root

  // visit(position, channel, packets) for every link that it sends over.
  template <class Visit>
  void ForEachLink(Visit visit) const {
    for (uint32_t v = 1; v < packets.size(); ++v) {
      if (packets[v] > 0) visit(v, physical.up[v], packets[v]);
    }
  }
};

struct CommunicatorResult {
  // Type II. Without switches if one rank is all there is: then nobody serves. nullopt: refused,
  // or type I if the communicator accepts that.
  std::optional<BatchTree> tree;
  std::vector<FullSwitch> full_switches;  // refused: that had no entry left or cannot aggregate
  std::string why_not;                    // refused: for a person
};

struct BatchTotals {
  uint32_t admitted = 0;
  uint32_t failures = 0;       // refused, accepting type I or not
  uint64_t entries = 0;        // that the batch takes
  uint32_t farther_roots = 0;  // trees whose root is not a nearest one
  // Most packets in one reduction of every communicator, measured load included, on one channel
  // between switches that carries any of them; kNoChannel if none does.
  uint32_t most_packets = 0;
  ChannelIndex most_loaded = kNoChannel;
};

struct BatchPlan {
  std::vector<CommunicatorResult> communicators;  // [communicator]
  BatchTotals totals;
};

enum class BatchPhase : uint8_t {
  kPlanning,   // each communicator for itself; `done` of `total` communicators
  kImproving,  // all together; `done` of `total` in proportion to the work that may be done
};
// Within a phase `done` never falls; each ends with done == total. kImproving may end early.
using BatchProgress = std::function<void(BatchPhase phase, uint32_t done, uint32_t total)>;

// `capacity` is [switch_count]; what the batch takes of a switch never exceeds its entries_free.
// A communicator that cannot be planned at all (members in different components, a port without a
// switch) is refused alone. INVALID_ARGUMENT: a communicator without members or with an endpoint
// that the fabric does not have (names communicator and rank), or capacities of another fabric.
//
// Over shortest paths every switch may send to any neighbour that is nearer to the root: the
// physical trees are spread. Over forwarding tables and in dimension order the routes to the root
// are the tree, and only the root is free.
absl::StatusOr<BatchPlan> PlanBatch(const Snapshot& snapshot,
                                    absl::Span<const SwitchCapacity> capacity,
                                    absl::Span<const BatchCommunicator> communicators,
                                    const BatchOptions& options = {},
                                    const BatchProgress& progress = nullptr);

// From a batch's trees over switches to trees over ranks, for those who store, show or check them.

struct RankTree {
  AggregationTree tree;
  PhysicalTree physical;
};

// `batch` is what PlanBatch gave for these members. Errors as FindMemberPlaces. O(P log P).
absl::StatusOr<RankTree> HangBatchTree(const Snapshot& snapshot,
                                       absl::Span<const SwitchCapacity> capacity, Members members,
                                       const BatchTree& batch);

// The same with its edges' costs and predicted times for the request's operation and sizes, as
// PlanTree would return it.
absl::StatusOr<TreePlan> PlanOfBatchTree(const Snapshot& snapshot, const CostProfile& profile,
                                         absl::Span<const SwitchCapacity> capacity,
                                         const TreeRequest& request, const BatchTree& batch);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_BATCH_H_
