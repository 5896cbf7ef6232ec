// What a tree's row keeps as JSON text: the message sizes, what else was considered, and what the
// request said beyond operation and sizes. Here alone: everything above the store has values.
//
// The readers take only what the writers make, at any release: DATA_LOSS names the position of the
// first wrong character. What the request said is read field by field, so that a field that this
// release does not know is left out.
#ifndef COPPICE_DB_TREE_TEXTS_H_
#define COPPICE_DB_TREE_TEXTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/tree/tree_spec.h"
#include "db/store.h"

namespace coppice {

// [[8,1],[1048576,0.5]], bytes and weight.
std::string SizesText(absl::Span<const SizeShare> sizes);
absl::StatusOr<std::vector<SizeShare>> ParseSizes(std::string_view text);

// [{"type":"I","builder":"kary","width":4,"total_us":9.5,"why_not":"..."},...]; total_us is null
// where the tree could not be built.
std::string AlternativesText(absl::Span<const Alternative> alternatives);
absl::StatusOr<std::vector<Alternative>> ParseAlternatives(std::string_view text);

// {"type":"II","width":4,"root":"0002c9020040b0e0"}: of kTreeFields those that were asked for, and
// the fields of a policy; "or_else":"I" last if type I will do. "{}": nothing was asked for. Empty:
// the record lacks it.
std::string SpecText(const TreeRecord& tree);
// The inverse: fills spec (but its mix), accepts_type1 and lacks_spec. What no record says is taken
// to be what the tree is, which must be known: type II, or I if none fits.
void ParseSpec(absl::string_view text, TreeRecord& tree);

}  // namespace coppice

#endif  // COPPICE_DB_TREE_TEXTS_H_
