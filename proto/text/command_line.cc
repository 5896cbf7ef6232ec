#include "proto/text/command_line.h"

#include <iostream>
#include <memory>
#include <sstream>

#include "proto/text/exit_status.h"
#include "proto/text/option_words.h"
#include "proto/text/plain_text.h"
#include "proto/text/text_table.h"

namespace coppice {
namespace {

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return Entry(make_option_name(option, is_positional) + make_option_opts(option),
                 make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return Entry(command->get_name(), command->get_description());
  }
  std::string make_description(const CLI::App* app) const override {
    return Fitted(Formatter::make_description(app), 0);
  }

 private:
  static std::string Fitted(const std::string& text, size_t indent, size_t taken = 0) {
    return IsForPeople() ? Wrapped(text, indent, kTerminalColumns - taken) : text;
  }
  std::string Entry(const std::string& name, const std::string& meaning) const {
    std::ostringstream out;
    const size_t column = get_column_width();  // CLI11 begins each line of `meaning` there
    CLI::detail::format_help(out, Fitted(name, 4), Fitted(meaning, 0, column), column);
    return out.str();
  }
};

}  // namespace

void FitHelp(CLI::App& app) { app.formatter(std::make_shared<HelpFormatter>()); }

int EndLine(const CLI::App& app, const CLI::ParseError& error) {
  if (app.exit(error) != 0) return kWrongUsage;
  const absl::Status written = FlushOutput();
  if (!written.ok()) std::cerr << ErrorLine(written) << "\n";
  return ExitStatusOf(written);
}

absl::Status FlushOutput() {
  if (std::cout.flush()) return absl::OkStatus();
  return absl::DataLossError("standard output could not be written");
}

absl::Status PrintText(absl::string_view text) {
  std::cout << ShownText(text, TextLines::kMany);
  return FlushOutput();
}

CLI::Option* AddText(CLI::App& command, const std::string& name, std::string& value,
                     const std::string& meaning) {
  return command.add_option(name, value, meaning)->check([](const std::string& text) {
    return text.empty() ? std::string("the value is empty") : std::string();
  });
}

CLI::Option* AddCount(CLI::App& command, const std::string& name, std::optional<uint32_t>& value,
                      const std::string& meaning, uint32_t least, uint32_t most) {
  return command.add_option(name, value, meaning)->check([least, most](const std::string& text) {
    return FaultOfCount(text, least, most);
  });
}

}  // namespace coppice
