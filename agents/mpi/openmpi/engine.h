// What Open MPI's component (component.c, of C as Open MPI's headers are) has of the engine in
// agents/mpi/core and tree.
#ifndef COPPICE_AGENTS_MPI_OPENMPI_ENGINE_H_
#define COPPICE_AGENTS_MPI_OPENMPI_ENGINE_H_

#include <mpi.h>

#include "agents/mpi/tree/collective_table.h"

#ifdef __cplusplus
extern "C" {
#endif

// A communicator's trees, in its module: all zero at first.
typedef struct {
  int was_kept;
  void* trees;
} coppice_kept;

// The value of a parameter by the name of the variable that is for the preloaded library
// ("COPPICE_TREES_AFTER": coll_coppice_trees_after); null: there is none. The component's.
const char* coppice_component_setting(const char* name);

// At the end of MPI_Init and at the beginning of MPI_Finalize; collective over the world.
void coppice_engine_begin(void);
void coppice_engine_end(void);

// When the communicator goes: by this member alone, from within MPI.
void coppice_engine_forget(coppice_kept* kept);

// coppice_engine_bcast(...) and the others: 1: it was carried out, and *error is what the module
// returns; 0, at all members: the module below is to do it. So it is for all that the engine itself
// calls.
#define COPPICE_ENGINE_CALL(NAME, FORTRAN, ARGUMENTS, TRACE) \
  int coppice_engine_##FORTRAN(ARGUMENTS(COPPICE_PARAMETER), coppice_kept* kept, int* error);
typedef int Count;
COPPICE_TREE_COLLECTIVES(COPPICE_ENGINE_CALL)

#ifdef __cplusplus
}
#endif

#endif  // COPPICE_AGENTS_MPI_OPENMPI_ENGINE_H_
