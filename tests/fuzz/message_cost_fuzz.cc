// What requests would take in memory, from their wire form: never too little, and nothing refused
// that protobuf reads. The first byte says in which pieces it comes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/unit/rpc/message_cost_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view wire(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string broken = coppice::BrokenByCost(wire, 1 + data[0]);
  if (broken.empty()) return 0;
  std::fprintf(stderr, "%s\n", broken.c_str());
  std::abort();
}
