// The texts that tests of readers are fed with: files of tests/data, and mutations.
#ifndef COPPICE_TESTS_UNIT_MAPPING_READER_FILES_H_
#define COPPICE_TESTS_UNIT_MAPPING_READER_FILES_H_

#include <random>
#include <string>

#include "absl/strings/string_view.h"

namespace coppice {

// The file of that path in tests/data; a failure of the test, and "", if it is not there.
std::string DataText(absl::string_view path);

// `text` with up to five bytes changed, runs cut out or repeated elsewhere.
std::string Mutated(std::mt19937_64& rng, std::string text);

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_MAPPING_READER_FILES_H_
