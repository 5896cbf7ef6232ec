// Lists as compact JSON text: an administrator's sqlite3 shell reads them with json_each, and the
// store writes a tree of 40,960 members in one row rather than in 40,960.
//
// Numbers are exact for all 64 bits, signed or not, and texts may hold any byte. The readers take
// only what the writers make.
#ifndef COPPICE_DB_JSON_LISTS_H_
#define COPPICE_DB_JSON_LISTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/base/strong_id.h"
#include "db/store.h"

namespace coppice {

// "[1,2,3]", appended to `text`.
void AppendNumbers(const std::vector<int64_t>& numbers, std::string& text);
void AppendNumbers(const std::vector<uint64_t>& numbers, std::string& text);
// ["0002c9030010a001",...]
void AppendGuids(absl::Span<const Guid> guids, std::string& text);
// One [rank,parent,links up,links down] per node; the rank of a switch is -1.
void AppendTreeNodes(const TreeRecord& tree, std::string& text);

// The inverses. DATA_LOSS names the position of the first wrong character.
absl::StatusOr<std::vector<int64_t>> ParseSigned(std::string_view text);
absl::StatusOr<std::vector<uint64_t>> ParseUnsigned(std::string_view text);
absl::StatusOr<std::vector<Guid>> ParseGuids(std::string_view text);
// Fills ranks, parents and edge_links_*. DATA_LOSS also if a rank follows a switch.
absl::Status ParseTreeNodes(std::string_view text, TreeRecord& tree);

// ["n1","a \"b\""], appended to `text`.
void AppendTexts(const std::vector<std::string>& texts, std::string& text);

// The inverse. DATA_LOSS names the position of the first wrong character.
absl::StatusOr<std::vector<std::string>> ParseTexts(std::string_view text);

}  // namespace coppice

#endif  // COPPICE_DB_JSON_LISTS_H_
