// What Open MPI's components (of C as Open MPI's headers are) have of the engine in
// agents/mpi/core, tree and topology.
#ifndef COPPICE_AGENTS_MPI_OPENMPI_ENGINE_H_
#define COPPICE_AGENTS_MPI_OPENMPI_ENGINE_H_

#include <mpi.h>
#include <stdint.h>

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

// The component's: whether MPI_Type_get_envelope may be asked for a type; whether all collectives
// of a communicator that trees carry come here first.
int coppice_component_is_described(MPI_Datatype type);
int coppice_component_has_module(MPI_Comm comm);

// The component's: whether its nonblocking and persistent forms of these are the communicator's,
// too.
int coppice_component_has_nonblocking(MPI_Comm comm);
// Where the module of a communicator that has one keeps its trees.
coppice_kept* coppice_component_kept(MPI_Comm comm);

// The component's requests of collectives that are started. _make: one on `comm`, which it holds;
// null: there is no memory. _complete: it is over, with that error of MPI's.
MPI_Request coppice_component_request_make(MPI_Comm comm);
void coppice_component_request_complete(MPI_Request request, int error);
// Whether any request, of whatever kind, is not complete yet; without a step of progress.
int coppice_component_request_is_pending(MPI_Request request);
// One step of progress; and from when on coppice_engine_progress is called in each of them, until
// it is not.
void coppice_component_progress(void);
void coppice_component_progress_begin(void);
void coppice_component_progress_end(void);

// At the end of MPI_Init and at the beginning of MPI_Finalize; collective over the world.
void coppice_engine_begin(void);
void coppice_engine_end(void);

// When the communicator goes: by this member alone, from within MPI.
void coppice_engine_forget(coppice_kept* kept);

// A call that the module below carries out, and how long it takes (trial.h): all zero at first.
typedef struct {
  void* trial;
  int64_t begun;
} coppice_measured;

// coppice_engine_bcast(...) and the others: 1: it was carried out, and *error is what the module
// returns; 0, at all members: the module below is to do it, and coppice_engine_ended to be called
// then. So it is for all that the engine itself calls.
#define COPPICE_ENGINE_CALL(NAME, FORTRAN, ARGUMENTS, TRACE)                     \
  int coppice_engine_##FORTRAN(ARGUMENTS(COPPICE_PARAMETER), coppice_kept* kept, \
                               coppice_measured* measured, int* error);
typedef int Count;
COPPICE_TREE_COLLECTIVES(COPPICE_ENGINE_CALL)
void coppice_engine_ended(const coppice_measured* measured);

// coppice_engine_ibcast(...) and the others, which are local: 1: it was started, *request is it, or
// *error says why not; 0, at all members: the module below is to start it.
#define COPPICE_ENGINE_START(NAME, FORTRAN, ARGUMENTS, TRACE)                     \
  int coppice_engine_i##FORTRAN(ARGUMENTS(COPPICE_PARAMETER), coppice_kept* kept, \
                                MPI_Request* request, int* error);
COPPICE_TREE_COLLECTIVES(COPPICE_ENGINE_START)
// Whether any may be started.
int coppice_engine_may_start(void);
// What was started does what it can. Returns how much of it is over now.
int coppice_engine_progress(void);

// Whether topologies made with reorder are asked for.
int coppice_engine_reorders(void);

// Collective over `comm`. 1: *made was made in an order of Coppice's, and *error is what the module
// returns; 0, at all members: the native function is to make it (topology/reordering.h). So it is
// for topologies that the engine itself makes.
int coppice_engine_cart_create(MPI_Comm comm, int dimensions, const int* sizes, const int* periods,
                               MPI_Comm* made, int* error);
int coppice_engine_dist_graph_create(MPI_Comm comm, int count, const int* sources,
                                     const int* degrees, const int* destinations,
                                     const int* weights, MPI_Info info, MPI_Comm* made, int* error);
int coppice_engine_dist_graph_create_adjacent(MPI_Comm comm, int in_degree, const int* sources,
                                              const int* in_weights, int out_degree,
                                              const int* destinations, const int* out_weights,
                                              MPI_Info info, MPI_Comm* made, int* error);

#ifdef __cplusplus
}
#endif

#endif  // COPPICE_AGENTS_MPI_OPENMPI_ENGINE_H_
