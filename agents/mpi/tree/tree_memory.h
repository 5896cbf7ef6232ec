// Memory of one communicator's collectives, kept from one to the next. It grows before a collective
// that needs more than all before did, on all members together: if one of them has none, all of
// them take the native way, and none waits for a message that never comes.
//
//   pieces   one for each message of a reduction that is on its way through this rank
//   packed   a broadcast whose type is more than plain bytes
//
// Both grow by factors of two, so that members speak of it a few times only.
#ifndef COPPICE_AGENTS_MPI_TREE_TREE_MEMORY_H_
#define COPPICE_AGENTS_MPI_TREE_TREE_MEMORY_H_

#include <mpi.h>

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

namespace coppice::mpi {

class TreeMemory final {
 public:
  // What every member has from the beginning, so that short messages need no word; and what none
  // has more than: single elements that are longer are the MPI library's business.
  static constexpr size_t kFirst = 4096, kMax = size_t{8} << 20U;

  // Forgets all, and has `pieces` pieces of kFirst bytes. False: there is no memory, and others
  // have to hear of it. Its caller's business alone; may throw std::bad_alloc.
  bool Start(size_t pieces);

  // Collective over `comm`, with the same number on all members: room for so many bytes in each
  // piece, or in the packed message. False on all of them: some member has none,
  // or it is more than kMax.
  bool ReservePieces(MPI_Comm comm, size_t bytes);
  bool ReservePacked(MPI_Comm comm, size_t bytes);

  // Aligned as malloc's.
  void* piece(size_t number) const { return pieces_[number].get(); }
  void* packed() const { return packed_.get(); }

  // MPI may still send from there: it is never freed. Others have as much afterwards.
  void Leak();

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<void, Free>;

  static bool Allocate(size_t bytes, Memory* memory);

  size_t piece_bytes_ = 0, packed_bytes_ = 0;  // the same on all members
  std::vector<Memory> pieces_;
  Memory packed_;
};

// What members of a communicator must agree on before they go one way together: whether each of
// them has what it needs.

// Collective over `comm`, by one small native Allreduce: whether all say yes. *most: the largest
// that any of them gives.
inline bool AllSay(MPI_Comm comm, bool yes, int* most) {
  int all[2] = {yes ? 1 : 0, -*most};
  PMPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_INT, MPI_MIN, comm);
  *most = -all[1];
  return all[0] != 0;
}
inline bool AllSay(MPI_Comm comm, bool yes) {
  int nothing = 0;
  return AllSay(comm, yes, &nothing);
}

// The same, and *least: the least that any of them gives.
inline bool AllSay(MPI_Comm comm, bool yes, int* least, int* most) {
  int all[3] = {yes ? 1 : 0, -*most, *least};
  PMPI_Allreduce(MPI_IN_PLACE, all, 3, MPI_INT, MPI_MIN, comm);
  *most = -all[1];
  *least = all[2];
  return all[0] != 0;
}

// Whether `work` found memory for all that it did, and says yes.
template <class Work>
bool HasMemoryFor(const Work& work) {
  try {
    return work();
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_TREE_MEMORY_H_
