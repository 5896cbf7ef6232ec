// What a client sends before gRPC reads it: any bytes are good or refused, the same however they
// are cut, and nothing is read beyond them.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/rpc/listen/guarded_reads.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::Time now = absl::UnixEpoch();
  coppice::Http2Guard whole, cut;
  const absl::string_view said = whole.Take(bytes, now);
  const size_t step = size == 0 ? 1 : data[0] % 31 + 1;
  absl::string_view said_of_parts;
  for (size_t at = 0; at < size; at += step) {
    said_of_parts = cut.Take(bytes.substr(at, step), now);
  }
  if (said != said_of_parts) __builtin_trap();
  return 0;
}
