// Open MPI's component "coppice" of the framework topo, where its own treematch would be:
// topologies made with reorder are in an order of Coppice's (topology/reordering.h), all others,
// and those without such an order, as Open MPI's base makes them. Parameters: coll_component.c.
#include <string.h>

#include "agents/mpi/openmpi/engine.h"
#include "ompi/communicator/communicator.h"
#include "ompi/info/info.h"
#include "ompi/mca/topo/base/base.h"
#include "ompi/mca/topo/topo.h"
#include "ompi_config.h"

enum { kPriority = 60 };  // treematch has 42

static int InitQuery(bool enable_progress_threads, bool enable_mpi_threads) {
  (void)enable_progress_threads, (void)enable_mpi_threads;
  return OMPI_SUCCESS;
}

static mca_topo_base_module_t* CommQuery(const ompi_communicator_t* comm, int* priority,
                                         uint32_t type);

OMPI_MODULE_DECLSPEC extern mca_topo_base_component_t mca_topo_coppice_component;
mca_topo_base_component_t mca_topo_coppice_component = {
    .topoc_version = {MCA_TOPO_BASE_VERSION_2_2_0, .mca_component_name = "coppice",
                      MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                            OMPI_RELEASE_VERSION)},
    .topoc_data = {MCA_BASE_METADATA_PARAM_NONE},
    .topoc_init_query = InitQuery,
    .topoc_comm_query = CommQuery,
};

// The new communicator has a module of its own: Coppice made it by another call. After an error it
// is the caller's still.
static int Made(mca_topo_base_module_t* module, int error) {
  if (error == MPI_SUCCESS) OBJ_RELEASE(module);
  return error;
}

static int CreateCart(mca_topo_base_module_t* module, ompi_communicator_t* comm, int dimensions,
                      const int* sizes, const int* periods, bool reorder,
                      ompi_communicator_t** made) {
  int error = MPI_SUCCESS;
  if (reorder && coppice_engine_cart_create(comm, dimensions, sizes, periods, made, &error)) {
    return Made(module, error);
  }
  return mca_topo_base_cart_create(module, comm, dimensions, sizes, periods, reorder, made);
}

static int CreateDistGraph(mca_topo_base_module_t* module, ompi_communicator_t* comm, int count,
                           const int sources[], const int degrees[], const int destinations[],
                           const int weights[], opal_info_t* info, int reorder,
                           ompi_communicator_t** made) {
  int error = MPI_SUCCESS;
  if (reorder && coppice_engine_dist_graph_create(comm, count, sources, degrees, destinations,
                                                  weights, (MPI_Info)info, made, &error)) {
    return Made(module, error);
  }
  return mca_topo_base_dist_graph_create(module, comm, count, sources, degrees, destinations,
                                         weights, info, reorder, made);
}

static int CreateAdjacentGraph(mca_topo_base_module_t* module, ompi_communicator_t* comm,
                               int in_degree, const int sources[], const int in_weights[],
                               int out_degree, const int destinations[], const int out_weights[],
                               opal_info_t* info, int reorder, ompi_communicator_t** made) {
  int error = MPI_SUCCESS;
  if (reorder && coppice_engine_dist_graph_create_adjacent(comm, in_degree, sources, in_weights,
                                                           out_degree, destinations, out_weights,
                                                           (MPI_Info)info, made, &error)) {
    return Made(module, error);
  }
  return mca_topo_base_dist_graph_create_adjacent(module, comm, in_degree, sources, in_weights,
                                                  out_degree, destinations, out_weights, info,
                                                  reorder, made);
}

static mca_topo_base_module_t* CommQuery(const ompi_communicator_t* comm, int* priority,
                                         uint32_t type) {
  (void)comm;
  if (!coppice_engine_reorders() || (type != OMPI_COMM_CART && type != OMPI_COMM_DIST_GRAPH)) {
    return NULL;
  }
  mca_topo_base_module_t* const module = OBJ_NEW(mca_topo_base_module_t);
  if (module == NULL) return NULL;
  *priority = kPriority;
  module->type = type;
  memset(&module->topo, 0, sizeof module->topo);  // what is null is the base's
  if (type == OMPI_COMM_CART) {
    module->topo.cart.cart_create = CreateCart;
  } else {
    module->topo.dist_graph.dist_graph_create = CreateDistGraph;
    module->topo.dist_graph.dist_graph_create_adjacent = CreateAdjacentGraph;
  }
  return module;
}
