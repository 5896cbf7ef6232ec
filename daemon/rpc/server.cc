#include "daemon/rpc/server.h"

#include <grpc/impl/codegen/compression_types.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>  // to turn gRPC's own off
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>
#include <unistd.h>

#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/admin_service.h"
#include "daemon/rpc/agents_service.h"
#include "daemon/rpc/bounded_service.h"
#include "daemon/rpc/calls/admission.h"
#include "daemon/rpc/calls/method_statistics.h"
#include "daemon/rpc/calls/peer.h"
#include "daemon/rpc/calls/worker_pool.h"
#include "daemon/rpc/fabric_service.h"
#include "daemon/rpc/health_service.h"
#include "daemon/rpc/jobs_service.h"
#include "daemon/rpc/listen/guarded_reads.h"
#include "daemon/rpc/listen/listen_address.h"
#include "daemon/rpc/listen/tcp_listener.h"
#include "daemon/rpc/listen/tls_credentials.h"
#include "daemon/rpc/listen/unix_listener.h"
#include "daemon/rpc/mapping_service.h"
#include "daemon/rpc/placements_service.h"
#include "daemon/rpc/trees_service.h"

namespace coppice {
namespace {

// What the server does now and then: ends calls and connections that keep others waiting.

// A thread, from here until it is destroyed. What it is given outlives it.
class ServerUpkeep final {
 public:
  ServerUpkeep(Admission* admission, UnixConnections* connections);
  ~ServerUpkeep();
  ServerUpkeep(const ServerUpkeep&) = delete;
  ServerUpkeep& operator=(const ServerUpkeep&) = delete;

 private:
  void Run(Admission* admission, UnixConnections* connections);

  absl::Notification stop_;
  std::thread thread_;
};

// A caller that may not call more often waits about as long.
constexpr absl::Duration kUpkeepPeriod = absl::Milliseconds(20);

constexpr int kUpkeepPeriodsOfLook = 50;

ServerUpkeep::ServerUpkeep(Admission* admission, UnixConnections* connections)
    : thread_([this, admission, connections] { Run(admission, connections); }) {}

ServerUpkeep::~ServerUpkeep() {
  stop_.Notify();
  thread_.join();
}

void ServerUpkeep::Run(Admission* admission, UnixConnections* connections) {
  for (int period = 1; !stop_.WaitForNotificationWithTimeout(kUpkeepPeriod); ++period) {
    admission->Tick();
    if (period % kUpkeepPeriodsOfLook == 0) connections->Tick();
  }
}

// A client may ping this often, also between calls; by default gRPC closes the connection of one
// that pings more often than every five minutes.
constexpr int kMinPingIntervalMs = 5'000;
// The server asks an idle client whether it is still there, to give up dead connections.
constexpr int kServerPingIntervalMs = 60'000;
constexpr int kServerPingTimeoutMs = 20'000;
// A client connects again without an error when it calls next.
constexpr int kLongestIdleMs = 300'000;
constexpr int kLongestHandshakeMs = 10'000;
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
// Requests about mappings that wait, as many of the largest: 512 MiB by default.
constexpr size_t kLargeRequests = 8;
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
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kLongestIdleMs);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kLongestHandshakeMs);
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

// Of those that are ours to describe.
std::vector<std::string> ServiceNames() {
  return {"coppice.v1.Jobs",       "coppice.v1.Trees",  "coppice.v1.Fabric", "coppice.v1.Mapping",
          "coppice.v1.Placements", "coppice.v1.Agents", "coppice.v1.Admin"};
}

PeerOptions PeersOf(const RpcServerOptions& options) {
  return {options.admin_group, options.tls_administrators,
          /*anonymous_may_change=*/options.insecure_tcp && !options.tls, options.agents,
          options.in_process};
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> CredentialsOf(
    const RpcServerOptions& options) {
  if (!options.tls) return grpc::InsecureServerCredentials();
  RETURN_IF_ERROR(CheckTlsFiles(*options.tls));
  return MakeTlsCredentials(*options.tls);
}

}  // namespace

