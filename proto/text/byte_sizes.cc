#include "proto/text/byte_sizes.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace coppice {
namespace {

constexpr absl::string_view kUnits = "KMGT";  // 2^10, 2^20, ...

std::optional<uint64_t> ParseByteSize(absl::string_view text) {
  int shift = 0;
  if (!text.empty()) {
    const size_t unit = kUnits.find(absl::ascii_toupper(static_cast<unsigned char>(text.back())));
    if (unit != absl::string_view::npos) {
      shift = 10 * static_cast<int>(unit + 1);
      text.remove_suffix(1);
    }
  }
  const bool are_digits = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));  // SimpleAtoi takes signs and blanks
  });
  uint64_t number = 0;
  if (!are_digits || !absl::SimpleAtoi(text, &number)) return std::nullopt;
  if (number > kMaxByteSize >> shift) return std::nullopt;
  return number << shift;
}

}  // namespace

std::optional<std::vector<uint64_t>> ParseByteSizes(absl::string_view text) {
  std::vector<uint64_t> sizes;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const std::optional<uint64_t> size = ParseByteSize(word);
    if (!size.has_value()) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

std::string FaultOfByteSizes(const std::string& text) {
  if (ParseByteSizes(text).has_value()) return "";
  return absl::StrCat(text, " is not a list of sizes in bytes, such as 8,4K,1M; the most is 1024T");
}

}  // namespace coppice
