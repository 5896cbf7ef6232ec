// The Placements service: coppice/v1/placements.proto over the manager. Status codes are stated
// there.

#include <type_traits>
#include <variant>

#include "coppice/v1/placements.pb.h"
#include "daemon/manager/mapping/rank_mapper.h"
#include "daemon/manager/placement/placements.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/conversion/patterns.h"
#include "daemon/rpc/service.h"
#include "proto/text/node_list.h"

namespace coppice {
namespace {

template <class Names>
std::vector<std::string> ListOf(const Names& names) {
  return {names.begin(), names.end()};
}

constexpr std::pair<PlacementState, v1::PlacementState> kStates[] = {
    {PlacementState::kHeld, v1::PLACEMENT_STATE_HELD},
    {PlacementState::kStarted, v1::PLACEMENT_STATE_STARTED},
    {PlacementState::kReleased, v1::PLACEMENT_STATE_RELEASED},
    {PlacementState::kExpired, v1::PLACEMENT_STATE_EXPIRED}};

using google::protobuf::FieldDescriptor;

// Terms and measures are found by their names. A field that the message lacks is null, and left
// out: placements_service_test looks that there is none.
const FieldDescriptor* FieldOf(const google::protobuf::Message& message, const char* name) {
  return message.GetDescriptor()->FindFieldByName(name);
}

template <class Value>
void Set(v1::PlacementMeasures& message, const char* name, Value value) {
  const FieldDescriptor* const field = FieldOf(message, name);
  if (field == nullptr) return;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if constexpr (std::is_same_v<Value, double>) {
    reflection.SetDouble(&message, field, value);
  } else if constexpr (std::is_same_v<Value, uint32_t>) {
    reflection.SetUInt32(&message, field, value);
  } else {
    reflection.SetInt32(&message, field, value);
  }
}

void ToProto(const PlacementMeasures& measures, v1::PlacementMeasures& message) {
  ForEachMeasure([&](const PlacementMeasure& measure) {
    std::visit([&](auto member) { Set(message, measure.name, measures.*member); }, measure.member);
  });
}

// Without the pattern, but with its name if it is a stored one.
absl::StatusOr<PlacementTask> ReadTask(const v1::PlacementRequest& request) {
  PlacementTask task;
  const v1::PlacementConstraints& c = request.constraints();
  task.candidates = ListOf(c.candidates());
  task.include = ListOf(c.include());
  task.avoid = ListOf(c.avoid());
  task.constraints.host_count = c.node_count();
  task.constraints.hosts_per_leaf = c.nodes_per_leaf();
  task.constraints.max_hosts_per_leaf = c.max_nodes_per_leaf();
  task.constraints.max_leaf_switches = c.max_leaf_switches();
  task.constraints.min_leaf_switches = c.min_leaf_switches();
  task.constraints.min_pods = c.min_pods();
  task.constraints.same_pod = c.same_pod();
  task.constraints.exclusive_switches = c.exclusive_switches();
  const v1::PlacementObjective& objective = request.objective();
  for (const PlacementTerm& term : kPlacementTerms) {
    const FieldDescriptor* const field = FieldOf(objective, term.name);
    if (field == nullptr) continue;
    task.objective.*term.weight = objective.GetReflection()->GetDouble(objective, field);
  }
  const v1::PlacementTraffic& traffic = request.traffic();
  task.pattern_name = traffic.pattern_name();
  if (traffic.ranks_per_node() != 0) task.ranks_per_node = traffic.ranks_per_node();
  task.trees = traffic.trees();
  ASSIGN_OR_RETURN(task.partition, ParsePartitionNum(request.partition()));
  task.account = request.account();
  if (request.seed() != 0) task.seed = request.seed();
  if (request.has_budget()) {
    ASSIGN_OR_RETURN(task.budget, FromProto(request.budget(), "budget"));
    if (task.budget == absl::ZeroDuration()) {
      return absl::InvalidArgumentError("budget: 0 s is no time; leave it out for the default");
    }
  }
  return task;
}

// Without the owner.
absl::StatusOr<CreatePlacementArgs> ReadCreation(const v1::CreatePlacementRequest& request) {
  CreatePlacementArgs args;
  args.request_id = request.request_id();
  args.display_name = request.display_name();
  ASSIGN_OR_RETURN(args.task, ReadTask(request.placement()));
  if (request.has_term()) {
    ASSIGN_OR_RETURN(args.term, FromProto(request.term(), "term"));
  }
  return args;
}

absl::StatusOr<StartPlacementArgs> ReadStart(const v1::StartPlacementRequest& request) {
  StartPlacementArgs args;
  ASSIGN_OR_RETURN(args.id, ParsePlacementId(request.id()));
  args.request_id = request.request_id();
  args.display_name = request.display_name();
  args.ranks_per_node = request.ranks_per_node();
  if (request.has_lease()) {
    ASSIGN_OR_RETURN(args.lease, FromProto(request.lease(), "lease"));
  }
  args.arrange_ranks = request.arrange_ranks();
  return args;
}

// `in_full`: also measures, reason and permutation.
void ToProto(const PlacementView& view, bool in_full, v1::Placement& message) {
  const PlacementRecord& record = *view.record;
  message.set_fabric_version(record.fabric_version);
  if (!view.why_not.empty()) {
    message.set_why_not(view.why_not);
    return;
  }
  std::vector<std::string> sorted = record.nodes;
  SortNodeNames(sorted);
  message.set_node_list(FormatNodeList(sorted));
  message.mutable_nodes()->Add(record.nodes.begin(), record.nodes.end());
  if (in_full) {
    message.mutable_permutation()->Add(record.permutation.begin(), record.permutation.end());
    ToProto(record.measures, *message.mutable_measures());
    message.set_reason(record.reason);
  }
  message.set_is_optimal(record.is_optimal);
  message.set_partition(record.partition.value());
  message.set_account(record.account);
  if (record.id == PlacementId()) return;  // advice
  message.set_id(absl::StrCat(record.id.value()));
  message.set_display_name(record.name);
  message.set_owner(record.owner);
  message.set_state(WireOf(kStates, record.state));
  if (record.state == PlacementState::kStarted) {
    message.set_job_id(absl::StrCat(record.job.value()));
  }
  *message.mutable_term() = ToDuration(record.term);
  *message.mutable_term_left() = ToDuration(view.term_left);
  *message.mutable_create_time() = ToTimestamp(record.created);
}

void ToProto(const NodeDistancesView& view, v1::NodeDistances& message) {
  message.mutable_nodes()->Add(view.nodes.begin(), view.nodes.end());
  message.mutable_hops()->Add(view.hops.begin(), view.hops.end());
  message.mutable_levels()->Add(view.levels.begin(), view.levels.end());
}

// Calls that may wait to be planned; each holds its request, with up to all nodes as candidates.
constexpr size_t kMaxWaitingPlans = 1024;

// Before they are converted.
absl::Status NotTooMany(int requests) {
  if (static_cast<size_t>(requests) <= Placements::kMaxAtOnce) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("requests: ", requests, " of them, at most ",
                                                 Placements::kMaxAtOnce, " at once"));
}

}  // namespace

