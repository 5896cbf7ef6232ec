#include "agents/mpi/tree/tree_memory.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "agents/mpi/core/communicator_ranks.h"

namespace coppice::mpi {

bool TreeBuffers::Allocate(size_t bytes, std::vector<std::unique_ptr<void, Free>>* buffers) {
  return std::ranges::all_of(*buffers, [bytes](auto& buffer) {
    buffer.reset(std::malloc(bytes));
    return buffer != nullptr;
  });
}

bool TreeBuffers::Start(size_t count) {
  buffers_.clear();
  buffers_.resize(count);
  bytes_ = kFirst;
  wanted_ = 0;
  return Allocate(kFirst, &buffers_);
}

bool TreeBuffers::Reserve(MPI_Comm comm, size_t bytes) {
  if (bytes <= bytes_) return true;
  if (bytes > kMax) return false;
  const size_t more = std::bit_ceil(bytes);
  std::vector<std::unique_ptr<void, Free>> made;
  const bool is_there = HasMemoryFor([&] {
    made.resize(buffers_.size());
    return Allocate(more, &made);
  });
  if (!AllSay(comm, is_there)) return false;
  buffers_ = std::move(made);
  bytes_ = more;
  return true;
}

bool TreeBuffers::Has(size_t bytes) {
  if (bytes <= bytes_) return true;
  if (bytes <= kMax) wanted_ = std::max(wanted_, bytes);
  return false;
}

void TreeBuffers::Grow(MPI_Comm comm) { Reserve(comm, std::exchange(wanted_, 0)); }

void TreeBuffers::Leak() {
  for (auto& buffer : buffers_) static_cast<void>(buffer.release());
  Allocate(bytes_, &buffers_);
}

}  // namespace coppice::mpi
