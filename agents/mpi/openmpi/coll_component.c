// Open MPI's component "coppice" of the framework coll: a module for each communicator, which
// carries collectives out along trees and hands the others to the module below, as all do where
// there is no tree. It has the parameters, and begins and ends the engine, for topo_component.c,
// too. Both are for Open MPI 4.1, whose headers they are built with.
#define _GNU_SOURCE  // dladdr
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "agents/mpi/openmpi/engine.h"
#include "agents/mpi/openmpi/requests.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/hook/base/base.h"
#include "ompi_config.h"
#include "opal/mca/base/mca_base_var.h"

// --- parameters --------------------------------------------------------------------------------

static int priority = 40;

// Facts of the node and of the program have what the environment says as their preset. What is on
// is for parameters alone, as the preloaded library goes by its variables.
static struct {
  const char* name;  // of the variable
  const char* parameter;
  bool has_preset;  // of that name in the environment
  const char* help;
  char* value;
} settings[] = {
    {"COPPICE_TREES", "trees", false,
     "When a communicator's trees are asked for: never, first-use (after some collectives) or "
     "creation (at its first one)",
     NULL},
    {"COPPICE_TREES_TYPE", "trees_type", false,
     "Whose trees: auto, 1 (of the ranks) or 2 (of switches, wherever they can)", NULL},
    {"COPPICE_TREES_AFTER", "trees_after", false,
     "Collectives of a communicator before its tree is asked for (32); 0: the first one waits",
     NULL},
    {"COPPICE_TREES_MAX_BYTES", "trees_max_bytes", false,
     "All messages up to this length go along trees, such as 8K, and no longer ones; without it "
     "which way is sooner is measured",
     NULL},
    {"COPPICE_TREES_WAY", "trees_way", false,
     "With trees_max_bytes: along what: tree, or chain, binomial, exchange, forest over its ranks "
     "where a collective has that",
     NULL},
    {"COPPICE_REORDER", "reorder", false,
     "1: topologies made with reorder are in an order of Coppice's (component coppice of topo)",
     NULL},
    {"COPPICE_REORDER_BUDGET_MS", "reorder_budget_ms", false,
     "How long the daemon may search for such an order (1000)", NULL},
    {"COPPICE_AGENT", "agent", true, "The socket of the node's agent (/run/coppice/agent.sock)",
     NULL},
    {"COPPICE_HOST", "host", true, "This node's name in the fabric (the agent's)", NULL},
    {"COPPICE_APPLICATION", "application", true, "The job's name (the program's)", NULL},
    {"COPPICE_PARTITION", "partition", true,
     "The job's partition, such as 0x0001 (the one that its nodes share)", NULL},
    {"COPPICE_TIMEOUT_MS", "timeout_ms", true, "Of each question to the agent (2000)", NULL},
    {"COPPICE_START_TIMEOUT_MS", "start_timeout_ms", true,
     "Within which all ranks say that they have this component (20000)", NULL},
    {"COPPICE_VERBOSE", "verbose", true, "1: rank 0 says on stderr what was done, and why not",
     NULL},
};
enum { kSettings = sizeof settings / sizeof *settings };

const char* coppice_component_setting(const char* name) {
  for (int i = 0; i < kSettings; ++i) {
    if (strcmp(settings[i].name, name) == 0) return settings[i].value;
  }
  return NULL;
}

int coppice_component_is_described(MPI_Datatype type) {
  return ompi_datatype_is_predefined(type) || type->args != NULL;
}

static int RegisterParameters(void);
static int Open(void);
static int Close(void);
static int InitQuery(bool enable_progress_threads, bool enable_mpi_threads);
static mca_coll_base_module_t* CommQuery(struct ompi_communicator_t* comm, int* of_module);

OMPI_MODULE_DECLSPEC extern mca_coll_base_component_t mca_coll_coppice_component;
mca_coll_base_component_t mca_coll_coppice_component = {
    .collm_version = {MCA_COLL_BASE_VERSION_2_0_0, .mca_component_name = "coppice",
                      MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                            OMPI_RELEASE_VERSION),
                      .mca_open_component = Open, .mca_close_component = Close,
                      .mca_register_component_params = RegisterParameters},
    .collm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .collm_init_query = InitQuery,
    .collm_comm_query = CommQuery,
};

static int RegisterParameters(void) {
  const mca_base_component_t* const component = &mca_coll_coppice_component.collm_version;
  mca_base_component_var_register(component, "priority", "Priority of the component coppice",
                                  MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_6,
                                  MCA_BASE_VAR_SCOPE_READONLY, &priority);
  for (int i = 0; i < kSettings; ++i) {
    settings[i].value = settings[i].has_preset ? getenv(settings[i].name) : NULL;
    const int error = mca_base_component_var_register(
        component, settings[i].parameter, settings[i].help, MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0,
        OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY, &settings[i].value);
    if (error < 0) return error;
  }
  return OMPI_SUCCESS;
}

