#include "daemon/rpc/agents_service.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/fabric/node_list.h"
#include "daemon/rpc/agents_conversion.h"
#include "daemon/rpc/identifiers.h"
#include "daemon/rpc/listing_page.h"
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
  absl::StatusOr<Peer> agent = peers_->Authorise(*context, "/coppice.v1.Agents/Connect", "agents");
  return streams_.Open(std::move(agent));
}

grpc::ServerUnaryReactor* AgentsService::ListAgents(grpc::CallbackServerContext*,
                                                    const v1::ListAgentsRequest* request,
                                                    v1::ListAgentsResponse* response) {
  return AnswerLater(workers_, list_agents_, "agents", [this, request, response]() -> absl::Status {
    ASSIGN_OR_RETURN(const size_t size, PageSize(request->page_size()));
    // One more than a page tells whether another follows.
    const std::vector<AgentView> agents = meter_->Agents(request->page_token(), size + 1);
    const size_t shown = FillPage(agents.size(), size, [&](size_t i) -> const v1::Agent& {
      ToProto(agents[i], *response->add_agents());
      return response->agents(static_cast<int>(i));
    });
    if (shown < agents.size()) response->set_next_page_token(agents[shown - 1].info.host);
    return absl::OkStatus();
  });
}

grpc::ServerWriteReactor<v1::MeasureDistancesUpdate>* AgentsService::MeasureDistances(
    grpc::CallbackServerContext* context, const v1::MeasureDistancesRequest* request) {
  const std::shared_ptr<MeasureStream> stream =
      MeasureStream::Open("measurement", "distances", measure_distances_);
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Agents/MeasureDistances", "distances");
  if (!peer.ok()) {
    stream->End(peer.status());
    return stream.get();
  }
  const absl::StatusOr<MeasureArgs> args = FromProto(*request);
  if (!args.ok()) {
    stream->End(args.status());
    return stream.get();
  }
  peers_->NoteDone(*context, "Agents.MeasureDistances", "distances");
  const absl::Status queued = stream->RunOn(
      workers_,
      [this, stream, args = *args] {
        const absl::Status begun = meter_->Measure(args, WatchOf(stream));
        if (!begun.ok()) stream->End(begun);
      },
      kMostWaiting);
  if (!queued.ok()) stream->End(queued);
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
      const std::vector<DistanceRecord> distances,
      FindDistances(*shelf_, view == nullptr ? nullptr : view->snapshot.get(), query, medians_));
  const size_t shown =
      FillPage(distances.size(), size, [&](size_t i) -> const v1::MeasuredDistance& {
        ToProto(distances[i], *response.add_distances());
        return response.distances(static_cast<int>(i));
      });
  if (shown < distances.size()) {
    const DistanceRecord& last = distances[shown - 1];
    response.set_next_page_token(PairToken(last.host_a, last.host_b));
  }
  return absl::OkStatus();
}

}  // namespace coppice
