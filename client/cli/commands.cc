#include "client/cli/commands.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <ostream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "proto/text/command_line.h"
#include "proto/text/exit_status.h"
#include "proto/text/option_words.h"
#include "proto/text/partition_number.h"

namespace coppice {
namespace {

// A sign of life for whoever waits: once a command takes longer than a second, a line on stderr. On
// a terminal it is renewed every second and wiped at the end; elsewhere it is written once. Written
// while the command waits only, so that it may write to stderr outside.
class Waiting {
 public:
  explicit Waiting(std::string what) : what_(std::move(what)), thread_([this] { Run(); }) {}
  ~Waiting() {
    Set(false);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
    }
    over_cv_.notify_all();
    thread_.join();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  void Set(bool waits) {
    const std::lock_guard<std::mutex> lock(mutex_);
    waits_ = waits;
    if (waits || !is_terminal_ || !shown_) return;
    ShowProgress("");
    shown_ = false;
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (int seconds = 1;; ++seconds) {
      if (over_cv_.wait_for(lock, std::chrono::seconds(1), [this] { return over_; })) return;
      if (!waits_ || (shown_ && !is_terminal_)) continue;
      if (is_terminal_) {
        ShowProgress(absl::StrCat(what_, ": ", seconds, " s"));
      } else {
        std::cerr << what_ << std::endl;
      }
      shown_ = true;
    }
  }

  const std::string what_;
  const bool is_terminal_ = isatty(STDERR_FILENO) != 0;
  std::mutex mutex_;
  std::condition_variable over_cv_;
  bool over_ = false;  // the command is done
  bool waits_ = false;
  bool shown_ = false;  // a line is on the terminal, or was written elsewhere
  std::thread thread_;  // last: it uses the rest
};

// The options of the command that was given, and of those above it, that are to be read from
// standard input.
std::vector<std::string> ReadFromStandardInput(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    const bool is_read = option->count() > 0 && option->get_single_name() != "out";
    if (is_read && option->results().front() == "-") names.push_back(option->get_name());
  }
  for (const CLI::App* command : app.get_subcommands()) {
    const std::vector<std::string> more = ReadFromStandardInput(*command);
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

}  // namespace

void AddCommands(CLI::App& app, Session& session) {
  for (const auto add : {AddFabricCommands, AddEntriesCommand, AddTypeTableCommand,
                         AddCalibrateCommand, AddEventsCommand, AddJobCommands, AddTreeCommands,
                         AddPatternCommands, AddPlacementCommands}) {
    add(app, session);
  }
}

CLI::App* AddCommand(CLI::App& parent, Session& session, const char* name, const char* help,
                     std::function<int(Session&, Connection&)> action,
                     std::function<void()> prepare) {
  CLI::App* const command = parent.add_subcommand(name, help);
  command->add_flag("--json", session.json, "Print JSON with the proto's field names");
  command->callback([&session, action, prepare] {
    if (prepare) prepare();
    session.run = [&session, action](Connection& connection) {
      return action(session, connection);
    };
  });
  return command;
}

CLI::App* AddCommandOn(CLI::App& parent, Session& session, const char* name, const char* help,
                       const char* argument, const char* meaning,
                       std::function<int(Session&, Connection&, const std::string&)> action) {
  const auto [command, id] = AddCommand<std::string>(parent, session, name, help, action);
  command->add_option(argument, id, meaning)->required();
  return command;
}

void RefuseWithoutEffect(const CLI::App& command, absl::Span<const OptionWithoutEffect> rules) {
  const auto find = [&command](const char* name) {
    const CLI::Option* option = nullptr;
    for (const CLI::App* app = &command; app != nullptr && option == nullptr;
         app = app->get_parent()) {
      option = app->get_option_no_throw(name);
    }
    return option;
  };
  for (const OptionWithoutEffect& rule : rules) {
    const CLI::Option* const option = find(rule.option);
    const CLI::Option* const other = find(rule.other);
    if (option == nullptr || other == nullptr || option->count() == 0) continue;
    const std::string value =
        other->count() > 0 ? other->results().front() : other->get_default_str();
    const bool asks = option->results().front() != option->get_default_str();
    if (!asks || value != rule.value) continue;
    const std::string of = *rule.of == '\0' ? "" : absl::StrCat("is of ", rule.of, ", and ");
    throw CLI::ValidationError(rule.option, absl::StrCat(of, "has no effect with ", rule.other, " ",
                                                         value, "; leave one of them out"));
  }
}

void AddPartitionOption(CLI::App& command, const std::string& preset,
                        std::function<void(uint32_t)> set) {
  command
      .add_option_function<std::string>(
          "--partition",
          [set = std::move(set)](const std::string& text) { set(*ParsePartition(text)); },
          "0x0001 to 0x7fff; default " + preset)
      ->check(Understood(ParsePartition, kPartitionMeant));
}

void AddWideOption(CLI::App& command, Session& session) {
  command
      .add_option_function<std::string>(
          "-o,--output", [&session](const std::string&) { session.is_wide = true; },
          "wide: all columns")
      ->check(CLI::IsMember({"wide"}))
      ->excludes("--json");
}

std::optional<int> ParseLine(CLI::App& app, int argc, char** argv) {
  // What cannot be read may stand before --json, too.
  const bool in_json =
      std::any_of(argv, argv + argc, [](absl::string_view word) { return word == "--json"; });
  const auto refuse = [&](const std::string& message) {
    if (!in_json) return std::cerr << UsageError(message), kWrongUsage;
    FailInJson();
    return Fail(absl::InvalidArgumentError(message));
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return EndLine(app, error);  // --help, --version
    return refuse(FaultOf(app, error));
  }
  const std::vector<std::string> twice = ReadFromStandardInput(app);
  if (twice.size() < 2) return std::nullopt;
  return refuse(
      absl::StrCat(twice[0], " - excludes ", twice[1], " -: standard input can be read only once"));
}

int RunCommand(const Session& session, const Target& target, const std::string& wait) {
  Connection connection(target.server, target.deadline, target.channel);
  if (!target.user.empty()) connection.CallAs(target.user);
  Waiting waiting(wait);
  if (!session.endless) connection.OnWait([&](bool waits) { waiting.Set(waits); });
  const int status = session.run(connection);
  const absl::Status written = FlushOutput();
  const bool is_told = status == kFailed;  // what failed may be this
  if (written.ok() || is_told) return status;
  if (session.done.empty()) return Fail(written);
  return Fail(
      absl::Status(written.code(), absl::StrCat(written.message(), ", but ", session.done)));
}

}  // namespace coppice
