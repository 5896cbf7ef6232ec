// A gRPC server in the place of coppiced that notes who called what, and an agent before it. Holds
// what a real daemon cannot be made to do at the right moment: streams without end, answers that
// never come, leases of a fraction of a second.
#ifndef COPPICE_TESTS_UNIT_AGENTS_NODE_STANDING_DAEMON_H_
#define COPPICE_TESTS_UNIT_AGENTS_NODE_STANDING_DAEMON_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agents/node/node_agent.h"
#include "coppice/v1/agents.grpc.pb.h"
#include "coppice/v1/jobs.grpc.pb.h"
#include "coppice/v1/trees.grpc.pb.h"

namespace coppice {

class StandingDaemon final {
 public:
  StandingDaemon();
  ~StandingDaemon();

  const std::string& address() const { return address_; }
  void Stop();
  void Start();

  // Waits until it holds, looked at after each thing that happens; false: not within a minute.
  bool Await(const std::function<bool()>& condition);
  // The following are read under the lock: in Await's condition or in Locked.
  template <class Read>
  auto Locked(const Read& read) {
    const std::lock_guard<std::mutex> lock(mu_);
    return read();
  }

  std::map<std::string, int> renewals;       // of leases, by job
  std::map<std::string, std::string> ended;  // job: by whom
  std::string last_user;
  int watches = 0, watches_cancelled = 0;
  uint64_t watch_messages = 0;
  int hanging = 0, hanging_cancelled = 0;
  std::vector<v1::AgentHello> hellos;
  std::vector<v1::PingPongResult> results;
  std::vector<v1::PingPongTask> tasks;  // for the next agent that connects
  // What is answered.
  v1::JobState state = v1::JOB_STATE_ACTIVE;
  int lease_ms = 300;
  grpc::Status renewal_status, end_status, connect_status;

 private:
  class JobsService;
  class TreesService;
  class AgentsService;

  void Note(const std::function<void()>& what);
  static std::string UserOf(const grpc::ServerContext& context);

  std::string folder_, address_;
  std::mutex mu_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  std::unique_ptr<grpc::Service> jobs_, trees_, agents_;
  std::unique_ptr<grpc::Server> server_;
};

// A NodeAgent on a thread of its own.
class StandingAgent final {
 public:
  explicit StandingAgent(const std::string& server, const LocalBounds& bounds = {});
  ~StandingAgent();

  const std::string& socket() const { return settings_.socket; }
  const std::string& state_dir() const { return settings_.state_dir; }
  // Anew, with what it left in its folder.
  void Restart();
  // From the next start.
  void MeasureAt(const std::string& listen) { settings_.measure_listen = listen; }

 private:
  void Start();
  void Stop();

  std::string folder_;
  Settings settings_;
  std::unique_ptr<EventLoop> loop_;
  std::thread thread_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_AGENTS_NODE_STANDING_DAEMON_H_
