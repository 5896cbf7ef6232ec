// coppiced: reads flags and configuration, builds the parts, hands them to each other, and waits
// for the signal to stop. The only place that knows which Store and which SubnetPort there are.
//
// Exit status: 0 stopped by SIGTERM or SIGINT (or nothing was to be done), 1 it cannot start, with
// the reason on stderr, 2 wrong usage, also of a value or of the configuration file.
//
// A live subnet that does not answer does not end the daemon: its health stays NOT_SERVING and the
// manager tries again. A file or model that is malformed or missing at the start does end it: it
// would be as wrong the next time, and whoever named it is there to read why.
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/clock.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/config.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/ib/umad_subnet_port.h"
#include "daemon/manager/distances/distance_meter.h"
#include "daemon/manager/distances/distance_store.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/mapping/pattern_store.h"
#include "daemon/manager/mapping/rank_mapper.h"
#include "daemon/metrics/exporter.h"
#include "daemon/rpc/listen/listeners.h"
#include "daemon/rpc/listen/tls_credentials.h"
#include "daemon/rpc/listen/unix_users.h"
#include "daemon/rpc/server.h"
#include "daemon/service/signal_loop.h"
#include "db/sqlite_store.h"
#include "proto/message_log.h"
#include "proto/text/command_line.h"
#include "proto/text/exit_status.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

struct Flags {
  std::string config, fabric, database, log_level;
  std::vector<std::string> listen;
  bool insecure_tcp = false;
  bool check_config = false;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version", "coppiced " COPPICE_VERSION);
  app.add_option("--config", flags.config, "Configuration file; coppiced.toml(5) shows all keys");
  app.add_option("--fabric", flags.fabric,
                 "umad, umad:ADAPTER:PORT, file:PATH or model:NAME(ARGS); overrides the file");
  app.add_option("--database", flags.database, "SQLite database; overrides the file");
  app.add_option("--listen", flags.listen,
                 "unix:PATH or HOST:PORT, may be repeated; overrides the file");
  app.add_flag("--insecure-tcp", flags.insecure_tcp,
               "Let HOST:PORT be listened at without TLS: whoever reaches it may use the daemon");
  app.add_option("--log-level", flags.log_level,
                 "trace, debug, info, warning, error, critical or off; overrides the file");
  app.add_flag("--check-config", flags.check_config, "Check flags and file, start nothing");
}

bool IsOffline(const Config& config) { return !absl::StartsWith(config.fabric, "umad"); }

// Opens nothing yet. INVALID_ARGUMENT names the source.
absl::StatusOr<std::unique_ptr<SubnetPort>> MakePort(const Config& config) {
  if (IsOffline(config)) return OfflineSubnetPort::Create(config.fabric);
  return UmadSubnetPort::Create(config.fabric);
}

// The status with the place of its cause in front.
absl::Status At(const std::string& place, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(place, status.message()));
}

// Reads a file or makes a model once, so that a mistake in it shows. A live subnet is left alone.
absl::Status TryFabric(const Config& config) {
  if (!IsOffline(config)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::unique_ptr<SubnetPort> port, MakePort(config));
  return At(config.PlaceOf("fabric"), port->Sweep({}).status());
}

// Addresses, and who may use them.
absl::Status CheckAccess(const Config& config) {
  const AccessOptions& access = config.access;
  const bool has_tls = access.tls.has_any();
  for (const std::string& address : config.listen) {
    RETURN_IF_ERROR(
        At(config.PlaceOf("listen"), CheckListenAddress(address, has_tls || access.insecure_tcp)));
  }
  if (has_tls) RETURN_IF_ERROR(At(config.PlaceOf("tls.certificate"), CheckTlsFiles(access)));
  // The defaults need not exist: then there are no administrators but root and the daemon's user.
  for (const auto& [key, group] : {std::pair("socket_group", access.socket_group),
                                   std::pair("admin_group", access.admin_group)}) {
    const std::string place = config.PlaceOf(key);
    if (!place.empty()) RETURN_IF_ERROR(At(place, UnixUsers::CheckGroup(group)));
  }
  return absl::OkStatus();
}

// The file, with the flags over it, all checked.
absl::StatusOr<Config> Configure(const Flags& flags) {
  Config config = DefaultConfig();
  if (!flags.config.empty()) {
    ASSIGN_OR_RETURN(config, LoadConfig(flags.config));
  }
  if (!flags.fabric.empty()) {
    config.fabric = flags.fabric;
    config.places.erase("fabric");
  }
  if (!flags.database.empty()) config.database = flags.database;
  if (!flags.listen.empty()) {
    config.listen = flags.listen;
    config.places.erase("listen");
  }
  if (!flags.log_level.empty()) config.log_level = flags.log_level;
  if (flags.insecure_tcp) {
    if (config.access.tls.has_any()) {
      return absl::InvalidArgumentError(
          absl::StrCat(config.PlaceOf("tls.certificate"),
                       "--insecure-tcp contradicts [tls]: take one of them away"));
    }
    config.access.insecure_tcp = true;
  }
  RETURN_IF_ERROR(CheckFabricSource(config.fabric));
  RETURN_IF_ERROR(CheckLogLevel(config.log_level));
  RETURN_IF_ERROR(At(config.PlaceOf("fabric"), MakePort(config).status()));
  RETURN_IF_ERROR(CheckAccess(config));
  if (!config.metrics_listen.empty()) {
    RETURN_IF_ERROR(
        At(config.PlaceOf("metrics.listen"), CheckMetricsAddress(config.metrics_listen)));
  }
  return config;
}

