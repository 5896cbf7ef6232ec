// The agent's Unix socket for local processes: who may connect, and what a connection asks.
#ifndef COPPICE_AGENTS_NODE_LOCAL_SERVER_H_
#define COPPICE_AGENTS_NODE_LOCAL_SERVER_H_

#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/node/daemon_link.h"
#include "agents/node/event_loop.h"
#include "agents/node/job_keeper.h"
#include "agents/node/local_limits.h"
#include "client/library/messages.h"
#include "coppice/v1/local.pb.h"

namespace coppice {

// One process of the node that is connected to the agent: its calls, and what waits to be written
// to it. proto/coppice/v1/local.proto says what is spoken.
//
//   socket --> frames --> calls at the daemon --> replies --> output --> socket
//     ^                      ^                                  |
//     |  not read while      |  the next answer of a stream is  |
//     +--- output is full ---+--- read once output is low ------+
//
// So a process that does not read costs a bounded amount of memory, whatever it asked for: at most
// kMaxOutput of output, and with its user's other processes what LocalLimits allows.

// What connections share; outlives them.
struct LocalParts {
  EventLoop* loop;
  DaemonLink* link;
  JobKeeper* keeper;
  std::function<v1::GetAgentResponse()> describe;
  LocalLimits* limits;
};

// Belongs to the loop.
class LocalConnection final {
 public:
  // Takes over `fd`, which does not block and which the limits count. `on_closed` is called once,
  // when the connection has ended by itself; it may be destroyed from then on, but not in the call.
  LocalConnection(OwnedFd fd, LocalCaller caller, const LocalParts* parts,
                  std::function<void()> on_closed);
  // Ends its calls at the daemon.
  ~LocalConnection();
  LocalConnection(const LocalConnection&) = delete;
  LocalConnection& operator=(const LocalConnection&) = delete;

 private:
  struct OpenCall {
    std::shared_ptr<ForwardedCall> forwarded;  // null: one of the agent's own
    size_t bytes = 0;                          // of the request
    bool is_waiting = false;                   // for output to get low
  };

  void OnReady(uint32_t events);
  void Read();
  void TakeFrames();
  // The process broke the protocol: tells it and closes.
  void Refuse(absl::string_view why);
  void RefuseWith(const grpc::Status& status);
  // Tells the limits what it holds now; refuses the process that holds too much.
  void Account();
  void Take(const v1::LocalRequest& request);
  OpenCall& Open(const v1::LocalRequest& request);
  // False: it was over before.
  bool Over(uint64_t call);
  void Forward(const v1::LocalRequest& request);
  void Hold(const v1::LocalRequest& request);
  void Drop(const OpenCall& call);  // its place in calls_ goes, too
  void OnMessage(uint64_t call, const std::string& message);

  void Reply(uint64_t call, const std::string& message);
  void End(uint64_t call, const grpc::Status& status);
  void Send(const v1::LocalReply& reply);
  void Write();
  void ResumeCalls();
  // What the loop should wait for, by how much is to be written.
  void UpdateInterest();
  void Close();
  size_t Unwritten() const { return output_.size() - written_; }

  const OwnedFd fd_;
  const LocalCaller caller_;
  const LocalParts* const parts_;
  const std::function<void()> on_closed_;
  // Expires with the connection: what is answered later looks at it first.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::optional<FrameReader> frames_{std::in_place};
  std::unordered_map<uint64_t, OpenCall> calls_;
  size_t request_bytes_ = 0;  // of calls_
  size_t told_bytes_ = 0;     // to the limits
  std::string output_;
  size_t written_ = 0;  // bytes of output_
  uint32_t interest_;
  bool is_refusing_ = false;  // is told why, or was
  bool is_refused_ = false;   // closes once output is written
  bool is_closed_ = false;
};

// Belongs to the loop.
class LocalServer final {
 public:
  // Whether one could listen at `path`; changes nothing there. Errors as Listen.
  static absl::Status Check(const std::string& path);
  // Listens at `path`, whose file gets `mode`; a file that an agent left there is replaced. So
  // would be that of an agent that is about to listen: who calls holds what keeps others out
  // (TakeStateLock). FAILED_PRECONDITION: another agent listens there. INVALID_ARGUMENT: no path of
  // a socket. UNAVAILABLE: it cannot be made. `parts` outlives the server.
  static absl::StatusOr<std::unique_ptr<LocalServer>> Listen(const std::string& path, mode_t mode,
                                                             const LocalParts* parts);
  ~LocalServer();

  size_t connections() const { return connections_.size(); }

 private:
  LocalServer(OwnedFd fd, std::string path, const LocalParts* parts);

  void Accept();
  void Take(OwnedFd fd);
  void Refuse(const OwnedFd& fd, const LocalCaller& caller);
  void Say(const std::string& trouble);

  const OwnedFd fd_;
  const std::string path_;
  const LocalParts* const parts_;
  std::optional<std::chrono::steady_clock::time_point> said_;
  uint64_t last_connection_ = 0;
  std::map<uint64_t, std::unique_ptr<LocalConnection>> connections_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_LOCAL_SERVER_H_
