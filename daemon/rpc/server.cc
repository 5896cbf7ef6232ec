#include "daemon/rpc/server.h"

#include <dirent.h>
#include <grpc/impl/codegen/compression_types.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>  // to turn gRPC's own off
#include <grpcpp/impl/service_type.h>               // its services end with it
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "daemon/base/clock.h"
#include "daemon/rpc/listen/guarded_reads.h"
#include "daemon/rpc/listen/listeners.h"
#include "daemon/rpc/listen/tls_credentials.h"
#include "daemon/rpc/service.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

// A caller that may not call more often waits about as long.
constexpr absl::Duration kUpkeepPeriod = absl::Milliseconds(20);
constexpr int kUpkeepPeriodsOfLook = 50;

// Calls `work` with the number of the period, on a thread of its own, until it is destroyed.
class ServerUpkeep final {
 public:
  explicit ServerUpkeep(std::function<void(int)> work)
      : thread_([this, work = std::move(work)] {
          for (int i = 1; !stop_.WaitForNotificationWithTimeout(kUpkeepPeriod); ++i) work(i);
        }) {}
  ~ServerUpkeep() {
    stop_.Notify();
    thread_.join();
  }

 private:
  absl::Notification stop_;
  std::thread thread_;
};

// A client may ping this often, also between calls; by default gRPC closes the connection of one
// that pings more often than every five minutes.
constexpr int kMinPingIntervalMs = 5'000;
// The server asks an idle client whether it is still there, to give up dead connections.
constexpr int kServerPingIntervalMs = 60'000;
constexpr int kServerPingTimeoutMs = 20'000;
// A client connects again without an error when it calls next.
constexpr int kMaxIdleMs = 300'000;
constexpr int kMaxHandshakeMs = 10'000;
// Of one connection; others wait at the client.
constexpr int kMaxStreams = 1024;
// What a call has in memory before it is admitted, at most: the window of its stream. When it may
// read, gRPC opens the window as far as its request is long.
constexpr int kStreamWindowBytes = 16 << 10;
// What gRPC itself may take for all connections, before it gives up streams and connections: far
// above what our own bounds let it take.
constexpr size_t kTransportBytes = size_t{512} << 20;
static_assert(kMaxHalfSent < kTransportBytes);
// Batches that are planned at once. More would plan with the same free entries, and all but one of
// them again.
constexpr int kBatchWorkers = 2;
// Placements that are planned at once: more would want the same nodes, and be planned again.
constexpr int kPlacementWorkers = 2;
// Searches and batches take what processor time others leave: short calls come first.
constexpr int kLongWorkNice = 10;

void SetConnectionOptions(grpc::ServerBuilder& builder, const RpcServerOptions& options) {
  builder.SetMaxReceiveMessageSize(options.in_process ? -1 : options.max_request_bytes);
  builder.SetMaxSendMessageSize(-1);  // what we answer is bounded by page sizes and trees
  // Otherwise a second daemon could bind the same TCP port and take half of the connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kServerPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kServerPingTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kMinPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMs);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kMaxHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kStreamWindowBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // it would widen the windows
  builder.SetResourceQuota(grpc::ResourceQuota("coppiced").Resize(kTransportBytes));
  // A compressed request may be a thousand times as large as it comes.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
}

