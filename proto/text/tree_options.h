// Which options of a tree go with its type, on the command line of every program.
#ifndef COPPICE_PROTO_TEXT_TREE_OPTIONS_H_
#define COPPICE_PROTO_TEXT_TREE_OPTIONS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace coppice {

// Why `option` ("--width") of that value has no effect beside --type `type` ("auto", "1" or "2");
// empty: it may have one. The value "auto" asks for nothing.
std::string FaultOfTreeOption(absl::string_view type, absl::string_view option,
                              absl::string_view value);

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_TREE_OPTIONS_H_
