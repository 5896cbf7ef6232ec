// The Mapping service: coppice/v1/mapping.proto over the mapper, the stored patterns and the
// stored orders. Status codes are stated there.

#include "coppice/v1/mapping.pb.h"
#include "daemon/manager/mapping/memory_budget.h"
#include "daemon/manager/mapping/order_store.h"
#include "daemon/manager/mapping/pattern_store.h"
#include "daemon/manager/mapping/rank_mapper.h"
#include "daemon/rpc/calls/service.h"
#include "daemon/rpc/calls/streams.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/conversion/mapping_conversion.h"

namespace coppice {
namespace {

// Requests that wait, as many of the largest: 512 MiB by default.
constexpr size_t kLargeRequests = 8;
constexpr size_t kMaxWaitingSearches = 16;
constexpr absl::string_view kThisRequest = "this request, as long as it waits,";

using MapStream = UpdateStream<v1::MapRanksUpdate>;

std::string TaskObject(const v1::MappingTask& task) {
  return task.job_id().empty() ? "mapping" : JobObject(task.job_id());
}

void ToProto(const PatternRecord& record, v1::StoredPattern& message) {
  message.set_name(record.name);
  message.set_owner(record.owner);
  message.set_rank_count(record.rank_count);
  message.set_pair_count(record.pair_count);
  message.set_total_bytes(record.total_bytes);
  message.set_total_messages(record.total_messages);
  *message.mutable_create_time() = ToTimestamp(record.created);
  message.set_stored_bytes(record.stored_bytes);
}

const v1::MappingTask& TaskOf(const v1::MappingTask& task) { return task; }
const v1::MappingTask& TaskOf(const v1::MapRanksRequest& request) { return request.task(); }
MappingTask& TaskOf(MappingTask& task) { return task; }
MappingTask& TaskOf(MapRanksArgs& args) { return args.task; }

}  // namespace

// Requests are held while they wait, up to kLargeRequests of all of them together; what it takes to
// read one is of the mapper's memory.
class MappingService final : public Service {
 public:
  explicit MappingService(const ServiceParts& parts)
      : Service("coppice.v1.Mapping", parts),
        mapper_(parts.served.mapper),
        orders_(parts.served.orders),
        patterns_(parts.served.patterns),
        pattern_workers_(&parts.pools->patterns),
        search_workers_(&parts.pools->searches),
        requests_(kLargeRequests * static_cast<size_t>(parts.options->max_request_bytes)),
        searches_(CountStreams("MapRanks"), "try again") {
    using S = MappingService;
    const auto task = [](const auto& request) { return TaskObject(request.task()); };
    const auto job = [](const auto& request) { return JobObject(request.job_id()); };
    const auto pattern = [](const auto& request) {
      return absl::StrCat("pattern:", request.name());
    };
    const Traits large{.is_bulk = true}, large_change{.is_bulk = true, .is_change = true};
    Stream("MapRanks", &S::MapRanks, task, large);
    Unary("EvaluateMapping",
          &S::Held<&S::EvaluateMapping, v1::EvaluateMappingRequest, v1::MappingEvaluation>, task,
          large);
    Unary("GetMappingProblem",
          &S::Held<&S::GetMappingProblem, v1::GetMappingProblemRequest, v1::MappingProblem>, task,
          large);
    Unary("PutOrder", &S::Held<&S::PutOrder, v1::PutOrderRequest, v1::StoredOrder>, job,
          large_change);
    Unary("GetOrder", &S::GetOrder, job, {.pool = pattern_workers_});
    Unary("PutPattern", &S::Held<&S::PutPattern, v1::PutPatternRequest, v1::StoredPattern>, pattern,
          large_change);
    Unary("GetPattern", &S::GetPattern, pattern);
    Unary("ListPatterns", &S::ListPatterns, "patterns", {.pool = pattern_workers_});
    Unary("DeletePattern",
          &S::Held<&S::DeletePattern, v1::DeletePatternRequest, v1::DeletePatternResponse>, pattern,
          {.is_change = true});
    Unary("ListAlgorithms", &S::ListAlgorithms, "algorithms");
  }