static bool IsGiven(const char* name, const char* off) {
  const char* const value = coppice_component_setting(name);
  return value != NULL && *value != '\0' && strcmp(value, off) != 0;
}
// Whether this process asks for anything. What is on is rank 0's word, which comes later, so that
// all that ask have modules.
static bool IsOn(void) {
  return IsGiven("COPPICE_TREES", "never") || IsGiven("COPPICE_REORDER", "0");
}

// --- its begin and end -------------------------------------------------------------------------

static void InitBottom(int argc, char** argv, int requested, int* provided) {
  (void)argc, (void)argv, (void)requested, (void)provided;
  coppice_engine_begin();
}

static void FinalizeTop(void) { coppice_engine_end(); }

static ompi_hook_base_component_t hook = {
    .hookm_version = {OMPI_HOOK_BASE_VERSION_1_0_0, .mca_component_name = "coppice",
                      MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                            OMPI_RELEASE_VERSION)},
    .hookm_mpi_init_bottom = InitBottom,
    .hookm_mpi_finalize_top = FinalizeTop,
};

static int Open(void) { return IsOn() ? ompi_hook_base_register_callbacks(&hook) : OMPI_SUCCESS; }

static int Close(void) {
  if (IsOn()) ompi_hook_base_deregister_callbacks(&hook);
  return OMPI_SUCCESS;
}

static int InitQuery(bool enable_progress_threads, bool enable_mpi_threads) {
  (void)enable_progress_threads, (void)enable_mpi_threads;
  return OMPI_SUCCESS;
}

// --- a communicator's module -------------------------------------------------------------------

typedef struct {
  mca_coll_base_module_t super;
  mca_coll_base_comm_coll_t below;
  bool is_enabled;
  bool is_below;  // a collective is
  coppice_kept kept;
} Module;

static void Construct(Module* module) {
  memset(&module->below, 0, sizeof module->below);
  memset(&module->kept, 0, sizeof module->kept);
  module->is_enabled = module->is_below = false;
}

static void Destruct(Module* module) {
  if (!module->is_enabled) return;
  coppice_engine_forget(&module->kept);
#define RELEASE(NAME, FUNCTION, ...)                    \
  OBJ_RELEASE(module->below.coll_##FUNCTION##_module);  \
  OBJ_RELEASE(module->below.coll_i##FUNCTION##_module); \
  OBJ_RELEASE(module->below.coll_##FUNCTION##_init_module);
  COPPICE_TREE_COLLECTIVES(RELEASE)
}

OBJ_CLASS_INSTANCE(Module, mca_coll_base_module_t, Construct, Destruct);

// A module below may make one collective of others of the same communicator; these go below, too.
#define CARRY(NAME, FUNCTION, ARGUMENTS, TRACE)                                                  \
  static int FUNCTION##_along_tree(ARGUMENTS(COPPICE_PARAMETER), mca_coll_base_module_t* base) { \
    Module* const module = (Module*)base;                                                        \
    const bool is_within = module->is_below;                                                     \
    coppice_measured measured = {NULL, 0};                                                       \
    int error = MPI_SUCCESS;                                                                     \
    if (!is_within && coppice_engine_##FUNCTION(ARGUMENTS(COPPICE_ARGUMENT), &module->kept,      \
                                                &measured, &error)) {                            \
      return error;                                                                              \
    }                                                                                            \
    module->is_below = true;                                                                     \
    error = module->below.coll_##FUNCTION(ARGUMENTS(COPPICE_ARGUMENT),                           \
                                          module->below.coll_##FUNCTION##_module);               \
    module->is_below = is_within;                                                                \
    if (error == MPI_SUCCESS) coppice_engine_ended(&measured);                                   \
    return error;                                                                                \
  }
COPPICE_TREE_COLLECTIVES(CARRY)

// Whether `caller`, a return address, is in MPI's function of that name. Open MPI makes
// communicators by nonblocking collectives of its own, and starts some of them from within
// progress, each member when it comes to it: they are before one of the program's at some members
// and behind it at others, and would not meet along a tree.
static bool IsOfProgram(const void* caller, const char* name, const void** known) {
  if (caller == *known) return true;
  Dl_info found;
  if (dladdr(caller, &found) == 0 || found.dli_sname == NULL) return false;
  const char* const symbol = found.dli_sname + (found.dli_sname[0] == 'P');
  if (strcmp(symbol, name) != 0) return false;
  *known = caller;
  return true;
}

#define START(NAME, FUNCTION, ARGUMENTS, TRACE)                                                    \
  static int Start##NAME(ARGUMENTS(COPPICE_PARAMETER), ompi_request_t** request,                   \
                         bool is_of_program, Module* module) {                                     \
    int error = MPI_SUCCESS;                                                                       \
    if (is_of_program &&                                                                           \
        coppice_engine_i##FUNCTION(ARGUMENTS(COPPICE_ARGUMENT), &module->kept, request, &error)) { \
      return error;                                                                                \
    }                                                                                              \
    return module->below.coll_i##FUNCTION(ARGUMENTS(COPPICE_ARGUMENT), request,                    \
                                          module->below.coll_i##FUNCTION##_module);                \
  }                                                                                                \
  static int i##FUNCTION##_along_tree(ARGUMENTS(COPPICE_PARAMETER), ompi_request_t** request,      \
                                      mca_coll_base_module_t* base) {                              \
    static const void* known = NULL;                                                               \
    return Start##NAME(ARGUMENTS(COPPICE_ARGUMENT), request,                                       \
                       IsOfProgram(__builtin_return_address(0), "MPI_I" #FUNCTION, &known),        \
                       (Module*)base);                                                             \
  }