class PlacementsService final : public Service {
 public:
  explicit PlacementsService(const ServiceParts& parts)
      : Service("coppice.v1.Placements", parts),
        placements_(&manager_->placements()),
        patterns_(parts.served.patterns),
        memory_(&parts.served.mapper->memory()) {
    using S = PlacementsService;
    const auto placement = [](const auto& request) { return PlacementObject(request.id()); };
    const Traits plan{
        .is_bulk = true, .pool = &parts.pools->placements, .most_waiting = kMaxWaitingPlans};
    Traits create = plan;
    create.is_change = true;
    Unary("CreatePlacement", &S::CreatePlacement, "placement", create);
    Unary("BatchCreatePlacements", &S::BatchCreatePlacements, "placement", create);
    Unary("AdvisePlacement", &S::AdvisePlacement, "placement", plan);
    // Of up to all nodes, with an order of a million ranks.
    Unary("GetPlacement", &S::GetPlacement, placement, {.pool = workers_});
    Unary("ListPlacements", &S::ListPlacements, "placements", {.pool = workers_});
    Unary("RenewPlacement", &S::RenewPlacement, placement, {.is_change = true, .pool = workers_});
    Unary("StartPlacement", &S::StartPlacement, placement, {.is_change = true, .pool = workers_});
    Unary("ReleasePlacement", &S::ReleasePlacement, placement, {.is_change = true});
    Unary("GetNodeDistances", &S::GetNodeDistances, "distances",
          {.pool = &parts.pools->placements});
  }

