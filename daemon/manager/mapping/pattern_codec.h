// A communication pattern as bytes, for the store: small, and the same on every machine.
//
//   "CPP1"  flags  ranks  then for each rank: pairs, and for each pair in order of the peers:
//           peer less the last peer, bytes, messages
//
// Numbers are varints (7 bits a byte, lowest first), except weights that are not whole, which are 8
// bytes, IEEE 754, lowest first. flags: 1 bytes are whole, 2 there are messages, 4 these are whole.
#ifndef COPPICE_DAEMON_MANAGER_MAPPING_PATTERN_CODEC_H_
#define COPPICE_DAEMON_MANAGER_MAPPING_PATTERN_CODEC_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/mapping/pattern.h"

namespace coppice {

// About 5 bytes a pair and direction for whole weights.
std::string EncodePattern(const Pattern& pattern);

// How much memory DecodePattern takes beside `data`, from above. One pass over it.
size_t DecodingBytes(absl::string_view data);

// DATA_LOSS, with the position: not what EncodePattern writes. Takes memory in proportion to `data`
// and the ranks, of which there are at most Pattern::kMaxRanks.
absl::StatusOr<std::shared_ptr<const Pattern>> DecodePattern(absl::string_view data);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_MAPPING_PATTERN_CODEC_H_
