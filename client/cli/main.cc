// coppicectl: what an administrator or a script asks of a running coppiced.
// Exit statuses: output.h.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <condition_variable>
#include <iosfwd>
#include <iostream>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/time/time.h"
#include "client/cli/agent_channel.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/shown_stream.h"
#include "client/connection.h"
#include "client/library/environment.h"
#include "proto/request_check.h"

namespace coppice {
namespace {

// A sign of life for whoever waits: once a command takes longer than a second, a line on stderr.

// Lives as long as the command. Its thread writes to `out` between Begin and End only, so the
// command may write to it outside. On a terminal the line is renewed every second and wiped at the
// end; elsewhere it is written once.
class Waiting {
 public:
  Waiting(std::ostream& out, bool is_terminal, std::string what);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  void Begin();
  void End();

 private:
  void Run();

  std::ostream& out_;
  const bool is_terminal_;
  const std::string what_;

  std::mutex mutex_;
  std::condition_variable over_cv_;
  bool over_ = false;   // the command is done
  bool waits_ = false;  // between Begin and End
  bool shown_ = false;  // a line is on the terminal, or was written elsewhere
  std::thread thread_;  // last: it uses the rest
};

Waiting::Waiting(std::ostream& out, bool is_terminal, std::string what)
    : out_(out), is_terminal_(is_terminal), what_(std::move(what)), thread_([this] { Run(); }) {}

Waiting::~Waiting() {
  End();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
  }
  over_cv_.notify_all();
  thread_.join();
}

void Waiting::Begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  waits_ = true;
}

void Waiting::End() {
  const std::lock_guard<std::mutex> lock(mutex_);
  waits_ = false;
  if (!is_terminal_ || !shown_) return;
  ShownStream::Control(out_, kWipeLine);
  out_ << std::flush;
  shown_ = false;
}

void Waiting::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (int seconds = 1;; ++seconds) {
    if (over_cv_.wait_for(lock, std::chrono::seconds(1), [this] { return over_; })) return;
    if (!waits_ || (shown_ && !is_terminal_)) continue;
    if (is_terminal_) {
      ShownStream::Control(out_, "\r");
      out_ << what_ << ": " << seconds << " s" << std::flush;
    } else {
      out_ << what_ << std::endl;
    }
    shown_ = true;
  }
}

// What may be sent as one; the daemon knows whether there is such a user. CLI11's check: empty if
// good.
std::string IsUserName(const std::string& name) {
  const bool is_good =
      !name.empty() && absl::c_all_of(name, [](unsigned char c) { return absl::ascii_isgraph(c); });
  return is_good ? "" : "a user has a login name or a uid, without spaces";
}

// The options of the command that was given, and of those above it, that are to be read from
// standard input.
std::vector<std::string> ReadFromStandardInput(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0 && option->results().front() == "-")
      names.push_back(option->get_name());
  }
  for (const CLI::App* command : app.get_subcommands()) {
    const std::vector<std::string> more = ReadFromStandardInput(*command);
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

// The exit status, if the line is wrong or asks for help only.
std::optional<int> Parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    // "A subcommand is required" does not name the one that there is not.
    const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
    if (unknown.empty()) return app.exit(error), kWrongUsage;
    std::cerr << "\"" << unknown.front() << "\": no such command or option\n"
              << "Run with --help for more information.\n";
    return kWrongUsage;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kWrongUsage;
  }
  const std::vector<std::string> twice = ReadFromStandardInput(app);
  if (twice.size() < 2) return std::nullopt;
  std::cerr << twice[0] << " - excludes " << twice[1]
            << " -: standard input can be read only once\nRun with --help for more information.\n";
  return kWrongUsage;
}

int Main(int argc, char** argv) {
  const ShownStream shown_output(std::cout), shown_errors(std::cerr);
  SilenceMessageLog();
  std::cerr << UnknownVariables(environ);
  CLI::App app("Looks at and asks things of a running coppiced.", "coppicectl");
  app.require_subcommand(1);
  app.fallthrough();  // --server and --timeout may stand behind the command, too
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
  double timeout_s = 60;
  app.add_option("--timeout", timeout_s, "Seconds that a call may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();

  std::string user;
  app.add_option("--as", user,
                 "Administrators: ask in the name of this user (login name or uid), with no more "
                 "than the user's rights")
      ->check(IsUserName);

  Session session;
  AddStatusCommand(app, session);
  AddReloadCommand(app, session);
  AddQuotaCommand(app, session);
  AddAuditCommand(app, session);
  AddFabricCommands(app, session);
  AddEntriesCommand(app, session);
  AddTypeTableCommand(app, session);
  AddCalibrateCommand(app, session);
  AddEventsCommand(app, session);
  AddExportCommands(app, session);
  AddJobCommands(app, session);
  AddTreeCommands(app, session);
  AddMapCommand(app, session);
  AddAgentCommands(app, session);
  AddDistanceCommands(app, session);
  AddPatternCommands(app, session);
  AddPlacementCommands(app, session);
  if (const std::optional<int> ended = Parse(app, argc, argv)) return *ended;
  if (session.json) FailInJson();
  if (const absl::Status bad = CheckServer(server); !bad.ok()) return Fail(bad), kWrongUsage;
  const auto credentials = CredentialsFor(server, tls);
  if (!credentials.ok()) return Fail(credentials.status()), kWrongUsage;
  // Users come through their node's agent: the daemon's own socket is not theirs to open.
  const bool is_named = server_option->count() > 0 || server != kDefaultServer;
  std::optional<AgentChannel> agent;
  if (!is_named && !CanConnect(server.substr(sizeof("unix:") - 1)) && CanConnect(DefaultAgent())) {
    server = "the agent at " + DefaultAgent();
    if (!user.empty()) {
      std::cerr << server << " calls in your own name only; --as takes --server, and an "
                << "administrator\n";
      return kWrongUsage;
    }
    agent.emplace(DefaultAgent());
  }
  Connection connection = agent.has_value()
                              ? Connection(server, absl::Seconds(timeout_s), agent->channel())
                              : Connection(server, absl::Seconds(timeout_s), *credentials);
  if (!user.empty()) connection.CallAs(user);
  Waiting waiting(std::cerr, isatty(STDERR_FILENO) != 0, "waiting for " + server);
  if (!session.endless) {
    connection.OnWait([&](bool waits) { waits ? waiting.Begin() : waiting.End(); });
  }
  const int status = session.run(connection);
  // A full disk, say: what a launcher would read is not whole.
  if (std::cout.flush()) return status;
  std::cerr << "error: standard output could not be written\n";
  return kFailed;
}

}  // namespace

}  // namespace coppice

int main(int argc, char** argv) { return coppice::Main(argc, argv); }
