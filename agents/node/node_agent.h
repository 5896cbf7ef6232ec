// The agent's parts put together: one loop, one connection to the daemon and the agent's standing
// call on it, one socket for the node's processes.
#ifndef COPPICE_AGENTS_NODE_NODE_AGENT_H_
#define COPPICE_AGENTS_NODE_NODE_AGENT_H_

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "absl/status/statusor.h"
#include "agents/node/daemon_link.h"
#include "agents/node/event_loop.h"
#include "agents/node/job_keeper.h"
#include "agents/node/local_server.h"
#include "agents/node/measurer.h"
#include "agents/node/node_facts.h"
#include "agents/node/settings.h"
#include "client/library/retry_pause.h"
#include "coppice/v1/agents.pb.h"

namespace coppice {

// The node's standing call to the daemon, Agents.Connect: says what the node is, hands on the tasks
// that come, and sends their results. Made again for ever, after a pause that grows.
//
// A daemon that knows no agents (UNIMPLEMENTED), or this one not (NOT_FOUND), takes nothing from
// the node's processes: their calls go through the same connection whatever becomes of this one.
// Belongs to the loop.
class AgentStream final {
 public:
  AgentStream(DaemonLink* link, v1::AgentHello hello, Measurer* measurer);
  ~AgentStream();

  void Begin();
  // Dropped if the stream that the task came from has ended: the daemon knows it no more.
  void Send(const v1::PingPongResult& result);
  // The daemon has taken the hello, and the stream stands.
  bool is_welcome() const { return is_welcome_; }

 private:
  void OnTask(const std::string& message);
  void OnEnd(const grpc::Status& status);

  DaemonLink* const link_;
  v1::AgentHello hello_;  // with the database of the last daemon that took it
  Measurer* const measurer_;
  RetryPause pause_;
  std::shared_ptr<ForwardedCall> stream_;
  std::string last_error_;              // said in the log once
  std::unordered_set<uint64_t> tasks_;  // of this stream, not answered
  uint64_t streams_ = 0;                // begun so far: what comes by a later one is newer
  bool is_welcome_ = false;
  // A call that does not wait says why there is no connection; the next one begins with it.
  bool waits_for_daemon_ = false;
  EventLoop::Timer timer_;
};

// Keeps a second agent off the folder of the first: they would write one file of held jobs in
// turns. The kernel lets go of it however the process ends; the file stays.
//
// FAILED_PRECONDITION: another agent has the folder. UNAVAILABLE: there is no such folder, or
// nothing can be written there.
absl::StatusOr<OwnedFd> TakeStateLock(const std::string& folder);

// Belongs to the loop's thread.
class NodeAgent final {
 public:
  // Checked settings; the loop outlives the agent. Listens when it returns. Errors as the parts'.
  static absl::StatusOr<std::unique_ptr<NodeAgent>> Start(const Settings& settings,
                                                          const NodeFacts& facts,
                                                          const std::string& version,
                                                          EventLoop* loop);
  ~NodeAgent();  // stops

  // Breaks off everything, and runs the loop until nothing is left of it. False: something is left
  // that will still use the loop. No other calls afterwards.
  bool Stop();

  // In one line, for people.
  std::string Describe() const;

 private:
  explicit NodeAgent(EventLoop* loop) : loop_(loop) {}

  absl::StatusOr<std::optional<PingPongListener>> ListenForPeers(const Settings& settings);
  absl::Status KeepOthersOut(const Settings& settings);
  absl::Status KeepJobs(const Settings& settings);
  v1::GetAgentResponse Describe(const v1::AgentHello& hello);

  EventLoop* const loop_;
  OwnedFd state_lock_;  // outlives what writes there
  std::unique_ptr<DaemonLink> link_;
  std::unique_ptr<JobKeeper> keeper_;
  std::unique_ptr<AgentStream> agent_stream_;
  std::unique_ptr<Measurer> measurer_;
  std::optional<LocalLimits> limits_;
  LocalParts parts_{};
  std::unique_ptr<LocalServer> server_;
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_NODE_AGENT_H_
