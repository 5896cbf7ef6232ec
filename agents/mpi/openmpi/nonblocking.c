// What nonblocking collectives along trees need of Open MPI: requests, and to be called whenever
// the program is in MPI. engine.h says what each function does.
#include "agents/mpi/openmpi/engine.h"
#include "ompi/communicator/communicator.h"
#include "ompi/request/request.h"
#include "ompi_config.h"
#include "opal/runtime/opal_progress.h"

// A communicator that the program has freed goes when the last of its collectives is over, and not
// before MPI has asked the request for it: errors go to its handler.
static int Free(ompi_request_t** request) {
  ompi_request_t* freed = *request;
  if (!REQUEST_COMPLETE(freed)) return MPI_ERR_REQUEST;
  ompi_communicator_t* comm = freed->req_mpi_object.comm;
  OMPI_REQUEST_FINI(freed);
  OBJ_RELEASE(freed);
  OBJ_RELEASE(comm);
  *request = MPI_REQUEST_NULL;
  return OMPI_SUCCESS;
}

static int Cancel(ompi_request_t* request, int flag) {
  (void)request, (void)flag;
  return MPI_ERR_REQUEST;
}

// The class of requests in which MPI_Iallreduce and the others keep type and operation until they
// are complete. Its header, coll_base_util.h, includes one that is not installed.
typedef struct ompi_coll_base_nbc_request_t ompi_coll_base_nbc_request_t;
OMPI_DECLSPEC OBJ_CLASS_DECLARATION(ompi_coll_base_nbc_request_t);

MPI_Request coppice_component_request_make(MPI_Comm comm) {
  ompi_request_t* const request = (ompi_request_t*)OBJ_NEW(ompi_coll_base_nbc_request_t);
  if (request == NULL) return MPI_REQUEST_NULL;
  OMPI_REQUEST_INIT(request, false);
  request->req_type = OMPI_REQUEST_COLL;
  request->req_state = OMPI_REQUEST_ACTIVE;
  request->req_status = ompi_status_empty;
  request->req_free = Free;
  request->req_cancel = Cancel;
  request->req_mpi_object.comm = comm;
  OBJ_RETAIN(comm);
  return request;
}

void coppice_component_request_complete(MPI_Request request, int error) {
  request->req_status.MPI_ERROR = error;
  ompi_request_complete(request, true);
}

int coppice_component_request_is_pending(MPI_Request request) { return !REQUEST_COMPLETE(request); }

void coppice_component_progress(void) { opal_progress(); }

void coppice_component_progress_begin(void) { opal_progress_register(coppice_engine_progress); }

void coppice_component_progress_end(void) { opal_progress_unregister(coppice_engine_progress); }
