#include "daemon/tree/batch/state.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace coppice {

BatchState::BatchState(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity,
                       size_t communicators, uint32_t packets_at_full_load)
    : served_(capacity.size()), loads_(snapshot, packets_at_full_load), trees_(communicators) {
  constexpr uint32_t kMost = std::numeric_limits<int32_t>::max();
  for (const SwitchCapacity& c : capacity) {
    const uint32_t free = c.degree_limit >= 2 ? std::min(c.entries_free, kMost) : 0;
    free_.push_back(static_cast<int32_t>(free));
    limits_.push_back(free > 0 ? c.degree_limit : 0);
  }
  degrees_ = limits_;
}

void BatchState::Take(SwitchIndex s, int32_t entries) {
  int32_t& free = free_[s.value()];
  free -= entries;
  degrees_[s.value()] = free > 0 ? limits_[s.value()] : 0;
}

std::optional<BatchTree> BatchState::Exchange(uint32_t communicator,
                                              std::optional<BatchTree> tree) {
  std::optional<BatchTree>& mine = trees_[communicator];
  if (mine) {
    loads_.Remove(*mine);
    --placed_;
    farther_ -= mine->extra_hops > 0 ? 1 : 0;
    entries_ -= mine->serving.size();
    for (const uint32_t v : mine->serving) {
      const SwitchIndex s = mine->physical.switches[v];
      Take(s, -1);
      std::vector<uint32_t>& served = served_[s.value()];
      served.erase(std::find(served.begin(), served.end(), communicator));
    }
  }
  std::swap(mine, tree);
  if (mine) {
    loads_.Add(*mine);
    ++placed_;
    farther_ += mine->extra_hops > 0 ? 1 : 0;
    entries_ += mine->serving.size();
    for (const uint32_t v : mine->serving) {
      const SwitchIndex s = mine->physical.switches[v];
      Take(s, 1);
      served_[s.value()].push_back(communicator);
    }
  }
  return tree;
}

void BatchState::Replace(uint32_t communicator, std::optional<BatchTree> tree) {
  journal_.push_back({communicator, Exchange(communicator, std::move(tree))});
}

void BatchState::RevertTo(size_t mark) {
  while (journal_.size() > mark) {
    Change change = std::move(journal_.back());
    journal_.pop_back();
    Exchange(change.communicator, std::move(change.before));
  }
}

}  // namespace coppice
