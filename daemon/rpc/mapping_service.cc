#include "daemon/rpc/mapping_service.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/calls/listing_page.h"
#include "daemon/rpc/calls/unary.h"
#include "daemon/rpc/calls/update_stream.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/conversion/mapping_conversion.h"
#include "google/protobuf/util/time_util.h"

namespace coppice {
namespace {

constexpr size_t kMaxWaitingSearches = 16;
constexpr absl::string_view kThisRequest = "this request, as long as it waits,";

using MapStream = UpdateStream<v1::MapRanksUpdate>;

std::string PatternObject(absl::string_view name) { return absl::StrCat("pattern:", name); }

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

template <class Request>
grpc::ServerUnaryReactor* MappingService::RunLater(UnaryCall* call, const Request& request,
                                                   const std::string& object,
                                                   WorkerPool::Task task) {
  absl::StatusOr<MemoryBudget::Share> room = requests_.Take(request.SpaceUsedLong(), kThisRequest);
  if (!room.ok()) return Finish(call, room.status(), object);
  return coppice::RunLater(workers_, call, object,
                           [room = *std::move(room), task = std::move(task)]() mutable { task(); });
}

template <class Request>
auto MappingService::Read(const Request& request, const std::string& user)
    -> decltype(FromProto(request)) {
  ASSIGN_OR_RETURN(const MemoryBudget::Share room,
                   mapper_->TakeToRead(ReadingBytes(TaskOf(request))));
  auto read = FromProto(request);
  if (read.ok()) RETURN_IF_ERROR(FillPattern(TaskOf(request).pattern_name(), user, TaskOf(*read)));
  return read;
}

absl::Status MappingService::FillPattern(const std::string& name, const std::string& user,
                                         MappingTask& task) {
  if (name.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(task.pattern, patterns_->Load(name, user, mapper_->memory()));
  return absl::OkStatus();
}

grpc::ServerWriteReactor<v1::MapRanksUpdate>* MappingService::MapRanks(
    grpc::CallbackServerContext* context, const v1::MapRanksRequest* request) {
  const std::shared_ptr<MapStream> stream =
      MapStream::Open("mapping", TaskObject(request->task()), map_ranks_);
  const auto peer =
      peers_->Authorise(*context, "/coppice.v1.Mapping/MapRanks", TaskObject(request->task()));
  if (!peer.ok()) return stream->End(peer.status()), stream.get();
  const absl::Status turn = stream->RoomOn(*search_workers_, kMaxWaitingSearches);
  if (!turn.ok()) return stream->End(turn), stream.get();
  // `request` lives until the stream has ended, which may be while a worker reads it: so there are
  // two of it.
  absl::StatusOr<MemoryBudget::Share> room =
      requests_.Take(2 * request->SpaceUsedLong(), kThisRequest);
  if (!room.ok()) return stream->End(room.status()), stream.get();
  const absl::Status queued = stream->RunOn(
      search_workers_,
      [this, stream, request = *request, user = peer->user, room = *std::move(room)] {
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

absl::StatusOr<EvaluationView> MappingService::Evaluate(const v1::EvaluateMappingRequest& request,
                                                        const std::string& user) {
  ASSIGN_OR_RETURN(const std::optional<LaunchFormat> emit, EmitOf(request.emit()));
  ASSIGN_OR_RETURN(const MappingTask task, Read(request.task(), user));
  return mapper_->Evaluate(task, {request.permutation().begin(), request.permutation().end()},
                           emit);
}

grpc::ServerUnaryReactor* MappingService::EvaluateMapping(grpc::CallbackServerContext* context,
                                                          const v1::EvaluateMappingRequest* request,
                                                          v1::MappingEvaluation* response) {
  auto* const reactor = new UnaryCall(evaluate_mapping_);
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Mapping/EvaluateMapping",
                                      TaskObject(request->task()));
  if (!peer.ok()) return Finish(reactor, peer.status(), TaskObject(request->task()));
  return RunLater(reactor, *request, TaskObject(request->task()),
                  [this, reactor, request, response, user = peer->user] {
                    const absl::StatusOr<EvaluationView> view = Evaluate(*request, user);
                    if (view.ok()) ToProto(*view, *response);
                    Finish(reactor, view.status(), TaskObject(request->task()));
                  });
}

absl::Status MappingService::Answer(const v1::GetMappingProblemRequest& request,
                                    const std::string& user, v1::MappingProblem& response) {
  ASSIGN_OR_RETURN(const MappingTask task, Read(request.task(), user));
  ASSIGN_OR_RETURN(const ProblemView view, mapper_->Problem(task));
  ToProto(view, response);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* MappingService::GetMappingProblem(
    grpc::CallbackServerContext* context, const v1::GetMappingProblemRequest* request,
    v1::MappingProblem* response) {
  auto* const reactor = new UnaryCall(get_mapping_problem_);
  const std::string object = TaskObject(request->task());
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Mapping/GetMappingProblem", object);
  if (!peer.ok()) return Finish(reactor, peer.status(), object);
  return RunLater(reactor, *request, object,
                  [this, reactor, request, response, object, user = peer->user] {
                    Finish(reactor, Answer(*request, user, *response), object);
                  });
}

absl::Status MappingService::Answer(const v1::PutOrderRequest& request, const Peer& peer,
                                    v1::StoredOrder& response) {
  ASSIGN_OR_RETURN(const JobId job, ParseJobId(request.job_id()));
  ASSIGN_OR_RETURN(const OrderRecord order,
                   orders_->Put(job, {request.permutation().begin(), request.permutation().end()},
                                request.note(), [&](const JobRecord& record) {
                                  return peers_->MayChange(peer, record);
                                }));
  ToProto(order, response);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* MappingService::PutOrder(grpc::CallbackServerContext* context,
                                                   const v1::PutOrderRequest* request,
                                                   v1::StoredOrder* response) {
  auto* const reactor = new UnaryCall(put_order_, peers_, context);
  const std::string object = JobObject(request->job_id());
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Mapping/PutOrder", object);
  if (!peer.ok()) return Finish(reactor, peer.status(), object);
  return RunLater(reactor, *request, object,
                  [this, reactor, request, response, object, peer = *peer] {
                    Finish(reactor, Answer(*request, peer, *response), object);
                  });
}

absl::Status MappingService::Answer(const v1::GetOrderRequest& request, v1::StoredOrder& response) {
  ASSIGN_OR_RETURN(const JobId job, ParseJobId(request.job_id()));
  ASSIGN_OR_RETURN(const std::optional<LaunchFormat> emit, EmitOf(request.emit()));
  ASSIGN_OR_RETURN(const OrderRecord order, orders_->Get(job));
  if (emit.has_value()) {
    ASSIGN_OR_RETURN(*response.mutable_launch_text(), orders_->LaunchTextOf(order, *emit));
  }
  ToProto(order, response);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* MappingService::GetOrder(grpc::CallbackServerContext*,
                                                   const v1::GetOrderRequest* request,
                                                   v1::StoredOrder* response) {
  return AnswerLater(workers_, get_order_, JobObject(request->job_id()),
                     [this, request, response] { return Answer(*request, *response); });
}

absl::Status MappingService::Answer(const v1::PutPatternRequest& request, const Peer& peer,
                                    v1::StoredPattern& response) {
  ASSIGN_OR_RETURN(const MemoryBudget::Share room, mapper_->TakeToRead(ReadingBytes(request)));
  ASSIGN_OR_RETURN(const std::shared_ptr<const Pattern> pattern, PatternOf(request));
  ASSIGN_OR_RETURN(const PatternRecord record,
                   patterns_->Put(request.name(), ActorOf(peer), *pattern));
  ToProto(record, response);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* MappingService::PutPattern(grpc::CallbackServerContext* context,
                                                     const v1::PutPatternRequest* request,
                                                     v1::StoredPattern* response) {
  auto* const reactor = new UnaryCall(put_pattern_, peers_, context);
  const auto peer =
      peers_->Authorise(*context, "/coppice.v1.Mapping/PutPattern", PatternObject(request->name()));
  if (!peer.ok()) return Finish(reactor, peer.status(), PatternObject(request->name()));
  return RunLater(reactor, *request, PatternObject(request->name()),
                  [this, reactor, request, response, peer = *peer] {
                    Finish(reactor, Answer(*request, peer, *response),
                           PatternObject(request->name()));
                  });
}

grpc::ServerUnaryReactor* MappingService::GetPattern(grpc::CallbackServerContext* context,
                                                     const v1::GetPatternRequest* request,
                                                     v1::StoredPattern* response) {
  return AnswerNow(get_pattern_, PatternObject(request->name()), [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const PatternRecord record,
                     patterns_->Get(request->name(), peers_->Identify(*context).user));
    ToProto(record, *response);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* MappingService::ListPatterns(grpc::CallbackServerContext*,
                                                       const v1::ListPatternsRequest* request,
                                                       v1::ListPatternsResponse* response) {
  return AnswerLater(
      workers_, list_patterns_, "patterns", [this, request, response]() -> absl::Status {
        ASSIGN_OR_RETURN(const size_t size, PageSize(request->page_size()));
        // One more than a page tells whether another follows.
        const std::vector<PatternRecord> records = patterns_->List(request->page_token(), size + 1);
        const size_t shown =
            FillPage(records.size(), size, [&](size_t i) -> const v1::StoredPattern& {
              ToProto(records[i], *response->add_patterns());
              return response->patterns(static_cast<int>(i));
            });
        if (shown < records.size())
          response->set_next_page_token(PatternStore::TokenOf(records[shown - 1]));
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* MappingService::DeletePattern(grpc::CallbackServerContext* context,
                                                        const v1::DeletePatternRequest* request,
                                                        v1::DeletePatternResponse*) {
  auto* const reactor = new UnaryCall(delete_pattern_, peers_, context);
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Mapping/DeletePattern",
                                      PatternObject(request->name()));
  if (!peer.ok()) return Finish(reactor, peer.status(), PatternObject(request->name()));
  return RunLater(reactor, *request, PatternObject(request->name()),
                  [this, reactor, request, peer = *peer] {
                    const auto may_change = [&](const PatternRecord& record) {
                      return peers_->MayChange(peer, absl::StrCat("pattern ", record.name),
                                               record.owner, "put one of your own");
                    };
                    Finish(reactor, patterns_->Delete(request->name(), ActorOf(peer), may_change),
                           PatternObject(request->name()));
                  });
}

grpc::ServerUnaryReactor* MappingService::ListAlgorithms(grpc::CallbackServerContext*,
                                                         const v1::ListAlgorithmsRequest*,
                                                         v1::ListAlgorithmsResponse* response) {
  return AnswerNow(list_algorithms_, "algorithms", [&] {
    for (const MappingAlgorithm* algorithm : MappingAlgorithms()) {
      ToProto(*algorithm, *response->add_algorithms());
    }
    return absl::OkStatus();
  });
}

}  // namespace coppice
