// The Mapping service: coppice/v1/mapping.proto over the mapper, the stored patterns and the
// stored orders. Status codes are stated there.
#ifndef COPPICE_DAEMON_RPC_MAPPING_SERVICE_H_
#define COPPICE_DAEMON_RPC_MAPPING_SERVICE_H_

#include <atomic>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coppice/v1/mapping.grpc.pb.h"
#include "daemon/manager/mapping/memory_budget.h"
#include "daemon/manager/mapping/order_store.h"
#include "daemon/manager/mapping/pattern_store.h"
#include "daemon/manager/mapping/rank_mapper.h"
#include "daemon/rpc/calls/method_statistics.h"
#include "daemon/rpc/calls/peer.h"
#include "daemon/rpc/calls/unary.h"
#include "daemon/rpc/calls/worker_pool.h"
#include "daemon/rpc/conversion/mapping_conversion.h"

namespace coppice {

// Thread-safe. The pointers outlive it and every call. Searches have workers of their own, of low
// priority: trees never wait for them. Requests are held while they wait, up to `request_bytes` of
// all of them together; what it takes to read one is of the mapper's memory.
class MappingService final : public v1::Mapping::CallbackService {
 public:
  MappingService(RankMapper* mapper, OrderStore* orders, PatternStore* patterns,
                 WorkerPool* workers, WorkerPool* search_workers, size_t request_bytes,
                 Peers* peers, MethodStatistics* statistics)
      : mapper_(mapper),
        orders_(orders),
        patterns_(patterns),
        workers_(workers),
        search_workers_(search_workers),
        requests_(request_bytes),
        peers_(peers),
        map_ranks_(statistics->AddStream("Mapping.MapRanks")),
        evaluate_mapping_(statistics->AddUnary("Mapping.EvaluateMapping")),
        get_mapping_problem_(statistics->AddUnary("Mapping.GetMappingProblem")),
        put_order_(statistics->AddUnary("Mapping.PutOrder")),
        get_order_(statistics->AddUnary("Mapping.GetOrder")),
        put_pattern_(statistics->AddUnary("Mapping.PutPattern")),
        get_pattern_(statistics->AddUnary("Mapping.GetPattern")),
        list_patterns_(statistics->AddUnary("Mapping.ListPatterns")),
        delete_pattern_(statistics->AddUnary("Mapping.DeletePattern")),
        list_algorithms_(statistics->AddUnary("Mapping.ListAlgorithms")) {}

  // Ends every search under way with UNAVAILABLE, and refuses new ones.
  void CloseStreams() { closing_ = true; }

  grpc::ServerWriteReactor<v1::MapRanksUpdate>* MapRanks(
      grpc::CallbackServerContext* context, const v1::MapRanksRequest* request) override;
  grpc::ServerUnaryReactor* EvaluateMapping(grpc::CallbackServerContext* context,
                                            const v1::EvaluateMappingRequest* request,
                                            v1::MappingEvaluation* response) override;
  grpc::ServerUnaryReactor* GetMappingProblem(grpc::CallbackServerContext* context,
                                              const v1::GetMappingProblemRequest* request,
                                              v1::MappingProblem* response) override;
  grpc::ServerUnaryReactor* PutOrder(grpc::CallbackServerContext* context,
                                     const v1::PutOrderRequest* request,
                                     v1::StoredOrder* response) override;
  grpc::ServerUnaryReactor* GetOrder(grpc::CallbackServerContext* context,
                                     const v1::GetOrderRequest* request,
                                     v1::StoredOrder* response) override;
  grpc::ServerUnaryReactor* PutPattern(grpc::CallbackServerContext* context,
                                       const v1::PutPatternRequest* request,
                                       v1::StoredPattern* response) override;
  grpc::ServerUnaryReactor* GetPattern(grpc::CallbackServerContext* context,
                                       const v1::GetPatternRequest* request,
                                       v1::StoredPattern* response) override;
  grpc::ServerUnaryReactor* ListPatterns(grpc::CallbackServerContext* context,
                                         const v1::ListPatternsRequest* request,
                                         v1::ListPatternsResponse* response) override;
  grpc::ServerUnaryReactor* DeletePattern(grpc::CallbackServerContext* context,
                                          const v1::DeletePatternRequest* request,
                                          v1::DeletePatternResponse* response) override;
  grpc::ServerUnaryReactor* ListAlgorithms(grpc::CallbackServerContext* context,
                                           const v1::ListAlgorithmsRequest* request,
                                           v1::ListAlgorithmsResponse* response) override;

 private:
  // RunLater for a request that may be large: there must be room for it until `task` is done.
  template <class Request>
  grpc::ServerUnaryReactor* RunLater(UnaryCall* call, const Request& request,
                                     const std::string& object, WorkerPool::Task task);
  // The message in the engine's terms, with the stored pattern if it names one.
  template <class Request>
  auto Read(const Request& request, const std::string& user) -> decltype(FromProto(request));
  // Fetches the stored pattern that a task names, if it names one.
  absl::Status FillPattern(const std::string& name, const std::string& user, MappingTask& task);
  absl::Status Answer(const v1::PutPatternRequest& request, const Peer& peer,
                      v1::StoredPattern& response);
  absl::StatusOr<EvaluationView> Evaluate(const v1::EvaluateMappingRequest& request,
                                          const std::string& user);
  absl::Status Answer(const v1::GetMappingProblemRequest& request, const std::string& user,
                      v1::MappingProblem& response);
  absl::Status Answer(const v1::PutOrderRequest& request, const Peer& peer,
                      v1::StoredOrder& response);
  absl::Status Answer(const v1::GetOrderRequest& request, v1::StoredOrder& response);

  RankMapper* const mapper_;
  OrderStore* const orders_;
  PatternStore* const patterns_;
  WorkerPool* const workers_;
  WorkerPool* const search_workers_;
  MemoryBudget requests_;
  Peers* const peers_;
  std::atomic<bool> closing_{false};
  // What counts the calls.
  MethodStatistics::Method* const map_ranks_;
  MethodStatistics::Method* const evaluate_mapping_;
  MethodStatistics::Method* const get_mapping_problem_;
  MethodStatistics::Method* const put_order_;
  MethodStatistics::Method* const get_order_;
  MethodStatistics::Method* const put_pattern_;
  MethodStatistics::Method* const get_pattern_;
  MethodStatistics::Method* const list_patterns_;
  MethodStatistics::Method* const delete_pattern_;
  MethodStatistics::Method* const list_algorithms_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_MAPPING_SERVICE_H_
