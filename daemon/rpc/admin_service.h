// The Admin service: coppice/v1/admin.proto. What a reload does is handed in: the configuration
// file is not this folder's to know.
#ifndef COPPICE_DAEMON_RPC_ADMIN_SERVICE_H_
#define COPPICE_DAEMON_RPC_ADMIN_SERVICE_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coppice/v1/admin.grpc.pb.h"
#include "daemon/rpc/peer.h"
#include "daemon/rpc/worker_pool.h"

namespace coppice {

// Keys as messages about the configuration call them.
struct ReloadOutcome {
  std::vector<std::string> changed, needs_restart;
};
using ReloadFunction = std::function<absl::StatusOr<ReloadOutcome>()>;

// Thread-safe. `workers` and `peers` outlive it and every call. `reload` may block; null: there is
// nothing to reload.
class AdminService final : public v1::Admin::CallbackService {
 public:
  AdminService(WorkerPool* workers, Peers* peers, ReloadFunction reload)
      : workers_(workers), peers_(peers), reload_(std::move(reload)) {}

  grpc::ServerUnaryReactor* Reload(grpc::CallbackServerContext* context,
                                   const v1::ReloadRequest* request,
                                   v1::ReloadResponse* response) override;

 private:
  WorkerPool* const workers_;
  Peers* const peers_;
  const ReloadFunction reload_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_ADMIN_SERVICE_H_
