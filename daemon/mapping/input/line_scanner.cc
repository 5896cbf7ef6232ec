#include "daemon/mapping/input/line_scanner.h"

#include <cmath>
#include <string>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace coppice {
namespace {

constexpr size_t kMaxQuoted = 64;
constexpr size_t kExactDigits = 15;  // so many decimal digits fit into the 53 bits of a double

}  // namespace

LineScanner::LineScanner(absl::string_view text, absl::string_view origin)
    : text_(absl::StripPrefix(text, "\xef\xbb\xbf")), origin_(origin) {}

bool LineScanner::NextLine() {
  if (next_ >= text_.size()) {
    at_ = end_ = text_.size();
    return false;
  }
  at_ = next_;
  const size_t newline = text_.find('\n', at_);
  end_ = newline == absl::string_view::npos ? text_.size() : newline;
  next_ = end_ + 1;
  ++line_;
  return true;
}

bool LineScanner::NextLineThatSays(absl::string_view comments) {
  while (NextLine()) {
    const char first = NextCharacter();
    if (first != '\0' && comments.find(first) == absl::string_view::npos) return true;
  }
  return false;
}

absl::Status LineScanner::Error(absl::string_view problem) const {
  return absl::InvalidArgumentError(absl::StrCat(origin_, ", line ", line_, ": ", problem));
}

absl::Status LineScanner::ErrorOfAll(absl::string_view problem) const {
  return absl::InvalidArgumentError(absl::StrCat(origin_, ": ", problem));
}

bool ParseCount(absl::string_view word, uint64_t& count) {
  uint64_t value = 0;
  if (!absl::c_all_of(word, absl::ascii_isdigit) || !absl::SimpleAtoi(word, &value)) return false;
  count = value;
  return true;
}

absl::Status ParseWeight(absl::string_view word, double& weight) {
  uint64_t whole = 0;
  if (word.size() <= kExactDigits && ParseCount(word, whole)) {
    weight = static_cast<double>(whole);
    return absl::OkStatus();
  }
  const absl::string_view number = absl::StripPrefix(word, "+");
  const char* const end = number.data() + number.size();
  double value = 0;
  const absl::from_chars_result parsed = absl::from_chars(number.data(), end, value);
  // 1e999 and 1e-999 are numbers, both out of range.
  const bool is_number = parsed.ptr == end && !number.empty() && number.front() != '+' &&
                         parsed.ec != std::errc::invalid_argument;
  const bool is_out_of_range = parsed.ec == std::errc::result_out_of_range;
  const char* problem = nullptr;
  if (!is_number) {
    problem = "is no number";
  } else if (std::isnan(value)) {
    problem = "is no number that can be counted with";
  } else if (value < 0) {
    problem = "is negative";
  } else if (is_out_of_range && value > 1) {
    problem = "is more than a double holds";
  } else if (std::isinf(value)) {
    problem = "is infinite";
  }
  if (problem == nullptr) {
    weight = is_out_of_range || value == 0 ? 0.0 : value;  // -0, too
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(word), " ", problem, "; give a finite number from 0 up"));
}

std::string Quoted(absl::string_view word) {
  return absl::StrCat("\"", word.substr(0, kMaxQuoted), word.size() > kMaxQuoted ? "..." : "",
                      "\"");
}

}  // namespace coppice
