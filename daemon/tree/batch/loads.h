// What the batch has promised so far: packets on every channel between switches, and free entries.
// Keeps the greatest load at hand while trees come and go. Decides nothing.
//
// Measured load alone makes no channel a loaded one of the batch: where none of its packets go, it
// has nothing to unload.
#ifndef COPPICE_DAEMON_TREE_BATCH_LOADS_H_
#define COPPICE_DAEMON_TREE_BATCH_LOADS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/batch.h"

namespace coppice {

class LinkLoads final {
 public:
  // Starts with the measured load, `packets_at_full_load` for utilisation 1.
  LinkLoads(const Snapshot& snapshot, uint32_t packets_at_full_load);

  uint32_t on(ChannelIndex c) const { return loads_[c.value()]; }
  // Packets that enter and leave a switch over trees added and not removed since.
  uint64_t through(SwitchIndex s) const { return through_[s.value()]; }

  void Add(const BatchTree& tree);
  void Remove(const BatchTree& tree);

  // Greatest load of a channel that carries packets of trees, measured load included, and how many
  // such channels have it; 0 without any. O(1), but for removals that lower it.
  uint32_t most() const { return most_; }
  uint32_t carriers_of_most() const { return channels_at_[most_]; }
  // Sum of the squares of all loads.
  uint64_t squares() const { return squares_; }
  // The lowest of those channels; kNoChannel if most() is 0.
  ChannelIndex MostLoaded() const;

 private:
  void Move(ChannelIndex c, uint32_t to);
  bool IsUsed(uint32_t c) const { return loads_[c] > measured_[c]; }

  std::vector<uint32_t> measured_;     // [channel] what `loads_` started with
  std::vector<uint32_t> loads_;        // [channel]
  std::vector<uint64_t> through_;      // [switch]
  std::vector<uint32_t> channels_at_;  // [load] channels that trees use
  uint32_t most_ = 0;
  uint64_t squares_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_LOADS_H_