 private:
  absl::StatusOr<CreatePlacementArgs> ArgsOf(const v1::CreatePlacementRequest& request,
                                             const Peer& peer, PlacementPatterns& patterns) {
    ASSIGN_OR_RETURN(CreatePlacementArgs args, ReadCreation(request));
    ASSIGN_OR_RETURN(args.task.pattern, patterns.Of(request.placement().traffic()));
    args.owner = peer.user;
    args.actor = ActorOf(peer);
    return args;
  }

  void CreatePlacement(UnaryCall* call, const v1::CreatePlacementRequest& request,
                       v1::Placement& response) {
    PlacementPatterns patterns(patterns_, memory_, call->peer().user);
    absl::StatusOr<CreatePlacementArgs> args = ArgsOf(request, call->peer(), patterns);
    if (!args.ok()) return call->End(args.status());
    std::vector<CreatePlacementArgs> one;
    one.push_back(*std::move(args));
    placements_->Create(
        std::move(one), [call] { return call->is_cancelled(); },
        [call, &response](absl::StatusOr<Placements::Views> views) {
          if (views.ok()) ToProto(views->front(), /*in_full=*/true, response);
          call->End(views.status());
        });
  }

  void BatchCreatePlacements(UnaryCall* call, const v1::BatchCreatePlacementsRequest& request,
                             v1::BatchCreatePlacementsResponse& response) {
    const absl::Status few = NotTooMany(request.requests_size());
    if (!few.ok()) return call->End(few);
    PlacementPatterns patterns(patterns_, memory_, call->peer().user);
    std::vector<CreatePlacementArgs> requests;
    for (int i = 0; i < request.requests_size(); ++i) {
      absl::StatusOr<CreatePlacementArgs> args =
          ArgsOf(request.requests(i), call->peer(), patterns);
      if (!args.ok()) return call->End(Annotate(args.status(), absl::StrCat("requests[", i, "]")));
      requests.push_back(*std::move(args));
    }
    placements_->Create(
        std::move(requests), [call] { return call->is_cancelled(); },
        [call, &response](absl::StatusOr<Placements::Views> views) {
          for (const PlacementView& view : views.ok() ? *views : Placements::Views()) {
            ToProto(view, /*in_full=*/true, *response.add_placements());
          }
          call->End(views.status());
        });
  }

  absl::Status AdvisePlacement(const UnaryCall& call, const v1::AdvisePlacementRequest& request,
                               v1::AdvisePlacementResponse& response) {
    RETURN_IF_ERROR(NotTooMany(request.requests_size()));
    PlacementPatterns patterns(patterns_, memory_, call.peer().user);
    const auto task_of = [&](const v1::PlacementRequest& one) -> absl::StatusOr<PlacementTask> {
      ASSIGN_OR_RETURN(PlacementTask task, ReadTask(one));
      ASSIGN_OR_RETURN(task.pattern, patterns.Of(one.traffic()));
      return task;
    };
    std::vector<PlacementTask> tasks;
    for (int i = 0; i < request.requests_size(); ++i) {
      absl::StatusOr<PlacementTask> task = task_of(request.requests(i));
      if (!task.ok()) return Annotate(task.status(), absl::StrCat("requests[", i, "]"));
      tasks.push_back(*std::move(task));
    }
    const Payer payer = manager_->quotas().PayerOf(call.user(), call.peer().is_administrator);
    ASSIGN_OR_RETURN(const Placements::Views views,
                     placements_->Advise(tasks, payer, [&call] { return call.is_cancelled(); }));
    for (const PlacementView& view : views) {
      ToProto(view, /*in_full=*/true, *response.add_placements());
    }
    return absl::OkStatus();
  }

  absl::Status GetPlacement(const v1::GetPlacementRequest& request, v1::Placement& response) {
    ASSIGN_OR_RETURN(const PlacementId id, ParsePlacementId(request.id()));
    ASSIGN_OR_RETURN(const PlacementView view, placements_->Get(id));
    ToProto(view, /*in_full=*/true, response);
    return absl::OkStatus();
  }

