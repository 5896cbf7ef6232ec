#include "daemon/rpc/mapping_service.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/calls/update_stream.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/conversion/mapping_conversion.h"
#include "google/protobuf/util/time_util.h"

namespace coppice {
namespace {

constexpr size_t kMaxWaitingSearches = 16;
constexpr absl::string_view kThisRequest = "this request, as long as it waits,";

using MapStream = UpdateStream<v1::MapRanksUpdate>;

std::string TaskObject(const v1::MappingTask& task) {
  return task.job_id().empty() ? "mapping" : JobObject(task.job_id());
}

MapStream::Answers AnswerOf(MappingView view) {
  return [view = std::move(view), told = false](v1::MapRanksUpdate& update) mutable {
    if (std::exchange(told, true)) return false;
    ToProto(view, *update.mutable_result());
    return true;
  };
}

void ToProto(const PatternRecord& record, v1::StoredPattern& message) {
  message.set_name(record.name);
  message.set_owner(record.owner);
  message.set_rank_count(record.rank_count);
  message.set_pair_count(record.pair_count);
  message.set_total_bytes(record.total_bytes);
  message.set_total_messages(record.total_messages);
  *message.mutable_create_time() =
      google::protobuf::util::TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(record.created));
  message.set_stored_bytes(record.stored_bytes);
}

const v1::MappingTask& TaskOf(const v1::MappingTask& task) { return task; }
const v1::MappingTask& TaskOf(const v1::MapRanksRequest& request) { return request.task(); }
MappingTask& TaskOf(MappingTask& task) { return task; }
MappingTask& TaskOf(MapRanksArgs& args) { return args.task; }

}  // namespace

MappingService::MappingService(RankMapper* mapper, OrderStore* orders, PatternStore* patterns,
                               WorkerPool* workers, WorkerPool* search_workers,
                               size_t request_bytes, Peers* peers, MethodStatistics* statistics)
    : Service("coppice.v1.Mapping", peers, statistics),
      mapper_(mapper),
      orders_(orders),
      patterns_(patterns),
      workers_(workers),
      search_workers_(search_workers),
      requests_(request_bytes),
      map_ranks_(statistics->AddStream("Mapping.MapRanks")) {
  using S = MappingService;
  const auto task = [](const auto& request) { return TaskObject(request.task()); };
  const auto job = [](const auto& request) { return JobObject(request.job_id()); };
  const auto pattern = [](const auto& request) { return absl::StrCat("pattern:", request.name()); };
  const Traits large{.is_bulk = true}, large_change{.is_bulk = true, .is_change = true};
  Stream("MapRanks", &S::MapRanks, large);
  Unary("EvaluateMapping",
        &S::Held<&S::EvaluateMapping, v1::EvaluateMappingRequest, v1::MappingEvaluation>, task,
        large);
  Unary("GetMappingProblem",
        &S::Held<&S::GetMappingProblem, v1::GetMappingProblemRequest, v1::MappingProblem>, task,
        large);
  Unary("PutOrder", &S::Held<&S::PutOrder, v1::PutOrderRequest, v1::StoredOrder>, job,
        large_change);
  Unary("GetOrder", &S::GetOrder, job, {.pool = workers});
  Unary("PutPattern", &S::Held<&S::PutPattern, v1::PutPatternRequest, v1::StoredPattern>, pattern,
        large_change);
  Unary("GetPattern", &S::GetPattern, pattern);
  Unary("ListPatterns", &S::ListPatterns, "patterns", {.pool = workers});
  Unary("DeletePattern",
        &S::Held<&S::DeletePattern, v1::DeletePatternRequest, v1::DeletePatternResponse>, pattern,
        {.is_change = true});
  Unary("ListAlgorithms", &S::ListAlgorithms, "algorithms");
}

template <auto kHandle, class Request, class Response>
void MappingService::Held(UnaryCall* call, const Request& request, Response& response) {
  absl::StatusOr<MemoryBudget::Share> room = requests_.Take(request.SpaceUsedLong(), kThisRequest);
  if (!room.ok()) return call->End(room.status());
  call->RunOn(workers_, [this, call, &request, &response, room = *std::move(room)] {
    call->End((this->*kHandle)(*call, request, response));
  });
}

template <class Request>
auto MappingService::Read(const Request& request, const std::string& user)
    -> decltype(FromProto(request)) {
  ASSIGN_OR_RETURN(const MemoryBudget::Share room,
                   mapper_->TakeToRead(ReadingBytes(TaskOf(request))));
  auto read = FromProto(request);
  const std::string& name = TaskOf(request).pattern_name();
  if (read.ok() && !name.empty()) {
    ASSIGN_OR_RETURN(TaskOf(*read).pattern, patterns_->Load(name, user, mapper_->memory()));
  }
  return read;
}

