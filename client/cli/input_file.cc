#include "client/cli/input_file.h"

#include <fstream>
#include <iostream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace coppice {

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file;
  if (path != "-") file.open(path, std::ios::binary);
  std::istream& in = path == "-" ? std::cin : file;
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if ((path != "-" && !file.is_open()) || in.bad()) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  }
  return text;
}

}  // namespace coppice
