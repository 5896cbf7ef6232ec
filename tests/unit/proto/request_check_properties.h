// What must hold of the check of any bytes, for tests and for the fuzzer.
#ifndef COPPICE_TESTS_UNIT_PROTO_REQUEST_CHECK_PROPERTIES_H_
#define COPPICE_TESTS_UNIT_PROTO_REQUEST_CHECK_PROPERTIES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace coppice {

// The bytes read as each kind of request that may be large, from pieces of `piece` bytes. Empty: as
// promised, which is that what passes holds plain texts only and takes no more than it costs, and
// that nothing else is refused; otherwise what is not.
std::string BrokenByCheck(absl::string_view wire, int piece);

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_PROTO_REQUEST_CHECK_PROPERTIES_H_
