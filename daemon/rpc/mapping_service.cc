// The Mapping service: coppice/v1/mapping.proto over the mapper, the stored patterns and the
// stored orders. Status codes are stated there.

#include "absl/strings/str_join.h"
#include "coppice/v1/mapping.pb.h"
#include "daemon/manager/mapping/memory_budget.h"
#include "daemon/manager/mapping/pattern_store.h"
#include "daemon/manager/mapping/rank_mapper.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/input/square_matrix.h"
#include "daemon/rpc/calls/streams.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/conversion/patterns.h"
#include "daemon/rpc/service.h"
#include "proto/text/option_words.h"

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

constexpr std::pair<TrafficModel, v1::TrafficModel> kTrafficModels[] = {
    {TrafficModel::kRoutes, v1::TRAFFIC_MODEL_ROUTES},
    {TrafficModel::kEvenShortestPaths, v1::TRAFFIC_MODEL_EVEN},
    {TrafficModel::kApproximate, v1::TRAFFIC_MODEL_APPROXIMATE}};
constexpr std::pair<PlaceDistanceKind, v1::PlaceDistance> kDistances[] = {
    {PlaceDistanceKind::kHops, v1::PLACE_DISTANCE_HOPS},
    {PlaceDistanceKind::kRoutes, v1::PLACE_DISTANCE_ROUTES},
    {PlaceDistanceKind::kMeasured, v1::PLACE_DISTANCE_MEASURED}};

// Of the three ways to say how far places are from each other, the one that the task takes.
absl::Status FillDistance(const v1::MappingTask& message, MappingTask& task) {
  const bool is_named = message.distance() != v1::PLACE_DISTANCE_UNSPECIFIED;
  if (is_named + !message.distance_matrix().empty() + message.has_distance_file() > 1) {
    return BadField("task", "give one of distance, distance_matrix and distance_file");
  }
  if (message.has_distance_file()) {
    ASSIGN_OR_RETURN(task.matrix, ReadDistanceMatrix(message.distance_file().text(),
                                                     message.distance_file().origin()));
  } else if (!message.distance_matrix().empty()) {
    uint32_t count = 0;
    while (uint64_t{count} * count < static_cast<uint64_t>(message.distance_matrix_size())) ++count;
    ASSIGN_OR_RETURN(task.matrix, PlaceDistances::Matrix(count, {message.distance_matrix().begin(),
                                                                 message.distance_matrix().end()}));
  }
  ASSIGN_OR_RETURN(const std::optional<PlaceDistanceKind> kind,
                   ValueOf(kDistances, message.distance(), "task.distance"));
  task.distance =
      kind.value_or(task.matrix ? PlaceDistanceKind::kMatrix : PlaceDistanceKind::kHops);
  return absl::OkStatus();
}

// INVALID_ARGUMENT: there is no such format (lists them). None: none is asked for.
absl::StatusOr<std::optional<LaunchFormat>> EmitOf(const std::string& emit) {
  if (emit.empty()) return std::nullopt;
  const std::optional<LaunchFormat> format = ParseLaunchFormat(emit);
  if (format.has_value()) return format;
  return BadField("emit", absl::StrCat("there is no format \"", emit, "\"; choose one of ",
                                       absl::StrJoin(LaunchFormatNames(), ", ")));
}

// Without the pattern if it is a stored one. INVALID_ARGUMENT, naming the field.
absl::StatusOr<MappingTask> ReadMapping(const v1::MappingTask& message) {
  MappingTask task;
  if (message.job_id().empty() == message.hosts().empty()) {
    return BadField("task", "give either job_id or hosts");
  }
  if (!message.job_id().empty()) {
    ASSIGN_OR_RETURN(task.job, ParseJobId(message.job_id()));
    if (message.ranks_per_host() != 0) {
      return BadField("task.ranks_per_host", "a job says itself where its ranks are; leave it out");
    }
  }
  task.hosts.assign(message.hosts().begin(), message.hosts().end());
  if (message.ranks_per_host() != 0) task.ranks_per_host = message.ranks_per_host();
  if (message.has_pattern() + message.has_pattern_file() + !message.pattern_name().empty() != 1) {
    return BadField("task", "give one of pattern, pattern_name and pattern_file");
  }
  if (message.pattern_name().empty()) {
    ASSIGN_OR_RETURN(task.pattern, PatternOf(message));
  }
  task.objective = {.congestion = message.objective().congestion(),
                    .hop_bytes = message.objective().dilation(),
                    .qap_cost = message.objective().qap()};
  ASSIGN_OR_RETURN(const std::optional<TrafficModel> traffic,
                   ValueOf(kTrafficModels, message.traffic(), "task.traffic"));
  task.traffic = traffic.value_or(TrafficModel::kRoutes);
  RETURN_IF_ERROR(FillDistance(message, task));
  task.ignore_load = message.ignore_load();
  task.fabric_version = message.fabric_version();
  return task;
}

absl::StatusOr<MapRanksArgs> ReadMapping(const v1::MapRanksRequest& request) {
  MapRanksArgs args;
  ASSIGN_OR_RETURN(args.task, ReadMapping(request.task()));
  args.algorithm = request.algorithm();
  if (request.has_budget()) {
    ASSIGN_OR_RETURN(const absl::Duration budget, FromProto(request.budget(), "budget"));
    if (budget <= absl::ZeroDuration()) return BadField("budget", "give a time above 0");
    args.budget = budget;
  }
  if (request.seed() != 0) args.seed = request.seed();
  ASSIGN_OR_RETURN(args.emit, EmitOf(request.emit()));
  for (const auto& [name, value] : request.options()) args.parameters.emplace_back(name, value);
  return args;
}

