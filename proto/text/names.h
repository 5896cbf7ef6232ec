// The names that options and answers have for what coppice.v1 and daemon/ enumerate, in that order.
#ifndef COPPICE_PROTO_TEXT_NAMES_H_
#define COPPICE_PROTO_TEXT_NAMES_H_

#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace coppice {

inline constexpr absl::string_view kOperationNames[] = {"barrier", "bcast", "reduce", "allreduce"};
inline constexpr absl::string_view kBuilderNames[] = {"kary", "knomial", "hierarchical",
                                                      "minimum-cost", "postal"};
inline constexpr absl::string_view kTrafficNames[] = {"routes", "even", "approximate"};

// As options list what they take.
template <size_t kCount>
std::vector<std::string> ListOf(const absl::string_view (&names)[kCount]) {
  return {std::begin(names), std::end(names)};
}

// The enumerator of that name; nullopt: none.
template <class Enum, size_t kCount>
std::optional<Enum> EnumNamed(const absl::string_view (&names)[kCount], absl::string_view name) {
  for (size_t i = 0; i < kCount; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

// "auto" and the builders that can be asked for, which are those of type I.
inline std::vector<std::string> BuildersToAskFor() {
  std::vector<std::string> names = {"auto"};
  for (const absl::string_view name : kBuilderNames) {
    if (name != "minimum-cost") names.emplace_back(name);
  }
  return names;
}

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_NAMES_H_
