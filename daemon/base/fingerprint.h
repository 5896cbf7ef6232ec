// The fingerprint of a request's content: 64 bits that tell a retry from another request under the
// same request_id. It is stored, so it must not change between runs of the daemon; that rules out
// absl::Hash, whose seed differs in each process. Not cryptographic: it guards against mistakes.
#ifndef COPPICE_DAEMON_BASE_FINGERPRINT_H_
#define COPPICE_DAEMON_BASE_FINGERPRINT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace coppice {

// Order counts: Add(1), Add(2) differs from Add(2), Add(1). Strings carry their length, so that
// "ab", "c" differs from "a", "bc".
class Fingerprint {
 public:
  Fingerprint& Add(uint64_t value);
  Fingerprint& Add(double value);  // by its bits
  Fingerprint& Add(absl::string_view text);
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0x243f6a8885a308d3;  // digits of pi
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_BASE_FINGERPRINT_H_