// Of a place in a fabric all are known.
void ToProto(const MappingMeasures& measures, v1::MappingMeasures& message) {
  message.set_max_congestion(measures.max_congestion.value_or(0));
  message.set_average_dilation(measures.average_dilation.value_or(0));
  message.set_max_dilation(measures.max_dilation.value_or(0));
  message.set_hop_bytes(measures.hop_bytes.value_or(0));
  message.set_qap_cost(measures.qap_cost);
  message.set_inter_node_bytes(measures.inter_node_bytes);
  message.set_inter_switch_bytes(measures.inter_switch_bytes.value_or(0));
}

void ToProto(const MappingView& view, v1::MappingResult& message) {
  const MappingAnswer& answer = view.answer;
  message.set_algorithm(answer.algorithm);
  ToProto(answer.before, *message.mutable_before());
  ToProto(answer.after, *message.mutable_after());
  message.mutable_permutation()->Add(answer.slots.begin(), answer.slots.end());
  message.set_seconds(absl::ToDoubleSeconds(view.took));
  message.set_reason(answer.reason);
  message.set_fabric_version(view.fabric_version);
  message.set_score(answer.score);
  message.set_launch_text(view.launch_text);
}

void ToProto(const EvaluationView& view, v1::MappingEvaluation& message) {
  ToProto(view.before, *message.mutable_before());
  ToProto(view.after, *message.mutable_after());
  message.set_score(view.score);
  for (const BusyLink& busy : view.busiest) {
    v1::BusyLink& link = *message.add_busiest();
    link.set_from(busy.from);
    link.set_to(busy.to);
    link.set_bytes(busy.bytes);
    link.set_capacity_gbps(busy.capacity_gbps);
  }
  message.set_fabric_version(view.fabric_version);
  message.set_launch_text(view.launch_text);
}

void ToProto(const ProblemView& view, v1::MappingProblem& message) {
  const PlainProblem& problem = view.problem;
  v1::CommunicationPattern& pattern = *message.mutable_pattern();
  pattern.set_rank_count(problem.rank_count);
  for (const Pattern::Entry& entry : problem.entries) {
    pattern.add_from(entry.from);
    pattern.add_to(entry.to);
    pattern.add_bytes(entry.bytes);
    pattern.add_messages(entry.messages);
  }
  message.mutable_place_of_position()->Add(problem.place_of_slot.begin(),
                                           problem.place_of_slot.end());
  message.mutable_distances()->Add(problem.distances.begin(), problem.distances.end());
  for (const std::string& host : view.host_of_place) message.add_host_of_place(host);
  message.set_fabric_version(view.fabric_version);
}

void ToProto(const OrderRecord& order, v1::StoredOrder& message) {
  message.set_job_id(absl::StrCat(order.job.value()));
  message.mutable_permutation()->Add(order.positions.begin(), order.positions.end());
  message.set_note(order.note);
  *message.mutable_create_time() = ToTimestamp(order.created);
}

void ToProto(const MappingAlgorithm& algorithm, v1::Algorithm& message) {
  message.set_name(std::string(algorithm.name));
  message.set_source(std::string(algorithm.source));
  message.set_refines(algorithm.refines);
  for (const AlgorithmParameter& parameter : algorithm.parameters) {
    v1::AlgorithmOption& option = *message.add_options();
    option.set_name(std::string(parameter.name));
    option.set_preset(parameter.preset);
    option.set_least(parameter.least);
    option.set_greatest(parameter.greatest);
    option.set_meaning(std::string(parameter.meaning));
  }
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
  auto Read(const Request& request, const std::string& user) -> decltype(ReadMapping(request)) {
    ASSIGN_OR_RETURN(const MemoryBudget::Share room,
                     mapper_->TakeToRead(ReadingBytes(TaskOf(request))));
    auto read = ReadMapping(request);
    const std::string& name = TaskOf(request).pattern_name();
    if (read.ok() && !name.empty()) {
      ASSIGN_OR_RETURN(TaskOf(*read).pattern, patterns_->Load(name, user, mapper_->memory()));
    }
    return read;
  }

  grpc::ServerWriteReactor<v1::MapRanksUpdate>* MapRanks(const absl::StatusOr<Peer>& peer,
                                                         const v1::MapRanksRequest& request) {
    return MapStream::Open(searches_, TaskObject(request.task()), peer.status(),
                           [&](const auto& stream) { return BeginSearch(*peer, request, stream); });
  }

  absl::Status BeginSearch(const Peer& peer, const v1::MapRanksRequest& request,
                           const std::shared_ptr<MapStream>& stream) {
    RETURN_IF_ERROR(stream->RoomOn(*search_workers_, kMaxWaitingSearches));
    // `request` lives until the stream has ended, which may be while a worker reads it: so there
    // are two of it.
    ASSIGN_OR_RETURN(MemoryBudget::Share room,
                     requests_.Take(2 * request.SpaceUsedLong(), kThisRequest));
    return stream->RunOn(
        search_workers_,
        [this, stream, request,
         payer = manager_->quotas().PayerOf(peer.user, peer.is_administrator),
         room = std::move(room)] {
          if (stream->is_over()) return;
          absl::StatusOr<MapRanksArgs> args = Read(request, payer.user);
          if (!args.ok()) return stream->End(args.status());
          args->payer = payer;
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
