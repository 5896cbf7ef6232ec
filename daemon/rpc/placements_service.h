// The Placements service: coppice/v1/placements.proto over the manager. Status codes are stated
// there.
#ifndef COPPICE_DAEMON_RPC_PLACEMENTS_SERVICE_H_
#define COPPICE_DAEMON_RPC_PLACEMENTS_SERVICE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coppice/v1/placements.pb.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/mapping/memory_budget.h"
#include "daemon/manager/mapping/pattern_store.h"
#include "daemon/manager/placement/placements.h"
#include "daemon/mapping/pattern.h"
#include "daemon/rpc/calls/service.h"

namespace coppice {

// The patterns that the requests of one call about placements name or bring. A thousand requests
// are a few bytes each, and what each of them names may be hundreds of megabytes: so a stored
// pattern is read once for all of them, and all count in the memory of searches.

// Of one call, and one thread. The pointers outlive it and the patterns.
class PlacementPatterns final {
 public:
  // Beside the first, patterns of one call may hold so much: two calls are planned at once.
  static constexpr size_t kMaxBytes = size_t{128} << 20;

  PlacementPatterns(PatternStore* pattern_store, MemoryBudget* memory, std::string user)
      : pattern_store_(pattern_store), memory_(memory), user_(std::move(user)) {}

  // Null: the request has none. It counts as long as anybody has it. INVALID_ARGUMENT, naming the
  // field; NOT_FOUND; RESOURCE_EXHAUSTED: no room, or too much for one call.
  absl::StatusOr<std::shared_ptr<const Pattern>> Of(const v1::PlacementTraffic& traffic);

 private:
  absl::StatusOr<std::shared_ptr<const Pattern>> Read(const v1::PlacementTraffic& traffic);

  PatternStore* const pattern_store_;
  MemoryBudget* const memory_;
  const std::string user_;
  absl::flat_hash_map<std::string, std::shared_ptr<const Pattern>> stored_;
  size_t held_ = 0;
};

// Thread-safe. The pointers outlive it and every call. What plans runs on `planners`, which are few
// and of low priority: trees never wait for placements. Patterns of requests count in `memory`.
class PlacementsService final : public Service {
 public:
  PlacementsService(Manager* manager, PatternStore* patterns, MemoryBudget* memory,
                    WorkerPool* workers, WorkerPool* planners, Peers* peers,
                    MethodStatistics* statistics);

 private:
  void CreatePlacement(UnaryCall* call, const v1::CreatePlacementRequest& request,
                       v1::Placement& response);
  void BatchCreatePlacements(UnaryCall* call, const v1::BatchCreatePlacementsRequest& request,
                             v1::BatchCreatePlacementsResponse& response);
  absl::Status AdvisePlacement(const UnaryCall& call, const v1::AdvisePlacementRequest& request,
                               v1::AdvisePlacementResponse& response);
  absl::Status GetPlacement(const v1::GetPlacementRequest& request, v1::Placement& response);
  absl::Status ListPlacements(const v1::ListPlacementsRequest& request,
                              v1::ListPlacementsResponse& response);
  absl::Status RenewPlacement(const UnaryCall& call, const v1::RenewPlacementRequest& request,
                              v1::Placement& response);
  void StartPlacement(UnaryCall* call, const v1::StartPlacementRequest& request, v1::Job& response);
  void ReleasePlacement(UnaryCall* call, const v1::ReleasePlacementRequest& request,
                        v1::ReleasePlacementResponse& response);
  absl::Status GetNodeDistances(const v1::GetNodeDistancesRequest& request,
                                v1::NodeDistances& response);

  absl::StatusOr<CreatePlacementArgs> ArgsOf(const v1::CreatePlacementRequest& request,
                                             const Peer& peer, PlacementPatterns& patterns);
  absl::StatusOr<NodeDistancesView> Distances(const v1::GetNodeDistancesRequest& request);
  // PERMISSION_DENIED: another's. NOT_FOUND also for one on its way, whose owner nobody knows yet.
  absl::Status MayChange(const Peer& peer, PlacementId id);

  Manager* const manager_;
  Placements* const placements_;
  PatternStore* const patterns_;
  MemoryBudget* const memory_;
  WorkerPool* const workers_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_PLACEMENTS_SERVICE_H_
