#include "tests/unit/mapping/reader_files.h"

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace coppice {

std::string DataText(absl::string_view path) {
  const std::string whole = absl::StrCat(COPPICE_SOURCE_DIR, "/tests/data/", path);
  std::ifstream file(whole);
  EXPECT_TRUE(file.good()) << whole << " is missing";
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string Mutated(std::mt19937_64& rng, std::string text) {
  for (uint64_t k = rng() % 6; k > 0 && !text.empty(); --k) {
    const size_t at = rng() % text.size();
    switch (rng() % 4) {
      case 0:
        text[at] = static_cast<char>(rng());
        break;
      case 1:
        text.erase(at, rng() % 20);
        break;
      case 2:
        text[at] = "0123456789 \n-.,%"[rng() % 16];
        break;
      default:
        text.insert(at, text.substr(rng() % text.size(), rng() % 20));
    }
  }
  return text;
}

}  // namespace coppice
