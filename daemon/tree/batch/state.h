// A batch while it is being planned: who is placed where, what that leaves of entries and links,
// and a journal, so that a chain of moves that leads nowhere is undone. Chooses nothing.
//
// Invariant outside a chain of moves: no switch has fewer than 0 entries left.
#ifndef COPPICE_DAEMON_TREE_BATCH_STATE_H_
#define COPPICE_DAEMON_TREE_BATCH_STATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/batch.h"

namespace coppice {

// Where a batch's communicators are, as far as planning on switches can tell them apart: equally
// many ranks on the same leaf switches are one shape, whose distances and roots are found once.
struct BatchShape {
  std::vector<SwitchIndex> leaves;  // ascending
  std::vector<uint32_t> ranks_on;   // [position in leaves] at least 1
  uint32_t ranks = 0;
  std::vector<SwitchIndex> nearest;  // roots whose farthest leaf is least far, ascending
  uint32_t nearest_hops = 0;         // from them to that leaf
  uint32_t fewest = 0;               // no tree takes fewer entries: the fewest switches whose
                                     // largest K - 1 sum to ranks - 1
};

struct BatchShapes {
  static constexpr uint32_t kNone = UINT32_MAX;

  std::vector<BatchShape> shapes;
  std::vector<uint32_t> shape_of;    // [communicator] kNone: it has one rank, or cannot be planned
  std::vector<std::string> trouble;  // [communicator] why it cannot be planned; empty: it can

  const BatchShape& of(uint32_t communicator) const { return shapes[shape_of[communicator]]; }
  // It can be planned, and has more than one rank.
  bool IsPlannable(uint32_t communicator) const {
    return shape_of[communicator] != kNone && trouble[communicator].empty();
  }
};

// INVALID_ARGUMENT as PlanBatch. O(members + shapes * (classes of leaf switches * classes)).
absl::StatusOr<BatchShapes> FindBatchShapes(const Snapshot& snapshot,
                                            absl::Span<const SwitchCapacity> capacity,
                                            absl::Span<const BatchCommunicator> communicators);

// What the most loaded link carries at least if all these communicators get trees with `entries` at
// most together, but no fewer each than BatchShape::fewest. Of their leaf switches only so many can
// serve; from one of the others all ranks of a communicator leave over one link. O(n log n) for the
// leaf switches of all.
uint32_t LeastMostPackets(const BatchShapes& shapes, absl::Span<const uint32_t> communicators,
                          uint64_t entries);

// The packets that the batch has promised to every channel between switches. Measured load alone
// makes no channel a loaded one: where none of the batch's packets go, it has nothing to unload.
class LinkLoads final {
 public:
  // Starts with the measured load, `packets_at_full_load` for utilisation 1.
  LinkLoads(const Snapshot& snapshot, uint32_t packets_at_full_load);

  uint32_t on(ChannelIndex c) const { return loads_[c.value()]; }
  // Packets that enter and leave a switch over trees added and not removed since.
  uint64_t through(SwitchIndex s) const { return through_[s.value()]; }

  void Add(const BatchTree& tree) { Count(tree, 1); }
  void Remove(const BatchTree& tree) { Count(tree, -1); }

  // Greatest load of a channel that carries packets of trees, measured load included, and how many
  // such channels have it; 0 without any. O(1), but for removals that lower it.
  uint32_t most() const { return most_; }
  uint32_t carriers_of_most() const { return channels_at_[most_]; }
  // The lowest of those channels; kNoChannel if most() is 0.
  ChannelIndex MostLoaded() const;

 private:
  void Count(const BatchTree& tree, int times);
  void Move(ChannelIndex c, uint32_t to);
  bool IsUsed(uint32_t c) const { return loads_[c] > measured_[c]; }

  std::vector<uint32_t> measured_;     // [channel] what `loads_` started with
  std::vector<uint32_t> loads_;        // [channel]
  std::vector<uint64_t> through_;      // [switch]
  std::vector<uint32_t> channels_at_;  // [load] channels that trees use
  uint32_t most_ = 0;
};

// The greatest load of the links that the tree sends over; `is_counted`: it has its own packets.
uint32_t PeakOf(const BatchTree& tree, const LinkLoads& loads, bool is_counted);

class BatchState final {
 public:
  BatchState(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity,
             size_t communicators, uint32_t packets_at_full_load);

  // Puts `tree` in the place of what the communicator has; nullopt takes it away.
  void Replace(uint32_t communicator, std::optional<BatchTree> tree);
  const std::optional<BatchTree>& tree(uint32_t communicator) const { return trees_[communicator]; }
  size_t size() const { return trees_.size(); }

  // Everything replaced since Mark() returned `mark` goes back, last first.
  size_t Mark() const { return journal_.size(); }
  void RevertTo(size_t mark);
  void ForgetJournal() { journal_.clear(); }

  // Keeps one entry of a switch from being used, or gives it back.
  void Hold(SwitchIndex s) { Take(s, 1); }
  void Release(SwitchIndex s) { Take(s, -1); }

  absl::Span<const int32_t> free_entries() const { return free_; }
  absl::Span<const uint32_t> limits() const { return limits_; }    // with all entries free
  absl::Span<const uint32_t> degrees() const { return degrees_; }  // now: 0 without a free entry
  // Communicators that switch `s` serves.
  const std::vector<uint32_t>& served_by(SwitchIndex s) const { return served_[s.value()]; }
  const LinkLoads& loads() const { return loads_; }

  uint32_t placed() const { return placed_; }
  uint32_t farther() const { return farther_; }  // placed with extra hops
  uint64_t entries() const { return entries_; }
  BatchTotals Totals() const;

  std::vector<std::optional<BatchTree>> TakeTrees() { return std::move(trees_); }

 private:
  struct Change {
    uint32_t communicator;
    std::optional<BatchTree> before;
  };

  void Take(SwitchIndex s, int32_t entries);
  void Count(uint32_t communicator, const BatchTree& tree, int times);
  std::optional<BatchTree> Exchange(uint32_t communicator, std::optional<BatchTree> tree);

  std::vector<int32_t> free_;
  std::vector<uint32_t> limits_, degrees_;
  std::vector<std::vector<uint32_t>> served_;
  LinkLoads loads_;
  std::vector<std::optional<BatchTree>> trees_;
  std::vector<Change> journal_;
  uint32_t placed_ = 0, farther_ = 0;
  uint64_t entries_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_STATE_H_
