// coppicectl: what an administrator or a script asks of a running coppiced.
// Exit status: 0 done, 1 the request failed (reason on stderr), 2 wrong usage.
#include <CLI/CLI.hpp>
#include <string>

#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/connection.h"

namespace coppice {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("Looks at and asks things of a running coppiced.", "coppicectl");
  app.require_subcommand(1);
  app.set_version_flag("--version", "coppicectl " COPPICE_VERSION);
  std::string server = DefaultServer();
  app.add_option(
      "--server", server,
      "unix:PATH or HOST:PORT; default $COPPICE_SERVER, then " + std::string(kDefaultServer));
  double timeout_s = 60;
  app.add_option("--timeout", timeout_s, "Seconds that a call may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();

  Session session;
  AddStatusCommand(app, session);
  AddFabricCommands(app, session);
  AddEntriesCommand(app, session);
  AddTypeTableCommand(app, session);
  AddEventsCommand(app, session);
  AddJobCommands(app, session);
  AddTreeCommands(app, session);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  Connection connection(server, absl::Seconds(timeout_s));
  return session.run(connection);
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) { return coppice::Main(argc, argv); }
