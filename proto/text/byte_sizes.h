// Sizes of messages as people write them on the command line: "8,4K,1M".
#ifndef COPPICE_PROTO_TEXT_BYTE_SIZES_H_
#define COPPICE_PROTO_TEXT_BYTE_SIZES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace coppice {

inline constexpr uint64_t kMaxByteSize = uint64_t{1} << 50;

// Bytes of each, in order; K, M, G and T, of either case, are powers of 1024. None: one of them is
// no such number, or above kMaxByteSize.
std::optional<std::vector<uint64_t>> ParseByteSizes(absl::string_view text);

// What is wrong with the text, for an option's check; empty: nothing.
std::string FaultOfByteSizes(const std::string& text);

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_BYTE_SIZES_H_
