#include "agents/mpi/core/returned_errors.h"

namespace coppice::mpi {
namespace {

MPI_Errhandler none = MPI_ERRHANDLER_NULL;
bool callers_handle_errors = false;

// How many ReturnedErrors of this thread rely on `none`.
thread_local int returning = 0;

MPI_Errhandler HandlerOf(MPI_Comm comm) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(comm, &handler);
  return handler;
}

#ifndef OPEN_MPI

// What a communicator without a handler does with an error: what the world does. If that has none
// either, the program ends.
void HandleAsTheWorld(MPI_Comm*, int* error, ...) {
  if (returning > 0) return;
  MPI_Errhandler of_world = HandlerOf(MPI_COMM_WORLD);
  if (of_world == none) PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  PMPI_Errhandler_free(&of_world);
  PMPI_Comm_call_errhandler(MPI_COMM_WORLD, *error);
}

#endif  // OPEN_MPI

}  // namespace

void StartReturnedErrors() {
#ifndef OPEN_MPI
  MPI_Errhandler of_world = HandlerOf(MPI_COMM_WORLD);
  const bool has_none = of_world == MPI_ERRORS_ARE_FATAL;
  PMPI_Errhandler_free(&of_world);
  if (!has_none) return;
  PMPI_Comm_create_errhandler(HandleAsTheWorld, &none);
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, none);
#endif
}

bool IsNoHandler(MPI_Errhandler handler) {
  return handler == none && handler != MPI_ERRHANDLER_NULL;
}

void HandleError(MPI_Comm comm, int error) {
  if (!callers_handle_errors) PMPI_Comm_call_errhandler(comm, error);
}

void LeaveErrorsToCallers() { callers_handle_errors = true; }

ReturnedErrors::ReturnedErrors(MPI_Comm comm)
    : comm_(comm), before_(HandlerOf(comm)), is_none_(IsNoHandler(before_)) {
  if (is_none_) {
    ++returning;
  } else {
    PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
}

ReturnedErrors::~ReturnedErrors() {
  if (is_none_) {
    --returning;
  } else {
    PMPI_Comm_set_errhandler(comm_, before_);
  }
  PMPI_Errhandler_free(&before_);
}

RequestErrors::RequestErrors([[maybe_unused]] bool has_threads) {
#ifndef OPEN_MPI
  bool is_none = false;
  if (has_threads) {
    MPI_Errhandler of_world = HandlerOf(MPI_COMM_WORLD);
    is_none = IsNoHandler(of_world);
    PMPI_Errhandler_free(&of_world);
  }
  if (!has_threads || is_none) of_world_.emplace();
#endif
}

}  // namespace coppice::mpi
