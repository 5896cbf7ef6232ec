// How options and variables have partitions. Plain C++, for the library that is preloaded into MPI
// programs.
#ifndef COPPICE_PROTO_TEXT_PARTITION_NUMBER_H_
#define COPPICE_PROTO_TEXT_PARTITION_NUMBER_H_

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace coppice {

inline constexpr char kPartitionMeant[] = "a partition, 0x0001 to 0x7fff";

// The number of a partition, 1 to 0x7fff, as OpenSM's partitions.conf has it: "0x0001". Read are
// also a full member's key, 0x8001, and decimal numbers; nullopt: none of these, or 0.
inline std::optional<uint32_t> ParsePartition(std::string_view text) {
  constexpr uint32_t kNumber = 0x7fff, kMostKey = 0xffff;
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  if (is_hex) text.remove_prefix(2);
  uint32_t key = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), key, is_hex ? 16 : 10);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  if (!is_whole || key > kMostKey || (key & kNumber) == 0) return std::nullopt;
  return key & kNumber;
}

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_PARTITION_NUMBER_H_