class RpcServer::Parts {
 public:
  Parts(const ServedParts& parts, const RpcServerOptions& options)
      : workers_(std::in_place, options.worker_threads),
        batch_workers_(std::in_place, kBatchWorkers, kLongWorkNice),
        search_workers_(std::in_place, options.search_threads, kLongWorkNice),
        pattern_workers_(std::in_place, 1, kLongWorkNice),
        placement_workers_(std::in_place, kPlacementWorkers, kLongWorkNice),
        version_(options.version),
        has_tls_(options.tls.has_value()),
        peers_(PeersOf(options)),
        admission_(options.admission, &SystemClock()),
        connections_(options.connections, &SystemClock()),
        bounds_{&admission_, &peers_, &connections_, static_cast<size_t>(options.max_request_bytes),
                static_cast<size_t>(options.admission.request_memory)},
        jobs_(parts.manager, &*workers_, &peers_, &statistics_),
        trees_(parts.manager, &*workers_, &*batch_workers_, &peers_, &statistics_,
               options.max_job_ranks),
        fabric_(parts.manager, &*workers_, &peers_, &statistics_),
        mapping_(parts.mapper, parts.orders, parts.patterns, &*pattern_workers_, &*search_workers_,
                 kLargeRequests * static_cast<size_t>(options.max_request_bytes), &peers_,
                 &statistics_),
        placements_(parts.manager, parts.patterns, &parts.mapper->memory(), &*workers_,
                    &*placement_workers_, &peers_, &statistics_),
        agents_(parts.manager, parts.meter, parts.distances, &*workers_, &peers_, &statistics_,
                options.version),
        admin_(parts.manager, &*workers_, &peers_, &statistics_, options.reload,
               [this] { return Numbers(); }),
        health_(ServiceNames(), &peers_, &statistics_),
        reflection_(ServiceNames(), &peers_, &statistics_),
        manager_(parts.manager) {
    peers_.SetDeedLog(&parts.manager->deeds());
  }

  // What still runs on a worker may look at its service until it is done.
  ~Parts() {
    for (std::optional<WorkerPool>* pool :
         {&placement_workers_, &pattern_workers_, &search_workers_, &batch_workers_, &workers_}) {
      pool->reset();
    }
  }

  absl::Status Start(const RpcServerOptions& options, const std::vector<grpc::Service*>& extra);
  void Shutdown(absl::Duration grace);
  const std::vector<std::string>& addresses() const { return addresses_; }
  std::shared_ptr<grpc::Channel> Channel() {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    return server_->InProcessChannel(arguments);
  }
  Peers& peers() { return peers_; }
  void SetBounds(const AdmissionBounds& admission, const ConnectionBounds& connections) {
    admission_.SetBounds(admission);
    connections_.SetBounds(connections);
    if (tcp_listener_ != nullptr) tcp_listener_->SetBounds(connections);
  }
  DaemonNumbers Numbers() const;

 private:
  // Checks all addresses and listens at them; connections wait.
  absl::Status Open(const RpcServerOptions& options);
  absl::Status Build(const RpcServerOptions& options, const std::vector<grpc::Service*>& extra);
  void AcceptUnix();
  void AcceptTcp();

