// Point-to-point: all modes of sending, traced as one message each. Receives are the sender's.
#include <mpi.h>

#include "agents/mpi/trace/trace.h"

using namespace coppice::mpi;  // NOLINT: the parts of this very library

extern "C" {

int MPI_Send(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  TraceSend(count, type, to, comm);
  return PMPI_Send(buffer, count, type, to, tag, comm);
}

int MPI_Bsend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  TraceSend(count, type, to, comm);
  return PMPI_Bsend(buffer, count, type, to, tag, comm);
}

int MPI_Ssend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  TraceSend(count, type, to, comm);
  return PMPI_Ssend(buffer, count, type, to, tag, comm);
}

int MPI_Rsend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  TraceSend(count, type, to, comm);
  return PMPI_Rsend(buffer, count, type, to, tag, comm);
}

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  TraceSend(count, type, to, comm);
  return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}

int MPI_Ibsend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  TraceSend(count, type, to, comm);
  return PMPI_Ibsend(buffer, count, type, to, tag, comm, request);
}

int MPI_Issend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  TraceSend(count, type, to, comm);
  return PMPI_Issend(buffer, count, type, to, tag, comm, request);
}

int MPI_Irsend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  TraceSend(count, type, to, comm);
  return PMPI_Irsend(buffer, count, type, to, tag, comm, request);
}

int MPI_Sendrecv(const void* send, int send_count, MPI_Datatype send_type, int to, int send_tag,
                 void* receive, int receive_count, MPI_Datatype receive_type, int from,
                 int receive_tag, MPI_Comm comm, MPI_Status* status) {
  TraceSend(send_count, send_type, to, comm);
  return PMPI_Sendrecv(send, send_count, send_type, to, send_tag, receive, receive_count,
                       receive_type, from, receive_tag, comm, status);
}

int MPI_Sendrecv_replace(void* buffer, int count, MPI_Datatype type, int to, int send_tag, int from,
                         int receive_tag, MPI_Comm comm, MPI_Status* status) {
  TraceSend(count, type, to, comm);
  return PMPI_Sendrecv_replace(buffer, count, type, to, send_tag, from, receive_tag, comm, status);
}

#if MPI_VERSION >= 4

int MPI_Isendrecv(const void* send, int send_count, MPI_Datatype send_type, int to, int send_tag,
                  void* receive, int receive_count, MPI_Datatype receive_type, int from,
                  int receive_tag, MPI_Comm comm, MPI_Request* request) {
  TraceSend(send_count, send_type, to, comm);
  return PMPI_Isendrecv(send, send_count, send_type, to, send_tag, receive, receive_count,
                        receive_type, from, receive_tag, comm, request);
}

int MPI_Isendrecv_replace(void* buffer, int count, MPI_Datatype type, int to, int send_tag,
                          int from, int receive_tag, MPI_Comm comm, MPI_Request* request) {
  TraceSend(count, type, to, comm);
  return PMPI_Isendrecv_replace(buffer, count, type, to, send_tag, from, receive_tag, comm,
                                request);
}

#endif  // MPI_VERSION >= 4

}  // extern "C"