// "127.0.0.1:0" with the port that was bound.
std::string WithPort(const std::string& address, int port) {
  return absl::StrCat(address.substr(0, address.rfind(':') + 1), port);
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> CredentialsOf(
    const RpcServerOptions& options, ShownCertificates* shown) {
  if (!options.tls.has_any()) return grpc::InsecureServerCredentials();
  RETURN_IF_ERROR(CheckTlsFiles(options));
  return MakeTlsCredentials(options, shown);
}

// Tenants have the workers' time by weight.
WorkerPool::ShareFor ShareByTenant(Manager* manager) {
  return [manager](const std::string& caller) {
    QuotaLedger::Turn turn = manager->quotas().TurnOf(UserOfKey(caller));
    return WorkerPool::Share{std::move(turn.tenant), turn.weight};
  };
}

class Server final : public RpcServer {
 public:
  Server(const ServedParts& parts, const RpcServerOptions& options)
      : parts_(parts),
        options_(options),
        pools_(std::make_unique<WorkerPools>(options, ShareByTenant(parts.manager))),
        peers_(options, options.in_process, &parts.manager->deeds(), &shown_),
        admission_(options.admission, &SystemClock()),
        connections_(Connections::kUnix, options.connections, &SystemClock()),
        bounds_{&admission_, &peers_, &connections_, static_cast<size_t>(options.max_request_bytes),
                static_cast<size_t>(options.admission.request_memory)} {
    const ServiceParts made{parts,        &options_,    &peers_,
                            &statistics_, pools_.get(), [this] { return Numbers(); }};
    for (auto* const make :
         {MakeJobsService, MakeTreesService, MakeFabricService, MakeMappingService,
          MakePlacementsService, MakeAgentsService, MakeSwitchesService, MakeAdminService}) {
      services_.push_back(make(made));
    }
    auto health = MakeHealthService(made);
    health_ = health.get();
    services_.push_back(std::move(health));
    services_.push_back(MakeReflectionService(made));
  }
  // What still runs on a worker may look at its service until it is done.
  ~Server() override {
    Shutdown(absl::ZeroDuration());
    pools_.reset();
  }

  absl::Status Begin(const std::vector<grpc::Service*>& extra) {
    RETURN_IF_ERROR(Open());
    RETURN_IF_ERROR(Build(extra));
    if (options_.in_process) return absl::OkStatus();
    AcceptUnix();
    AcceptTcp();
    return absl::OkStatus();
  }

  std::shared_ptr<grpc::Channel> Channel() const override {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    return server_->InProcessChannel(arguments);
  }
  const std::vector<std::string>& addresses() const override { return addresses_; }
  void SetAdministrators(const std::string& group,
                         const std::vector<std::string>& tls_names) override {
    peers_.SetAdministrators(group, tls_names);
  }
  void SetBounds(const AdmissionBounds& admission, const ConnectionBounds& connections) override {
    admission_.SetBounds(admission);
    connections_.SetBounds(connections);
    if (tcp_listener_ != nullptr) tcp_listener_->SetBounds(connections);
  }
  DaemonNumbers Numbers() const override {
    const Manager& manager = *parts_.manager;
    DaemonNumbers numbers;
    numbers.version = options_.version;
    numbers.now = absl::Now();
    numbers.view = manager.fabric();
    numbers.sweeps = manager.Sweeps();
    numbers.counts = manager.Counts();
    numbers.switches = parts_.manager->switches().List(Guid(0), kMaxSwitchesTold);
    numbers.store = manager.Statistics();
    numbers.process = ReadProcess();
    RpcNumbers& rpc = numbers.rpc;
    rpc.methods = statistics_.Numbers();
    rpc.agents = static_cast<uint32_t>(parts_.meter->connected());
    rpc.measured_distances = parts_.distances->size();
    rpc.waiting_calls = static_cast<uint32_t>(pools_->calls.waiting());
    rpc.waiting_batches = static_cast<uint32_t>(pools_->batches.waiting());
    rpc.waiting_searches = static_cast<uint32_t>(
        pools_->searches.waiting() + pools_->patterns.waiting() + pools_->placements.waiting());
    return numbers;
  }

  void Shutdown(absl::Duration grace) override {
    unix_listener_.reset();
    hand_over_.reset();
    if (tcp_listener_ != nullptr) tcp_listener_->Stop();
    if (server_ == nullptr) return;
    for (const auto& service : services_) service->CloseStreams();
    server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
    // Until every handler has finished its call, on a worker or the store's thread.
    server_->Wait();
    server_.reset();
    upkeep_.reset();  // until here calls waited for their turn
  }

 private:
  absl::Status Open() {
    if (options_.in_process) return absl::OkStatus();
    if (options_.listen.empty()) {
      return absl::InvalidArgumentError("listen: no address is given; give unix:PATH or HOST:PORT");
    }
    std::vector<std::string> paths, hosts;
    for (const std::string& address : options_.listen) {
      RETURN_IF_ERROR(CheckListenAddress(address, options_.tls.has_any() || options_.insecure_tcp));
      RETURN_IF_ERROR(PrepareListenAddress(address));
      const bool is_unix = IsUnixAddress(address);
      (is_unix ? paths : hosts).push_back(is_unix ? SocketPath(address) : address);
    }
    ASSIGN_OR_RETURN(unix_listener_, UnixListener::Open(paths, options_));
    ASSIGN_OR_RETURN(tcp_listener_, TcpListener::Open(hosts, options_.connections));
    size_t next = 0;
    for (const std::string& address : options_.listen) {
      const bool is_unix = IsUnixAddress(address);
      addresses_.push_back(is_unix ? address : WithPort(address, tcp_listener_->ports()[next++]));
    }
    if (next > 0 && options_.tls.has_any() && !options_.takes_certificates_only()) {
      spdlog::warn(
          "{}: whoever reaches the port may connect{}; what gRPC keeps of headers before a call is "
          "bounded by the unit's MemoryMax only: let a firewall say who reaches it",
          options_.tls.open_reading ? "tls.open_reading" : "munge.socket",
          options_.tls.open_reading ? " and read" : "");
    }
    return absl::OkStatus();
  }

  absl::Status Build(const std::vector<grpc::Service*>& extra) {
    // Also where no address needs them.
    if (options_.tls.has_any()) RETURN_IF_ERROR(CheckTlsFiles(options_));
    grpc::EnableDefaultHealthCheckService(false);
    grpc::ServerBuilder builder;
    SetConnectionOptions(builder, options_);
    for (size_t i = 0; tcp_listener_ != nullptr && i < tcp_listener_->ports().size(); ++i) {
      // Its own for each address: what has been fetched is known to one address only.
      ASSIGN_OR_RETURN(auto credentials, CredentialsOf(options_, &shown_));
      acceptors_.push_back(builder.experimental().AddExternalConnectionAcceptor(
          grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials));
      credentials_.push_back(std::move(credentials));
    }
    for (const auto& service : services_) {
      builder.RegisterService(bounded_.emplace_back(MakeBoundedService(*service, &bounds_)).get());
    }
    upkeep_.emplace([this](int period) {
      admission_.Tick();
      peers_.Tick();
      if (period % kUpkeepPeriodsOfLook == 0) {
        connections_.Tick();
        peers_.Look();
      }
      // The manager tells nobody that it has its first fabric.
      if (parts_.manager->fabric() != nullptr) health_->SetServing();
    });
    for (grpc::Service* service : extra) builder.RegisterService(service);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return absl::InternalError("gRPC did not start a server");
    return absl::OkStatus();
  }

  void AcceptUnix() {
    hand_over_.emplace(1);
    unix_listener_->Start([this](int fd, uid_t uid) {
      const std::string who = absl::StrCat("uid ", uid);
      if (!connections_.Admit(fd, who)) {
        close(fd);
        return;
      }
      // Not here: gRPC takes so long to make one its own that a flood would fill the socket's
      // queue, and then the kernel refuses everybody.
      hand_over_->Submit(
          [this, fd, uid, who] {
            if (!connections_.IsAdmitted(fd)) {
              close(fd);  // shut while it waited, and nobody else's
              return;
            }
            peers_.NoteConnection(fd, uid);  // first: a call may come as soon as gRPC has it
            GuardReads(fd, who);
            grpc::AddInsecureChannelFromFd(server_.get(), fd);
          },
          who);
    });
  }

  void AcceptTcp() {
    tcp_listener_->Start([this](size_t address, int listening, int fd, const std::string& network) {
      if (!options_.tls.has_any()) GuardReads(fd, network);
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
      connection.listener_fd = listening;
      connection.fd = fd;
      acceptors_[address]->HandleNewConnection(&connection);
    });
  }

  const ServedParts parts_;
  const RpcServerOptions options_;
  MethodStatistics statistics_;
  std::unique_ptr<WorkerPools> pools_;
  ShownCertificates shown_;
  Peers peers_;
  Admission admission_;
  Connections connections_;
  const Bounds bounds_;
  std::vector<std::unique_ptr<Service>> services_;
  HealthService* health_ = nullptr;                      // one of them
  std::vector<std::unique_ptr<grpc::Service>> bounded_;  // in front of the services
  std::optional<ServerUpkeep> upkeep_;
  std::vector<std::string> addresses_;
  // Asked as long as the server stands.
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials_;
  std::unique_ptr<grpc::Server> server_;
  // [TCP address] Makes a connection that we accepted gRPC's, with the address's credentials.
  std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>> acceptors_;
  std::optional<WorkerPool> hand_over_;  // gives gRPC the connections that were admitted
  std::unique_ptr<UnixListener> unix_listener_;
  std::unique_ptr<TcpListener> tcp_listener_;
};

uint64_t CountOpenFiles() {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  uint64_t count = 0;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') ++count;
  }
  closedir(directory);
  return count - 1;  // without the directory's own
}

