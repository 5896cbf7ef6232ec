#include "daemon/tools/command.h"

#include <cerrno>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/text/plain_text.h"

namespace coppice {

CLI::Option* AddText(CLI::App& command, const std::string& name, std::string& value,
                     const std::string& meaning) {
  return command.add_option(name, value, meaning)->check([](const std::string& text) {
    return text.empty() ? std::string("the value is empty") : std::string();
  });
}

CLI::Option* AddCount(CLI::App& command, const std::string& name, std::optional<uint32_t>& value,
                      const std::string& meaning) {
  // SimpleAtoi forgives blanks and a sign, and CLI11 the empty text.
  return command.add_option(name, value, meaning)->check([](const std::string& text) {
    uint32_t count = 0;
    const bool is_count = !text.empty() &&
                          text.find_first_not_of("0123456789") == std::string::npos &&
                          absl::SimpleAtoi(text, &count);
    return is_count ? std::string()
                    : absl::StrCat("\"", text, "\" is not a whole number from 0 to ", UINT32_MAX);
  });
}

absl::Status WriteTextFile(const std::string& path, absl::string_view text) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int write_error = errno;
  const bool closed = std::fclose(file) == 0;
  if (written && closed) return absl::OkStatus();
  return absl::ErrnoToStatus(written ? errno : write_error,
                             absl::StrCat("cannot write all of ", path, ", do not use it"));
}

absl::Status PrintText(absl::string_view text) {
  const std::string shown = ShownText(text, TextLines::kMany);
  if (std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() &&
      std::fflush(stdout) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, "cannot write standard output");
}

}  // namespace coppice
