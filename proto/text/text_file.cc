#include "proto/text/text_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/text/command_line.h"

namespace coppice {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 30;

// A device may never end. Pipes do: a shell's <(COMMAND) is one.
bool MayBeRead(const std::string& path) {
  std::error_code unknown;
  const std::filesystem::file_status file = std::filesystem::status(path, unknown);
  return path == "-" || !std::filesystem::exists(file) || std::filesystem::is_regular_file(file) ||
         std::filesystem::is_fifo(file);
}

// To write, for this reason.
absl::Status CannotOpen(const std::string& path, int fault) {
  const absl::Status status = absl::ErrnoToStatus(fault, absl::StrCat("cannot open ", path));
  const bool is_named_wrong = absl::IsNotFound(status) || absl::IsPermissionDenied(status);
  return is_named_wrong ? status : absl::DataLossError(status.message());
}

}  // namespace

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  if (!MayBeRead(path)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a regular file: give the path of a text file"));
  }
  const auto close = [](std::FILE* f) { std::fclose(f); };
  std::FILE* const opened = path == "-" ? stdin : std::fopen(path.c_str(), "rbe");
  const std::unique_ptr<std::FILE, decltype(close)> file(opened, close);
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  std::string text;
  std::string block(size_t{1} << 16, '\0');
  while (const size_t size = std::fread(block.data(), 1, block.size(), file.get())) {
    text.append(block, 0, size);
    if (text.size() > kMaxFileBytes) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": larger than ", kMaxFileBytes,
                                                     " bytes; is it the file that you meant?"));
    }
  }
  if (std::ferror(file.get()) == 0) return text;
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
}

std::vector<TextLine> LinesOf(absl::string_view text) {
  constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";
  absl::ConsumePrefix(&text, kByteOrderMark);
  std::vector<TextLine> lines;
  uint32_t number = 0;
  for (const absl::string_view whole : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(whole);
    if (!line.empty() && line.front() != '#') lines.push_back({number, line});
  }
  return lines;
}

absl::string_view WithoutComment(absl::string_view line) {
  for (size_t hash = line.find('#'); hash != absl::string_view::npos;
       hash = line.find('#', hash + 1)) {
    if (hash > 0 && absl::ascii_isblank(static_cast<unsigned char>(line[hash - 1]))) {
      return absl::StripTrailingAsciiWhitespace(line.substr(0, hash));
    }
  }
  return line;
}

absl::Status CheckMayWrite(const std::string& path) {
  const std::filesystem::path file(path);
  std::error_code unknown;
  int fault = 0;
  if (path == "-") return absl::OkStatus();
  if (std::filesystem::is_directory(file, unknown)) {
    fault = EISDIR;
  } else if (std::filesystem::exists(file, unknown)) {
    fault = access(path.c_str(), W_OK) == 0 ? 0 : errno;
  } else {
    const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
    fault = access(folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
  }
  return fault == 0 ? absl::OkStatus() : CannotOpen(path, fault);
}

absl::Status WriteTextFile(const std::string& path, absl::string_view text) {
  if (path == "-") return PrintText(text);
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return CannotOpen(path, errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int write_error = errno;
  const bool closed = std::fclose(file) == 0;
  if (written && closed) return absl::OkStatus();
  return absl::DataLossError(
      absl::ErrnoToStatus(written ? errno : write_error,
                          absl::StrCat("cannot write all of ", path, ", do not use it"))
          .message());
}

}  // namespace coppice
