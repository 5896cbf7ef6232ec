// What must hold for the readers of patterns, matrices and QAP instances whatever text they are
// given: no crash, an error that says which file, and values that keep what their classes promise.
// Shared by the fuzz targets and by the tests that replay mutated files.
#ifndef COPPICE_TESTS_UNIT_MAPPING_READER_PROPERTIES_H_
#define COPPICE_TESTS_UNIT_MAPPING_READER_PROPERTIES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "daemon/mapping/pattern.h"

namespace coppice {

// Each returns what is violated, "" if nothing is.

// Every reader of patterns, and the one that tells them apart; what is read comes back from a
// Matrix Market file that says the same.
std::string PatternReaderViolation(absl::string_view text);
std::string QaplibViolation(absl::string_view text);
std::string DistanceMatrixViolation(absl::string_view text);

// The pattern as a directed coordinate file, every weight with all of its digits.
std::string AsMatrixMarket(const Pattern& pattern);
bool SameWeights(const Pattern& a, const Pattern& b);

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_MAPPING_READER_PROPERTIES_H_