// SIGTERM, SIGINT and SIGHUP, blocked in this thread and in all that it starts later.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

// As the fabric names it.
std::string OwnHost() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, sizeof(name) - 1);
  return std::string(absl::string_view(name).substr(0, absl::string_view(name).find('.')));
}

RpcServerOptions ServerOptionsOf(const Config& config) {
  RpcServerOptions options{config.access};
  options.agents.own_host = OwnHost();
  options.listen = config.listen;
  options.max_request_bytes = config.max_request_bytes;
  options.admission = config.admission;
  options.connections = config.connections;
  options.max_job_ranks = config.manager.max_job_ranks;
  options.worker_threads = config.worker_threads;
  options.search_threads = config.mapping.searches;
  options.version = COPPICE_VERSION;
  return options;
}

// Where the daemon reaches itself; empty: it has no certificate to come in with.
std::string OwnAddress(const Config& config, const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    if (IsUnixAddress(address) || config.access.insecure_tcp) return address;
  }
  return "";
}

// A source that cannot be read at the start never can, but a full disk can be given space: the
// store's failures are UNAVAILABLE, those of files and models are not.
absl::Status FirstSweep(Manager& manager) {
  if (manager.fabric() != nullptr) return absl::OkStatus();
  const absl::Status swept = manager.Sweep().status();
  return absl::IsUnavailable(swept) ? absl::OkStatus() : swept;
}

// Starts everything, waits for a signal to stop, and takes everything down in reverse order.
// `signals` as RunSignalLoop.
absl::Status Serve(const Flags& flags, const Config& config, const sigset_t& signals) {
  const ServiceManager service;
  ASSIGN_OR_RETURN(const std::unique_ptr<SubnetPort> port, MakePort(config));
  ASSIGN_OR_RETURN(const std::unique_ptr<SqliteStore> store, SqliteStore::Open(config.database));
  ASSIGN_OR_RETURN(const std::unique_ptr<Manager> manager,
                   Manager::Create(store.get(), port.get(), &SystemClock(), config.manager));
  std::function<absl::StatusOr<Config>()> read_again;
  if (!flags.config.empty()) read_again = [&flags] { return Configure(flags); };
  ASSIGN_OR_RETURN(const std::unique_ptr<DistanceStore> distances,
                   DistanceStore::Create(store.get()));
  RankMapper mapper(manager.get(), &SystemClock(), config.mapping.mapper, distances.get());
  OrderStore orders(store.get(), manager.get(), &SystemClock());
  ASSIGN_OR_RETURN(
      const std::unique_ptr<PatternStore> patterns,
      PatternStore::Create(store.get(), &SystemClock(), config.mapping.stored_pattern_bytes,
                           &manager->quotas(), &manager->deeds()));
  DistanceMeter meter(manager.get(), distances.get(), &SystemClock());
  Reloader reloader(config, read_again, manager.get());
  RpcServerOptions options = ServerOptionsOf(config);
  options.reload = [&reloader](const std::string& by) { return reloader.Reload(by); };
  ASSIGN_OR_RETURN(
      const std::unique_ptr<RpcServer> server,
      RpcServer::Start({manager.get(), &mapper, &orders, patterns.get(), &meter, distances.get()},
                       options));
  spdlog::info("listening on {}; fabric from {}; database {}",
               absl::StrJoin(server->addresses(), ", "), config.fabric, config.database);
  std::unique_ptr<MetricsExporter> metrics;  // goes before what it asks
  if (!config.metrics_listen.empty()) {
    ASSIGN_OR_RETURN(metrics, MetricsExporter::Start(config.metrics_listen,
                                                     [&server] { return server->Numbers(); }));
    spdlog::info("metrics at http://{}/metrics", metrics->address());
  }
  reloader.Attach(server.get());
  manager->Start();
  meter.Start();
  if (IsOffline(config)) RETURN_IF_ERROR(FirstSweep(*manager));
  const int signal = RunSignalLoop(signals, OwnAddress(config, server->addresses()), manager.get(),
                                   &reloader, &service);
  // A second signal ends the process at once; there is nothing to reload any more.
  std::signal(SIGHUP, SIG_IGN);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  spdlog::info("signal {}: stopping", signal == SIGTERM ? "SIGTERM" : "SIGINT");
  reloader.Attach(nullptr);
  server->Shutdown(reloader.shutdown_grace());
  manager->Stop();
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  GuardStandardStreams();
  CLI::App app("Keeps the topology of an InfiniBand subnet and grants aggregation trees.",
               "coppiced");
  FitHelp(app);
  Flags flags;
  AddFlags(app, flags);
  SilenceMessageLog();
  if (const std::optional<int> ended = ParseProgram(app, argc, argv)) return *ended;
  const absl::StatusOr<Config> config = Configure(flags);
  if (!config.ok()) return FailProgram(config.status());
  if (flags.check_config) {
    if (const absl::Status status = TryFabric(*config); !status.ok()) return FailProgram(status);
    const absl::Status printed =
        PrintText(absl::StrCat(flags.config.empty() ? "flags" : flags.config, ": good\n"));
    return printed.ok() ? 0 : FailProgram(printed);
  }
  const sigset_t signals = BlockSignals();
  if (const absl::Status logs = SetUpLog(config->log_level); !logs.ok()) return FailProgram(logs);
  const absl::Status status = Serve(flags, *config, signals);
  return status.ok() ? 0 : FailProgram(status);
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) { return coppice::Main(argc, argv); }
