// The Admin service: coppice/v1/admin.proto over the daemon's numbers. What a reload does is handed
// in: the configuration file is not this folder's to know.
#ifndef COPPICE_DAEMON_RPC_ADMIN_SERVICE_H_
#define COPPICE_DAEMON_RPC_ADMIN_SERVICE_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coppice/v1/admin.pb.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/calls/service.h"
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
class AdminService final : public Service {
 public:
  AdminService(Manager* manager, WorkerPool* workers, Peers* peers, MethodStatistics* statistics,
               ReloadFunction reload, std::function<DaemonNumbers()> numbers);

 private:
  absl::Status GetStatus(const v1::GetStatusRequest& request, v1::DaemonStatus& response);
  absl::Status Reload(const UnaryCall& call, const v1::ReloadRequest& request,
                      v1::ReloadResponse& response);
  absl::Status GetQuota(const UnaryCall& call, const v1::GetQuotaRequest& request,
                        v1::UserQuota& response);
  absl::Status ListQuotas(const v1::ListQuotasRequest& request, v1::ListQuotasResponse& response);
  void SetQuota(UnaryCall* call, const v1::SetQuotaRequest& request, v1::UserQuota& response);
  absl::Status ListDeeds(const v1::ListDeedsRequest& request, v1::ListDeedsResponse& response);

  Manager* const manager_;
  const ReloadFunction reload_;
  const std::function<DaemonNumbers()> numbers_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_ADMIN_SERVICE_H_
