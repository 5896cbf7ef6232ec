// The numbers of coppice.h's enumerators, which programs that were compiled with it rely on as they
// do on its structures (client/library/jobs.cc). A new one is added here with its number; none
// ever leaves, and none is ever given another.
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
static_assert(sizeof(coppice_change) == sizeof(int));

}  // namespace
}  // namespace coppice::numbers_test
