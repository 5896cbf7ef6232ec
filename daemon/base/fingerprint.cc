#include "daemon/base/fingerprint.h"

#include <cstring>

namespace coppice {
Fingerprint& Fingerprint::Add(uint64_t value) {
  // One round of the splitmix64 finalizer (Steele, Lea, Flood 2014) over state and value.
  uint64_t z = (state_ ^ value) + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  state_ = z ^ (z >> 31);
  return *this;
}

Fingerprint& Fingerprint::Add(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return Add(bits);
}

Fingerprint& Fingerprint::Add(absl::string_view text) {
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

}  // namespace coppice
