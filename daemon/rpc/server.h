// The gRPC server: puts the services, health and reflection on the addresses, and takes them down
// in good order.
//
//   Unix address: UnixListener accepts, learns the user --> Peers --> gRPC gets the descriptor
//   TCP address:  TcpListener accepts, so many --> gRPC, with TLS or, if it must be, without
//   in process:   a channel, for a program that is its own and only user
//   every call --> BoundedService, where its caller's bounds hold --> service
#ifndef COPPICE_DAEMON_RPC_SERVER_H_
#define COPPICE_DAEMON_RPC_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/caller_bounds.h"
#include "daemon/manager/distances/distance_meter.h"
#include "daemon/manager/distances/distance_store.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/mapping/order_store.h"
#include "daemon/manager/mapping/pattern_store.h"
#include "daemon/manager/mapping/rank_mapper.h"
#include "daemon/rpc/daemon_numbers.h"
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
  std::vector<std::string> listen;  // "unix:PATH", "HOST:PORT"
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
