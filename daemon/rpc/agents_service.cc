#include "daemon/rpc/agents_service.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/rpc/calls/error_details.h"
#include "daemon/rpc/calls/update_stream.h"
#include "daemon/rpc/conversion/agents_conversion.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "proto/request_check.h"
#include "proto/text/node_list.h"

namespace coppice {
AgentReactor* AgentStreams::Open(const absl::StatusOr<Peer>& caller) {
  method_->Opened();
  std::shared_ptr<AgentReactor> stream;
  absl::Status status = caller.status();
  AgentIdentity identity;
  if (caller.ok()) identity = {caller->user, caller->host, caller->origin};
  {
    std::lock_guard lock(mutex_);
    stream = std::make_shared<AgentReactor>(this, ++last_id_, std::move(identity));
    open_[last_id_] = stream;
    if (status.ok() && closed_) status = ShuttingDown();
  }
  // Until the reactor is handed to gRPC, which the caller does, it cannot be done and gone.
  if (status.ok()) {
    stream->Begin(stream);
  } else {
    stream->End(status);
  }
  return stream.get();
}

void AgentStreams::Close() {
  std::vector<std::shared_ptr<AgentReactor>> open;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& [id, stream] : open_) open.push_back(stream);
  }
  for (const auto& stream : open) stream->End(ShuttingDown());
}

void AgentStreams::Remove(uint64_t id) {
  std::shared_ptr<AgentReactor> stream;  // goes without the lock
  std::lock_guard lock(mutex_);
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  stream = std::move(found->second);
  open_.erase(found);
}

void AgentReactor::Begin(std::weak_ptr<AgentReactor> self) {
  self_ = std::move(self);
  std::lock_guard lock(mutex_);
  if (!ended_) StartRead(&message_);
}

void AgentReactor::Send(v1::AgentTask task) {
  std::string object;
  {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    if (queue_.size() < kMaxQueued) {
      // The welcome is the first, though a measurement may begin between it and the hello.
      const bool is_welcome = task.has_welcome();
      is_welcomed_ |= is_welcome;
      queue_.insert(is_welcome ? queue_.begin() : queue_.end(), std::move(task));
      if (is_welcomed_ && !std::exchange(is_writing_, true)) StartWrite(&queue_.front());
      return;
    }
    object = object_;
  }
  End(absl::ResourceExhaustedError(absl::StrCat(object, " has not read its last ", kMaxQueued,
                                                " tasks; connect again, and read them")));
}

void AgentReactor::End(const absl::Status& status) {
  AgentSession session = 0;
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true)) return;
    session = session_;
    streams_->method_->Closed(status.code());
    Finish(ToWire(status, object_));
  }
  if (session != 0) streams_->meter_->Disconnect(session);
}

void AgentReactor::OnReadDone(bool ok) {
  if (!ok) return End(TakeRefusal());  // OK: the agent has said its last
  const absl::Status status = Take();
  message_ = {};  // the next may be long in coming
  if (!status.ok()) return End(status);
  std::lock_guard lock(mutex_);
  if (!ended_) StartRead(&message_);
}

absl::Status AgentReactor::Take() {
  AgentSession session = 0;
  {
    std::lock_guard lock(mutex_);
    session = session_;
  }
  if (message_.has_hello() != (session == 0)) {
    return absl::InvalidArgumentError(session == 0
                                          ? "message: the first is to be a hello; say who you are"
                                          : "hello: a second one; connect again instead");
  }
  if (session == 0) return TakeHello();
  if (!message_.has_ping_pong()) {
    return absl::InvalidArgumentError("message: it is empty, or newer than this daemon");
  }
  return streams_->meter_->TakeOutcome(session, FromProto(message_.ping_pong()));
}

absl::Status AgentReactor::TakeHello() {
  ASSIGN_OR_RETURN(AgentInfo info, FromProto(message_.hello()));
  AgentLink link;
  link.send = [self = self_](const PingPong& ping_pong) {
    const std::shared_ptr<AgentReactor> stream = self.lock();
    if (stream == nullptr) return;
    v1::AgentTask task;
    ToProto(ping_pong, *task.mutable_ping_pong());
    stream->Send(std::move(task));
  };
  link.end = [self = self_](const absl::Status& status) {
    if (const std::shared_ptr<AgentReactor> stream = self.lock()) stream->End(status);
  };
  link.stop = [self = self_](uint64_t id) {
    const std::shared_ptr<AgentReactor> stream = self.lock();
    if (stream == nullptr) return;
    v1::AgentTask task;
    task.set_stop_ping_pong(id);
    stream->Send(std::move(task));
  };
  ASSIGN_OR_RETURN(const DistanceMeter::Connected connected,
                   streams_->meter_->Connect(std::move(info), std::move(link), identity_));
  bool is_late = false;
  {
    std::lock_guard lock(mutex_);
    session_ = connected.session;
    object_ = absl::StrCat("agent:", connected.host);
    is_late = ended_;  // meanwhile, without a session to give up
  }
  if (is_late) streams_->meter_->Disconnect(connected.session);
  v1::AgentTask task;
  task.mutable_welcome()->set_host(connected.host);
  task.mutable_welcome()->set_daemon_version(streams_->version_);
  task.mutable_welcome()->set_database(connected.database);
  Send(std::move(task));
  return absl::OkStatus();
}