grpc::ServerWriteReactor<v1::MapRanksUpdate>* MappingService::MapRanks(
    const grpc::CallbackServerContext& context, const v1::MapRanksRequest& request) {
  const std::string object = TaskObject(request.task());
  const std::shared_ptr<MapStream> stream = MapStream::Open("mapping", object, map_ranks_);
  const auto peer = peers_->Authorise(context, "/coppice.v1.Mapping/MapRanks", object);
  if (!peer.ok()) return stream->End(peer.status()), stream.get();
  const absl::Status turn = stream->RoomOn(*search_workers_, kMaxWaitingSearches);
  if (!turn.ok()) return stream->End(turn), stream.get();
  // `request` lives until the stream has ended, which may be while a worker reads it: so there are
  // two of it.
  absl::StatusOr<MemoryBudget::Share> room =
      requests_.Take(2 * request.SpaceUsedLong(), kThisRequest);
  if (!room.ok()) return stream->End(room.status()), stream.get();
  const absl::Status queued = stream->RunOn(
      search_workers_,
      [this, stream, request, user = peer->user, room = *std::move(room)] {
        if (stream->is_cancelled()) return;
        const absl::StatusOr<MapRanksArgs> args = Read(request, user);
        if (!args.ok()) return stream->End(args.status());
        MapWatch watch;
        watch.orders = request.stream_orders();
        watch.progress = [stream, orders = watch.orders](absl::Duration elapsed, double score,
                                                         std::vector<uint32_t> positions) {
          v1::MapRanksUpdate update;
          v1::MapRanksProgress& progress = *update.mutable_progress();
          *progress.mutable_elapsed() = google::protobuf::util::TimeUtil::NanosecondsToDuration(
              absl::ToInt64Nanoseconds(elapsed));
          progress.set_score(score);
          progress.mutable_permutation()->Add(positions.begin(), positions.end());
          stream->Tell(std::move(update), /*only_if_none_waits=*/orders && positions.empty());
        };
        watch.is_cancelled = [this, stream] { return stream->is_cancelled() || closing_; };
        watch.others_wait = [this, caller = stream->caller()] {
          return search_workers_->OthersWait(caller);
        };
        absl::StatusOr<MappingView> view = mapper_->MapRanks(*args, watch);
        if (closing_ && absl::IsCancelled(view.status())) {
          return stream->End(absl::UnavailableError("the daemon is shutting down; try again"));
        }
        if (!view.ok()) return stream->End(view.status());
        stream->Answer(AnswerOf(*std::move(view)));
      },
      kMaxWaitingSearches);
  if (!queued.ok()) stream->End(queued);
  return stream.get();
}

absl::Status MappingService::EvaluateMapping(const UnaryCall& call,
                                             const v1::EvaluateMappingRequest& request,
                                             v1::MappingEvaluation& response) {
  ASSIGN_OR_RETURN(const std::optional<LaunchFormat> emit, EmitOf(request.emit()));
  ASSIGN_OR_RETURN(const MappingTask task, Read(request.task(), call.peer().user));
  ASSIGN_OR_RETURN(
      const EvaluationView view,
      mapper_->Evaluate(task, {request.permutation().begin(), request.permutation().end()}, emit));
  ToProto(view, response);
  return absl::OkStatus();
}

absl::Status MappingService::GetMappingProblem(const UnaryCall& call,
                                               const v1::GetMappingProblemRequest& request,
                                               v1::MappingProblem& response) {
  ASSIGN_OR_RETURN(const MappingTask task, Read(request.task(), call.peer().user));
  ASSIGN_OR_RETURN(const ProblemView view, mapper_->Problem(task));
  ToProto(view, response);
  return absl::OkStatus();
}

absl::Status MappingService::PutOrder(const UnaryCall& call, const v1::PutOrderRequest& request,
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

absl::Status MappingService::GetOrder(const v1::GetOrderRequest& request,
                                      v1::StoredOrder& response) {
  ASSIGN_OR_RETURN(const JobId job, ParseJobId(request.job_id()));
  ASSIGN_OR_RETURN(const std::optional<LaunchFormat> emit, EmitOf(request.emit()));
  ASSIGN_OR_RETURN(const OrderRecord order, orders_->Get(job));
  if (emit.has_value()) {
    ASSIGN_OR_RETURN(*response.mutable_launch_text(), orders_->LaunchTextOf(order, *emit));
  }
  ToProto(order, response);
  return absl::OkStatus();
}

absl::Status MappingService::PutPattern(const UnaryCall& call, const v1::PutPatternRequest& request,
                                        v1::StoredPattern& response) {
  ASSIGN_OR_RETURN(const MemoryBudget::Share room, mapper_->TakeToRead(ReadingBytes(request)));
  ASSIGN_OR_RETURN(const std::shared_ptr<const Pattern> pattern, PatternOf(request));
  ASSIGN_OR_RETURN(const PatternRecord record,
                   patterns_->Put(request.name(), ActorOf(call.peer()), *pattern));
  ToProto(record, response);
  return absl::OkStatus();
}

absl::Status MappingService::GetPattern(const UnaryCall& call, const v1::GetPatternRequest& request,
                                        v1::StoredPattern& response) {
  ASSIGN_OR_RETURN(const PatternRecord record, patterns_->Get(request.name(), call.user()));
  ToProto(record, response);
  return absl::OkStatus();
}

absl::Status MappingService::ListPatterns(const v1::ListPatternsRequest& request,
                                          v1::ListPatternsResponse& response) {
  ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
  response.set_next_page_token(FillPage(
      patterns_->List(request.page_token(), size + 1), size, response.mutable_patterns(),
      [](const PatternRecord& record, v1::StoredPattern& message) { ToProto(record, message); },
      PatternStore::TokenOf));
  return absl::OkStatus();
}

absl::Status MappingService::DeletePattern(const UnaryCall& call,
                                           const v1::DeletePatternRequest& request,
                                           v1::DeletePatternResponse&) {
  return patterns_->Delete(request.name(), ActorOf(call.peer()), [&](const PatternRecord& record) {
    return peers_->MayChange(call.peer(), absl::StrCat("pattern ", record.name), record.owner,
                             "put one of your own");
  });
}

absl::Status MappingService::ListAlgorithms(const v1::ListAlgorithmsRequest&,
                                            v1::ListAlgorithmsResponse& response) {
  for (const MappingAlgorithm* algorithm : MappingAlgorithms()) {
    ToProto(*algorithm, *response.add_algorithms());
  }
  return absl::OkStatus();
}

}  // namespace coppice
