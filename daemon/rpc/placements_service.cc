#include "daemon/rpc/placements_service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/calls/listing_page.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/conversion/jobs_conversion.h"
#include "daemon/rpc/conversion/mapping_conversion.h"
#include "daemon/rpc/conversion/placements_conversion.h"

namespace coppice {
absl::StatusOr<std::shared_ptr<const Pattern>> PlacementPatterns::Of(
    const v1::PlacementTraffic& traffic) {
  const bool is_stored = !traffic.pattern_name().empty();
  const int given = traffic.has_pattern() + traffic.has_pattern_file() + is_stored;
  if (given == 0) return nullptr;
  if (given > 1) {
    return absl::InvalidArgumentError(
        "traffic: give one of pattern, pattern_name and pattern_file, not several");
  }
  const auto known = stored_.find(traffic.pattern_name());
  if (known != stored_.end()) return known->second;
  ASSIGN_OR_RETURN(const std::shared_ptr<const Pattern> pattern, Read(traffic));
  const bool is_first = held_ == 0;
  held_ += pattern->MemoryBytes();
  if (!is_first && held_ > kMaxBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("traffic: this pattern and those of the requests before take more than ",
                     kMaxBytes >> 20, " MiB; ask for fewer at once"));
  }
  if (is_stored) stored_.emplace(traffic.pattern_name(), pattern);
  return pattern;
}

absl::StatusOr<std::shared_ptr<const Pattern>> PlacementPatterns::Read(
    const v1::PlacementTraffic& traffic) {
  if (!traffic.pattern_name().empty()) {
    return pattern_store_->Load(traffic.pattern_name(), user_, *memory_);
  }
  ASSIGN_OR_RETURN(MemoryBudget::Share room,
                   memory_->Take(ReadingBytes(traffic), "reading this pattern"));
  ASSIGN_OR_RETURN(std::shared_ptr<const Pattern> pattern, PatternOf(traffic));
  room.ShrinkTo(pattern->MemoryBytes());
  return Counted(std::move(pattern), std::move(room));
}

namespace {

// Calls that may wait to be planned; each holds its request, with up to all nodes as candidates.
constexpr size_t kMaxWaitingPlans = 1024;

constexpr char kNewPlacement[] = "placement";

// Before they are converted.
absl::Status NotTooMany(int requests) {
  if (static_cast<size_t>(requests) <= Placements::kMaxAtOnce) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("requests: ", requests, " of them, at most ",
                                                 Placements::kMaxAtOnce, " at once"));
}

PlacementCancelled CancelledBy(const grpc::CallbackServerContext* context) {
  return [context] { return context->IsCancelled(); };
}

}  // namespace

grpc::ServerUnaryReactor* PlacementsService::Plan(UnaryCall* call, const char* object,
                                                  WorkerPool::Task task) {
  return RunLater(planners_, call, object, std::move(task), kMaxWaitingPlans);
}

absl::StatusOr<CreatePlacementArgs> PlacementsService::ArgsOf(
    const v1::CreatePlacementRequest& request, const Peer& peer, PlacementPatterns& patterns) {
  ASSIGN_OR_RETURN(CreatePlacementArgs args, FromProto(request));
  ASSIGN_OR_RETURN(args.task.pattern, patterns.Of(request.placement().traffic()));
  args.owner = peer.user;
  args.actor = ActorOf(peer);
  return args;
}

grpc::ServerUnaryReactor* PlacementsService::CreatePlacement(
    grpc::CallbackServerContext* context, const v1::CreatePlacementRequest* request,
    v1::Placement* response) {
  auto* const call = new UnaryCall(create_, peers_, context);
  const auto peer =
      peers_->Authorise(*context, "/coppice.v1.Placements/CreatePlacement", kNewPlacement);
  if (!peer.ok()) return Finish(call, peer.status(), kNewPlacement);
  return Plan(call, kNewPlacement, [this, call, context, request, response, peer = *peer] {
    PlacementPatterns patterns(patterns_, memory_, peer.user);
    absl::StatusOr<CreatePlacementArgs> args = ArgsOf(*request, peer, patterns);
    if (!args.ok()) {
      Finish(call, args.status(), kNewPlacement);
      return;
    }
    std::vector<CreatePlacementArgs> one;
    one.push_back(*std::move(args));
    placements_->Create(std::move(one), CancelledBy(context),
                        [call, response](absl::StatusOr<Placements::Views> views) {
                          if (views.ok()) ToProto(views->front(), /*in_full=*/true, *response);
                          Finish(call, views.status(), kNewPlacement);
                        });
  });
}

