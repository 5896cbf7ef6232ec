// The two lists that a tree's record keeps as JSON text (form: manager.h): message sizes, and what
// else was considered. Written here and read here, because every answer about a tree reads them: a
// general JSON library took longer over them than the rest of the answer.
//
// The readers take only what the writers make. Text that somebody edited by hand may be otherwise:
// it reads as an empty list, since a listing of trees must not fail for it.
#ifndef COPPICE_DAEMON_MANAGER_RECORD_JSON_H_
#define COPPICE_DAEMON_MANAGER_RECORD_JSON_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/tree/planner.h"

namespace coppice {

// [[8,1],[1048576,0.5]]
std::string SizesJson(absl::Span<const SizeShare> sizes);
std::vector<SizeShare> ParseSizes(absl::string_view json);

// [{"type":"I","builder":"kary","width":4,"total_us":9.5,"why_not":"..."},...]; times to six
// significant digits.
std::string AlternativesJson(absl::Span<const Alternative> alternatives);
std::vector<Alternative> ParseAlternatives(absl::string_view json);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_RECORD_JSON_H_
