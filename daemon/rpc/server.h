// The gRPC server: puts the services, health and reflection on the addresses, and takes them down
// in good order.
//
//   Unix address: UnixListener accepts, learns the user --> Peers --> gRPC gets the descriptor
//   TCP address:  TcpListener accepts, so many --> gRPC, with TLS or, if it must be, without
//   in process:   a channel, for a program that is its own and only user
//   every call --> BoundedService, where its caller's bounds hold --> service
#ifndef COPPICE_DAEMON_RPC_SERVER_H_
#define COPPICE_DAEMON_RPC_SERVER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/caller_bounds.h"
#include "daemon/manager/distances/distance_meter.h"
#include "daemon/manager/distances/distance_store.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/mapping/pattern_store.h"
#include "daemon/manager/mapping/rank_mapper.h"
#include "daemon/rpc/calls/method_statistics.h"
#include "proto/text/limits.h"

namespace grpc {
class Channel;
class Service;
}  // namespace grpc

namespace coppice {

// Keys as messages about the configuration call them.
struct ReloadOutcome {
  std::vector<std::string> changed, needs_restart;
};
// `by`: who asked, as events name it; empty: the daemon itself, for a signal. May block.
using ReloadFunction = std::function<absl::StatusOr<ReloadOutcome>(const std::string& by)>;

struct RpcServerOptions : AccessOptions {
  std::vector<std::string> listen = {};  // "unix:PATH", "HOST:PORT"
  // No address but Channel(): who calls is this process, which may do everything and send messages
  // of any size.
  bool in_process = false;
  ReloadFunction reload = nullptr;   // null: there is no configuration file
  int max_request_bytes = 32 << 20;  // a larger request is RESOURCE_EXHAUSTED
  AdmissionBounds admission = {};
  ConnectionBounds connections = {};
  uint32_t max_job_ranks = kDefaultJobRanks;  // as ManagerOptions
  int worker_threads = 4;                     // for calls that take long
  int search_threads = 1;                     // searches for mappings at once
  std::string version = {};                   // of the program, for whoever asks
};

// What is served, all of it; it outlives the server.
struct ServedParts {
  Manager* manager = nullptr;
  RankMapper* mapper = nullptr;
  OrderStore* orders = nullptr;
  PatternStore* patterns = nullptr;
  DistanceMeter* meter = nullptr;
  DistanceStore* distances = nullptr;
};

// All that is told of how the daemon fares, as plain numbers gathered at one instant, about: for
// Admin.GetStatus and for the metrics.

// What this process takes from its machine, as Linux counts it in /proc/self.
struct ProcessNumbers {
  uint64_t resident_bytes = 0, virtual_bytes = 0;
  absl::Duration cpu_time;  // of all its threads, user and system
  uint64_t open_files = 0, max_open_files = 0;
  uint64_t threads = 0;
  absl::Time start_time = absl::InfinitePast();
};

// Reads a few files of /proc, which takes about 50 us. What cannot be read is zero.
ProcessNumbers ReadProcess();

struct RpcNumbers {
  std::vector<MethodNumbers> methods;
  uint32_t agents = 0;                                 // that are connected
  uint64_t measured_distances = 0;                     // pairs of hosts
  uint32_t waiting_calls = 0;                          // for a worker
  uint32_t waiting_batches = 0, waiting_searches = 0;  // for one of theirs

  // Streams of a method that are open now.
  uint32_t open(absl::string_view method) const {
    const auto found = absl::c_find_if(methods, [&](const auto& m) { return m.name == method; });
    return found == methods.end() ? 0 : static_cast<uint32_t>(found->open);
  }
};

// So many switches are told of one by one, the first by GUID: an entry of a list for each would
// have no bound.
inline constexpr size_t kMaxSwitchesTold = 1000;

struct DaemonNumbers {
  std::string version;  // of the program
  absl::Time now;
  std::shared_ptr<const FabricView> view;  // null: no sweep has succeeded yet
  SweepStanding sweeps;
  DaemonCounts counts;
  std::vector<SwitchView> switches;  // that speak or did, at most kMaxSwitchesTold
  StoreStatistics store;
  RpcNumbers rpc;
  ProcessNumbers process;

  // Time since a sweep, full or light, last confirmed the fabric; unset before the first.
  std::optional<absl::Duration> snapshot_age() const {
    if (view == nullptr) return std::nullopt;
    const absl::Time confirmed =
        std::max({view->swept, sweeps.full.last_time, sweeps.light.last_time});
    // The wall clock may have been set back since.
    return std::max(now - confirmed, absl::ZeroDuration());
  }
};

// Listens from Start to Shutdown. Health (grpc.health.v1) is NOT_SERVING, for the whole ("") and
// for each service, until the manager has its first fabric, and again once a shutdown begins.
class RpcServer {
 public:
  // `extra`: services beside ours, for measurements, which outlive the server, too. Turns Abseil's
  // search for cycles of locks off, for the whole process.
  // INVALID_ARGUMENT: a malformed or no address, a TCP address with neither TLS nor leave to do
  // without, files of TLS that cannot be used; ALREADY_EXISTS: a live process listens at a
  // socket; FAILED_PRECONDITION: a socket cannot be made; UNAVAILABLE: an address cannot be bound.
  // The message names the address.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const ServedParts& parts, const RpcServerOptions& options,
      const std::vector<grpc::Service*>& extra = {});
  virtual ~RpcServer() = default;  // shuts down at once

  // Of a server in process. It may outlive the server.
  virtual std::shared_ptr<grpc::Channel> Channel() const = 0;

  // What clients connect to, one for each listen address, with the ports that were chosen.
  virtual const std::vector<std::string>& addresses() const = 0;

  // Who administrates, from the next call on: as in AccessOptions.
  virtual void SetAdministrators(const std::string& group,
                                 const std::vector<std::string>& tls_names) = 0;

  // What callers may have, from the next call on.
  virtual void SetBounds(const AdmissionBounds& admission, const ConnectionBounds& connections) = 0;

  // How the daemon fares. Waits for no sweep and not for the database.
  virtual DaemonNumbers Numbers() const = 0;

  // Accepts no more calls, ends KeepAlive, WatchTrees, WatchEvents and Connect streams, lets other
  // calls finish for up to `grace`, then cancels them; returns when none is left. Idempotent.
  virtual void Shutdown(absl::Duration grace) = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_SERVER_H_
