// What members of a communicator must agree on before they go one way together: whether each of
// them has what it needs.
#ifndef COPPICE_AGENTS_MPI_TREE_AGREEMENT_H_
#define COPPICE_AGENTS_MPI_TREE_AGREEMENT_H_

#include <mpi.h>

#include <exception>

namespace coppice::mpi {

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

#endif  // COPPICE_AGENTS_MPI_TREE_AGREEMENT_H_
