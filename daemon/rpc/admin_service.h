// The Admin service: coppice/v1/admin.proto over the daemon's numbers. What a reload does is handed
// in: the configuration file is not this folder's to know.
#ifndef COPPICE_DAEMON_RPC_ADMIN_SERVICE_H_
#define COPPICE_DAEMON_RPC_ADMIN_SERVICE_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coppice/v1/admin.grpc.pb.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/calls/method_statistics.h"
#include "daemon/rpc/calls/peer.h"
#include "daemon/rpc/calls/worker_pool.h"
#include "daemon/rpc/daemon_numbers.h"

namespace coppice {

// Keys as messages about the configuration call them.
struct ReloadOutcome {
  std::vector<std::string> changed, needs_restart;
};
// `by`: who asked, as events name it; empty: the daemon itself, for a signal.
using ReloadFunction = std::function<absl::StatusOr<ReloadOutcome>(const std::string& by)>;

// Thread-safe. All pointers outlive it and every call. `reload` may block; null: there is
// nothing to reload.
class AdminService final : public v1::Admin::CallbackService {
 public:
  AdminService(Manager* manager, WorkerPool* workers, Peers* peers, MethodStatistics* statistics,
               ReloadFunction reload, std::function<DaemonNumbers()> numbers)
      : manager_(manager),
        workers_(workers),
        peers_(peers),
        reload_(std::move(reload)),
        numbers_(std::move(numbers)),
        get_status_(statistics->AddUnary("Admin.GetStatus")),
        reload_method_(statistics->AddUnary("Admin.Reload")),
        get_quota_(statistics->AddUnary("Admin.GetQuota")),
        list_quotas_(statistics->AddUnary("Admin.ListQuotas")),
        set_quota_(statistics->AddUnary("Admin.SetQuota")),
        list_deeds_(statistics->AddUnary("Admin.ListDeeds")) {}

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::DaemonStatus* response) override;
  grpc::ServerUnaryReactor* Reload(grpc::CallbackServerContext* context,
                                   const v1::ReloadRequest* request,
                                   v1::ReloadResponse* response) override;
  grpc::ServerUnaryReactor* GetQuota(grpc::CallbackServerContext* context,
                                     const v1::GetQuotaRequest* request,
                                     v1::UserQuota* response) override;
  grpc::ServerUnaryReactor* ListQuotas(grpc::CallbackServerContext* context,
                                       const v1::ListQuotasRequest* request,
                                       v1::ListQuotasResponse* response) override;
  grpc::ServerUnaryReactor* SetQuota(grpc::CallbackServerContext* context,
                                     const v1::SetQuotaRequest* request,
                                     v1::UserQuota* response) override;
  grpc::ServerUnaryReactor* ListDeeds(grpc::CallbackServerContext* context,
                                      const v1::ListDeedsRequest* request,
                                      v1::ListDeedsResponse* response) override;

 private:
  absl::Status Deeds(const v1::ListDeedsRequest& request, v1::ListDeedsResponse& response);

  Manager* const manager_;
  WorkerPool* const workers_;
  Peers* const peers_;
  const ReloadFunction reload_;
  const std::function<DaemonNumbers()> numbers_;
  // What counts the calls.
  MethodStatistics::Method* const get_status_;
  MethodStatistics::Method* const reload_method_;
  MethodStatistics::Method* const get_quota_;
  MethodStatistics::Method* const list_quotas_;
  MethodStatistics::Method* const set_quota_;
  MethodStatistics::Method* const list_deeds_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_ADMIN_SERVICE_H_
