// Memory of one communicator's collectives, kept from one to the next. It grows before a collective
// that needs more than all before did, on all members together: if one of them has none, all of
// them take the native way, and none waits for a message that never comes.
#ifndef COPPICE_AGENTS_MPI_TREE_TREE_MEMORY_H_
#define COPPICE_AGENTS_MPI_TREE_TREE_MEMORY_H_

#include <mpi.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

namespace coppice::mpi {

// Buffers of one length. They grow by factors of two, so that members speak of it a few times only.
class TreeBuffers final {
 public:
  // What every member has from the beginning, so that short messages need no word; and what none
  // has more than: single elements that are longer are the MPI library's business.
  static constexpr size_t kFirst = 4096, kMax = size_t{8} << 20U;

  // Forgets all, and has `count` buffers of kFirst bytes. False: there is no memory, and others
  // have to hear of it. Its caller's business alone; may throw std::bad_alloc.
  bool Start(size_t count);

  // Collective over `comm`, with the same number on all members: room for so many bytes in each.
  // False on all of them: some member has none, or it is more than kMax.
  bool Reserve(MPI_Comm comm, size_t bytes);

  // The same without a word: whether there is so much already. If not, it is kept in mind for
  // Grow.
  bool Has(size_t bytes);
  // Collective over `comm`: room for what Has was asked for in vain, if members have it.
  void Grow(MPI_Comm comm);
  bool IsGrowthWanted() const { return wanted_ > 0; }

  // Aligned as malloc's.
  void* operator[](size_t number) const { return buffers_[number].get(); }

  // MPI may still send from there: it is never freed. Others have as much afterwards.
  void Leak();

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  static bool Allocate(size_t bytes, std::vector<std::unique_ptr<void, Free>>* buffers);

  size_t bytes_ = 0;   // of each; the same on all members
  size_t wanted_ = 0;  // 0: no more; the same on all members
  std::vector<std::unique_ptr<void, Free>> buffers_;
};

// What members of a communicator must agree on before they go one way together. Collective over
// `comm`, by one small native Allreduce: whether all say yes. *most and *least: the largest and the
// least that any of them gives; null: nothing is asked.
inline bool AllSay(MPI_Comm comm, bool yes, int* most = nullptr, int* least = nullptr) {
  int nothing[2] = {};
  if (most == nullptr) most = &nothing[0];
  if (least == nullptr) least = &nothing[1];
  int all[3] = {yes ? 1 : 0, -*most, *least};
  PMPI_Allreduce(MPI_IN_PLACE, all, 3, MPI_INT, MPI_MIN, comm);
  *most = -all[1];
  *least = all[2];
  return all[0] != 0;
}

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_TREE_MEMORY_H_
