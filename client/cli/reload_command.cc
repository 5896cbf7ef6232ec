// coppicectl reload: the daemon reads its configuration file again.
#include <iostream>

#include "absl/strings/str_join.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"

namespace coppice {
namespace {

int Reload(const Session& session, Connection& connection) {
  const auto reloaded =
      connection.Call(connection.admin(), &v1::Admin::StubInterface::Reload, v1::ReloadRequest());
  if (!reloaded.ok()) return Fail(reloaded.status());
  if (session.json) return PrintJson(std::cout, *reloaded), 0;
  if (reloaded->changed().empty() && reloaded->needs_restart().empty()) {
    std::cout << "Nothing has changed.\n";
  }
  if (!reloaded->changed().empty()) {
    std::cout << "In force:        " << absl::StrJoin(reloaded->changed(), ", ") << "\n";
  }
  if (!reloaded->needs_restart().empty()) {
    std::cout << "Needs a restart: " << absl::StrJoin(reloaded->needs_restart(), ", ") << "\n";
  }
  return 0;
}

}  // namespace

void AddReloadCommand(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "reload", "The daemon reads its configuration file again: all of it or, on a mistake, none");
  AddJsonFlag(*command, session);
  command->callback(
      [&session] { session.run = [&session](Connection& c) { return Reload(session, c); }; });
}

}  // namespace coppice
