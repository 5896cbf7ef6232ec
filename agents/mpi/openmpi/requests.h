// Collectives that a program starts again and again (MPIX_Allreduce_init, MPI_Start): each start is
// a nonblocking collective of the same arguments, whose end is the request's.
#ifndef COPPICE_AGENTS_MPI_OPENMPI_REQUESTS_H_
#define COPPICE_AGENTS_MPI_OPENMPI_REQUESTS_H_

#include "ompi/request/request.h"

// Those of any collective; one without an operation or a type leaves it null.
typedef struct {
  const void* send;
  void *receive, *buffer;
  int count, root;
  struct ompi_datatype_t* type;
  struct ompi_op_t* op;
  struct ompi_communicator_t* comm;
} coppice_arguments;

// Starts one; `module` is as it was handed in.
typedef int (*coppice_start)(const coppice_arguments* arguments, void* module,
                             ompi_request_t** request);

// A request that is not active; it holds communicator, type and operation until it is freed. An
// error of MPI's: there is no memory.
int coppice_component_request_persist(const coppice_arguments* arguments, coppice_start start,
                                      void* module, ompi_request_t** request);

#endif  // COPPICE_AGENTS_MPI_OPENMPI_REQUESTS_H_
