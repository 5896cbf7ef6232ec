// coppice-switch: reads flags, listens, connects to the daemon, and waits for the signal to stop.
//
// Exit status: 0 stopped by SIGTERM or SIGINT, 1 it cannot start, with the reason on stderr, 2
// wrong usage, also of a value.
//
// A daemon that does not answer does not end the switch: the entries that it holds go on working.
#include <systemd/sd-daemon.h>

#include <CLI/CLI.hpp>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <csignal>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agents/switch/switch_server.h"
#include "agents/switch/switch_stream.h"
#include "client/server_address.h"
#include "proto/message_log.h"
#include "proto/text/byte_size.h"
#include "proto/text/command_line.h"
#include "proto/text/exit_status.h"
#include "proto/text/limits.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

// How often systemd hears how the switch is; WatchdogSec of the unit is several times that.
constexpr std::chrono::milliseconds kSwitchPulse{5'000};
// The hello names them all, and has 64 KiB at most (proto/request_check.h).
constexpr uint32_t kMaxEntries = 2'000;
// An int of each child, for each segment under way: bounded like all else.
constexpr uint32_t kMaxChildren = 4'096, kMaxWindow = 1'024;
// A connection to the daemon whose other end is gone without a word is given up after the two
// together.
constexpr int kDaemonPingMs = 30'000, kDaemonPingTimeoutMs = 10'000;

struct SwitchFlags {
  std::string server = DefaultServer();
  TlsOptions tls = DefaultTls();
  std::string guid;
  std::string listen = "0.0.0.0:18516";
  std::string advertise;
  std::optional<uint32_t> entries, children, window;
  std::string memory = "1GiB";
  std::string log_level = "info";
};

void AddSwitchFlags(CLI::App& app, SwitchFlags& flags) {
  const TableLimits presets;
  app.set_version_flag("--version", "coppice-switch " COPPICE_VERSION);
  AddText(app, "--switch", flags.guid, "GUID of the switch that it stands at, 16 hex digits");
  AddText(app, "--server", flags.server,
          "The daemon: unix:PATH or HOST:PORT; else $COPPICE_SERVER, else its socket here");
  AddText(app, "--tls-ca", flags.tls.ca,
          "Who signed the daemon's certificate (PEM); else $COPPICE_TLS_CA");
  AddText(app, "--tls-cert", flags.tls.cert,
          "The switch's certificate (PEM); else $COPPICE_TLS_CERT");
  AddText(app, "--tls-key", flags.tls.key, "Its key (PEM); else $COPPICE_TLS_KEY");
  AddText(app, "--munge", flags.tls.munge,
          "Without a certificate: socket of munged, or \"default\"; else $COPPICE_MUNGE");
  AddText(app, "--munge-realm", flags.tls.munge_realm,
          "The realm that the daemon asks for; else $COPPICE_MUNGE_REALM");
  AddText(app, "--listen", flags.listen,
          "ADDRESS:PORT for members and other switches; else 0.0.0.0:18516");
  AddText(app, "--advertise", flags.advertise,
          "HOST:PORT as they reach it; else what it listens on, or the node's name");
  AddCount(app, "--entries", flags.entries,
           absl::StrCat("Trees that it carries at once; else ", presets.entries), 1, kMaxEntries);
  AddCount(app, "--children", flags.children,
           absl::StrCat("Of one tree, at most; else ", presets.children), 1, kMaxChildren);
  AddCount(app, "--window", flags.window,
           absl::StrCat("Segments of one tree under way, at most; else ", presets.window), 1,
           kMaxWindow);
  AddText(app, "--memory", flags.memory,
          "What children's segments may take together, such as 512MiB; else 1GiB");
  AddText(app, "--log-level", flags.log_level,
          "trace, debug, info, warning, error, critical or off; else info");
}

absl::Status CheckGuid(const std::string& guid) {
  uint64_t number = 0;
  if (guid.size() == 16 && absl::SimpleHexAtoi(guid, &number) && number != 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--switch \"", guid, "\": give the GUID, 16 hexadecimal digits, not all 0"));
}

