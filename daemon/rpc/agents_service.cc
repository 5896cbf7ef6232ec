#include "daemon/rpc/agents_service.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/fabric/node_list.h"
#include "daemon/rpc/agents_conversion.h"
#include "daemon/rpc/identifiers.h"
#include "daemon/rpc/unary.h"
#include "daemon/rpc/update_stream.h"

namespace coppice {
namespace {

using MeasureStream = UpdateStream<v1::MeasureDistancesUpdate>;

// Measurements that wait for a worker to lay out their rounds.
constexpr size_t kMostWaiting = 64;

MeasureStream::Answers AnswerOf(MeasureStanding standing) {
  return
      [standing = std::move(standing), told = false](v1::MeasureDistancesUpdate& update) mutable {
        if (std::exchange(told, true)) return false;
        ToProto(standing, *update.mutable_summary());
        return true;
      };
}

MeasureWatch WatchOf(const std::shared_ptr<MeasureStream>& stream) {
  MeasureWatch watch;
  watch.progress = [stream](const MeasureStanding& standing) {
    v1::MeasureDistancesUpdate update;
    ToProto(standing, *update.mutable_progress());
    stream->Tell(std::move(update));
  };
  watch.is_cancelled = [stream] { return stream->is_cancelled(); };
  watch.done = [stream](absl::StatusOr<MeasureStanding> standing) {
    if (!standing.ok()) return stream->End(standing.status());
    stream->Answer(AnswerOf(*std::move(standing)));
  };
  return watch;
}

}  // namespace

void AgentsService::CloseStreams() {
  meter_->Stop();
  streams_.Close();
}

grpc::ServerBidiReactor<v1::AgentMessage, v1::AgentTask>* AgentsService::Connect(
    grpc::CallbackServerContext* context) {
  return streams_.Open(peers_->MayBeAgent(*context));
}

grpc::ServerUnaryReactor* AgentsService::ListAgents(grpc::CallbackServerContext*,
                                                    const v1::ListAgentsRequest* request,
                                                    v1::ListAgentsResponse* response) {
  return AnswerNow(list_agents_, "agents", [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const size_t size, PageSize(request->page_size()));
    // One more than a page tells whether another follows.
    std::vector<AgentView> agents = meter_->Agents(request->page_token(), size + 1);
    const bool has_more = agents.size() > size;
    if (has_more) agents.resize(size);
    for (const AgentView& agent : agents) ToProto(agent, *response->add_agents());
    if (has_more) response->set_next_page_token(agents.back().info.host);
    return absl::OkStatus();
  });
}

grpc::ServerWriteReactor<v1::MeasureDistancesUpdate>* AgentsService::MeasureDistances(
    grpc::CallbackServerContext* context, const v1::MeasureDistancesRequest* request) {
  const std::shared_ptr<MeasureStream> stream =
      MeasureStream::Open("measurement", "distances", measure_distances_);
  const absl::StatusOr<Peer> peer = peers_->MayRegister(*context);
  if (!peer.ok()) {
    stream->End(peer.status());
    return stream.get();
  }
  const absl::StatusOr<MeasureArgs> args = FromProto(*request);
  if (!args.ok()) {
    stream->End(args.status());
    return stream.get();
  }
  const bool is_queued = stream->RunOn(
      workers_,
      [this, stream, args = *args] {
        const absl::Status begun = meter_->Measure(args, WatchOf(stream));
        if (!begun.ok()) stream->End(begun);
      },
      kMostWaiting);
  if (!is_queued) {
    stream->End(absl::UnavailableError(
        absl::StrCat("measurement: ", kMostWaiting, " calls wait already; try again")));
  }
  return stream.get();
}

grpc::ServerUnaryReactor* AgentsService::ListDistances(grpc::CallbackServerContext*,
                                                       const v1::ListDistancesRequest* request,
                                                       v1::ListDistancesResponse* response) {
  return AnswerLater(workers_, list_distances_, "distances",
                     [this, request, response] { return List(*request, *response); });
}

absl::Status AgentsService::List(const v1::ListDistancesRequest& request,
                                 v1::ListDistancesResponse& response) {
  ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
  DistanceQuery query;
  query.estimate = request.estimate();
  ASSIGN_OR_RETURN(query.transport, FromProto(request.transport()));
  query.limit = size + 1;  // one more than a page tells whether another follows
  ASSIGN_OR_RETURN(query.after, ParsePairToken(request.page_token()));
  const std::shared_ptr<const FabricView> view = manager_->fabric();
  query.hosts.assign(request.hosts().begin(), request.hosts().end());
  if (view != nullptr) {
    ASSIGN_OR_RETURN(query.hosts, ExpandEndpointNames(*view->snapshot->fabric, query.hosts,
                                                      kMaxListedNodes, "hosts"));
  }
  ASSIGN_OR_RETURN(
      std::vector<DistanceRecord> distances,
      FindDistances(*shelf_, view == nullptr ? nullptr : view->snapshot.get(), query, medians_));
  const bool has_more = distances.size() > size;
  if (has_more) distances.resize(size);
  for (const DistanceRecord& distance : distances) ToProto(distance, *response.add_distances());
  if (has_more) {
    response.set_next_page_token(PairToken(distances.back().host_a, distances.back().host_b));
  }
  return absl::OkStatus();
}

}  // namespace coppice
