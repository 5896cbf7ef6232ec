// Lists of nodes as schedulers write them, in the grammar of Slurm's host lists:
//
//   list   = [ name { "," name } ]          "n[001-003,130],login1"
//   name   = { text | "[" ranges "]" }      "rack[1-2]node[01-16]": every pair, the last the
//   fastest ranges = range { "," range } range  = number [ "-" number ]          padded with zeros
//   to the width of the first: 08-10
//
// Spaces around names are left out. Order and repetition mean something (ranks), so both are kept;
// who wants no node twice says so with FindRepeated. Functions of text: no fabric is known here.
#ifndef COPPICE_PROTO_TEXT_NODE_LIST_H_
#define COPPICE_PROTO_TEXT_NODE_LIST_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace coppice {

// Most names, and letters of all of them, that a list may stand for; and letters of one name.
inline constexpr size_t kMaxListedNodes = size_t{1} << 20;
inline constexpr size_t kMaxListedBytes = size_t{1} << 26;
inline constexpr size_t kMaxListedNameBytes = 256;

// The names that the list stands for, in its order. Text without letters is a list of none.
// INVALID_ARGUMENT says what is wrong with which word, and at which letter (from 1). O(result).
absl::StatusOr<std::vector<std::string>> ParseNodeList(absl::string_view text);

// The shortest list that this writes: neighbours that differ in a number at their ends only are one
// name with brackets. ParseNodeList gives the same names in the same order, as long as none is
// empty or has brackets, commas or spaces at its ends, and the limits above hold. O(letters).
std::string FormatNodeList(absl::Span<const std::string> names);

// Whether ParseNodeList could find more in it than one name that is written so.
bool LooksLikeNodeList(absl::string_view text);

// By text, and by number where both have one: n2 before n10.
void SortNodeNames(std::vector<std::string>& names);

// The first name that was there before, as the position of its second place.
std::optional<size_t> FindRepeated(absl::Span<const std::string> names);

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_NODE_LIST_H_
