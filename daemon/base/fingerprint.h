// The fingerprint of a request's content: 64 bits that tell a retry from another request under the
// same request_id. It is stored, so it must not change between runs of the daemon; that rules out
// absl::Hash, whose seed differs in each process. Not cryptographic: it guards against mistakes.
#ifndef COPPICE_DAEMON_BASE_FINGERPRINT_H_
#define COPPICE_DAEMON_BASE_FINGERPRINT_H_

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace coppice {

// Order counts: Add(1), Add(2) differs from Add(2), Add(1). Strings carry their length, so that
// "ab", "c" differs from "a", "bc".
class Fingerprint {
 public:
  // One round of the splitmix64 finalizer (Steele, Lea, Flood 2014) over state and value.
  Fingerprint& Add(uint64_t value) {
    uint64_t z = (state_ ^ value) + 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    state_ = z ^ (z >> 31);
    return *this;
  }
  Fingerprint& Add(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return Add(bits);
  }
  Fingerprint& Add(absl::string_view text) {
    Add(static_cast<uint64_t>(text.size()));
    while (!text.empty()) {
      // Bytes in order of significance, so that the result does not depend on the machine.
      uint64_t word = 0;
      const size_t taken = text.size() < 8 ? text.size() : 8;
      for (size_t i = 0; i < taken; ++i) {
        word |= uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
      }
      Add(word);
      text.remove_prefix(taken);
    }
    return *this;
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0x243f6a8885a308d3;  // digits of pi
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_BASE_FINGERPRINT_H_
