// The check of requests beside the parser: what passes holds plain texts only and takes no more
// than was thought, and nothing else is refused. The first byte says in which pieces it comes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "proto/request_check.h"
#include "proto/text/plain_text.h"
#include "tests/unit/proto/request_check_properties.h"

namespace {

void ExpectNone(const std::string& broken) {
  if (broken.empty()) return;
  std::fprintf(stderr, "%s\n", coppice::ShownText(broken).c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view wire(reinterpret_cast<const char*>(data) + 1, size - 1);
  ExpectNone(coppice::TextFault(coppice::ShownText(wire)));
  ExpectNone(coppice::BrokenByCheck(wire, 1 + data[0]));
  return 0;
}
