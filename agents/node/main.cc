// coppice-agent: reads flags and configuration, starts the agent, and waits for the signal to stop.
//
// Exit status: 0 stopped by SIGTERM or SIGINT (or nothing was to be done), 1 it cannot start, with
// the reason on stderr, 2 wrong usage, also of a value or of the configuration file.
//
// A daemon that does not answer does not end the agent: it serves the node's processes, who are
// told so, and goes on trying.
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agents/node/event_loop.h"
#include "agents/node/node_agent.h"
#include "agents/node/settings.h"
#include "proto/message_log.h"
#include "proto/text/command_line.h"
#include "proto/text/exit_status.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

// How often systemd hears how the agent is; WatchdogSec of the unit is several times that.
constexpr std::chrono::milliseconds kPulse{5'000};

struct Flags {
  std::string config;
  std::map<std::string, std::string> texts;  // by flag
  bool has_measure_listen = false;           // it may be empty
  std::vector<std::string> port_guids;
  bool check_config = false;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version", "coppice-agent " COPPICE_VERSION);
  app.add_option("--config", flags.config, "Configuration file; agent.toml(5) shows all keys");
  Settings presets;
  for (const TextSetting& setting : TextSettings(presets)) {
    app.add_option(setting.flag, flags.texts[setting.flag], setting.help);
  }
  app.add_option("--port-guid", flags.port_guids,
                 "GUID of a port, 16 hex digits, may be repeated; instead of the node's devices");
  app.add_flag("--check-config", flags.check_config, "Check flags and file, start nothing");
}

// Presets, over them the environment, the file, and the flags.
absl::StatusOr<Settings> Configure(const Flags& flags) {
  Settings settings;
  settings.server = DefaultServer();
  settings.tls = DefaultTls();
  if (!flags.config.empty()) {
    const absl::Status status = ReadSettingsFile(flags.config, settings);
    if (!status.ok()) return status;
  }
  for (const TextSetting& setting : TextSettings(settings)) {
    const std::string& given = flags.texts.at(setting.flag);
    if (!given.empty()) *setting.value = given;
  }
  if (flags.has_measure_listen) settings.measure_listen = flags.texts.at("--measure-listen");
  if (!flags.port_guids.empty()) settings.port_guids = flags.port_guids;
  if (absl::Status status = CheckSettings(settings); !status.ok()) return status;
  if (absl::Status status = CredentialsFor(settings.server, settings.tls).status(); !status.ok()) {
    return status;
  }
  return settings;
}

// SIGTERM and SIGINT, blocked in this thread and in all that it starts later.
int BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Not its parents: whose they are, and who may come in, nobody has said.
absl::Status MakeFolder(const std::string& folder, mode_t mode, absl::string_view flag) {
  const mode_t mask = umask(0);
  const int error = mkdir(folder.c_str(), mode) == 0 ? 0 : errno;
  umask(mask);
  if (error == 0 || error == EEXIST) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("folder ", folder, ": ", std::strerror(error),
                                             "; make it, or name another: ", flag));
}

absl::Status MakeFolders(const Settings& settings) {
  const std::string of_socket = std::filesystem::absolute(settings.socket).parent_path();
  const absl::Status status = MakeFolder(of_socket, 0755, "--socket");  // for all users
  return status.ok() ? MakeFolder(settings.state_dir, 0700, "--state-dir") : status;
}

absl::Status Serve(const Settings& settings, int signals) {
  if (absl::Status status = MakeFolders(settings); !status.ok()) return status;
  const absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create();
  if (!loop.ok()) return loop.status();
  auto agent =
      NodeAgent::Start(settings, ReadNodeFacts(settings.devices), COPPICE_VERSION, loop->get());
  if (!agent.ok()) return agent.status();
  (*loop)->Watch(signals, EPOLLIN, [&loop](uint32_t) { (*loop)->Stop(); });
  sd_notify(0, "READY=1");
  EventLoop::Timer next_beat;
  const std::function<void()> beat = [&] {
    sd_notify(0, absl::StrCat("WATCHDOG=1\nSTATUS=", (*agent)->Describe()).c_str());
    next_beat = (*loop)->After(kPulse, beat);
  };
  beat();
  (*loop)->Run();
  (*loop)->Cancel(next_beat);
  (*loop)->Forget(signals);  // nobody reads it: it would stay ready
  sd_notify(0, "STOPPING=1");
  spdlog::info("stopping");
  // gRPC's threads would post to a loop that is gone.
  if (!(*agent)->Stop()) _exit(0);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  GuardStandardStreams();
  CLI::App app("Connects the processes of a node to coppiced.", "coppice-agent");
  FitHelp(app);
  Flags flags;
  AddFlags(app, flags);
  SilenceMessageLog();
  if (const std::optional<int> ended = ParseProgram(app, argc, argv)) return *ended;
  flags.has_measure_listen = app.count("--measure-listen") > 0;
  const absl::StatusOr<Settings> settings = Configure(flags);
  if (!settings.ok()) return FailProgram(settings.status());
  if (const absl::Status logs = SetUpLog(settings->log_level); !logs.ok()) return FailProgram(logs);
  if (flags.check_config) {
    const absl::Status printed =
        PrintText(absl::StrCat(flags.config.empty() ? "flags" : flags.config, ": good\n"));
    return printed.ok() ? 0 : FailProgram(printed);
  }
  RaiseDescriptorLimit();  // each process of the node takes one
  const absl::Status status = Serve(*settings, BlockSignals());
  return status.ok() ? 0 : FailProgram(status);
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) { return coppice::Main(argc, argv); }
