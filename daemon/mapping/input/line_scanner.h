// The text of a pattern or matrix file as lines and words: one pass, no copies, and the line's
// number for every error. What a line means is the readers' business.
//
// A byte order mark before the first line and the \r of a Windows line end are not part of the
// text. Words are parted by blanks and tabs.
#ifndef COPPICE_DAEMON_MAPPING_INPUT_LINE_SCANNER_H_
#define COPPICE_DAEMON_MAPPING_INPUT_LINE_SCANNER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coppice {

class LineScanner final {
 public:
  // Both outlive the scanner.
  LineScanner(absl::string_view text, absl::string_view origin);

  // Goes to the next line; false: there is none.
  bool NextLine();
  // The same, past lines that are blank or begin with one of the characters of `comments`.
  bool NextLineThatSays(absl::string_view comments);
  // The line's next word; "" at its end.
  absl::string_view NextWord() {
    while (at_ < end_ && IsBlank(text_[at_])) ++at_;
    const size_t begin = at_;
    while (at_ < end_ && !IsBlank(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  // What NextWord has not taken of the line yet.
  absl::string_view rest() const { return text_.substr(at_, end_ - at_); }
  // The first character that is not blank in rest(); \0: there is none.
  char NextCharacter() const {
    size_t at = at_;
    while (at < end_ && IsBlank(text_[at])) ++at;
    return at < end_ ? text_[at] : '\0';
  }
  uint64_t line() const { return line_; }  // from 1; before the first NextLine 0

  // INVALID_ARGUMENT "ORIGIN, line N: PROBLEM".
  absl::Status Error(absl::string_view problem) const;
  // INVALID_ARGUMENT "ORIGIN: PROBLEM", of the text as a whole.
  absl::Status ErrorOfAll(absl::string_view problem) const;

 private:
  static bool IsBlank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
  }

  absl::string_view text_, origin_;
  size_t at_ = 0, end_ = 0;  // the line's rest
  size_t next_ = 0;          // where the next line begins
  uint64_t line_ = 0;
};

// Decimal digits only, up to 2^64 - 1. False: `word` is something else.
bool ParseCount(absl::string_view word, uint64_t& count);

// A finite number from 0 up, in decimal or scientific notation. INVALID_ARGUMENT says of `word`
// what it is instead: no number, negative, not a number, infinite or too large for a double.
absl::Status ParseWeight(absl::string_view word, double& weight);

// `word` in quotation marks for an error, cut if it is long.
std::string Quoted(absl::string_view word);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_INPUT_LINE_SCANNER_H_
