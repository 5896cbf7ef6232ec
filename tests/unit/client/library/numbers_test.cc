// The numbers of coppice.h's enumerators, which programs that were compiled with it rely on as they
// do on its structures, which are below. A new one is added here with its number; none
// ever leaves, and none is ever given another.
#include <cstddef>

#include "client/library/coppice.h"

namespace coppice::numbers_test {
namespace {

#define COPPICE_IS(name, number) static_assert((name) == (number))

// coppice_status
COPPICE_IS(COPPICE_OK, 0);
COPPICE_IS(COPPICE_CANCELLED, 1);
COPPICE_IS(COPPICE_UNKNOWN, 2);
COPPICE_IS(COPPICE_INVALID_ARGUMENT, 3);
COPPICE_IS(COPPICE_DEADLINE_EXCEEDED, 4);
COPPICE_IS(COPPICE_NOT_FOUND, 5);
COPPICE_IS(COPPICE_ALREADY_EXISTS, 6);
COPPICE_IS(COPPICE_PERMISSION_DENIED, 7);
COPPICE_IS(COPPICE_RESOURCE_EXHAUSTED, 8);
COPPICE_IS(COPPICE_FAILED_PRECONDITION, 9);
COPPICE_IS(COPPICE_ABORTED, 10);
COPPICE_IS(COPPICE_OUT_OF_RANGE, 11);
COPPICE_IS(COPPICE_UNIMPLEMENTED, 12);
COPPICE_IS(COPPICE_INTERNAL, 13);
COPPICE_IS(COPPICE_UNAVAILABLE, 14);

// coppice_operation
COPPICE_IS(COPPICE_OPERATION_ALLREDUCE, 0);
COPPICE_IS(COPPICE_OPERATION_BARRIER, 1);
COPPICE_IS(COPPICE_OPERATION_BCAST, 2);
COPPICE_IS(COPPICE_OPERATION_REDUCE, 3);

// coppice_tree_type
COPPICE_IS(COPPICE_TREE_AUTO, 0);
COPPICE_IS(COPPICE_TREE_TYPE_I, 1);
COPPICE_IS(COPPICE_TREE_TYPE_II, 2);

// coppice_way, as CollectiveWay of trees.proto
COPPICE_IS(COPPICE_WAY_NATIVE, 1);
COPPICE_IS(COPPICE_WAY_TREE, 2);
COPPICE_IS(COPPICE_WAY_CHAIN, 3);
COPPICE_IS(COPPICE_WAY_BINOMIAL, 4);
COPPICE_IS(COPPICE_WAY_EXCHANGE, 5);
COPPICE_IS(COPPICE_WAY_FOREST, 6);

// coppice_change
COPPICE_IS(COPPICE_CHANGE_PRESENT, 1);
COPPICE_IS(COPPICE_CHANGE_GRANTED, 3);
COPPICE_IS(COPPICE_CHANGE_REVISED, 4);
COPPICE_IS(COPPICE_CHANGE_REVOKED, 5);
COPPICE_IS(COPPICE_CHANGE_RELEASED, 6);
COPPICE_IS(COPPICE_CHANGE_LOST, 7);
COPPICE_IS(COPPICE_CHANGE_OVER, 8);

#undef COPPICE_IS

// As C passes them: an int each.
static_assert(sizeof(coppice_status) == sizeof(int));
static_assert(sizeof(coppice_operation) == sizeof(int));
static_assert(sizeof(coppice_tree_type) == sizeof(int));
static_assert(sizeof(coppice_way) == sizeof(int));
static_assert(sizeof(coppice_change) == sizeof(int));

// Where the fields of coppice.h's structures are, which programs that were compiled with it rely
// on.
//
// A hole or an end of padding would be no place for a later field: C does not zero it, so that a
// new library would read an old program's garbage there.

// `field`, behind which nothing comes, ends the structure.
#define COPPICE_IS_LAST(structure, field) \
  (offsetof(structure, field) + sizeof(structure::field) == sizeof(structure))

static_assert(COPPICE_IS_LAST(coppice_capabilities, agent_version));
static_assert(COPPICE_IS_LAST(coppice_job_request, partition));
static_assert(COPPICE_IS_LAST(coppice_tree_request, application));
static_assert(COPPICE_IS_LAST(coppice_way_time, spread));
static_assert(COPPICE_IS_LAST(coppice_map_request, seed));
static_assert(COPPICE_IS_LAST(coppice_pattern, messages));
#undef COPPICE_IS_LAST

#if defined(__LP64__)
#define COPPICE_IS_AT(structure, field, offset) \
  static_assert(offsetof(structure, field) == (offset), #structure "." #field)

COPPICE_IS_AT(coppice_capabilities, connected, 8);
COPPICE_IS_AT(coppice_capabilities, cores, 12);
COPPICE_IS_AT(coppice_capabilities, host, 16);
COPPICE_IS_AT(coppice_capabilities, agent_version, 272);

COPPICE_IS_AT(coppice_job_request, request_id, 8);
COPPICE_IS_AT(coppice_job_request, display_name, 16);
COPPICE_IS_AT(coppice_job_request, endpoints, 24);
COPPICE_IS_AT(coppice_job_request, endpoint_count, 32);
COPPICE_IS_AT(coppice_job_request, lease_ms, 36);
COPPICE_IS_AT(coppice_job_request, hold, 40);
COPPICE_IS_AT(coppice_job_request, partition, 44);

COPPICE_IS_AT(coppice_tree_request, job, 8);
COPPICE_IS_AT(coppice_tree_request, request_id, 16);
COPPICE_IS_AT(coppice_tree_request, ranks, 24);
COPPICE_IS_AT(coppice_tree_request, rank_count, 32);
COPPICE_IS_AT(coppice_tree_request, operation, 36);
COPPICE_IS_AT(coppice_tree_request, bytes, 40);
COPPICE_IS_AT(coppice_tree_request, type, 48);
COPPICE_IS_AT(coppice_tree_request, width, 52);
COPPICE_IS_AT(coppice_tree_request, advise, 56);
COPPICE_IS_AT(coppice_tree_request, carried, 60);
COPPICE_IS_AT(coppice_tree_request, max_trees, 64);
COPPICE_IS_AT(coppice_tree_request, reserved, 68);
COPPICE_IS_AT(coppice_tree_request, application, 72);

COPPICE_IS_AT(coppice_way_time, length_bits, 4);
COPPICE_IS_AT(coppice_way_time, way, 8);
COPPICE_IS_AT(coppice_way_time, runs, 12);
COPPICE_IS_AT(coppice_way_time, us, 16);
COPPICE_IS_AT(coppice_way_time, spread, 24);

COPPICE_IS_AT(coppice_map_request, job, 8);
COPPICE_IS_AT(coppice_map_request, hosts, 16);
COPPICE_IS_AT(coppice_map_request, host_count, 24);
COPPICE_IS_AT(coppice_map_request, ranks_per_host, 28);
COPPICE_IS_AT(coppice_map_request, budget_ms, 32);
COPPICE_IS_AT(coppice_map_request, rank_count, 36);
COPPICE_IS_AT(coppice_map_request, pair_count, 40);
COPPICE_IS_AT(coppice_map_request, from, 48);
COPPICE_IS_AT(coppice_map_request, to, 56);
COPPICE_IS_AT(coppice_map_request, bytes, 64);
COPPICE_IS_AT(coppice_map_request, messages, 72);
COPPICE_IS_AT(coppice_map_request, pattern_name, 80);
COPPICE_IS_AT(coppice_map_request, algorithm, 88);
COPPICE_IS_AT(coppice_map_request, seed, 96);

COPPICE_IS_AT(coppice_pattern, name, 8);
COPPICE_IS_AT(coppice_pattern, rank_count, 16);
COPPICE_IS_AT(coppice_pattern, reserved, 20);
COPPICE_IS_AT(coppice_pattern, pair_count, 24);
COPPICE_IS_AT(coppice_pattern, from, 32);
COPPICE_IS_AT(coppice_pattern, to, 40);
COPPICE_IS_AT(coppice_pattern, bytes, 48);
COPPICE_IS_AT(coppice_pattern, messages, 56);
#undef COPPICE_IS_AT
#endif

}  // namespace
}  // namespace coppice::numbers_test