grpc::ServerUnaryReactor* PlacementsService::BatchCreatePlacements(
    grpc::CallbackServerContext* context, const v1::BatchCreatePlacementsRequest* request,
    v1::BatchCreatePlacementsResponse* response) {
  auto* const call = new UnaryCall(batch_create_, peers_, context);
  const auto peer =
      peers_->Authorise(*context, "/coppice.v1.Placements/BatchCreatePlacements", kNewPlacement);
  if (!peer.ok()) return Finish(call, peer.status(), kNewPlacement);
  const absl::Status few = NotTooMany(request->requests_size());
  if (!few.ok()) return Finish(call, few, kNewPlacement);
  return Plan(call, kNewPlacement, [this, call, context, request, response, peer = *peer] {
    PlacementPatterns patterns(patterns_, memory_, peer.user);
    std::vector<CreatePlacementArgs> requests;
    for (int i = 0; i < request->requests_size(); ++i) {
      absl::StatusOr<CreatePlacementArgs> args = ArgsOf(request->requests(i), peer, patterns);
      if (!args.ok()) {
        Finish(call, Annotate(args.status(), absl::StrCat("requests[", i, "]")), kNewPlacement);
        return;
      }
      requests.push_back(*std::move(args));
    }
    placements_->Create(std::move(requests), CancelledBy(context),
                        [call, response](absl::StatusOr<Placements::Views> views) {
                          if (views.ok()) {
                            for (const PlacementView& view : *views) {
                              ToProto(view, /*in_full=*/true, *response->add_placements());
                            }
                          }
                          Finish(call, views.status(), kNewPlacement);
                        });
  });
}