  MethodStatistics statistics_;
  std::optional<WorkerPool> workers_, batch_workers_, search_workers_, pattern_workers_,
      placement_workers_;
  const std::string version_;
  const bool has_tls_;
  Peers peers_;
  Admission admission_;
  UnixConnections connections_;
  const Bounds bounds_;
  JobsService jobs_;
  TreesService trees_;
  FabricService fabric_;
  MappingService mapping_;
  PlacementsService placements_;
  AgentsService agents_;
  AdminService admin_;
  HealthService health_;
  ReflectionService reflection_;
  Manager* const manager_;
  std::vector<std::unique_ptr<BoundedService>> bounded_;  // in front of the services
  std::optional<ServerUpkeep> upkeep_;
  std::vector<std::string> addresses_;
  std::vector<std::shared_ptr<grpc::ServerCredentials>>
      credentials_;  // asked as long as the server stands
  std::unique_ptr<grpc::Server> server_;
  // [TCP address] Makes a connection that we accepted gRPC's, with the address's credentials.
  std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>> acceptors_;
  std::optional<WorkerPool> hand_over_;  // gives gRPC the connections that were admitted
  std::unique_ptr<UnixListener> unix_listener_;
  std::unique_ptr<TcpListener> tcp_listener_;
  std::optional<Readiness> readiness_;
};

absl::Status RpcServer::Parts::Start(const RpcServerOptions& options,
                                     const std::vector<grpc::Service*>& extra) {
  RETURN_IF_ERROR(Open(options));
  RETURN_IF_ERROR(Build(options, extra));
  if (!options.in_process) {
    AcceptUnix();
    AcceptTcp();
  }
  readiness_.emplace(manager_, [this] { health_.SetServing(true); });
  return absl::OkStatus();
}

absl::Status RpcServer::Parts::Open(const RpcServerOptions& options) {
  if (options.in_process) return absl::OkStatus();
  if (options.listen.empty()) {
    return absl::InvalidArgumentError("listen: no address is given; give unix:PATH or HOST:PORT");
  }
  std::vector<std::string> paths, hosts;
  for (const std::string& address : options.listen) {
    RETURN_IF_ERROR(CheckListenAddress(address));
    if (!options.tls && !options.insecure_tcp) RETURN_IF_ERROR(CheckNeedsNoTls(address));
    RETURN_IF_ERROR(PrepareListenAddress(address));
    if (IsUnixAddress(address)) {
      paths.push_back(SocketPath(address));
    } else {
      hosts.push_back(address);
    }
  }
  ASSIGN_OR_RETURN(unix_listener_,
                   UnixListener::Open(paths, {options.socket_mode, options.socket_group,
                                              options.needs_socket_group}));
  ASSIGN_OR_RETURN(tcp_listener_, TcpListener::Open(hosts, options.connections));
  size_t next = 0;
  for (const std::string& address : options.listen) {
    const bool is_unix = IsUnixAddress(address);
    addresses_.push_back(is_unix ? address : WithPort(address, tcp_listener_->ports()[next++]));
  }
  if (next > 0 && options.tls && options.tls->open_reading) {
    spdlog::warn(
        "tls.open_reading: whoever reaches the port may connect and read; what gRPC keeps of "
        "headers "
        "before a call is bounded by the unit's MemoryMax only: let a firewall say who reaches it");
  }
  return absl::OkStatus();
}

absl::Status RpcServer::Parts::Build(const RpcServerOptions& options,
                                     const std::vector<grpc::Service*>& extra) {
  if (options.tls)
    RETURN_IF_ERROR(CheckTlsFiles(*options.tls));  // also where no address needs them
  grpc::EnableDefaultHealthCheckService(false);
  grpc::ServerBuilder builder;
  SetConnectionOptions(builder, options);
  for (size_t i = 0; tcp_listener_ != nullptr && i < tcp_listener_->ports().size(); ++i) {
    // Its own for each address: what has been fetched is known to one address only.
    ASSIGN_OR_RETURN(auto credentials, CredentialsOf(options));
    acceptors_.push_back(builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials));
    credentials_.push_back(std::move(credentials));
  }
  const std::initializer_list<const Service*> services = {&jobs_,    &trees_,      &fabric_,
                                                          &mapping_, &placements_, &agents_,
                                                          &admin_,   &health_,     &reflection_};
  for (const Service* const service : services) {
    builder.RegisterService(
        bounded_.emplace_back(std::make_unique<BoundedService>(*service, &bounds_)).get());
  }
  upkeep_.emplace(&admission_, &connections_);
  for (grpc::Service* service : extra) builder.RegisterService(service);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("gRPC did not start a server");
  return absl::OkStatus();
}

