// coppice-plan: what coppicectl asks of a daemon, on a fabric from a file or a model, and the
// questions that only such a fabric is asked. Exit statuses: proto/text/exit_status.h.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/output.h"
#include "client/cli/session.h"
#include "daemon/plan/offline_daemon.h"
#include "daemon/tools/command.h"
#include "daemon/tools/tree_inputs.h"
#include "proto/message_log.h"
#include "proto/text/command_line.h"
#include "proto/text/environment.h"
#include "proto/text/limits.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

// Where the command stands, behind the program's own options; the length: nowhere, or behind a word
// that is none of them.
size_t CommandAt(const CLI::App& app, const std::vector<std::string>& line) {
  size_t at = 1;
  while (at < line.size() && absl::StartsWith(line[at], "-")) {
    const size_t equals = line[at].find('=');
    const CLI::Option* const option = app.get_option_no_throw(line[at].substr(0, equals));
    if (option == nullptr) return line.size();
    at += equals == std::string::npos && option->get_items_expected_max() > 0 ? 2 : 1;
  }
  return std::min(at, line.size());
}

// `tree`, `place` and `fabric` alone ask what is asked most: advice, and a description. What stands
// before the command goes behind it, where the engine's commands have options of their own.
std::vector<std::string> InFull(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> line(argv, argv + argc);
  const size_t at = CommandAt(app, line);
  if (at == line.size()) return line;
  std::rotate(line.begin() + 1, line.begin() + static_cast<ptrdiff_t>(at), line.end());
  const bool is_place = line[1] == "place";
  const bool is_alone = line.size() == 2 ||
                        (absl::StartsWith(line[2], "-") && line[2] != "-h" && line[2] != "--help");
  if (is_place) line[1] = "placement";
  if (is_place || (is_alone && line[1] == "tree")) {
    line.insert(line.begin() + 2, "advise");
  } else if (is_alone && line[1] == "fabric") {
    line.insert(line.begin() + 2, "describe");
  }
  return line;
}

// An option of the daemon that is asked, given to a command that does not ask it for that; empty:
// there is none. The engine's commands have options of their own.
std::string WithoutEffect(const CLI::App& app, const Session& session) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string& name = option->get_single_name();
    const bool is_of_profile = name == "fabric" || name == "profile" || name == "database";
    const bool is_asked = session.run && (!session.is_of_profile || is_of_profile);
    if (option->count() > 0 && !is_asked) return option->get_name();
  }
  return "";
}

int RunOffline(const Session& session, const OfflineOptions& options) {
  const auto channel = StartOfflineDaemon(options, session.needs_fabric);
  if (!channel.ok()) return Fail(channel.status());
  // Ctrl-C is there for who has less time.
  const int status = RunCommand(session, {options.fabric.fabric, kMaxPeriod, *channel, ""},
                                absl::StrCat("planning on ", options.fabric.fabric));
  if (!session.done.empty() && options.database.empty()) {
    std::cerr << session.done << ", for this call only: --database FILE keeps it\n";
  }
  return status;
}

int Main(int argc, char** argv) {
  GuardStandardStreams();
  const ShownStream shown_output(std::cout), shown_errors(std::cerr);
  SilenceMessageLog();
  SetUpLog("critical").IgnoreError();
  std::cerr << UnknownVariables(environ);
  CLI::App app(
      "Plans aggregation trees, orders of ranks and placements of jobs on a fabric from a file or "
      "a model, without a daemon",
      "coppice-plan");
  FitHelp(app);
  app.require_subcommand(1);
  app.fallthrough();  // --fabric and its like may stand behind the command, too
  app.set_version_flag("--version", "coppice-plan " COPPICE_VERSION);
  app.footer(absl::StrCat(kTreeFilesHelp, "\n", ExitStatusHelp()));
  OfflineOptions options;
  AddOfflineOptions(app, options);
  Session session;
  session.is_offline = true;
  AddCommands(app, session);
  PlanCommand chosen;
  RegisterDescribeCommand(*app.get_subcommand("fabric"), chosen);
  RegisterMapCommand(app, chosen);
  RegisterSimulateCommand(app, chosen);
  std::vector<std::string> line = InFull(app, argc, argv);
  std::vector<char*> words;
  for (std::string& word : line) words.push_back(word.data());
  const std::optional<int> ended = ParseLine(app, static_cast<int>(words.size()), words.data());
  if (ended) return *ended;
  if (session.json || chosen.json) FailInJson();
  if (const std::string option = WithoutEffect(app, session); !option.empty()) {
    const std::string command = app.get_subcommands().front()->get_name();
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        option, ": has no effect on ", command, "; see `coppice-plan ", command, " --help`")));
  }
  if (session.run) return RunOffline(session, options);
  const absl::Status status = chosen.run();
  return status.ok() ? 0 : Fail(status);
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) { return coppice::Main(argc, argv); }
