#include "client/cli/input_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

constexpr size_t kMostFileBytes = size_t{1} << 30;

absl::Status CannotRead(const std::string& path, int error) {
  return absl::NotFoundError(absl::StrCat(path, ": cannot be read: ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<std::string> ReadText(const std::string& path) {
  struct stat info = {};
  if (path != "-") {
    if (stat(path.c_str(), &info) != 0) return CannotRead(path, errno);
    // A device may never end. Pipes do: a shell's <(COMMAND) is one.
    if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": not a regular file: give the path of a text file"));
    }
  }
  const auto close = [](std::FILE* f) { std::fclose(f); };
  const std::unique_ptr<std::FILE, decltype(close)> file(
      path == "-" ? stdin : std::fopen(path.c_str(), "rb"), close);
  if (file == nullptr) return CannotRead(path, errno);
  std::string text;
  std::string block(size_t{1} << 16, '\0');
  while (const size_t size = std::fread(block.data(), 1, block.size(), file.get())) {
    text.append(block, 0, size);
    if (text.size() > kMostFileBytes) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": larger than ", kMostFileBytes,
                                                     " bytes; is it the file that you meant?"));
    }
  }
  if (std::ferror(file.get()) != 0) return CannotRead(path, errno);
  return text;
}

}  // namespace coppice