absl::Status PlacementsService::Advise(const v1::AdvisePlacementRequest& request,
                                       const std::string& user, const PlacementCancelled& cancelled,
                                       v1::AdvisePlacementResponse& response) {
  PlacementPatterns patterns(patterns_, memory_, user);
  const auto task_of = [&](const v1::PlacementRequest& one) -> absl::StatusOr<PlacementTask> {
    ASSIGN_OR_RETURN(PlacementTask task, FromProto(one));
    ASSIGN_OR_RETURN(task.pattern, patterns.Of(one.traffic()));
    return task;
  };
  std::vector<PlacementTask> tasks;
  for (int i = 0; i < request.requests_size(); ++i) {
    absl::StatusOr<PlacementTask> task = task_of(request.requests(i));
    if (!task.ok()) return Annotate(task.status(), absl::StrCat("requests[", i, "]"));
    tasks.push_back(*std::move(task));
  }
  ASSIGN_OR_RETURN(const Placements::Views views, placements_->Advise(tasks, cancelled));
  for (const PlacementView& view : views) {
    ToProto(view, /*in_full=*/true, *response.add_placements());
  }
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* PlacementsService::AdvisePlacement(
    grpc::CallbackServerContext* context, const v1::AdvisePlacementRequest* request,
    v1::AdvisePlacementResponse* response) {
  auto* const call = new UnaryCall(advise_);
  const auto peer =
      peers_->Authorise(*context, "/coppice.v1.Placements/AdvisePlacement", kNewPlacement);
  if (!peer.ok()) return Finish(call, peer.status(), kNewPlacement);
  const absl::Status few = NotTooMany(request->requests_size());
  if (!few.ok()) return Finish(call, few, kNewPlacement);
  return Plan(call, kNewPlacement, [this, call, context, request, response, user = peer->user] {
    Finish(call, Advise(*request, user, CancelledBy(context), *response), kNewPlacement);
  });
}

grpc::ServerUnaryReactor* PlacementsService::GetPlacement(grpc::CallbackServerContext*,
                                                          const v1::GetPlacementRequest* request,
                                                          v1::Placement* response) {
  // Of up to all nodes, with an order of a million ranks.
  return AnswerLater(workers_, get_, PlacementObject(request->id()),
                     [this, request, response] { return GetOne(*request, *response); });
}

absl::Status PlacementsService::GetOne(const v1::GetPlacementRequest& request,
                                       v1::Placement& response) {
  ASSIGN_OR_RETURN(const PlacementId id, ParsePlacementId(request.id()));
  ASSIGN_OR_RETURN(const PlacementView view, placements_->Get(id));
  ToProto(view, /*in_full=*/true, response);
  return absl::OkStatus();
}

absl::Status PlacementsService::List(const v1::ListPlacementsRequest& request,
                                     v1::ListPlacementsResponse& response) {
  ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
  ASSIGN_OR_RETURN(const int64_t after, ParseIdToken(request.page_token()));
  // One more than a page tells whether another follows.
  const Placements::Views views = placements_->List(PlacementId(after), size + 1);
  const size_t shown = FillPage(views.size(), size, [&](size_t i) -> const v1::Placement& {
    ToProto(views[i], /*in_full=*/false, *response.add_placements());
    return response.placements(static_cast<int>(i));
  });
  if (shown < views.size()) {
    response.set_next_page_token(absl::StrCat(views[shown - 1].record->id.value()));
  }
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* PlacementsService::ListPlacements(
    grpc::CallbackServerContext*, const v1::ListPlacementsRequest* request,
    v1::ListPlacementsResponse* response) {
  return AnswerLater(workers_, list_, "placements",
                     [this, request, response] { return List(*request, *response); });
}

absl::Status PlacementsService::MayChange(const Peer& peer, PlacementId id) {
  if (peer.is_administrator) return absl::OkStatus();
  const absl::StatusOr<PlacementView> view = placements_->Get(id);
  if (!view.ok()) return view.status();
  return peers_->MayChange(peer, absl::StrCat("placement ", id.value()), view->record->owner,
                           "make a placement of your own");
}

grpc::ServerUnaryReactor* PlacementsService::RenewPlacement(
    grpc::CallbackServerContext* context, const v1::RenewPlacementRequest* request,
    v1::Placement* response) {
  auto* const call = new UnaryCall(renew_);
  const std::string object = PlacementObject(request->id());
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Placements/RenewPlacement", object);
  if (!peer.ok()) return Finish(call, peer.status(), object);
  return RunLater(workers_, call, object, [this, call, request, response, object, peer = *peer] {
    Finish(call, Renew(*request, peer, *response), object);
  });
}

absl::Status PlacementsService::Renew(const v1::RenewPlacementRequest& request, const Peer& peer,
                                      v1::Placement& response) {
  ASSIGN_OR_RETURN(const PlacementId id, ParsePlacementId(request.id()));
  RETURN_IF_ERROR(MayChange(peer, id));
  ASSIGN_OR_RETURN(const PlacementView view, placements_->Renew(id));
  ToProto(view, /*in_full=*/true, response);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* PlacementsService::StartPlacement(
    grpc::CallbackServerContext* context, const v1::StartPlacementRequest* request,
    v1::Job* response) {
  auto* const call = new UnaryCall(start_, peers_, context);
  const std::string object = PlacementObject(request->id());
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Placements/StartPlacement", object);
  if (!peer.ok()) return Finish(call, peer.status(), object);
  absl::StatusOr<StartPlacementArgs> args = FromProto(*request);
  if (!args.ok()) return Finish(call, args.status(), object);
  const absl::Status allowed = MayChange(*peer, args->id);
  if (!allowed.ok()) return Finish(call, allowed, object);
  args->actor = ActorOf(*peer);
  return RunLater(workers_, call, object, [this, call, object, response, args = *args] {
    placements_->Start(args, [this, call, object, response](absl::StatusOr<JobView> job) {
      const size_t ranks = job.ok() ? job->record->endpoints.size() : 0;
      AnswerRanks(workers_, call, ranks, [this, call, object, response, job = std::move(job)] {
        if (job.ok()) {
          ToProto(*job, *response);
          const std::shared_ptr<const FabricView> view = manager_->fabric();
          AddEndpoints(*job->record, view == nullptr ? nullptr : view->snapshot->fabric.get(),
                       *response);
        }
        Finish(call, job.status(), object);
      });
    });
  });
}

grpc::ServerUnaryReactor* PlacementsService::ReleasePlacement(
    grpc::CallbackServerContext* context, const v1::ReleasePlacementRequest* request,
    v1::ReleasePlacementResponse*) {
  auto* const call = new UnaryCall(release_, peers_, context);
  const std::string object = PlacementObject(request->id());
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Placements/ReleasePlacement", object);
  if (!peer.ok()) return Finish(call, peer.status(), object);
  const absl::StatusOr<PlacementId> id = ParsePlacementId(request->id());
  if (!id.ok()) return Finish(call, id.status(), object);
  const absl::Status allowed = MayChange(*peer, *id);
  if (!allowed.ok()) return Finish(call, allowed, object);
  placements_->Release(
      *id,
      [call, object](absl::StatusOr<PlacementId> released) {
        Finish(call, released.status(), object);
      },
      ActorOf(*peer));
  return call;
}

absl::StatusOr<NodeDistancesView> PlacementsService::Distances(
    const v1::GetNodeDistancesRequest& request) {
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

grpc::ServerUnaryReactor* PlacementsService::GetNodeDistances(
    grpc::CallbackServerContext*, const v1::GetNodeDistancesRequest* request,
    v1::NodeDistances* response) {
  return AnswerLater(planners_, distances_, "distances",
                     [this, request, response]() -> absl::Status {
                       ASSIGN_OR_RETURN(const NodeDistancesView view, Distances(*request));
                       ToProto(view, *response);
                       return absl::OkStatus();
                     });
}

}  // namespace coppice