absl::StatusOr<SwitchServer::Options> OptionsOf(const SwitchFlags& flags) {
  SwitchServer::Options options;
  options.listen = flags.listen;
  TableLimits& limits = options.limits;
  limits.entries = flags.entries.value_or(limits.entries);
  limits.children = flags.children.value_or(limits.children);
  limits.window = flags.window.value_or(limits.window);
  const std::optional<uint64_t> memory = ParseByteSize(flags.memory, kMaxByteSize);
  if (!memory || *memory == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--memory \"", flags.memory, "\": give a size such as 512MiB"));
  }
  limits.memory_bytes = *memory;
  return options;
}

absl::Status CheckFlags(const SwitchFlags& flags) {
  if (absl::Status status = CheckGuid(flags.guid); !status.ok()) return status;
  if (absl::Status status = CheckServer(flags.server); !status.ok()) return status;
  std::string host, port;
  if (!flags.advertise.empty() && !SplitAddress(flags.advertise, &host, &port)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--advertise \"", flags.advertise, "\": give HOST:PORT"));
  }
  return OptionsOf(flags).status();
}

// One address by itself, every address by the node's name, which others have to resolve.
std::string AdvertisedBy(const SwitchFlags& flags, uint16_t port_number) {
  if (!flags.advertise.empty()) return flags.advertise;
  std::string host, port;
  if (SplitAddress(flags.listen, &host, &port) && host != "0.0.0.0" && host != "::") {
    return absl::StrCat(flags.listen.substr(0, flags.listen.rfind(':')), ":", port_number);
  }
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return absl::StrCat(name, ":", port_number);
}

std::shared_ptr<grpc::Channel> DaemonChannel(
    const std::string& server, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kDaemonPingMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kDaemonPingTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return grpc::CreateCustomChannel(server, credentials, arguments);
}

void Beat(asio::steady_timer& timer, const SwitchServer& server, const SwitchStream& stream) {
  const std::string state =
      absl::StrCat("WATCHDOG=1\nSTATUS=", stream.is_welcome() ? "announced" : "not announced", "; ",
                   server.table().size(), " trees");
  sd_notify(0, state.c_str());
  timer.expires_after(kSwitchPulse);
  timer.async_wait([&timer, &server, &stream](const std::error_code& error) {
    if (!error) Beat(timer, server, stream);
  });
}

absl::Status ServeSwitch(const SwitchFlags& flags) {
  const auto credentials = CredentialsFor(flags.server, flags.tls);
  if (!credentials.ok()) return credentials.status();
  asio::io_context io(1);
  const auto server = SwitchServer::Listen(&io, *OptionsOf(flags));
  if (!server.ok()) return server.status();
  asio::signal_set signals(io, SIGTERM, SIGINT);
  signals.async_wait([&io](const std::error_code&, int) { io.stop(); });
  const std::string address = AdvertisedBy(flags, (*server)->port());
  asio::steady_timer pulse(io);
  {
    SwitchStream::Options options{flags.guid, address, COPPICE_VERSION, flags.server};
    SwitchStream stream(&io, server->get(), DaemonChannel(flags.server, *credentials), options);
    stream.Begin();
    spdlog::info("switch {} at {}; daemon at {}", flags.guid, address, flags.server);
    sd_notify(0, "READY=1");
    Beat(pulse, **server, stream);
    io.run();
    sd_notify(0, "STOPPING=1");
    spdlog::info("stopping");
    pulse.cancel();
  }
  return absl::OkStatus();
}

int SwitchMain(int argc, char** argv) {
  GuardStandardStreams();
  CLI::App app("Combines what the members of aggregation trees send, at one switch of the fabric.",
               "coppice-switch");
  FitHelp(app);
  SwitchFlags flags;
  AddSwitchFlags(app, flags);
  SilenceMessageLog();
  if (const std::optional<int> ended = ParseProgram(app, argc, argv)) return *ended;
  absl::Status status = CheckFlags(flags);
  if (status.ok()) status = SetUpLog(flags.log_level);
  if (!status.ok()) return FailProgram(status);
  std::signal(SIGPIPE, SIG_IGN);
  RaiseDescriptorLimit();  // each child takes one
  status = ServeSwitch(flags);
  return status.ok() ? 0 : FailProgram(status);
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) { return coppice::SwitchMain(argc, argv); }
