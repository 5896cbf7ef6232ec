// How many messages and bytes this process sent to each other one, by rank of the world. Not for
// several threads at once.
#ifndef COPPICE_AGENTS_MPI_TRACE_PAIR_TABLE_H_
#define COPPICE_AGENTS_MPI_TRACE_PAIR_TABLE_H_

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace coppice::mpi {

struct PairSum {
  int64_t to = -1;
  uint64_t messages = 0, bytes = 0;
};

class PairTable final {
 public:
  // The sum of `to`; it stays where it is as long as the table lives.
  PairSum* At(int32_t to) { return &sums_.try_emplace(to, PairSum{to}).first->second; }
  void Add(int32_t to, uint64_t messages, uint64_t bytes) {
    PairSum* const sum = At(to);
    sum->messages += messages;
    sum->bytes += bytes;
  }
  void Add(const PairTable& other) {
    for (const auto& [to, sum] : other.sums_) Add(to, sum.messages, sum.bytes);
  }

  // By receiver, ascending.
  std::vector<PairSum> Sorted() const {
    std::vector<PairSum> pairs;
    for (const auto& [to, sum] : sums_) pairs.push_back(sum);
    std::ranges::sort(pairs, {}, &PairSum::to);
    return pairs;
  }

 private:
  std::unordered_map<int32_t, PairSum> sums_;
};

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TRACE_PAIR_TABLE_H_
