// What must hold of the cost of any bytes, for tests and for the fuzzer.
#ifndef COPPICE_TESTS_UNIT_RPC_MESSAGE_COST_PROPERTIES_H_
#define COPPICE_TESTS_UNIT_RPC_MESSAGE_COST_PROPERTIES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace coppice {

// The bytes read as each kind of request that may be large, from pieces of `piece` bytes. Empty: as
// promised; otherwise what is not.
std::string BrokenByCost(absl::string_view wire, int piece);

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_RPC_MESSAGE_COST_PROPERTIES_H_
