#include "agents/mpi/tree/kept_trees.h"

namespace coppice::mpi {
namespace {

int key = MPI_KEYVAL_INVALID;
void (*forget_trees)(CommunicatorTrees*) = nullptr;

// When the communicator's last reference goes. With requests of the program's under way that is
// later than MPI_Comm_free. MPICH finds the attribute afterwards still, for the functions of others
// that come after this one.
int ForgetAttribute(MPI_Comm, int, void* value, void*) {
  forget_trees(static_cast<CommunicatorTrees*>(value));
  return MPI_SUCCESS;
}

}  // namespace

void StartKeepingTrees(void (*forget)(CommunicatorTrees*)) {
  forget_trees = forget;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ForgetAttribute, &key, nullptr);
}

void EndKeepingTrees() {
  if (key == MPI_KEYVAL_INVALID) return;
  void* value = nullptr;
  int is_there = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &is_there);
  if (is_there != 0) PMPI_Comm_delete_attr(MPI_COMM_WORLD, key);
  PMPI_Comm_free_keyval(&key);
}

bool FindKeptTrees(MPI_Comm comm, bool* was_kept, CommunicatorTrees** trees) {
  if (comm == MPI_COMM_NULL || key == MPI_KEYVAL_INVALID) return false;
  void* value = nullptr;
  int is_there = 0;
  if (PMPI_Comm_get_attr(comm, key, &value, &is_there) != MPI_SUCCESS) return false;
  *was_kept = is_there != 0;
  *trees = *was_kept ? static_cast<CommunicatorTrees*>(value) : nullptr;
  return true;
}

bool KeepTrees(MPI_Comm comm, CommunicatorTrees* trees) {
  return PMPI_Comm_set_attr(comm, key, trees) == MPI_SUCCESS;
}

}  // namespace coppice::mpi