  void CloseStreams() override { searches_.Close(); }

 private:
  // Runs `kHandle` on a worker. The request may be large: there must be room for it until then.
  template <auto kHandle, class Request, class Response>
  void Held(UnaryCall* call, const Request& request, Response& response) {
    absl::StatusOr<MemoryBudget::Share> room =
        requests_.Take(request.SpaceUsedLong(), kThisRequest);
    if (!room.ok()) return call->End(room.status());
    call->RunOn(pattern_workers_, [this, call, &request, &response, room = *std::move(room)] {
      call->End((this->*kHandle)(*call, request, response));
    });
  }

  // The message in the engine's terms, with the stored pattern if it names one.
  template <class Request>
  auto Read(const Request& request, const std::string& user) -> decltype(FromProto(request)) {
    ASSIGN_OR_RETURN(const MemoryBudget::Share room,
                     mapper_->TakeToRead(ReadingBytes(TaskOf(request))));
    auto read = FromProto(request);
    const std::string& name = TaskOf(request).pattern_name();
    if (read.ok() && !name.empty()) {
      ASSIGN_OR_RETURN(TaskOf(*read).pattern, patterns_->Load(name, user, mapper_->memory()));
    }
    return read;
  }

  grpc::ServerWriteReactor<v1::MapRanksUpdate>* MapRanks(const absl::StatusOr<Peer>& peer,
                                                         const v1::MapRanksRequest& request) {
    return MapStream::Open(
        searches_, TaskObject(request.task()), peer.status(),
        [&](const auto& stream) { return BeginSearch(peer->user, request, stream); });
  }

  absl::Status BeginSearch(const std::string& user, const v1::MapRanksRequest& request,
                           const std::shared_ptr<MapStream>& stream) {
    RETURN_IF_ERROR(stream->RoomOn(*search_workers_, kMaxWaitingSearches));
    // `request` lives until the stream has ended, which may be while a worker reads it: so there
    // are two of it.
    ASSIGN_OR_RETURN(MemoryBudget::Share room,
                     requests_.Take(2 * request.SpaceUsedLong(), kThisRequest));
    return stream->RunOn(
        search_workers_,
        [this, stream, request, user, room = std::move(room)] {
          if (stream->is_over()) return;
          const absl::StatusOr<MapRanksArgs> args = Read(request, user);
          if (!args.ok()) return stream->End(args.status());
          const absl::StatusOr<MappingView> view =
              mapper_->MapRanks(*args, WatchOf(stream, request.stream_orders()));
          if (!view.ok()) return stream->End(view.status());
          v1::MapRanksUpdate update;
          ToProto(*view, *update.mutable_result());
          stream->AnswerWith(std::move(update));
        },
        kMaxWaitingSearches);
  }

  MapWatch WatchOf(const std::shared_ptr<MapStream>& stream, bool orders) {
    MapWatch watch;
    watch.orders = orders;
    watch.progress = [stream, orders](absl::Duration elapsed, double score,
                                      std::vector<uint32_t> positions) {
      v1::MapRanksUpdate update;
      v1::MapRanksProgress& progress = *update.mutable_progress();
      *progress.mutable_elapsed() = ToDuration(elapsed);
      progress.set_score(score);
      progress.mutable_permutation()->Add(positions.begin(), positions.end());
      stream->Tell(std::move(update), /*only_if_none_waits=*/orders && positions.empty());
    };
    watch.is_cancelled = [stream] { return stream->is_over(); };
    watch.others_wait = [this, caller = stream->caller()] {
      return search_workers_->OthersWait(caller);
    };
    return watch;
  }

  absl::Status EvaluateMapping(const UnaryCall& call, const v1::EvaluateMappingRequest& request,
                               v1::MappingEvaluation& response) {
    ASSIGN_OR_RETURN(const std::optional<LaunchFormat> emit, EmitOf(request.emit()));
    ASSIGN_OR_RETURN(const MappingTask task, Read(request.task(), call.peer().user));
    ASSIGN_OR_RETURN(const EvaluationView view,
                     mapper_->Evaluate(
                         task, {request.permutation().begin(), request.permutation().end()}, emit));
    ToProto(view, response);
    return absl::OkStatus();
  }

