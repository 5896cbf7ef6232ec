/* libcoppice: what Coppice offers to a process on a node: jobs, aggregation trees, rank orders, and
 * what becomes of granted trees. C99, for MPI libraries.
 *
 * A client speaks to the node's coppice-agent over its Unix socket, never to the daemon. Every call
 * that can wait has a deadline. Nothing here prints, exits, installs signal handlers, or lets a C++
 * exception out. All functions are safe to call from several threads; handles returned by one call
 * are read-only and belong to the caller until they are freed. The library has no threads but one
 * for each watch.
 *
 * fork(): a client belongs to the process that opened it. A child has none of its connections:
 * calls fail there with FAILED_PRECONDITION and coppice_close() does nothing; the child opens its
 * own. A fork() while another thread is in a call is allowed. pthread_cancel() waits for the end of
 * a call.
 *
 * Errors: each function that can fail returns a coppice_status, with the numbers of gRPC's codes;
 * coppice_last_error() gives its text, which names the object and what to do. UNAVAILABLE also
 * means that there is no agent, and that a program should go on without.
 *
 * Stability: the symbols and the numbers of this file keep their meaning within one
 * COPPICE_ABI_VERSION. Structures that a caller fills begin with their size; set it with
 * COPPICE_INIT. New fields come last, or in the place of `reserved`, which is 0; 0 always means "as
 * before".
 */
#ifndef COPPICE_CLIENT_LIBRARY_COPPICE_H_
#define COPPICE_CLIENT_LIBRARY_COPPICE_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define COPPICE_API __attribute__((visibility("default")))
#else
#define COPPICE_API
#endif

#define COPPICE_ABI_VERSION 1

/* Zeroes a structure and says its size: coppice_tree_request request = COPPICE_INIT(request); */
#ifdef __cplusplus
struct coppice_sized {
  size_t size;
  template <class Structure>
  operator Structure() const {
    Structure structure = Structure();
    structure.size = size;
    return structure;
  }
};
#define COPPICE_INIT(variable) \
  coppice_sized { sizeof(variable) }
