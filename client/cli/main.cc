// coppicectl: what an administrator or a script asks of a running coppiced.
// Exit statuses: proto/text/exit_status.h.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/output.h"
#include "client/cli/session.h"
#include "client/server_address.h"
#include "proto/message_log.h"
#include "proto/text/command_line.h"
#include "proto/text/environment.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

// What may be sent as one; the daemon knows whether there is such a user. CLI11's check: empty if
// good.
std::string IsUserName(const std::string& name) {
  const bool is_good =
      !name.empty() && absl::c_all_of(name, [](unsigned char c) { return absl::ascii_isgraph(c); });
  return is_good ? "" : "a user has a login name or a uid, without spaces";
}

int Main(int argc, char** argv) {
  GuardStandardStreams();
  const ShownStream shown_output(std::cout), shown_errors(std::cerr);
  SilenceMessageLog();
  std::cerr << UnknownVariables(environ);
  CLI::App app("Looks at and asks things of a running coppiced.", "coppicectl");
  FitHelp(app);
  app.require_subcommand(1);
  app.fallthrough();  // --server and --timeout may stand behind the command, too
  app.footer(ExitStatusHelp());
  app.set_version_flag("--version", "coppicectl " COPPICE_VERSION);
  std::string server = DefaultServer();
  const CLI::Option* const server_option = app.add_option(
      "--server", server,
      "unix:PATH or HOST:PORT; default $COPPICE_SERVER, then " + std::string(kDefaultServer) +
          ", then this node's agent ($COPPICE_AGENT, then its usual socket)");
  TlsOptions tls = DefaultTls();
  app.add_option("--tls-ca", tls.ca,
                 "With HOST:PORT: file of the authority of the daemon's certificate; default "
                 "$COPPICE_TLS_CA");
  app.add_option("--tls-cert", tls.cert, "File of a certificate of yours; $COPPICE_TLS_CERT");
  app.add_option("--tls-key", tls.key, "File of its key; $COPPICE_TLS_KEY");
  app.add_option("--munge", tls.munge,
                 "Without a certificate: be who you are here, by MUNGE; the socket of munged, or "
                 "\"default\"; $COPPICE_MUNGE");
  app.add_option("--munge-realm", tls.munge_realm,
                 "The realm that the daemon asks for; $COPPICE_MUNGE_REALM");
  double timeout_s = 60;
  app.add_option("--timeout", timeout_s, "Seconds that a call may take")
      ->check(Understood(IsPositive, kPositiveMeant))
      ->capture_default_str();

  std::string user;
  app.add_option("--as", user,
                 "Administrators: ask in the name of this user (login name or uid), with no more "
                 "than the user's rights")
      ->check(IsUserName);

  Session session;
  AddStatusCommand(app, session);
  AddReloadCommand(app, session);
  AddAccountCommands(app, session);
  AddQuotaCommand(app, session);
  AddReservationCommands(app, session);
  AddAuditCommand(app, session);
  AddCommands(app, session);
  AddExportCommands(app, session);
  AddMapCommand(app, session);
  AddAgentCommands(app, session);
  AddDistanceCommands(app, session);
  if (const std::optional<int> ended = ParseLine(app, argc, argv)) return *ended;
  if (session.json) FailInJson();
  if (const absl::Status bad = CheckServer(server); !bad.ok()) return Fail(bad), kWrongUsage;
  const auto credentials = CredentialsFor(server, tls);
  if (!credentials.ok()) return Fail(credentials.status()), kWrongUsage;
  // Users come through their node's agent: the daemon's own socket is not theirs to open.
  const bool is_named = server_option->count() > 0 || server != kDefaultServer;
  std::shared_ptr<grpc::Channel> agent;
  if (!is_named && !CanConnect(server.substr(sizeof("unix:") - 1)) && CanConnect(DefaultAgent())) {
    server = "the agent at " + DefaultAgent();
    if (!user.empty()) {
      return Fail(absl::InvalidArgumentError(absl::StrCat(
          server, " calls in your own name only; --as takes --server, and an administrator")));
    }
    agent = AgentChannel(DefaultAgent());
  }
  const auto channel = agent != nullptr ? agent : ChannelTo(server, *credentials);
  return RunCommand(session, {server, absl::Seconds(timeout_s), channel, user},
                    "waiting for " + server);
}

}  // namespace

}  // namespace coppice

int main(int argc, char** argv) { return coppice::Main(argc, argv); }
