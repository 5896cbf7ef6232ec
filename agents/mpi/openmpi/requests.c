// What collectives that are started need of Open MPI: requests, and to be called whenever the
// program is in MPI. engine.h and requests.h say what each function does.
#include "agents/mpi/openmpi/requests.h"

#include <stdlib.h>

#include "agents/mpi/openmpi/engine.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi_config.h"
#include "opal/runtime/opal_progress.h"

// The class of requests in which Open MPI's functions keep type and operation until these are
// complete. Its header, coll_base_util.h, includes one that is not installed.
typedef struct ompi_coll_base_nbc_request_t ompi_coll_base_nbc_request_t;
OMPI_DECLSPEC OBJ_CLASS_DECLARATION(ompi_coll_base_nbc_request_t);

static int Cancel(ompi_request_t* request, int flag) {
  (void)request, (void)flag;
  return MPI_ERR_REQUEST;
}

// On `comm`, which it holds; null: there is no memory.
static ompi_request_t* Make(MPI_Comm comm, bool is_persistent, ompi_request_free_fn_t free) {
  ompi_request_t* const request = (ompi_request_t*)OBJ_NEW(ompi_coll_base_nbc_request_t);
  if (request == NULL) return NULL;
  OMPI_REQUEST_INIT(request, is_persistent);
  request->req_type = OMPI_REQUEST_COLL;
  request->req_status = ompi_status_empty;
  request->req_free = free;
  request->req_cancel = Cancel;
  request->req_mpi_object.comm = comm;
  OBJ_RETAIN(comm);
  return request;
}

static void Forget(ompi_request_t* request) {
  ompi_communicator_t* comm = request->req_mpi_object.comm;
  OMPI_REQUEST_FINI(request);
  OBJ_RELEASE(request);
  OBJ_RELEASE(comm);
}

// --- nonblocking collectives -------------------------------------------------------------------

// A communicator that the program has freed goes when the last of its collectives is over, and not
// before MPI has asked the request for it: errors go to its handler.
static int FreeNonblocking(ompi_request_t** request) {
  ompi_request_t* freed = *request;
  if (!REQUEST_COMPLETE(freed)) return MPI_ERR_REQUEST;
  Forget(freed);
  *request = MPI_REQUEST_NULL;
  return OMPI_SUCCESS;
}

MPI_Request coppice_component_request_make(MPI_Comm comm) {
  ompi_request_t* const request = Make(comm, false, FreeNonblocking);
  if (request == NULL) return MPI_REQUEST_NULL;
  request->req_state = OMPI_REQUEST_ACTIVE;
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

// --- persistent ones ---------------------------------------------------------------------------

// What a request has as its callback's data. `started`: of the last start, or null.
typedef struct {
  coppice_arguments arguments;
  coppice_start start;
  void* module;
  ompi_request_t* started;
} Persistent;

static Persistent* Of(ompi_request_t* request) { return request->req_complete_cb_data; }

static int End(ompi_request_t* started) {
  ompi_request_t* const request = started->req_complete_cb_data;
  request->req_status.MPI_ERROR = started->req_status.MPI_ERROR;
  ompi_request_complete(request, true);
  return 0;  // `started` is complete now, and freed before the next start
}

static int FreeStarted(Persistent* persistent) {
  if (persistent->started == NULL) return OMPI_SUCCESS;
  const int error = ompi_request_free(&persistent->started);
  if (error == OMPI_SUCCESS) persistent->started = NULL;
  return error;
}

static int Start(size_t count, ompi_request_t** requests) {
  for (size_t i = 0; i < count; ++i) {
    ompi_request_t* const request = requests[i];
    Persistent* const persistent = Of(request);
    int error = FreeStarted(persistent);
    if (error != OMPI_SUCCESS) return error;
    request->req_status = ompi_status_empty;
    request->req_complete = REQUEST_PENDING;
    request->req_state = OMPI_REQUEST_ACTIVE;
    error = persistent->start(&persistent->arguments, persistent->module, &persistent->started);
    if (error != OMPI_SUCCESS) {
      persistent->started = NULL;
      request->req_complete = REQUEST_COMPLETED;
      request->req_state = OMPI_REQUEST_INACTIVE;
      return error;
    }
    ompi_request_set_callback(persistent->started, End, request);
  }
  return OMPI_SUCCESS;
}

static int FreePersistent(ompi_request_t** request) {
  ompi_request_t* const freed = *request;
  Persistent* const persistent = Of(freed);
  if (!REQUEST_COMPLETE(freed)) return MPI_ERR_REQUEST;
  const int error = FreeStarted(persistent);
  if (error != OMPI_SUCCESS) return error;
  if (persistent->arguments.op != NULL) OBJ_RELEASE(persistent->arguments.op);
  if (persistent->arguments.type != NULL) OBJ_RELEASE(persistent->arguments.type);
  free(persistent);
  Forget(freed);
  *request = MPI_REQUEST_NULL;
  return OMPI_SUCCESS;
}

int coppice_component_request_persist(const coppice_arguments* arguments, coppice_start start,
                                      void* module, ompi_request_t** request) {
  Persistent* const persistent = malloc(sizeof *persistent);
  if (persistent == NULL) return MPI_ERR_NO_MEM;
  *request = Make(arguments->comm, true, FreePersistent);
  if (*request == NULL) {
    free(persistent);
    return MPI_ERR_NO_MEM;
  }
  *persistent = (Persistent){*arguments, start, module, NULL};
  if (arguments->op != NULL) OBJ_RETAIN(persistent->arguments.op);
  if (arguments->type != NULL) OBJ_RETAIN(persistent->arguments.type);
  (*request)->req_start = Start;
  (*request)->req_complete_cb_data = persistent;
  return OMPI_SUCCESS;
}
