// While it lives, errors of MPI on the world are returned to this library, which does without what
// it asked for, and not handled as the program wants its own errors handled.
#ifndef COPPICE_AGENTS_MPI_CORE_RETURNED_ERRORS_H_
#define COPPICE_AGENTS_MPI_CORE_RETURNED_ERRORS_H_

#include <mpi.h>

#include <optional>

namespace coppice::mpi {

class ReturnedErrors final {
 public:
  ReturnedErrors() : ReturnedErrors(MPI_COMM_WORLD) {}
  explicit ReturnedErrors(MPI_Comm comm) : comm_(comm) {
    PMPI_Comm_get_errhandler(comm_, &before_);
    PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  ~ReturnedErrors() {
    PMPI_Comm_set_errhandler(comm_, before_);
    PMPI_Errhandler_free(&before_);
  }
  ReturnedErrors(const ReturnedErrors&) = delete;
  ReturnedErrors& operator=(const ReturnedErrors&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

// While it lives, errors of requests go where those of their communicator go. So they do on Open
// MPI anyway; MPICH hands them to the handler of the world, whatever communicator they are of. Not
// where `has_threads`: what other threads send meanwhile would be returned, too.
class RequestErrors final {
 public:
  explicit RequestErrors([[maybe_unused]] bool has_threads) {
#ifndef OPEN_MPI
    if (!has_threads) of_world_.emplace();
#endif
  }

 private:
  std::optional<ReturnedErrors> of_world_;
};

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_CORE_RETURNED_ERRORS_H_
