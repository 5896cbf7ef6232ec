// Lists of texts as compact JSON: an administrator's sqlite3 shell reads them with json_each. Texts
// may hold any byte; the reader takes only what the writer makes.
#ifndef COPPICE_DB_TEXT_LIST_H_
#define COPPICE_DB_TEXT_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace coppice {

// ["n1","a \"b\""], appended to `text`.
void AppendTexts(const std::vector<std::string>& texts, std::string& text);

// The inverse. DATA_LOSS names the position of the first wrong character.
absl::StatusOr<std::vector<std::string>> ParseTexts(std::string_view text);

}  // namespace coppice

#endif  // COPPICE_DB_TEXT_LIST_H_
