#include "tests/support/tier.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace coppice {

bool FullTier() {
  const char* tier = std::getenv("COPPICE_TEST_TIER");
  return tier != nullptr && std::strcmp(tier, "full") == 0;
}

uint64_t TestSeed() {
  static const uint64_t seed = [] {
    const char* text = std::getenv("COPPICE_TEST_SEED");
    const uint64_t value = text != nullptr ? std::strtoull(text, nullptr, 10) : 20240220;
    std::printf("COPPICE_TEST_SEED=%llu\n", static_cast<unsigned long long>(value));
    return value;
  }();
  return seed;
}

}  // namespace coppice
