#include "agents/mpi/tree/tree_memory.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace coppice::mpi {
bool TreeMemory::Allocate(size_t bytes, Memory* memory) {
  memory->reset(std::malloc(bytes));
  return *memory != nullptr;
}

bool TreeMemory::Start(size_t pieces) {
  pieces_.clear();
  pieces_.resize(pieces);
  piece_bytes_ = packed_bytes_ = kFirst;
  return std::all_of(pieces_.begin(), pieces_.end(),
                     [](Memory& piece) { return Allocate(kFirst, &piece); }) &&
         Allocate(kFirst, &packed_);
}

bool TreeMemory::ReservePieces(MPI_Comm comm, size_t bytes) {
  if (bytes <= piece_bytes_) return true;
  if (bytes > kMax) return false;
  const size_t more = std::bit_ceil(bytes);
  std::vector<Memory> made;
  const bool is_there = HasMemoryFor([&] {
    made.resize(pieces_.size());
    return std::all_of(made.begin(), made.end(),
                       [&](Memory& piece) { return Allocate(more, &piece); });
  });
  if (!AllSay(comm, is_there)) return false;
  pieces_ = std::move(made);
  piece_bytes_ = more;
  return true;
}

bool TreeMemory::ReservePacked(MPI_Comm comm, size_t bytes) {
  if (bytes <= packed_bytes_) return true;
  if (bytes > kMax) return false;
  const size_t more = std::bit_ceil(bytes);
  Memory made;
  if (!AllSay(comm, Allocate(more, &made))) return false;
  packed_ = std::move(made);
  packed_bytes_ = more;
  return true;
}

void TreeMemory::Leak() {
  for (Memory& piece : pieces_) {
    static_cast<void>(piece.release());
    Allocate(piece_bytes_, &piece);
  }
  static_cast<void>(packed_.release());
  Allocate(packed_bytes_, &packed_);
}

}  // namespace coppice::mpi
