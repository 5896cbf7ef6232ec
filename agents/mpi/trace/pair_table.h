// How many messages and bytes this process sent to each other one: a hash table from ranks of the
// world to sums, with open addressing, because a rank of 100,000 talks to a few dozens and a send
// must not cost more than a glance at it. Not for several threads at once.
#ifndef COPPICE_AGENTS_MPI_TRACE_PAIR_TABLE_H_
#define COPPICE_AGENTS_MPI_TRACE_PAIR_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace coppice::mpi {

struct PairSum {
  int32_t to = -1;
  uint64_t messages = 0, bytes = 0;
};

class PairTable final {
 public:
  PairTable() : places_(16) {}

  // The sum of `to`, which is 0 or more; it stays where it is as long as the table lives. O(1).
  PairSum* At(int32_t to) {
    PairSum** place = Find(to);
    if (*place == nullptr) {
      if (2 * (sums_.size() + 1) > places_.size()) {
        Grow();
        place = Find(to);
      }
      *place = &sums_.emplace_back();
      (*place)->to = to;
    }
    return *place;
  }
  void Add(int32_t to, uint64_t messages, uint64_t bytes) {
    PairSum* const sum = At(to);
    sum->messages += messages;
    sum->bytes += bytes;
  }
  void Add(const PairTable& other) {
    for (const PairSum& sum : other.sums_) Add(sum.to, sum.messages, sum.bytes);
  }

  // By receiver, ascending.
  std::vector<PairSum> Sorted() const {
    std::vector<PairSum> pairs(sums_.begin(), sums_.end());
    std::ranges::sort(pairs, {}, &PairSum::to);
    return pairs;
  }

 private:
  // The place of `to`, or the empty one where it belongs.
  PairSum** Find(int32_t to) {
    const size_t mask = places_.size() - 1;
    // Fibonacci hashing (Knuth, TAOCP 6.4): neighbours land far apart.
    size_t at = (static_cast<uint64_t>(to) * 0x9E3779B97F4A7C15u >> 32) & mask;
    while (places_[at] != nullptr && places_[at]->to != to) at = (at + 1) & mask;
    return &places_[at];
  }
  void Grow() {
    places_.assign(2 * places_.size(), nullptr);
    for (PairSum& sum : sums_) *Find(sum.to) = &sum;
  }

  std::vector<PairSum*> places_;  // a power of two, at most half of them taken
  std::deque<PairSum> sums_;
};

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TRACE_PAIR_TABLE_H_
