// Arbitrary bytes for the readers of patterns: no crash, and what reader_properties.h says.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/unit/mapping/reader_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string violation =
      coppice::PatternReaderViolation({reinterpret_cast<const char*>(data), size});
  if (violation.empty()) return 0;
  std::fprintf(stderr, "%s\n", violation.c_str());
  std::abort();
}
