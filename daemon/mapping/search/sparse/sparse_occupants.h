// Who sits where, both ways round, for vertices of size 1: changes in O(1), so that a search can
// ask for the occupants of a place and for its free slots.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_OCCUPANTS_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_OCCUPANTS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace coppice {

inline constexpr uint32_t kNoRank = 0xffffffff;

class Occupants final {
 public:
  // No place has more vertices than its capacity.
  Occupants(const std::vector<uint32_t>& capacities, std::vector<uint32_t> seats)
      : seats_(std::move(seats)), begin_(capacities.size() + 1, 0), load_(capacities.size(), 0) {
    for (size_t p = 0; p < capacities.size(); ++p) begin_[p + 1] = begin_[p] + capacities[p];
    slots_.resize(begin_.back());
    at_.resize(seats_.size());
    for (uint32_t u = 0; u < seats_.size(); ++u) Put(u, seats_[u]);
  }

  const std::vector<uint32_t>& seats() const { return seats_; }
  uint32_t capacity(uint32_t place) const { return begin_[place + 1] - begin_[place]; }
  uint32_t free(uint32_t place) const { return capacity(place) - load_[place]; }
  absl::Span<const uint32_t> of(uint32_t place) const {
    return absl::MakeConstSpan(slots_).subspan(begin_[place], load_[place]);
  }

  // `to` has a free slot.
  void Move(uint32_t u, uint32_t to) {
    const uint32_t from = seats_[u];
    const uint32_t last = slots_[begin_[from] + --load_[from]];
    slots_[at_[u]] = last;
    at_[last] = at_[u];
    Put(u, to);
  }
  void Swap(uint32_t u, uint32_t w) {
    std::swap(seats_[u], seats_[w]);
    std::swap(at_[u], at_[w]);
    slots_[at_[u]] = u;
    slots_[at_[w]] = w;
  }

 private:
  void Put(uint32_t u, uint32_t place) {
    seats_[u] = place;
    at_[u] = begin_[place] + load_[place]++;
    slots_[at_[u]] = u;
  }

  std::vector<uint32_t> seats_;  // [vertex]
  std::vector<uint32_t> at_;     // [vertex] its slot
  std::vector<uint32_t> begin_;  // [place + 1] into slots_
  std::vector<uint32_t> load_;   // [place]
  std::vector<uint32_t> slots_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_OCCUPANTS_H_
