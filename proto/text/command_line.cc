#include "proto/text/command_line.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/text/environment.h"
#include "proto/text/exit_status.h"
#include "proto/text/option_words.h"
#include "proto/text/plain_text.h"
#include "proto/text/text_table.h"

namespace coppice {
namespace {

bool IsGiven(const CLI::App& command, const std::string& name) {
  const CLI::Option* const option = command.get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return Entry(make_option_name(option, is_positional) + make_option_opts(option),
                 make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return Entry(command->get_name(), command->get_description());
  }
  // An option group, which lists its options as a command does.
  std::string make_expanded(const CLI::App* group) const override {
    const auto is_own = [&](const CLI::Option* option) { return option != group->get_help_ptr(); };
    return make_group(absl::StrCat("Options (", group->get_description(), ")"), false,
                      group->get_options(is_own));
  }
  std::string make_description(const CLI::App* app) const override {
    return Folded(Formatter::make_description(app));
  }
  std::string make_footer(const CLI::App* app) const override {
    return Folded(Formatter::make_footer(app));
  }

 private:
  std::string Entry(const std::string& name, const std::string& meaning) const {
    const size_t column = get_column_width();  // CLI11 begins each line of the meaning there
    const bool folds = IsForPeople();
    std::ostringstream out;
    CLI::detail::format_help(out, folds ? Wrapped(name, 4) : name,
                             folds ? Wrapped(meaning, 0, kTerminalColumns - column) : meaning,
                             column);
    return out.str();
  }
  // Each line that is too long goes on below, a little to the right.
  static std::string Folded(const std::string& text) {
    if (!IsForPeople()) return text;
    std::vector<std::string> lines;
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      const size_t begin = std::min(line.find_first_not_of(' '), line.size());
      lines.push_back(
          absl::StrCat(line.substr(0, begin), line.size() <= kTerminalColumns
                                                  ? std::string(line.substr(begin))
                                                  : Wrapped(line.substr(begin), begin + 2)));
    }
    return absl::StrJoin(lines, "\n");
  }
};

}  // namespace

void GuardStandardStreams() {
  // As open() takes the lowest free descriptor, what opens as 0, 1 or 2 was missing. It is of the
  // other kind, so reading and writing are errors.
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void FitHelp(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.failure_message([](const CLI::App* one, const CLI::Error& error) {
    return UsageError(FaultOf(*one, error));
  });
}

std::string FaultOf(const CLI::App& app, const CLI::Error& error) {
  // CLI11 has more words for these than one, and some do not name what it is about.
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  const bool is_unknown =
      code == CLI::ExitCodes::ExtrasError || code == CLI::ExitCodes::RequiredError;
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  if (!is_unknown || unknown.empty()) return error.what();
  const bool has_commands = !app.get_subcommands([](const CLI::App*) { return true; }).empty();
  return absl::StrCat("\"", unknown.front(), "\": no such ",
                      has_commands ? "command or option" : "option");
}

std::optional<int> ParseProgram(CLI::App& app, int argc, char** argv) {
  std::cerr << UnknownVariables(environ);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return EndLine(app, error);
  }
  return std::nullopt;
}

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

void CheckNoneOf(const CLI::App& command, const std::string& said,
                 std::initializer_list<const char*> others) {
  for (const char* const other : others) {
    if (IsGiven(command, other)) throw CLI::ExcludesError(said, other);
  }
}

void CheckNoneBut(const CLI::App& command, const std::string& name,
                  std::initializer_list<const char*> others) {
  for (const CLI::Option* option : command.get_options()) {
    const bool is_allowed = option->check_name(name) ||
                            std::any_of(others.begin(), others.end(), [option](const char* other) {
                              return option->check_name(other);
                            });
    if (option->count() > 0 && !is_allowed) throw CLI::ExcludesError(name, option->get_name());
  }
}

void CheckNeedsOneOf(const CLI::App& command, const std::string& name,
                     std::initializer_list<const char*> others) {
  const bool is_met = std::any_of(others.begin(), others.end(), [&command](const char* other) {
    return IsGiven(command, other);
  });
  if (IsGiven(command, name) && !is_met)
    throw CLI::RequiresError(name, absl::StrJoin(others, " or "));
}

}  // namespace coppice
