// toml++ 3.3 runs into undefined behaviour at many characters beyond ASCII where white space may
// stand: is_non_ascii_horizontal_whitespace reaches __builtin_unreachable for U+00A1 to U+0499, for
// one. Values can be written without them, so they are kept from the parser.
//
//   outside --quote--> in a text --same quote or end of line--> outside
//   outside --#------> in a comment --end of line-------------> outside
//
// A text that is still open at the end of its line is an error, after which toml++ reads no more.
#include "daemon/base/toml_text.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

class TomlScan {
 public:
  explicit TomlScan(absl::string_view text) : text_(text) {}

  // The line, from 1, of the first character that toml++ must not see; 0 if there is none.
  int LineToRefuse() {
    int line = 1;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line;
        in_comment_ = false;
        quote_ = 0;
      } else if (static_cast<unsigned char>(c) >= 0x80) {
        if (!in_comment_ || triple_quotes_) return line;
      } else if (quote_ != 0) {
        StepInText(c);
      } else if (!in_comment_) {
        StepOutside(c);
      }
    }
    return 0;
  }

 private:
  void StepOutside(char c) {
    if (c == '#') in_comment_ = true;
    if (c != '"' && c != '\'') return;
    quote_ = c;
    const absl::string_view rest = text_.substr(at_);
    if (absl::StartsWith(rest, "\"\"\"") || absl::StartsWith(rest, "'''")) triple_quotes_ = true;
  }

  void StepInText(char c) {
    const bool escapes = c == '\\' && quote_ == '"' && at_ + 1 < text_.size();
    if (escapes && (text_[at_ + 1] == '"' || text_[at_ + 1] == '\\')) ++at_;
    if (c == quote_) quote_ = 0;
  }

  absl::string_view text_;
  size_t at_ = 0;
  char quote_ = 0;  // that ends the text we are in; 0 outside
  bool in_comment_ = false;
  bool triple_quotes_ = false;  // were met: lines no longer tell where texts end
};

}  // namespace

absl::Status CheckAsciiInToml(absl::string_view text, absl::string_view origin) {
  const int line = TomlScan(text).LineToRefuse();
  if (line == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      origin, ":", line,
      ": a character beyond ASCII; use them in comments only, and in a text in double quotes write "
      "\\uXXXX instead"));
}

}  // namespace coppice
