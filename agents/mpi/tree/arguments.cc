#include "agents/mpi/tree/arguments.h"

#include "agents/mpi/tree/tree_lines.h"

namespace coppice::mpi {
namespace {

// By a message to nobody, whose arguments it looks at all the same. The communicator of trees
// returns errors; without one there are no trees.
bool IsBuffer(const void* buffer, int count, const TypeLayout& layout) {
  if (layout.is_named && buffer != nullptr) return true;
  const MPI_Comm lines = TreeLinesComm();
  return lines == MPI_COMM_NULL ||
         PMPI_Send(buffer, count, layout.type, MPI_PROC_NULL, 0, lines) == MPI_SUCCESS;
}

// Open MPI lets a single element pass whose result goes where it lies, which MPI forbids.
#ifdef OPEN_MPI
constexpr int kMostTogether = 1;
#else
constexpr int kMostTogether = 0;
#endif

bool HasRank(MPI_Comm comm, int rank) {
  int own = 0;
  return PMPI_Comm_rank(comm, &own) == MPI_SUCCESS && own == rank;
}

}  // namespace

bool MayBroadcast(const void* buffer, int count, const TypeLayout& layout) {
  return buffer != MPI_IN_PLACE && IsBuffer(buffer, count, layout);
}

bool MayAllreduce(const void* send, const void* receive, int count, const TypeLayout& layout) {
  if (send == receive && send != MPI_BOTTOM && count > kMostTogether) return false;
  return receive != MPI_IN_PLACE && (send == MPI_IN_PLACE || IsBuffer(send, count, layout)) &&
         IsBuffer(receive, count, layout);
}

bool MayReduce(const void* send, const void* receive, int count, const TypeLayout& layout, int root,
               MPI_Comm comm) {
  const bool is_usual = layout.is_named && send != receive && send != MPI_IN_PLACE &&
                        receive != MPI_IN_PLACE && send != nullptr && receive != nullptr;
  if (is_usual) return true;
  if (!HasRank(comm, root)) return send != MPI_IN_PLACE && IsBuffer(send, count, layout);
  if (send == receive && send != MPI_BOTTOM) return false;
  return receive != MPI_IN_PLACE && (send == MPI_IN_PLACE || IsBuffer(send, count, layout)) &&
         IsBuffer(receive, count, layout);
}

}  // namespace coppice::mpi
