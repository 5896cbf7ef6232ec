#include "agents/node/node_agent.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agents/node/process_identity.h"

namespace coppice {
namespace {

constexpr std::chrono::milliseconds kMinPause{200}, kMaxPause{5'000};
// Where trying again soon cannot help: a daemon of another release, another agent of this host.
constexpr std::chrono::milliseconds kLongPause{30'000};

}  // namespace

AgentStream::AgentStream(DaemonLink* link, v1::AgentHello hello, Measurer* measurer)
    : link_(link),
      hello_(std::move(hello)),
      measurer_(measurer),
      pause_(kMinPause, kMaxPause, std::hash<std::string>()(hello_.host())) {}

AgentStream::~AgentStream() {
  if (stream_ != nullptr) stream_->Abandon();
  link_->loop()->Cancel(timer_);
}

void AgentStream::Begin() {
  ++streams_;
  v1::AgentMessage message;
  *message.mutable_hello() = hello_;
  const std::string hello = message.SerializeAsString();
  ForwardedCall::Request request;
  request.method = "/coppice.v1.Agents/Connect";
  request.message = hello;
  request.is_own_stream = true;
  request.waits_for_daemon = waits_for_daemon_;
  stream_ = link_->Call(request, {[this](const std::string& task) { OnTask(task); },
                                  [this](const grpc::Status& status) { OnEnd(status); },
                                  /*reads_on=*/true});
}

void AgentStream::Send(const v1::PingPongResult& result) {
  if (stream_ == nullptr || tasks_.erase(result.id()) == 0) return;
  v1::AgentMessage message;
  *message.mutable_ping_pong() = result;
  stream_->Send(message.SerializeAsString());
}

void AgentStream::OnTask(const std::string& message) {
  v1::AgentTask task;
  if (!task.ParseFromString(message)) return;
  pause_.Reset();
  if (task.has_welcome()) {
    is_welcome_ = true;
    hello_.set_last_database(task.welcome().database());
    last_error_.clear();
    spdlog::info("daemon {} at {} takes this agent for {}", task.welcome().daemon_version(),
                 link_->server(), task.welcome().host());
  } else if (task.has_ping_pong()) {
    tasks_.insert(task.ping_pong().id());
    measurer_->Take(task.ping_pong(), streams_);
  } else if (task.has_stop_ping_pong()) {
    tasks_.erase(task.stop_ping_pong());
    measurer_->Stop(task.stop_ping_pong(), streams_);
  }
}

void AgentStream::OnEnd(const grpc::Status& status) {
  stream_.reset();
  for (const uint64_t id : std::exchange(tasks_, {})) measurer_->Stop(id, streams_);
  is_welcome_ = false;
  waits_for_daemon_ = status.error_code() == grpc::StatusCode::UNAVAILABLE;
  const std::string error = status.ok() ? "it ended the call" : status.error_message();
  if (error != last_error_) {
    spdlog::warn("daemon at {}: does not take this agent now: {}; it is tried again",
                 link_->server(), error);
    last_error_ = error;
  }
  const bool is_hopeless = status.error_code() == grpc::StatusCode::UNIMPLEMENTED ||
                           status.error_code() == grpc::StatusCode::ABORTED ||
                           status.error_code() == grpc::StatusCode::PERMISSION_DENIED ||
                           status.error_code() == grpc::StatusCode::INVALID_ARGUMENT;
  timer_ = link_->loop()->After(is_hopeless ? kLongPause : pause_.Next(), [this] { Begin(); });
}

absl::StatusOr<OwnedFd> TakeStateLock(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/lock");
  OwnedFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.get() < 0) {
    return absl::UnavailableError(absl::StrCat("state_dir ", folder, ": ", std::strerror(errno),
                                               "; make a folder that the agent may write to"));
  }
  if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  return absl::FailedPreconditionError(
      absl::StrCat("state_dir ", folder, ": another agent uses it; stop it, or use --state-dir"));
}

namespace {

// That of the init process, which lives as long as the node.
constexpr int64_t kProcessOfRoot = 1;
// gRPC answers a cancel at once; longer than this something is wrong with it.
constexpr std::chrono::milliseconds kPatience{5'000};
constexpr char kHoldFile[] = "held_jobs.json";

// How others name what the agent listens on: one address by itself, every address by the node's
// name, which they have to resolve.
std::string ReachedBy(const Settings& settings, const NodeFacts& facts, uint16_t port) {
  if (!settings.measure_address.empty()) return settings.measure_address;
  const absl::string_view listen = settings.measure_listen;
  const absl::string_view address = listen.substr(0, listen.rfind(':'));
  const bool is_any = address.empty() || address == "0.0.0.0" || address == "[::]";
  return absl::StrCat(is_any ? absl::string_view(facts.host) : address, ":", port);
}

// Checked settings.
PortChoice PortOf(const Settings& settings) {
  PortChoice choice = *ParsePortChoice(settings.measure_device);
  choice.port_guids = settings.port_guids;
  choice.devices = settings.devices;
  return choice;
}

v1::AgentHello HelloOf(const Settings& settings, const NodeFacts& facts, const std::string& version,
                       const std::optional<PingPongListener>& peers) {
  v1::AgentHello hello;
  hello.set_host(settings.host.empty() ? facts.host : settings.host);
  const auto& guids = settings.port_guids.empty() ? facts.port_guids : settings.port_guids;
  hello.mutable_port_guids()->Add(guids.begin(), guids.end());
  hello.set_cores(facts.cores);
  hello.set_packages(facts.packages);
  hello.set_numa_nodes(facts.numa_nodes);
  hello.set_version(version);
  if (peers) hello.set_measure_address(ReachedBy(settings, facts, peers->port()));
  hello.set_verbs(!absl::IsNotFound(FindPort(PortOf(settings)).status()));
  return hello;
}

// Of a port that somebody has named, since nobody else would be surprised.
void WarnIfNoDevice(const Settings& settings) {
  const PortChoice choice = PortOf(settings);
  const absl::Status status = FindPort(choice).status();
  if (choice.device.empty() || status.ok()) return;
  spdlog::warn("measure_device {}: {}; over TCP until that is mended", settings.measure_device,
               std::string(status.message()));
}

void WarnIfOthersAreHidden() {
  const absl::Status status = FindProcess(kProcessOfRoot).status();
  if (status.ok()) return;
  spdlog::warn(
      "jobs of other users cannot be held, as their processes cannot be looked at ({}); mount "
      "/proc "
      "with gid= of a group of this agent's, or without hidepid",
      std::string(status.message()));
}

}  // namespace

absl::StatusOr<std::optional<PingPongListener>> NodeAgent::ListenForPeers(
    const Settings& settings) {
  std::optional<PingPongListener> listener;
  if (settings.measure_listen.empty()) return listener;
  absl::StatusOr<PingPongListener> opened = PingPongListener::Listen(settings.measure_listen);
  if (!opened.ok()) {
    return absl::Status(opened.status().code(),
                        absl::StrCat("measure_listen: ", opened.status().message()));
  }
  listener.emplace(*std::move(opened));
  return listener;
}

// Before anything is put where another agent may have its own: two that start at once would each
// take the other's socket, not yet listening, for a leftover.
absl::Status NodeAgent::KeepOthersOut(const Settings& settings) {
  if (absl::Status status = LocalServer::Check(settings.socket); !status.ok()) return status;
  absl::StatusOr<OwnedFd> lock = TakeStateLock(settings.state_dir);
  if (!lock.ok()) return lock.status();
  state_lock_ = *std::move(lock);
  return absl::OkStatus();
}

// A file that cannot be read now is not replaced by one without its jobs: the agent does not start.
absl::Status NodeAgent::KeepJobs(const Settings& settings) {
  const HoldFile file(absl::StrCat(settings.state_dir, "/", kHoldFile));
  absl::StatusOr<std::vector<HeldJob>> jobs = file.Load();
  if (absl::IsDataLoss(jobs.status())) {
    spdlog::error("{}", std::string(jobs.status().message()));
    jobs = std::vector<HeldJob>();
  }
  if (!jobs.ok()) return jobs.status();
  keeper_ = std::make_unique<JobKeeper>(loop_, link_.get(), file, *jobs);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<NodeAgent>> NodeAgent::Start(const Settings& settings,
                                                            const NodeFacts& facts,
                                                            const std::string& version,
                                                            EventLoop* loop) {
  std::unique_ptr<NodeAgent> agent(new NodeAgent(loop));
  const auto credentials = CredentialsFor(settings.server, settings.tls);
  if (!credentials.ok()) return credentials.status();
  auto peers = agent->ListenForPeers(settings);
  if (!peers.ok()) return peers.status();
  const v1::AgentHello hello = HelloOf(settings, facts, version, *peers);
  agent->link_ = std::make_unique<DaemonLink>(loop, settings.server, *credentials);
  NodeAgent* const raw = agent.get();
  agent->limits_.emplace(WithinDescriptors(settings.bounds, MostDescriptors()));
  agent->parts_ = {loop, agent->link_.get(), nullptr, [raw, hello] { return raw->Describe(hello); },
                   &*agent->limits_};
  if (absl::Status status = agent->KeepOthersOut(settings); !status.ok()) return status;
  auto server = LocalServer::Listen(settings.socket, settings.socket_mode, &agent->parts_);
  if (!server.ok()) return server.status();
  agent->server_ = *std::move(server);
  if (absl::Status status = agent->KeepJobs(settings); !status.ok()) return status;
  agent->parts_.keeper = agent->keeper_.get();
  const auto on_result = [raw, loop](const v1::PingPongResult& result) {
    loop->Post([raw, result] {
      if (raw->agent_stream_ != nullptr) raw->agent_stream_->Send(result);
    });
  };
  agent->measurer_ = std::make_unique<Measurer>(*std::move(peers), PortOf(settings), on_result);
  agent->agent_stream_ =
      std::make_unique<AgentStream>(agent->link_.get(), hello, agent->measurer_.get());
  WarnIfOthersAreHidden();
  WarnIfNoDevice(settings);
  agent->agent_stream_->Begin();
  spdlog::info(
      "{} with {} cores and {} at {}; daemon at {}", hello.host(), hello.cores(),
      hello.port_guids().empty() ? "no InfiniBand port" : absl::StrJoin(hello.port_guids(), ", "),
      settings.socket, settings.server);
  return agent;
}

NodeAgent::~NodeAgent() { Stop(); }

bool NodeAgent::Stop() {
  server_.reset();
  agent_stream_.reset();
  measurer_.reset();
  keeper_.reset();
  if (link_ == nullptr || link_->IsIdle()) return true;
  loop_->RunUntil([this] { return link_->IsIdle(); }, kPatience);
  return link_->IsIdle();
}

std::string NodeAgent::Describe() const {
  return absl::StrCat(link_->IsConnected() ? "connected to " : "not connected to ", link_->server(),
                      agent_stream_->is_welcome() ? ", announced" : "", "; ",
                      server_->connections(), " local connections, ", keeper_->size(),
                      " held jobs");
}

v1::GetAgentResponse NodeAgent::Describe(const v1::AgentHello& hello) {
  v1::GetAgentResponse response;
  response.set_host(hello.host());
  response.set_version(hello.version());
  response.set_server(link_->server());
  response.set_connected(link_->IsConnected());
  response.set_cores(hello.cores());
  return response;
}

}  // namespace coppice