// When the machine was started.
absl::Time BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    int64_t seconds = 0;
    std::string name;
    if (absl::StartsWith(line, "btime ") && std::istringstream(line) >> name >> seconds) {
      return absl::FromUnixSeconds(seconds);
    }
  }
  return absl::InfinitePast();
}

}  // namespace

ProcessNumbers ReadProcess() {
  ProcessNumbers numbers;
  numbers.open_files = CountOpenFiles();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) numbers.max_open_files = limit.rlim_cur;

  // proc(5): fields from the third on follow the name, which is in parentheses and may hold any.
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return numbers;
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  uint64_t user = 0, system = 0, start = 0, resident_pages = 0;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  fields >> user >> system;
  for (int field = 16; field < 20; ++field) fields >> skipped;
  fields >> numbers.threads >> skipped >> start >> numbers.virtual_bytes >> resident_pages;
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  numbers.resident_bytes = resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  numbers.cpu_time = absl::Seconds(static_cast<double>(user + system) / ticks);
  numbers.start_time = BootTime() + absl::Seconds(static_cast<double>(start) / ticks);
  return numbers;
}

WorkerPools::WorkerPools(const RpcServerOptions& options, const WorkerPool::ShareFor& share_for)
    : calls(options.worker_threads, 0, share_for),
      batches(kBatchWorkers, kLongWorkNice, share_for),
      searches(options.search_threads, kLongWorkNice, share_for),
      patterns(1, kLongWorkNice, share_for),
      placements(kPlacementWorkers, kLongWorkNice, share_for) {}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const ServedParts& parts, const RpcServerOptions& options,
    const std::vector<grpc::Service*>& extra) {
  // Debian's Abseil looks for cycles of locks at each one that gRPC takes: some 2 % of a call.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  auto server = std::make_unique<Server>(parts, options);
  RETURN_IF_ERROR(server->Begin(extra));
  return server;
}

}  // namespace coppice