void AgentReactor::OnWriteDone(bool ok) {
  if (!ok) return End(absl::CancelledError("agent: it went away"));
  std::lock_guard lock(mutex_);
  queue_.pop_front();
  is_writing_ = !queue_.empty() && !ended_;
  if (is_writing_) StartWrite(&queue_.front());
}

void AgentReactor::OnCancel() { End(absl::CancelledError("agent: it went away")); }

void AgentReactor::OnDone() { streams_->Remove(id_); }

namespace {

using MeasureStream = UpdateStream<v1::MeasureDistancesUpdate>;

// Measurements that wait for a worker to lay out their rounds.
constexpr size_t kMaxWaitingMeasurements = 64;

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

AgentsService::AgentsService(Manager* manager, DistanceMeter* meter, DistanceStore* distance_store,
                             WorkerPool* workers, Peers* peers, MethodStatistics* statistics,
                             std::string version)
    : Service("coppice.v1.Agents", peers, statistics),
      manager_(manager),
      meter_(meter),
      distance_store_(distance_store),
      workers_(workers),
      streams_(meter, std::move(version), statistics->AddStream("Agents.Connect")),
      measure_distances_(statistics->AddStream("Agents.MeasureDistances")) {
  Dialogue("Connect", &AgentsService::Connect);
  Unary("ListAgents", &AgentsService::ListAgents, "agents", {.pool = workers});
  Stream("MeasureDistances", &AgentsService::MeasureDistances, {.is_change = true});
  Unary("ListDistances", &AgentsService::ListDistances, "distances", {.pool = workers});
}

void AgentsService::CloseStreams() {
  meter_->Stop();
  streams_.Close();
}

grpc::ServerBidiReactor<v1::AgentMessage, v1::AgentTask>* AgentsService::Connect(
    const grpc::CallbackServerContext& context) {
  return streams_.Open(peers_->Authorise(context, "/coppice.v1.Agents/Connect", "agents"));
}

absl::Status AgentsService::ListAgents(const v1::ListAgentsRequest& request,
                                       v1::ListAgentsResponse& response) {
  ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
  response.set_next_page_token(FillPage(
      meter_->Agents(request.page_token(), size + 1), size, response.mutable_agents(),
      [](const AgentView& agent, v1::Agent& message) { ToProto(agent, message); },
      [](const AgentView& last) { return last.info.host; }));
  return absl::OkStatus();
}

grpc::ServerWriteReactor<v1::MeasureDistancesUpdate>* AgentsService::MeasureDistances(
    const grpc::CallbackServerContext& context, const v1::MeasureDistancesRequest& request) {
  const std::shared_ptr<MeasureStream> stream =
      MeasureStream::Open("measurement", "distances", measure_distances_);
  const auto peer = peers_->Authorise(context, "/coppice.v1.Agents/MeasureDistances", "distances");
  const absl::StatusOr<MeasureArgs> args = FromProto(request);
  absl::Status status = peer.ok() ? args.status() : peer.status();
  if (status.ok()) {
    peers_->NoteDone(*peer, "distances");
    status = stream->RunOn(
        workers_,
        [this, stream, args = *args] {
          const absl::Status begun = meter_->Measure(args, WatchOf(stream));
          if (!begun.ok()) stream->End(begun);
        },
        kMaxWaitingMeasurements);
  }
  if (!status.ok()) stream->End(status);
  return stream.get();
}

absl::Status AgentsService::ListDistances(const v1::ListDistancesRequest& request,
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
  ASSIGN_OR_RETURN(const std::vector<DistanceRecord> distances,
                   FindDistances(*distance_store_, view == nullptr ? nullptr : view->snapshot.get(),
                                 query, medians_));
  response.set_next_page_token(FillPage(
      distances, size, response.mutable_distances(),
      [](const DistanceRecord& distance, v1::MeasuredDistance& message) {
        ToProto(distance, message);
      },
      [](const DistanceRecord& last) { return PairToken(last.host_a, last.host_b); }));
  return absl::OkStatus();
}

}  // namespace coppice
