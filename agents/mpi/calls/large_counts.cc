// MPI 4's forms of the collectives that trees carry, with counts that may be larger than an int.
// Some members may call these while others call those with ints: all have to go one way.
//
// A count beyond an int is left to the MPI library by all: that of a reduction is the same at all
// members, and the others of such a broadcast have as many bytes, which are more than go along a
// tree. Nothing of it is traced.
#include <mpi.h>

#include <climits>

#if MPI_VERSION >= 4

namespace {

bool IsInt(MPI_Count count) { return count >= 0 && count <= INT_MAX; }

}  // namespace

extern "C" {

int MPI_Bcast_c(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm) {
  if (IsInt(count)) return MPI_Bcast(buffer, static_cast<int>(count), type, root, comm);
  return PMPI_Bcast_c(buffer, count, type, root, comm);
}

int MPI_Reduce_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op,
                 int root, MPI_Comm comm) {
  if (IsInt(count)) {
    return MPI_Reduce(send, receive, static_cast<int>(count), type, op, root, comm);
  }
  return PMPI_Reduce_c(send, receive, count, type, op, root, comm);
}

int MPI_Allreduce_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm) {
  if (IsInt(count)) {
    return MPI_Allreduce(send, receive, static_cast<int>(count), type, op, comm);
  }
  return PMPI_Allreduce_c(send, receive, count, type, op, comm);
}

}  // extern "C"

#endif  // MPI_VERSION >= 4