void RpcServer::Parts::AcceptUnix() {
  hand_over_.emplace(1);
  unix_listener_->Start([this](int fd, uid_t uid) {
    if (!connections_.Admit(fd, uid)) {
      close(fd);
      return;
    }
    // Not here: gRPC takes so long to make one its own that a flood would fill the socket's queue,
    // and then the kernel refuses everybody.
    const std::string who = absl::StrCat("uid ", uid);
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

void RpcServer::Parts::AcceptTcp() {
  const bool is_plain = !has_tls_;
  tcp_listener_->Start(
      [this, is_plain](size_t address, int listening, int fd, const std::string& network) {
        if (is_plain) GuardReads(fd, network);
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
        connection.listener_fd = listening;
        connection.fd = fd;
        acceptors_[address]->HandleNewConnection(&connection);
      });
}

DaemonNumbers RpcServer::Parts::Numbers() const {
  RpcNumbers numbers;
  numbers.methods = statistics_.Numbers();
  numbers.keepalives = static_cast<uint32_t>(jobs_.keepalives());
  numbers.tree_watchers = static_cast<uint32_t>(trees_.watchers());
  numbers.event_watchers = static_cast<uint32_t>(fabric_.event_watchers());
  numbers.agents = static_cast<uint32_t>(agents_.agents());
  numbers.measured_distances = agents_.distances();
  numbers.waiting_calls = static_cast<uint32_t>(workers_->waiting());
  numbers.waiting_batches = static_cast<uint32_t>(batch_workers_->waiting());
  numbers.waiting_searches = static_cast<uint32_t>(
      search_workers_->waiting() + pattern_workers_->waiting() + placement_workers_->waiting());
  return GatherNumbers(*manager_, std::move(numbers), version_);
}

void RpcServer::Parts::Shutdown(absl::Duration grace) {
  readiness_.reset();
  unix_listener_.reset();
  hand_over_.reset();
  if (tcp_listener_ != nullptr) tcp_listener_->Stop();
  if (server_ == nullptr) return;
  health_.SetServing(false);
  jobs_.CloseStreams();
  trees_.CloseStreams();
  fabric_.CloseStreams();
  mapping_.CloseStreams();
  agents_.CloseStreams();
  health_.CloseStreams();
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  server_->Wait();  // until every handler has finished its call, on a worker or the store's thread
  server_.reset();
  upkeep_.reset();  // until here calls waited for their turn
}

RpcServer::RpcServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

RpcServer::~RpcServer() { Shutdown(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const ServedParts& served, const RpcServerOptions& options,
    const std::vector<grpc::Service*>& extra) {
  // Debian's Abseil looks for cycles of locks at each one that gRPC takes: some 2 % of a call.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  auto parts = std::make_unique<Parts>(served, options);
  const absl::Status status = parts->Start(options, extra);
  if (!status.ok()) {
    parts->Shutdown(absl::ZeroDuration());
    return status;
  }
  return std::unique_ptr<RpcServer>(new RpcServer(std::move(parts)));
}

std::shared_ptr<grpc::Channel> RpcServer::Channel() const { return parts_->Channel(); }

const std::vector<std::string>& RpcServer::addresses() const { return parts_->addresses(); }

void RpcServer::SetAdministrators(const std::string& group,
                                  const std::vector<std::string>& tls_names) {
  parts_->peers().SetAdministrators(group, tls_names);
}

void RpcServer::SetBounds(const AdmissionBounds& admission, const ConnectionBounds& connections) {
  parts_->SetBounds(admission, connections);
}

DaemonNumbers RpcServer::Numbers() const { return parts_->Numbers(); }

void RpcServer::Shutdown(absl::Duration grace) { parts_->Shutdown(grace); }

}  // namespace coppice
