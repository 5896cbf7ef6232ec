#include "agents/mpi/tree/tree_counts.h"

#include <algorithm>
#include <atomic>

namespace coppice::mpi {
namespace {

std::atomic<uint64_t> counted[kTreeCounts];

}  // namespace

void CountTree(TreeCount what) { counted[what].fetch_add(1, std::memory_order_relaxed); }

}  // namespace coppice::mpi

int coppice_mpi_tree_counts(uint64_t* counts, int size) {
  using coppice::mpi::counted;
  for (int i = 0; i < std::min<int>(size, coppice::mpi::kTreeCounts); ++i) {
    counts[i] = counted[i].load(std::memory_order_relaxed);
  }
  return coppice::mpi::kTreeCounts;
}
