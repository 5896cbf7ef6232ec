#include "agents/mpi/trace/pair_table.h"

#include <algorithm>

namespace coppice::mpi {

void PairTable::Grow() {
  places_.assign(2 * places_.size(), nullptr);
  for (PairSum& sum : sums_) *Find(sum.to) = &sum;
}

void PairTable::Add(const PairTable& other) {
  for (const PairSum& sum : other.sums_) Add(sum.to, sum.messages, sum.bytes);
}

std::vector<PairSum> PairTable::Sorted() const {
  std::vector<PairSum> pairs(sums_.begin(), sums_.end());
  std::sort(pairs.begin(), pairs.end(),
            [](const PairSum& a, const PairSum& b) { return a.to < b.to; });
  return pairs;
}

}  // namespace coppice::mpi
