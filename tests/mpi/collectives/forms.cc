#include "tests/mpi/collectives/forms.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#define COPPICE_PERSISTENT(NAME) MPIX_##NAME##_init
#else
#define COPPICE_PERSISTENT(NAME) MPI_##NAME##_init
#endif

#include "tests/mpi/tree_counts.h"

namespace coppice::conformance {
namespace {

constexpr int kResultTag = 77;

bool IsComponent() {
  static const bool is_there = FindTreeComponent() != nullptr;
  return is_there;
}

// The error of starting it, or of its end.
int Waited(Form form, int error, MPI_Request* request) {
  if (error == MPI_SUCCESS && form == Form::kPersistent) error = MPI_Start(request);
  if (error == MPI_SUCCESS) error = MPI_Wait(request, MPI_STATUS_IGNORE);
  if (*request != MPI_REQUEST_NULL) MPI_Request_free(request);
  return error;
}

}  // namespace

const std::vector<Form>& Forms() {
  static const std::vector<Form> preloaded = {Form::kBlocking};
  static const std::vector<Form> of_component = {Form::kBlocking, Form::kNonblocking,
                                                 Form::kPersistent};
  return IsComponent() ? of_component : preloaded;
}

bool AreNonblockingOnesAlongTrees(const Report& report) {
  return IsComponent() && report.options().expects_trees && !report.options().over_switches;
}

std::string NameOf(Form form, const std::string& name) {
  if (form == Form::kBlocking) return name;
  return (form == Form::kPersistent ? "persistent " : "nonblocking ") + name;
}

void ExpectTree(Form form, uint64_t before, bool needs_tree, const std::string& what,
                Report* report) {
  if (form != Form::kBlocking && report->options().over_switches) return;
  report->ExpectTree(before, needs_tree, what);
}

#define COPPICE_FORM_OF(NAME, FORTRAN, ARGUMENTS, TRACE)                                  \
  int Start##NAME(Form form, ARGUMENTS(COPPICE_PARAMETER), MPI_Request* request) {        \
    if (form == Form::kNonblocking) {                                                     \
      return MPI_I##FORTRAN(ARGUMENTS(COPPICE_ARGUMENT), request);                        \
    }                                                                                     \
    return COPPICE_PERSISTENT(NAME)(ARGUMENTS(COPPICE_ARGUMENT), MPI_INFO_NULL, request); \
  }                                                                                       \
  int NAME##By(Form form, ARGUMENTS(COPPICE_PARAMETER)) {                                 \
    if (form == Form::kBlocking) return MPI_##NAME(ARGUMENTS(COPPICE_ARGUMENT));          \
    MPI_Request request = MPI_REQUEST_NULL;                                               \
    const int error = Start##NAME(form, ARGUMENTS(COPPICE_ARGUMENT), &request);           \
    return Waited(form, error, &request);                                                 \
  }
COPPICE_TREE_COLLECTIVES(COPPICE_FORM_OF)
#undef COPPICE_FORM_OF

void NativeBcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  if (!IsComponent()) {
    PMPI_Bcast(buffer, count, type, root, comm);
    return;
  }
  int rank = 0;
  int size = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  if (rank != root) {
    PMPI_Recv(buffer, count, type, root, kResultTag, comm, MPI_STATUS_IGNORE);
    return;
  }
  for (int to = 0; to < size; ++to) {
    if (to != root) PMPI_Send(buffer, count, type, to, kResultTag, comm);
  }
}

void NativeAllreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                     MPI_Comm comm) {
  if (!IsComponent()) {
    PMPI_Allreduce(send, receive, count, type, op, comm);
    return;
  }
  int size = 0;
  PMPI_Comm_size(comm, &size);
  PMPI_Scan(send, receive, count, type, op, comm);
  NativeBcast(receive, count, type, size - 1, comm);
}

void NativeReduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                  int root, MPI_Comm comm) {
  if (IsComponent()) {
    NativeAllreduce(send, receive, count, type, op, comm);
  } else {
    PMPI_Reduce(send, receive, count, type, op, root, comm);
  }
}

}  // namespace coppice::conformance
