// While it lives, errors of MPI on the world are returned to this library, which does without what
// it asked for, and not handled as the program wants its own errors handled.
//
// MPICH tells a communicator that nobody has given a handler from one that was given
// MPI_ERRORS_ARE_FATAL: the former, and what is made of it later, goes by the handler that the
// world has when the error happens; the latter never changes. A handler that was set cannot be
// taken back. So the world gets one of this library's instead, which does what having none does.
#ifndef COPPICE_AGENTS_MPI_CORE_RETURNED_ERRORS_H_
#define COPPICE_AGENTS_MPI_CORE_RETURNED_ERRORS_H_

#include <mpi.h>

#include <optional>

namespace coppice::mpi {

// On MPICH, in MPI_Init, before anything that may fail: the world's handler, if it has none.
void StartReturnedErrors();
// Whether that one is `handler`: natively, there is none.
bool IsNoHandler(MPI_Errhandler handler);

// An error of a collective, to the handler of its communicator. Not if LeaveErrorsToCallers was
// called: then whoever called the collective does so with what it returns.
void HandleError(MPI_Comm comm, int error);
void LeaveErrorsToCallers();

class ReturnedErrors final {
 public:
  ReturnedErrors() : ReturnedErrors(MPI_COMM_WORLD) {}
  explicit ReturnedErrors(MPI_Comm comm);
  ~ReturnedErrors();
  ReturnedErrors(const ReturnedErrors&) = delete;
  ReturnedErrors& operator=(const ReturnedErrors&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
  bool is_none_;
};

// While it lives, errors of requests go where those of their communicator go. So they do on Open
// MPI anyway; MPICH hands them to the handler of the world, whatever communicator they are of. Not
// where `has_threads` and the program has set that handler: what other threads send meanwhile would
// be returned, too.
class RequestErrors final {
 public:
  explicit RequestErrors(bool has_threads);

 private:
  std::optional<ReturnedErrors> of_world_;
};

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_CORE_RETURNED_ERRORS_H_
