// toml++ 3.3 runs into undefined behaviour at many characters beyond ASCII where white space may
// stand: is_non_ascii_horizontal_whitespace reaches __builtin_unreachable for U+00A1 to U+0499, for
// one. Values can be written without them, so they are kept from the parser.
//
//   outside --quote--> in a text --same quote or end of line--> outside
//   outside --#------> in a comment --end of line-------------> outside
//
// A text that is still open at the end of its line is an error, after which toml++ reads no more.
#include "daemon/base/toml_text.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace coppice {
namespace {

// The line, from 1, of the first character that toml++ must not see; 0 if there is none.
int LineToRefuse(absl::string_view text) {
  int number = 0;
  bool has_triple_quotes = false;  // by now: lines no longer tell where texts end
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    char quote = 0;  // that ends the text we are in; 0 outside
    bool is_comment = false;
    for (size_t at = 0; at < line.size(); ++at) {
      const char c = line[at];
      if (static_cast<unsigned char>(c) >= 0x80) {
        if (!is_comment || has_triple_quotes) return number;
      } else if (quote != 0) {
        const bool escapes = c == '\\' && quote == '"' && at + 1 < line.size();
        if (escapes && (line[at + 1] == '"' || line[at + 1] == '\\')) ++at;
        if (c == quote) quote = 0;
      } else if (!is_comment) {
        is_comment = c == '#';
        if (c == '"' || c == '\'') quote = c;
        if (quote != 0 && line.substr(at, 3) == std::string(3, quote)) has_triple_quotes = true;
      }
    }
  }
  return 0;
}

}  // namespace

absl::Status CheckAsciiInToml(absl::string_view text, absl::string_view origin) {
  const int line = LineToRefuse(text);
  if (line == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      origin, ":", line,
      ": a character beyond ASCII; use them in comments only, and in a text in double quotes write "
      "\\uXXXX instead"));
}

}  // namespace coppice
