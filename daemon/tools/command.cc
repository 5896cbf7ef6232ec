#include "daemon/tools/command.h"

#include <cerrno>
#include <cstdio>

#include "proto/text/option_words.h"
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
  return command.add_option(name, value, meaning)->check([](const std::string& text) {
    return FaultOfCount(text, 0, UINT32_MAX);
  });
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
