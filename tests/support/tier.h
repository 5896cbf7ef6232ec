// Which counts a test runs with, and the seed of its random part.
#ifndef COPPICE_TESTS_SUPPORT_TIER_H_
#define COPPICE_TESTS_SUPPORT_TIER_H_

#include <cstdint>

namespace coppice {

// True if COPPICE_TEST_TIER=full: run the full counts rather than the short ones.
bool FullTier();

// COPPICE_TEST_SEED if set, else a fixed number; printed at the first call so that a failure can be
// repeated.
uint64_t TestSeed();

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_TIER_H_
