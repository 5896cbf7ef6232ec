// The node's standing call to the daemon, Agents.Connect: says what the node is, hands on the tasks
// that come, and sends their results. Made again for ever, after a pause that grows.
//
// A daemon that knows no agents (UNIMPLEMENTED), or this one not (NOT_FOUND), takes nothing from
// the node's processes: their calls go through the same connection whatever becomes of this one.
#ifndef COPPICE_AGENTS_NODE_AGENT_STREAM_H_
#define COPPICE_AGENTS_NODE_AGENT_STREAM_H_

#include <functional>
#include <memory>
#include <string>
#include <unordered_set>

#include "agents/node/daemon_link.h"
#include "agents/node/event_loop.h"
#include "client/library/retry_pause.h"
#include "coppice/v1/agents.grpc.pb.h"

namespace coppice {

// Belongs to the loop.
class AgentStream final {
 public:
  using OnPingPong = std::function<void(const v1::PingPongTask&)>;
  using OnStop = std::function<void(uint64_t id)>;

  // `on_stop`: nobody waits any more for the result of that task, which came by the newest stream.
  AgentStream(DaemonLink* link, v1::AgentHello hello, OnPingPong on_ping_pong, OnStop on_stop);
  ~AgentStream();

  void Begin();
  // Dropped if the stream that the task came from has ended: the daemon knows it no more.
  void Send(const v1::PingPongResult& result);
  // Begun so far: what comes by a later one is newer.
  uint64_t streams() const { return streams_; }
  // The daemon has taken the hello, and the stream stands.
  bool is_welcome() const { return is_welcome_; }

 private:
  class Stream;

  void OnTask(const v1::AgentTask& task);
  void OnEnd(const grpc::Status& status);

  DaemonLink* const link_;
  v1::AgentHello hello_;  // with the database of the last daemon that took it
  const OnPingPong on_ping_pong_;
  const OnStop on_stop_;
  const std::unique_ptr<v1::Agents::StubInterface> stub_;
  RetryPause pause_;
  std::shared_ptr<Stream> stream_;
  std::string last_error_;              // said in the log once
  std::unordered_set<uint64_t> tasks_;  // of this stream, not answered
  uint64_t streams_ = 0;
  bool is_welcome_ = false;
  // A call that does not wait says why there is no connection; the next one begins with it.
  bool waits_for_daemon_ = false;
  bool is_timed_ = false;
  EventLoop::Timer timer_;
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_AGENT_STREAM_H_