extern "C" {
#else
#define COPPICE_INIT(variable) \
  { .size = sizeof(variable) }
#endif

typedef enum coppice_status {
  COPPICE_OK = 0,
  COPPICE_CANCELLED = 1,
  COPPICE_UNKNOWN = 2,
  COPPICE_INVALID_ARGUMENT = 3,
  COPPICE_DEADLINE_EXCEEDED = 4,
  COPPICE_NOT_FOUND = 5,
  COPPICE_ALREADY_EXISTS = 6,
  COPPICE_PERMISSION_DENIED = 7,
  COPPICE_RESOURCE_EXHAUSTED = 8,
  COPPICE_FAILED_PRECONDITION = 9,
  COPPICE_ABORTED = 10,
  COPPICE_OUT_OF_RANGE = 11,
  COPPICE_UNIMPLEMENTED = 12,
  COPPICE_INTERNAL = 13,
  COPPICE_UNAVAILABLE = 14
} coppice_status;

/* COPPICE_ABI_VERSION of the library that is loaded, and its release ("0.1.0"). */
COPPICE_API uint32_t coppice_abi_version(void);
COPPICE_API const char* coppice_version(void);

/* "NOT_FOUND"; "UNKNOWN" for a number that is none. */
COPPICE_API const char* coppice_status_name(coppice_status status);

/* Why the last call of this thread failed; "" if it did not. Valid until the thread's next call. */
COPPICE_API const char* coppice_last_error(void);

/* ---- client -------------------------------------------------------------------------------- */

typedef struct coppice_client coppice_client;

/* `agent`: path of the agent's socket; NULL: $COPPICE_AGENT, else /run/coppice/agent.sock. Connects
 * at the first call, and again when the agent was restarted. `timeout_ms` bounds each call; 0: 30
 * s.
 */
COPPICE_API coppice_status coppice_open(const char* agent, uint32_t timeout_ms,
                                        coppice_client** client);
/* Ends open watches, whose functions are not called again after this returns. NULL is allowed. */
COPPICE_API void coppice_close(coppice_client* client);

/* What a program asks first. */
typedef struct coppice_capabilities {
  size_t size;
  int connected;  /* the agent to the daemon, now */
  uint32_t cores; /* of this node */
  char host[256]; /* as the fabric names it */
  char agent_version[64];
} coppice_capabilities;
COPPICE_API coppice_status coppice_query(coppice_client* client, coppice_capabilities* answer);

/* ---- jobs ---------------------------------------------------------------------------------- */

typedef struct coppice_job_request {
  size_t size;
  const char* request_id;       /* a retry with the same is carried out once; NULL: none */
  const char* display_name;     /* NULL: none */
  const char* const* endpoints; /* of each rank: "host", "host/port", or a port GUID */
  uint32_t endpoint_count;
  uint32_t lease_ms;  /* 0: the daemon's */
  int hold;           /* the agent renews the lease while this process lives, then ends it */
  uint32_t partition; /* 1 to 32767; 0: the one that all endpoints share */
} coppice_job_request;

/* Registers a job; its number is written to `job`, if that is OK. A job that cannot be held is
 * ended again, unless it was given a request_id: then others may have it, and the error names it.
 */
COPPICE_API coppice_status coppice_job_register(coppice_client* client,
                                                const coppice_job_request* request, uint64_t* job);
/* Ends it and releases its trees. Ending an ended job is OK. */
COPPICE_API coppice_status coppice_job_end(coppice_client* client, uint64_t job);

/* ---- trees --------------------------------------------------------------------------------- */

typedef enum coppice_operation {
  COPPICE_OPERATION_ALLREDUCE = 0,
  COPPICE_OPERATION_BARRIER = 1,
  COPPICE_OPERATION_BCAST = 2,
  COPPICE_OPERATION_REDUCE = 3
} coppice_operation;

typedef enum coppice_tree_type {
  COPPICE_TREE_AUTO = 0,
  COPPICE_TREE_TYPE_I = 1, /* the NICs, or the ranks themselves, aggregate */
  COPPICE_TREE_TYPE_II = 2 /* switches aggregate */
} coppice_tree_type;

#define COPPICE_FOREST_MS 10000

typedef struct coppice_tree_request {
  size_t size;
  uint64_t job;
  const char* request_id; /* NULL: none */
  const uint32_t* ranks;  /* of the job, in the communicator's order; NULL: all of them */
  uint32_t rank_count;
  coppice_operation operation;
  uint64_t bytes; /* of a typical call; 0: 8 */
  coppice_tree_type type;
  uint32_t width; /* 0: chosen */
  int advise;     /* plan and take nothing; such a tree has id 0 */
  int carried;    /* type II only over switches that carry data (coppice_tree_carriage), and with
                     COPPICE_TREE_AUTO only if it is known what they take */
  /* Above 1, 64 at most: for an Allreduce of at most 1,024 ranks, and not with
   * COPPICE_TREE_TYPE_II, a forest of at most so many trees, if that is sooner. To plan one takes
   * up to some seconds, and such a call up to COPPICE_FOREST_MS longer than others. */
  uint32_t max_trees;
  uint32_t reserved; /* 0 */
  /* Named as a pattern is: coppice_tree_known has what its earlier runs measured. NULL: nothing. */
  const char* application;
} coppice_tree_request;

typedef struct coppice_tree coppice_tree;

COPPICE_API coppice_status coppice_tree_create(coppice_client* client,
                                               const coppice_tree_request* request,
                                               coppice_tree** tree);
COPPICE_API coppice_status coppice_tree_get(coppice_client* client, uint64_t id,
                                            coppice_tree** tree);
/* Gives its entries back at the daemon; the handle is freed apart. */
COPPICE_API coppice_status coppice_tree_release(coppice_client* client, uint64_t id);
COPPICE_API void coppice_tree_free(coppice_tree* tree); /* NULL is allowed */

COPPICE_API uint64_t coppice_tree_id(const coppice_tree* tree);
COPPICE_API uint32_t coppice_tree_revision(const coppice_tree* tree);
COPPICE_API coppice_tree_type coppice_tree_kind(const coppice_tree* tree);
COPPICE_API uint32_t coppice_tree_width(const coppice_tree* tree);
/* Of its job: whose key the tree's messages have to have. 0: none is known, as with an earlier
 * daemon. */
COPPICE_API uint32_t coppice_tree_partition(const coppice_tree* tree);
COPPICE_API double coppice_tree_predicted_us(const coppice_tree* tree);
COPPICE_API const char* coppice_tree_reason(const coppice_tree* tree);
/* Nodes 0..ranks-1 are the communicator's ranks, ranks..nodes-1 the serving switches. */
COPPICE_API uint32_t coppice_tree_ranks(const coppice_tree* tree);
COPPICE_API uint32_t coppice_tree_nodes(const coppice_tree* tree);
COPPICE_API uint32_t coppice_tree_root(const coppice_tree* tree);
/* [nodes] number of each node's parent, -1 of the root; lives as long as the handle. */
COPPICE_API const int32_t* coppice_tree_parents(const coppice_tree* tree);
/* [ranks] all ranks so that those near each other on the fabric are neighbours, the root first
 * if it is one; lives as long as the handle. NULL: the daemon does not say. */
COPPICE_API const int32_t* coppice_tree_order(const coppice_tree* tree);
/* A forest: so many trees over the ranks, each of which carries its share of every message, all at
 * once. 0: it is one tree. The first of a forest is what coppice_tree_parents gives. */
COPPICE_API uint32_t coppice_forest_trees(const coppice_tree* tree);
/* Of tree `number`, below coppice_forest_trees: its share, of 1 in all, and [ranks] the parent of
 * each rank, -1 of the root; lives as long as the handle. Else 0 and NULL. */
COPPICE_API double coppice_forest_share(const coppice_tree* tree, uint32_t number);
COPPICE_API const int32_t* coppice_forest_parents(const coppice_tree* tree, uint32_t number);

/* How soon collectives of a communicator went, for the next run of the application. */
typedef enum coppice_way {
  COPPICE_WAY_NATIVE = 1, /* the MPI library's own */
  COPPICE_WAY_TREE = 2,   /* along the communicator's tree */
  COPPICE_WAY_CHAIN = 3,  /* along other trees over its ranks */
  COPPICE_WAY_BINOMIAL = 4,
  COPPICE_WAY_EXCHANGE = 5, /* by exchanges between pairs of ranks */
  COPPICE_WAY_FOREST = 6    /* along all trees of the communicator's forest */
} coppice_way;
/* An element of arrays, so that it stays as it is. */
typedef struct coppice_way_time {
  coppice_operation operation;
  uint32_t length_bits; /* of messages of 2^(length_bits - 1) bytes and more; 0: of none */
  coppice_way way;
  uint32_t runs; /* known: of the application that measured it */
  double us;     /* known: the mean of the last ones */
  double spread; /* known: by how much runs differ from it, as a share of it */
} coppice_way_time;
/* As coppice_tree_release. The daemon keeps the times for the user's next runs of that application
 * on ranks that lie alike: as many on as many hosts and switches, with trees of this type.
 * INVALID_ARGUMENT: a time or an application that is none, or more than 512; the tree stays. */
COPPICE_API coppice_status coppice_tree_release_measured(coppice_client* client, uint64_t id,
                                                         const char* application,
                                                         const coppice_way_time* times,
                                                         uint32_t count);
/* Of a tree that was created with an application: what is known, [coppice_tree_known_count] in no
 * order; lives as long as the handle. */
COPPICE_API uint32_t coppice_tree_known_count(const coppice_tree* tree);
COPPICE_API const coppice_way_time* coppice_tree_known(const coppice_tree* tree);

/* How members use the switches that carry a tree of type II: agents/switch/README.md has the
 * frames. A node is child number c of its parent if c nodes with smaller numbers have the same
 * parent. */
#define COPPICE_KEY_BYTES 16
typedef struct coppice_carriage {
  size_t size;
  const unsigned char* key; /* [COPPICE_KEY_BYTES], of this revision: who shows it is a member */
  uint32_t segment_bytes;   /* of the longest segment */
  uint32_t window;          /* segments in flight */
  /* What all of its switches can do, if all are there: bit n is the value n of ReductionOperation,
   * and of ElementType, of proto/coppice/v1/switches.proto. */
  uint64_t operations, types;
} coppice_carriage;
/* COPPICE_NOT_FOUND: no switch carries it, or it is of another user's job. What it points to lives
 * as long as the handle. */
COPPICE_API coppice_status coppice_tree_carriage(const coppice_tree* tree,
                                                 coppice_carriage* carriage);
/* "10.0.0.7:18516", where serving switch `node`, of ranks..nodes-1, listens; "": it is away, or no
 * switch carries the tree, or it is no such node. */
COPPICE_API const char* coppice_tree_switch_address(const coppice_tree* tree, uint32_t node);

/* ---- what becomes of trees ------------------------------------------------------------------ */

typedef enum coppice_change {
  COPPICE_CHANGE_PRESENT = 1, /* was there when the watch began */
  COPPICE_CHANGE_GRANTED = 3,
  COPPICE_CHANGE_REVISED = 4, /* planned anew: get it, and stop using the revision before */
  COPPICE_CHANGE_REVOKED = 5, /* gone: use something else */
  COPPICE_CHANGE_RELEASED = 6,
  COPPICE_CHANGE_LOST = 7, /* the watch broke for good; `reason` says why; comes last */
  COPPICE_CHANGE_OVER = 8  /* the job is over, and so is the watch; comes last */
} coppice_change;

/* Called on a thread of the library, one change at a time; may call anything but coppice_close().
 */
typedef void (*coppice_watch_function)(void* context, coppice_change change, uint64_t tree,
                                       uint32_t revision, const char* reason);

/* Watches the trees of a job until the client is closed or the job is over. Returns once those that
 * are there have been told (PRESENT): every later change is told, too. Goes on by itself after a
 * restart of agent or daemon; what changed while neither could be asked is told afterwards, as a
 * difference: a tree that went meanwhile is REVOKED. NOT_FOUND: no such job. UNAVAILABLE: there is
 * no agent, or no daemon, now. */
COPPICE_API coppice_status coppice_watch_trees(coppice_client* client, uint64_t job,
                                               coppice_watch_function function, void* context);

/* ---- rank orders ---------------------------------------------------------------------------- */

typedef struct coppice_map_request {
  size_t size;
  uint64_t job;             /* its ranks are the positions, unless `hosts` is given */
  const char* const* hosts; /* NULL: the job's */
  uint32_t host_count;
  uint32_t ranks_per_host; /* 0: 1 */
  uint32_t budget_ms;      /* 0: 1 s */
  /* The pattern: rank from[i] sends bytes[i] to rank to[i]; or the name of a stored one. */
  uint32_t rank_count;
  size_t pair_count;
  const uint32_t* from;
  const uint32_t* to;
  const double* bytes;
  const double* messages;   /* NULL: none */
  const char* pattern_name; /* NULL: the pairs */
  const char* algorithm;    /* NULL: auto */
  uint64_t seed;
} coppice_map_request;

typedef struct coppice_order coppice_order;

/* `order`: the best found; coppice_order_free() it. */
COPPICE_API coppice_status coppice_map(coppice_client* client, const coppice_map_request* request,
                                       coppice_order** order);
COPPICE_API void coppice_order_free(coppice_order* order); /* NULL is allowed */
COPPICE_API uint32_t coppice_order_ranks(const coppice_order* order);
/* [ranks] new position of each rank; lives as long as the handle. */
COPPICE_API const uint32_t* coppice_order_positions(const coppice_order* order);
/* Objective of the order; the present one has 1, lower is better; 0: not known. */
COPPICE_API double coppice_order_score(const coppice_order* order);
COPPICE_API const char* coppice_order_reason(const coppice_order* order);

typedef struct coppice_pattern {
  size_t size;
  const char* name; /* of the application */
  uint32_t rank_count;
  uint32_t reserved; /* 0 */
  size_t pair_count;
  const uint32_t* from;
  const uint32_t* to;
  const double* bytes;
  const double* messages; /* NULL: none */
} coppice_pattern;

/* Keeps a pattern at the daemon, for mappings of later runs. */
COPPICE_API coppice_status coppice_pattern_put(coppice_client* client,
                                               const coppice_pattern* pattern);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* COPPICE_CLIENT_LIBRARY_COPPICE_H_ */
