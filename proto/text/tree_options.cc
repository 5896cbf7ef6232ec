#include "proto/text/tree_options.h"

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

struct TypedOption {
  absl::string_view option, without_effect, of_type;
};
constexpr TypedOption kTypedOptions[] = {
    {"--width", "2", "I"},
    {"--nic-degree", "2", "I"},
    {"--builder", "2", "I"},
    {"--root", "1", "II"},
};

}  // namespace

std::string FaultOfTreeOption(absl::string_view type, absl::string_view option,
                              absl::string_view value) {
  for (const TypedOption& typed : kTypedOptions) {
    if (option != typed.option || type != typed.without_effect || value == "auto") continue;
    return absl::StrCat("is of trees of type ", typed.of_type, ", and has no effect with --type ",
                        type, "; leave one of them out");
  }
  return "";
}

}  // namespace coppice
