// The agent's parts put together: one loop, one connection to the daemon, one socket for the node's
// processes.
#ifndef COPPICE_AGENTS_NODE_NODE_AGENT_H_
#define COPPICE_AGENTS_NODE_NODE_AGENT_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "agents/node/agent_stream.h"
#include "agents/node/daemon_link.h"
#include "agents/node/event_loop.h"
#include "agents/node/job_keeper.h"
#include "agents/node/local_server.h"
#include "agents/node/measurer.h"
#include "agents/node/node_facts.h"
#include "agents/node/settings.h"

namespace coppice {

// Keeps a second agent off the folder of the first: they would write one file of held jobs in
// turns. The kernel lets go of it however the process ends; the file stays.

class StateLock final {
 public:
  // FAILED_PRECONDITION: another agent has the folder. UNAVAILABLE: there is no such folder, or
  // nothing can be written there.
  static absl::StatusOr<StateLock> Take(const std::string& folder);
  StateLock(StateLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~StateLock();

 private:
  explicit StateLock(int fd) : fd_(fd) {}
  int fd_;  // -1: moved from
};

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
  std::optional<StateLock> state_lock_;  // outlives what writes there
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