  absl::Status ListPlacements(const v1::ListPlacementsRequest& request,
                              v1::ListPlacementsResponse& response) {
    ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
    ASSIGN_OR_RETURN(const int64_t after, ParseIdToken(request.page_token()));
    response.set_next_page_token(FillPage(
        placements_->List(PlacementId(after), size + 1), size, response.mutable_placements(),
        [](const PlacementView& view, v1::Placement& message) {
          ToProto(view, /*in_full=*/false, message);
        },
        [](const PlacementView& last) { return absl::StrCat(last.record->id.value()); }));
    return absl::OkStatus();
  }

  // PERMISSION_DENIED: another's. NOT_FOUND also for one on its way, whose owner nobody knows yet.
  absl::Status MayChange(const Peer& peer, PlacementId id) {
    if (peer.is_administrator) return absl::OkStatus();
    const absl::StatusOr<PlacementView> view = placements_->Get(id);
    if (!view.ok()) return view.status();
    return peers_->MayChange(peer, absl::StrCat("placement ", id.value()), view->record->owner,
                             "make a placement of your own");
  }

  absl::Status RenewPlacement(const UnaryCall& call, const v1::RenewPlacementRequest& request,
                              v1::Placement& response) {
    ASSIGN_OR_RETURN(const PlacementId id, ParsePlacementId(request.id()));
    RETURN_IF_ERROR(MayChange(call.peer(), id));
    ASSIGN_OR_RETURN(const PlacementView view, placements_->Renew(id));
    ToProto(view, /*in_full=*/true, response);
    return absl::OkStatus();
  }

  void StartPlacement(UnaryCall* call, const v1::StartPlacementRequest& request,
                      v1::Job& response) {
    absl::StatusOr<StartPlacementArgs> args = ReadStart(request);
    absl::Status status = args.status();
    if (status.ok()) status = MayChange(call->peer(), args->id);
    if (!status.ok()) return call->End(status);
    args->actor = ActorOf(call->peer());
    placements_->Start(*args, [this, call, &response](absl::StatusOr<JobView> job) {
      AnswerJob(call, std::move(job), manager_, workers_, response);
    });
  }

  void ReleasePlacement(UnaryCall* call, const v1::ReleasePlacementRequest& request,
                        v1::ReleasePlacementResponse&) {
    const absl::StatusOr<PlacementId> id = ParsePlacementId(request.id());
    absl::Status status = id.status();
    if (status.ok()) status = MayChange(call->peer(), *id);
    if (!status.ok()) return call->End(status);
    placements_->Release(
        *id, [call](absl::StatusOr<PlacementId> released) { call->End(released.status()); },
        ActorOf(call->peer()));
  }

  absl::StatusOr<NodeDistancesView> Distances(const v1::GetNodeDistancesRequest& request) {
    const int given =
        (request.nodes_size() > 0) + !request.job_id().empty() + !request.placement_id().empty();
    if (given != 1) {
      return absl::InvalidArgumentError("distances: give one of nodes, job_id and placement_id");
    }
    if (request.nodes_size() > 0) {
      return placements_->Distances({request.nodes().begin(), request.nodes().end()});
    }
    if (!request.job_id().empty()) {
      ASSIGN_OR_RETURN(const JobId job, ParseJobId(request.job_id()));
      return placements_->DistancesOfJob(job);
    }
    ASSIGN_OR_RETURN(const PlacementId placement, ParsePlacementId(request.placement_id()));
    return placements_->DistancesOfPlacement(placement);
  }

  absl::Status GetNodeDistances(const v1::GetNodeDistancesRequest& request,
                                v1::NodeDistances& response) {
    ASSIGN_OR_RETURN(const NodeDistancesView view, Distances(request));
    ToProto(view, response);
    return absl::OkStatus();
  }

  Placements* const placements_;
  PatternStore* const patterns_;
  MemoryBudget* const memory_;
};

std::unique_ptr<Service> MakePlacementsService(const ServiceParts& parts) {
  return std::make_unique<PlacementsService>(parts);
}

}  // namespace coppice
