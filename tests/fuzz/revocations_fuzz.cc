// Lists of revoked certificates: any text is one that an authority has signed, or refused with the
// file's name, and what is none of its certificates is never judged to be revoked.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "daemon/rpc/listen/tls_credentials.h"
#include "tests/unit/rpc/certificates.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static coppice::Authority& authority = *new coppice::Authority();
  static const std::string good = authority.Revoke(authority.Sign("ada").certificate);
  std::string text(reinterpret_cast<const char*>(data), size);
  // Some of them with a good list before, and with a byte of that changed.
  if (size > 2 && data[0] % 2 == 0) {
    std::string list = good;
    list[(data[1] * 256u + data[2]) % list.size()] ^= static_cast<char>(data[0] >> 1);
    text = list + text.substr(3);
  }
  const auto revoked = coppice::ReadRevocations("f", text, authority.certificate());
  if (!revoked.ok() && !absl::StartsWith(revoked.status().message(), "file f: ")) {
    __builtin_trap();
  }
  if (revoked.ok() && revoked->size() > 1) __builtin_trap();
  // The names and chain that a client shows are parsed by the same functions.
  (void)coppice::ReadRevocations("f", good, text);
  return 0;
}