COPPICE_TREE_COLLECTIVES(START)

// Persistent ones, which only programs make. Where no nonblocking one goes along a tree, the module
// below makes them.
#define OF_KEPT(TYPE, NAME) kept->NAME
#define KEEP(TYPE, NAME) kept.NAME = NAME
#define PERSIST(NAME, FUNCTION, ARGUMENTS, TRACE)                                                 \
  static int Restart##NAME(const coppice_arguments* kept, void* module,                           \
                           ompi_request_t** request) {                                            \
    return Start##NAME(ARGUMENTS(OF_KEPT), request, true, module);                                \
  }                                                                                               \
  static int FUNCTION##_init_along_tree(ARGUMENTS(COPPICE_PARAMETER), struct ompi_info_t* info,   \
                                        ompi_request_t** request, mca_coll_base_module_t* base) { \
    Module* const module = (Module*)base;                                                         \
    if (!coppice_engine_may_start()) {                                                            \
      return module->below.coll_##FUNCTION##_init(ARGUMENTS(COPPICE_ARGUMENT), info, request,     \
                                                  module->below.coll_##FUNCTION##_init_module);   \
    }                                                                                             \
    coppice_arguments kept;                                                                       \
    memset(&kept, 0, sizeof kept);                                                                \
    (void)(ARGUMENTS(KEEP));                                                                      \
    return coppice_component_request_persist(&kept, Restart##NAME, module, request);              \
  }
COPPICE_TREE_COLLECTIVES(PERSIST)

// Where HAN cannot serve a communicator it puts the module below it back and calls the
// communicator's function again, which would be ours, and HAN's again.
static bool IsHan(mca_coll_base_module_t* module) {
  return strcmp(((opal_object_t*)module)->obj_class->cls_name, "mca_coll_han_module_t") == 0;
}

static int Enable(mca_coll_base_module_t* base, struct ompi_communicator_t* comm) {
  Module* const module = (Module*)base;
#define IS_MISSING(NAME, FUNCTION, ...)                  \
  || comm->c_coll->coll_##FUNCTION##_module == NULL ||   \
      comm->c_coll->coll_i##FUNCTION##_module == NULL || \
      comm->c_coll->coll_##FUNCTION##_init_module == NULL
  if (false COPPICE_TREE_COLLECTIVES(IS_MISSING)) return OMPI_ERR_NOT_FOUND;
#define IS_HAN(NAME, FUNCTION, ...) || IsHan(comm->c_coll->coll_##FUNCTION##_module)
  if (false COPPICE_TREE_COLLECTIVES(IS_HAN)) return OMPI_ERR_NOT_SUPPORTED;
  module->below = *comm->c_coll;
#define RETAIN(NAME, FUNCTION, ...)                    \
  OBJ_RETAIN(module->below.coll_##FUNCTION##_module);  \
  OBJ_RETAIN(module->below.coll_i##FUNCTION##_module); \
  OBJ_RETAIN(module->below.coll_##FUNCTION##_init_module);
  COPPICE_TREE_COLLECTIVES(RETAIN)
  module->is_enabled = true;
  return OMPI_SUCCESS;
}

static mca_coll_base_module_t* CommQuery(struct ompi_communicator_t* comm, int* of_module) {
  if (!IsOn() || OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2) return NULL;
  Module* const module = OBJ_NEW(Module);
  if (module == NULL) return NULL;
  *of_module = priority;
  module->super.coll_module_enable = Enable;
#define OFFER(NAME, FUNCTION, ...)                           \
  module->super.coll_##FUNCTION = FUNCTION##_along_tree;     \
  module->super.coll_i##FUNCTION = i##FUNCTION##_along_tree; \
  module->super.coll_##FUNCTION##_init = FUNCTION##_init_along_tree;
  COPPICE_TREE_COLLECTIVES(OFFER)
  return &module->super;
}

int coppice_component_has_module(MPI_Comm comm) {
#define IS_ANOTHERS(NAME, FUNCTION, ...) || comm->c_coll->coll_##FUNCTION != FUNCTION##_along_tree
  return !(false COPPICE_TREE_COLLECTIVES(IS_ANOTHERS));
}

int coppice_component_has_nonblocking(MPI_Comm comm) {
#define IS_ANOTHERS_NONBLOCKING(NAME, FUNCTION, ...)               \
  || comm->c_coll->coll_i##FUNCTION != i##FUNCTION##_along_tree || \
      comm->c_coll->coll_##FUNCTION##_init != FUNCTION##_init_along_tree
  return !(false COPPICE_TREE_COLLECTIVES(IS_ANOTHERS_NONBLOCKING));
}

coppice_kept* coppice_component_kept(MPI_Comm comm) {
  return &((Module*)comm->c_coll->coll_barrier_module)->kept;
}
