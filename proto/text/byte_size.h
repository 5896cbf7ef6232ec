// How options and variables have sizes in bytes. Plain C++, for the library that is preloaded into
// MPI programs.
#ifndef COPPICE_PROTO_TEXT_BYTE_SIZE_H_
#define COPPICE_PROTO_TEXT_BYTE_SIZE_H_

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace coppice {

// "8", "4K", "1m", "64KiB": decimal digits, and perhaps a power of 1024. Nullopt: no size, or one
// above `most`.
inline std::optional<uint64_t> ParseByteSize(std::string_view text, uint64_t most) {
  constexpr std::string_view kUnits = "KMGTkmgt";
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view unit = text.substr(digits);
  int shift = 0;
  if (!unit.empty()) {
    const size_t place = kUnits.find(unit.front());
    const bool is_unit = unit.size() == 1 || unit.substr(1) == "iB";
    if (place == std::string_view::npos || !is_unit) return std::nullopt;
    shift = 10 * static_cast<int>(place % 4 + 1);
  }
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number);
  if (error != std::errc() || number > most >> shift) return std::nullopt;
  return number << shift;
}

// For CLI11's transform: "8K" is "8192", which may then be a number of any type. What is no size
// stays as it is.
inline std::string PlainBytes(const std::string& text) {
  const std::optional<uint64_t> size = ParseByteSize(text, UINT64_MAX);
  return size ? std::to_string(*size) : text;
}

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_BYTE_SIZE_H_
