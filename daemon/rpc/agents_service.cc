// The Agents service: coppice/v1/agents.proto over the meter and the kept distances. Status codes
// are stated there.
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "coppice/v1/agents.pb.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/manager/distances/distance_meter.h"
#include "daemon/manager/distances/distance_store.h"
#include "daemon/rpc/calls/streams.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/service.h"
#include "proto/text/node_list.h"

namespace coppice {
namespace {

constexpr std::pair<Transport, v1::Transport> kTransports[] = {
    {Transport::kTcp, v1::TRANSPORT_TCP}, {Transport::kVerbs, v1::TRANSPORT_VERBS}};

absl::StatusOr<std::optional<Transport>> ReadTransport(v1::Transport transport) {
  return ValueOf(kTransports, transport, "transport");
}

absl::StatusOr<MeasureArgs> ReadMeasurement(const v1::MeasureDistancesRequest& request) {
  MeasureArgs args;
  args.hosts.assign(request.hosts().begin(), request.hosts().end());
  if (request.complete_up_to() != 0) args.complete_up_to = request.complete_up_to();
  if (request.latency_samples() != 0) args.latency_samples = request.latency_samples();
  if (request.bandwidth_samples() != 0) args.bandwidth_samples = request.bandwidth_samples();
  if (request.bandwidth_bytes() != 0) args.bandwidth_bytes = request.bandwidth_bytes();
  ASSIGN_OR_RETURN(args.transport, ReadTransport(request.transport()));
  ASSIGN_OR_RETURN(args.partition, ParsePartitionNum(request.partition()));
  return args;
}

void ToProto(const PingPong& task, v1::PingPongTask& message) {
  message.set_id(task.id);
  message.set_token(task.token);
  message.set_active(task.active);
  message.set_peer(task.peer);
  message.set_peer_address(task.peer_address);
  message.set_latency_samples(task.latency_samples);
  message.set_bandwidth_samples(task.bandwidth_samples);
  message.set_bandwidth_bytes(task.bandwidth_bytes);
  *message.mutable_timeout() = ToDuration(task.timeout);
  message.set_transport(WireOf(kTransports, task.transport));
  message.set_or_tcp(task.or_tcp);
  message.set_partition(task.partition.value());
}

void ToProto(const AgentView& agent, v1::Agent& message) {
  v1::AgentHello& hello = *message.mutable_hello();
  hello.set_host(agent.info.host);
  for (const Guid port : agent.info.ports) hello.add_port_guids(ToString(port));
  hello.set_cores(agent.info.cores);
  hello.set_packages(agent.info.packages);
  hello.set_numa_nodes(agent.info.numa_nodes);
  hello.set_version(agent.info.version);
  hello.set_measure_address(agent.info.measure_address);
  hello.set_verbs(agent.info.has_verbs);
  message.set_connected(agent.connected);
  *message.mutable_since() = ToTimestamp(agent.since);
}

void ToProto(const DistanceRecord& distance, v1::MeasuredDistance& message) {
  message.set_from(distance.host_a);
  message.set_to(distance.host_b);
  message.set_latency_us(distance.latency_us);
  message.set_latency_spread_us(distance.latency_spread_us);
  message.set_bandwidth_gbps(distance.bandwidth_gbps);
  message.set_bandwidth_spread_gbps(distance.bandwidth_spread_gbps);
  message.set_samples(distance.samples);
  message.set_transport(WireOf(kTransports, distance.transport));
  if (distance.samples > 0) *message.mutable_measured() = ToTimestamp(distance.measured);
}

void ToProto(const MeasureStanding& standing, v1::MeasureProgress& message) {
  message.set_round(standing.round);
  message.set_rounds(standing.rounds);
  message.set_pairs(standing.pairs);
  message.set_failed(standing.failed);
}

void ToProto(const MeasureStanding& standing, v1::MeasureSummary& message) {
  message.set_pairs(standing.pairs);
  message.set_rounds(standing.rounds);
  for (const std::string& failure : standing.failures) message.add_failures(failure);
  *message.mutable_elapsed() = ToDuration(standing.elapsed);
  message.set_failed(standing.failed);
  message.set_over_verbs(standing.over_verbs);
  for (const std::string& remark : standing.remarks) message.add_remarks(remark);
}

}  // namespace

absl::StatusOr<AgentInfo> FromProto(const v1::AgentHello& hello) {
  AgentInfo info;
  info.host = hello.host();
  for (const std::string& text : hello.port_guids()) {
    const absl::StatusOr<Guid> port = ParseGuid(text);
    if (!port.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("hello.port_guids: ", port.status().message()));
    }
    info.ports.push_back(*port);
  }
  info.cores = hello.cores();
  info.packages = hello.packages();
  info.numa_nodes = hello.numa_nodes();
  info.version = hello.version();
  info.measure_address = hello.measure_address();
  info.has_verbs = hello.verbs();
  info.last_database = hello.last_database();
  return info;
}

