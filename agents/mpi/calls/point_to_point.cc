// Point-to-point: all modes of sending, traced as one message each, unless the call fails.
// Receives are the sender's.
#include <mpi.h>

#include "agents/mpi/trace/trace.h"

using namespace coppice::mpi;  // NOLINT: the parts of this very library

extern "C" {

int MPI_Send(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  return TraceSent([&] { return PMPI_Send(buffer, count, type, to, tag, comm); }, count, type, to,
                   comm);
}

int MPI_Bsend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  return TraceSent([&] { return PMPI_Bsend(buffer, count, type, to, tag, comm); }, count, type, to,
                   comm);
}

int MPI_Ssend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  return TraceSent([&] { return PMPI_Ssend(buffer, count, type, to, tag, comm); }, count, type, to,
                   comm);
}

int MPI_Rsend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  return TraceSent([&] { return PMPI_Rsend(buffer, count, type, to, tag, comm); }, count, type, to,
                   comm);
}

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return TraceSent([&] { return PMPI_Isend(buffer, count, type, to, tag, comm, request); }, count,
                   type, to, comm);
}

int MPI_Ibsend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  return TraceSent([&] { return PMPI_Ibsend(buffer, count, type, to, tag, comm, request); }, count,
                   type, to, comm);
}

int MPI_Issend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  return TraceSent([&] { return PMPI_Issend(buffer, count, type, to, tag, comm, request); }, count,
                   type, to, comm);
}

int MPI_Irsend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  return TraceSent([&] { return PMPI_Irsend(buffer, count, type, to, tag, comm, request); }, count,
                   type, to, comm);
}

int MPI_Sendrecv(const void* send, int send_count, MPI_Datatype send_type, int to, int send_tag,
                 void* receive, int receive_count, MPI_Datatype receive_type, int from,
                 int receive_tag, MPI_Comm comm, MPI_Status* status) {
  return TraceSent(
      [&] {
        return PMPI_Sendrecv(send, send_count, send_type, to, send_tag, receive, receive_count,
                             receive_type, from, receive_tag, comm, status);
      },
      send_count, send_type, to, comm);
}

int MPI_Sendrecv_replace(void* buffer, int count, MPI_Datatype type, int to, int send_tag, int from,
                         int receive_tag, MPI_Comm comm, MPI_Status* status) {
  return TraceSent(
      [&] {
        return PMPI_Sendrecv_replace(buffer, count, type, to, send_tag, from, receive_tag, comm,
                                     status);
      },
      count, type, to, comm);
}

#if MPI_VERSION >= 4

int MPI_Isendrecv(const void* send, int send_count, MPI_Datatype send_type, int to, int send_tag,
                  void* receive, int receive_count, MPI_Datatype receive_type, int from,
                  int receive_tag, MPI_Comm comm, MPI_Request* request) {
  return TraceSent(
      [&] {
        return PMPI_Isendrecv(send, send_count, send_type, to, send_tag, receive, receive_count,
                              receive_type, from, receive_tag, comm, request);
      },
      send_count, send_type, to, comm);
}

int MPI_Isendrecv_replace(void* buffer, int count, MPI_Datatype type, int to, int send_tag,
                          int from, int receive_tag, MPI_Comm comm, MPI_Request* request) {
  return TraceSent(
      [&] {
        return PMPI_Isendrecv_replace(buffer, count, type, to, send_tag, from, receive_tag, comm,
                                      request);
      },
      count, type, to, comm);
}

#endif  // MPI_VERSION >= 4

}  // extern "C"
