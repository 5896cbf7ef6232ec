// The Mapping service: coppice/v1/mapping.proto over the mapper, the stored patterns and the
// stored orders. Status codes are stated there.
#ifndef COPPICE_DAEMON_RPC_MAPPING_SERVICE_H_
#define COPPICE_DAEMON_RPC_MAPPING_SERVICE_H_

#include <atomic>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coppice/v1/mapping.pb.h"
#include "daemon/manager/mapping/memory_budget.h"
#include "daemon/manager/mapping/pattern_store.h"
#include "daemon/manager/mapping/rank_mapper.h"
#include "daemon/rpc/calls/service.h"
#include "daemon/rpc/conversion/mapping_conversion.h"

namespace coppice {

// Thread-safe. The pointers outlive it and every call. Searches have workers of their own, of low
// priority: trees never wait for them. Requests are held while they wait, up to `request_bytes` of
// all of them together; what it takes to read one is of the mapper's memory.
class MappingService final : public Service {
 public:
  MappingService(RankMapper* mapper, OrderStore* orders, PatternStore* patterns,
                 WorkerPool* workers, WorkerPool* search_workers, size_t request_bytes,
                 Peers* peers, MethodStatistics* statistics);

  // Ends every search under way with UNAVAILABLE, and refuses new ones.
  void CloseStreams() { closing_ = true; }

 private:
  grpc::ServerWriteReactor<v1::MapRanksUpdate>* MapRanks(const grpc::CallbackServerContext& context,
                                                         const v1::MapRanksRequest& request);
  absl::Status EvaluateMapping(const UnaryCall& call, const v1::EvaluateMappingRequest& request,
                               v1::MappingEvaluation& response);
  absl::Status GetMappingProblem(const UnaryCall& call, const v1::GetMappingProblemRequest& request,
                                 v1::MappingProblem& response);
  absl::Status PutOrder(const UnaryCall& call, const v1::PutOrderRequest& request,
                        v1::StoredOrder& response);
  absl::Status GetOrder(const v1::GetOrderRequest& request, v1::StoredOrder& response);
  absl::Status PutPattern(const UnaryCall& call, const v1::PutPatternRequest& request,
                          v1::StoredPattern& response);
  absl::Status GetPattern(const UnaryCall& call, const v1::GetPatternRequest& request,
                          v1::StoredPattern& response);
  absl::Status ListPatterns(const v1::ListPatternsRequest& request,
                            v1::ListPatternsResponse& response);
  absl::Status DeletePattern(const UnaryCall& call, const v1::DeletePatternRequest& request,
                             v1::DeletePatternResponse& response);
  absl::Status ListAlgorithms(const v1::ListAlgorithmsRequest& request,
                              v1::ListAlgorithmsResponse& response);

  // Runs `kHandle` on a worker. The request may be large: there must be room for it until then.
  template <auto kHandle, class Request, class Response>
  void Held(UnaryCall* call, const Request& request, Response& response);
  // The message in the engine's terms, with the stored pattern if it names one.
  template <class Request>
  auto Read(const Request& request, const std::string& user) -> decltype(FromProto(request));

  RankMapper* const mapper_;
  OrderStore* const orders_;
  PatternStore* const patterns_;
  WorkerPool* const workers_;
  WorkerPool* const search_workers_;
  MemoryBudget requests_;
  MethodStatistics::Method* const map_ranks_;  // counts its streams
  std::atomic<bool> closing_{false};
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_MAPPING_SERVICE_H_