PingPongOutcome FromProto(const v1::PingPongResult& result) {
  return {result.id(),
          result.error(),
          result.latency_us(),
          result.latency_spread_us(),
          result.bandwidth_gbps(),
          result.bandwidth_spread_gbps(),
          result.samples(),
          result.transport() == v1::TRANSPORT_VERBS ? Transport::kVerbs : Transport::kTcp,
          result.remark()};
}

// "5:node1node2": the length of the first name, then both.
std::string PairToken(absl::string_view from, absl::string_view to) {
  return absl::StrCat(from.size(), ":", from, to);
}

absl::StatusOr<HostPair> ParsePairToken(absl::string_view token) {
  if (token.empty()) return HostPair();
  const size_t colon = token.find(':');
  size_t length = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(token.substr(0, colon), &length) ||
      length > token.size() - colon - 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_token: \"", absl::CHexEscape(token.substr(0, 64)),
                     "\" is none of this listing; begin without one"));
  }
  const absl::string_view names = token.substr(colon + 1);
  return HostPair(names.substr(0, length), names.substr(length));
}

// The stream of one agent, without a thread: reads one message, handles it, reads the next; what is
// to be written waits in a short queue.
//
//   hello --meter: Connect--> welcome        meter: send --> queue --> one write at a time
//   results --meter: TakeOutcome-->          meter: end (another agent of the host) --> ABORTED
//
// The agent has gone as soon as its stream has ended, for whatever reason.
class AgentStream final
    : public ServedStream<grpc::ServerBidiReactor<v1::AgentMessage, v1::AgentTask>>,
      public std::enable_shared_from_this<AgentStream> {
 public:
  // Tasks that an agent may leave unread: it is given one pair at a time.
  static constexpr size_t kMaxQueued = 16;

  AgentStream(OpenStreams* streams, DistanceMeter* meter, std::string version,
              AgentIdentity identity)
      : ServedStream(streams, "agent"),
        meter_(meter),
        version_(std::move(version)),
        identity_(std::move(identity)) {}

  absl::Status Read() {
    std::lock_guard lock(mutex_);
    if (!is_over()) StartRead(&message_);
    return absl::OkStatus();
  }
  void End(const absl::Status& status) override {
    AgentSession session = 0;
    {
      std::lock_guard lock(mutex_);
      if (is_over()) return;
      session = session_;
      EndLocked(status);
    }
    if (session != 0) meter_->Disconnect(session);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(TakeRefusal());  // OK: the agent has said its last
    const absl::Status status = Take();
    message_ = {};  // the next may be long in coming
    if (!status.ok()) return End(status);
    (void)Read();
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return End(Gone());
    std::lock_guard lock(mutex_);
    queue_.pop_front();
    is_writing_ = !queue_.empty() && !is_over();
    if (is_writing_) StartWrite(&queue_.front());
  }

 private:
  // Queues a task; ends the stream if too many wait.
  void Send(v1::AgentTask task) {
    std::string object;
    {
      std::lock_guard lock(mutex_);
      if (is_over()) return;
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

  absl::Status Take() {
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
    return meter_->TakeOutcome(session, FromProto(message_.ping_pong()));
  }

  // Calls `use` with the stream, unless that has gone, and what it is given.
  template <class Use>
  auto IfThere(Use use) {
    return [self = weak_from_this(), use](const auto& given) {
      if (const std::shared_ptr<AgentStream> stream = self.lock()) use(*stream, given);
    };
  }

  absl::Status TakeHello() {
    ASSIGN_OR_RETURN(AgentInfo info, FromProto(message_.hello()));
    AgentLink link;
    link.send = IfThere([](AgentStream& stream, const PingPong& ping_pong) {
      v1::AgentTask task;
      ToProto(ping_pong, *task.mutable_ping_pong());
      stream.Send(std::move(task));
    });
    link.end = IfThere([](AgentStream& stream, const absl::Status& status) { stream.End(status); });
    link.stop = IfThere([](AgentStream& stream, uint64_t id) {
      v1::AgentTask task;
      task.set_stop_ping_pong(id);
      stream.Send(std::move(task));
    });
    ASSIGN_OR_RETURN(const DistanceMeter::Connected connected,
                     meter_->Connect(std::move(info), std::move(link), identity_));
    bool is_late = false;
    {
      std::lock_guard lock(mutex_);
      session_ = connected.session;
      object_ = absl::StrCat("agent:", connected.host);
      is_late = is_over();  // meanwhile, without a session to give up
    }
    if (is_late) meter_->Disconnect(connected.session);
    v1::AgentTask task;
    task.mutable_welcome()->set_host(connected.host);
    task.mutable_welcome()->set_daemon_version(version_);
    task.mutable_welcome()->set_database(connected.database);
    Send(std::move(task));
    return absl::OkStatus();
  }

  DistanceMeter* const meter_;
  const std::string version_;
  const AgentIdentity identity_;
  v1::AgentMessage message_;  // gRPC's while it reads
  // Guarded by mutex_.
  AgentSession session_ = 0;         // 0: no hello yet
  std::deque<v1::AgentTask> queue_;  // the first is gRPC's while it writes
  bool is_welcomed_ = false;
  bool is_writing_ = false;
};

namespace {

using MeasureStream = UpdateStream<v1::MeasureDistancesUpdate>;

// Measurements that wait for a worker to lay out their rounds.
constexpr size_t kMaxWaitingMeasurements = 64;

MeasureWatch WatchOf(const std::shared_ptr<MeasureStream>& stream) {
  MeasureWatch watch;
  watch.progress = [stream](const MeasureStanding& standing) {
    v1::MeasureDistancesUpdate update;
    ToProto(standing, *update.mutable_progress());
    stream->Tell(std::move(update));
  };
  watch.is_cancelled = [stream] { return stream->is_over(); };
  watch.done = [stream](absl::StatusOr<MeasureStanding> standing) {
    if (!standing.ok()) return stream->End(standing.status());
    v1::MeasureDistancesUpdate update;
    ToProto(*standing, *update.mutable_summary());
    stream->AnswerWith(std::move(update));
  };
  return watch;
}

}  // namespace

class AgentsService final : public Service {
 public:
  explicit AgentsService(const ServiceParts& parts)
      : Service("coppice.v1.Agents", parts),
        meter_(parts.served.meter),
        distance_store_(parts.served.distances),
        version_(parts.options->version),
        agents_(CountStreams("Connect")),
        measurements_(CountStreams("MeasureDistances")) {
    Dialogue("Connect", &AgentsService::Connect, "agents");
    Unary("ListAgents", &AgentsService::ListAgents, "agents", {.pool = workers_});
    Stream("MeasureDistances", &AgentsService::MeasureDistances, "distances", {.is_change = true});
    Unary("ListDistances", &AgentsService::ListDistances, "distances", {.pool = workers_});
  }

  // Measurements, too.
  void CloseStreams() override {
    meter_->Stop();
    agents_.Close();
  }

 private:
  grpc::ServerBidiReactor<v1::AgentMessage, v1::AgentTask>* Connect(
      const absl::StatusOr<Peer>& peer) {
    AgentIdentity identity;
    if (peer.ok()) identity = {peer->user, peer->host, peer->origin};
    const auto stream =
        std::make_shared<AgentStream>(&agents_, meter_, version_, std::move(identity));
    return agents_.Open(stream, peer.status(), [&] { return stream->Read(); });
  }

  absl::Status ListAgents(const v1::ListAgentsRequest& request, v1::ListAgentsResponse& response) {
    ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
    response.set_next_page_token(FillPage(
        meter_->Agents(request.page_token(), size + 1), size, response.mutable_agents(),
        [](const AgentView& agent, v1::Agent& message) { ToProto(agent, message); },
        [](const AgentView& last) { return last.info.host; }));
    return absl::OkStatus();
  }

  grpc::ServerWriteReactor<v1::MeasureDistancesUpdate>* MeasureDistances(
      const absl::StatusOr<Peer>& peer, const v1::MeasureDistancesRequest& request) {
    return MeasureStream::Open(measurements_, "distances", peer.status(), [&](const auto& stream) {
      return BeginMeasurement(*peer, request, stream);
    });
  }

  absl::Status BeginMeasurement(const Peer& peer, const v1::MeasureDistancesRequest& request,
                                const std::shared_ptr<MeasureStream>& stream) {
    ASSIGN_OR_RETURN(MeasureArgs args, ReadMeasurement(request));
    peers_->NoteDone(peer, "distances");
    return stream->RunOn(
        workers_,
        [this, stream, args = std::move(args)] {
          const absl::Status begun = meter_->Measure(args, WatchOf(stream));
          if (!begun.ok()) stream->End(begun);
        },
        kMaxWaitingMeasurements);
  }

  absl::Status ListDistances(const v1::ListDistancesRequest& request,
                             v1::ListDistancesResponse& response) {
    ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
    DistanceQuery query;
    query.estimate = request.estimate();
    ASSIGN_OR_RETURN(query.transport, ReadTransport(request.transport()));
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
        FindDistances(*distance_store_, view == nullptr ? nullptr : view->snapshot.get(), query,
                      medians_));
    response.set_next_page_token(FillPage(
        distances, size, response.mutable_distances(),
        [](const DistanceRecord& distance, v1::MeasuredDistance& message) {
          ToProto(distance, message);
        },
        [](const DistanceRecord& last) { return PairToken(last.host_a, last.host_b); }));
    return absl::OkStatus();
  }

  DistanceMeter* const meter_;
  DistanceStore* const distance_store_;
  const std::string version_;
  LevelMedianCache medians_;
  OpenStreams agents_, measurements_;
};

std::unique_ptr<Service> MakeAgentsService(const ServiceParts& parts) {
  return std::make_unique<AgentsService>(parts);
}

}  // namespace coppice