  absl::Status GetMappingProblem(const UnaryCall& call, const v1::GetMappingProblemRequest& request,
                                 v1::MappingProblem& response) {
    ASSIGN_OR_RETURN(const MappingTask task, Read(request.task(), call.peer().user));
    ASSIGN_OR_RETURN(const ProblemView view, mapper_->Problem(task));
    ToProto(view, response);
    return absl::OkStatus();
  }

  absl::Status PutOrder(const UnaryCall& call, const v1::PutOrderRequest& request,
                        v1::StoredOrder& response) {
    ASSIGN_OR_RETURN(const JobId job, ParseJobId(request.job_id()));
    ASSIGN_OR_RETURN(const OrderRecord order,
                     orders_->Put(job, {request.permutation().begin(), request.permutation().end()},
                                  request.note(), [&](const JobRecord& record) {
                                    return peers_->MayChange(call.peer(), record);
                                  }));
    ToProto(order, response);
    return absl::OkStatus();
  }

  absl::Status GetOrder(const v1::GetOrderRequest& request, v1::StoredOrder& response) {
    ASSIGN_OR_RETURN(const JobId job, ParseJobId(request.job_id()));
    ASSIGN_OR_RETURN(const std::optional<LaunchFormat> emit, EmitOf(request.emit()));
    ASSIGN_OR_RETURN(const OrderRecord order, orders_->Get(job));
    if (emit.has_value()) {
      ASSIGN_OR_RETURN(*response.mutable_launch_text(), orders_->LaunchTextOf(order, *emit));
    }
    ToProto(order, response);
    return absl::OkStatus();
  }

  absl::Status PutPattern(const UnaryCall& call, const v1::PutPatternRequest& request,
                          v1::StoredPattern& response) {
    ASSIGN_OR_RETURN(const MemoryBudget::Share room, mapper_->TakeToRead(ReadingBytes(request)));
    ASSIGN_OR_RETURN(const std::shared_ptr<const Pattern> pattern, PatternOf(request));
    ASSIGN_OR_RETURN(const PatternRecord record,
                     patterns_->Put(request.name(), ActorOf(call.peer()), *pattern));
    ToProto(record, response);
    return absl::OkStatus();
  }

  absl::Status GetPattern(const UnaryCall& call, const v1::GetPatternRequest& request,
                          v1::StoredPattern& response) {
    ASSIGN_OR_RETURN(const PatternRecord record, patterns_->Get(request.name(), call.user()));
    ToProto(record, response);
    return absl::OkStatus();
  }

  absl::Status ListPatterns(const v1::ListPatternsRequest& request,
                            v1::ListPatternsResponse& response) {
    ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
    response.set_next_page_token(FillPage(
        patterns_->List(request.page_token(), size + 1), size, response.mutable_patterns(),
        [](const PatternRecord& record, v1::StoredPattern& message) { ToProto(record, message); },
        PatternStore::TokenOf));
    return absl::OkStatus();
  }

  absl::Status DeletePattern(const UnaryCall& call, const v1::DeletePatternRequest& request,
                             v1::DeletePatternResponse&) {
    return patterns_->Delete(
        request.name(), ActorOf(call.peer()), [&](const PatternRecord& record) {
          return peers_->MayChange(call.peer(), absl::StrCat("pattern ", record.name), record.owner,
                                   "put one of your own");
        });
  }

  absl::Status ListAlgorithms(const v1::ListAlgorithmsRequest&,
                              v1::ListAlgorithmsResponse& response) {
    for (const MappingAlgorithm* algorithm : MappingAlgorithms()) {
      ToProto(*algorithm, *response.add_algorithms());
    }
    return absl::OkStatus();
  }

  RankMapper* const mapper_;
  OrderStore* const orders_;
  PatternStore* const patterns_;
  WorkerPool* const pattern_workers_;
  WorkerPool* const search_workers_;
  MemoryBudget requests_;
  OpenStreams searches_;
};

std::unique_ptr<Service> MakeMappingService(const ServiceParts& parts) {
  return std::make_unique<MappingService>(parts);
}

}  // namespace coppice
