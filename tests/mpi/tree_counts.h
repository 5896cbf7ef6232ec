// The counters of the library that carries collectives along trees in this process.
#ifndef COPPICE_TESTS_MPI_TREE_COUNTS_H_
#define COPPICE_TESTS_MPI_TREE_COUNTS_H_

#include <dlfcn.h>

#include "agents/mpi/tree/collective_table.h"

namespace coppice {

// Open MPI's component, which it has loaded for itself alone; null: it has not. After MPI_Init.
inline void* FindTreeComponent() { return dlopen("mca_coll_coppice.so", RTLD_LAZY | RTLD_NOLOAD); }

// coppice_mpi_tree_counts of the component, or of what is preloaded; null: neither is there.
inline auto* FindTreeCounts() {
  void* const component = FindTreeComponent();
  void* const from = component == nullptr ? RTLD_DEFAULT : component;
  return reinterpret_cast<decltype(&coppice_mpi_tree_counts)>(
      dlsym(from, "coppice_mpi_tree_counts"));
}

}  // namespace coppice

#endif  // COPPICE_TESTS_MPI_TREE_COUNTS_H_
