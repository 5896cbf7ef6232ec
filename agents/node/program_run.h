// One of perftest's programs on one side of a measurement, from its start to its end, and what it
// and the one on the other side tell each other (perftest.h has the picture).
#ifndef COPPICE_AGENTS_NODE_PROGRAM_RUN_H_
#define COPPICE_AGENTS_NODE_PROGRAM_RUN_H_

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/node/measuring_socket.h"
#include "agents/node/node_facts.h"

namespace coppice {

// A program that the agent runs and listens to: started without a shell, as the agent's own user,
// and killed with its holder. Belongs to one thread.
class Subprocess final {
 public:
  // Of its output and of its errors, each.
  static constexpr size_t kMaxOutput = size_t{64} << 10;

  // `arguments`: the program first, which is looked up in PATH. Its input is empty. `cpu_limit`: of
  // its processor time, after which the kernel ends it, should this process not be there to do so.
  // NOT_FOUND: there is no such program. UNAVAILABLE: it cannot be started, and why. Once.
  absl::Status Start(const std::vector<std::string>& arguments, std::chrono::seconds cpu_limit);
  Subprocess() = default;
  Subprocess(const Subprocess&) = delete;
  ~Subprocess();  // kills it and waits for that

  // For poll(2): readable when it has said something; -1: it will say nothing more. Listen then.
  int output_fd() const { return output_.fd.get(); }
  int errors_fd() const { return errors_.fd.get(); }
  // RESOURCE_EXHAUSTED: it says too much.
  absl::Status Listen();
  // For poll(2): readable when it has ended.
  int end_fd() const { return end_fd_.get(); }
  // Once it has ended: takes the rest of what it said. FAILED_PRECONDITION: "ended with status 1",
  // "was ended by signal 9".
  absl::Status End();

  const std::string& output() const { return output_.text; }
  const std::string& errors() const { return errors_.text; }

 private:
  struct Stream {
    OwnedFd fd;
    std::string text{};
  };

  pid_t pid_ = 0;  // 0: it is over, or was not started
  OwnedFd end_fd_;
  Stream output_, errors_;
};

// Both sides have to name the same.
struct PerftestProgram {
  std::string name;
  uint32_t bytes = 0;  // of each message
  uint32_t iterations = 0;
  std::vector<std::string> options{};
};

// UNAVAILABLE: it said a word that has no place there.
absl::Status OutOfOrder();
// FAILED_PRECONDITION: in its words.
absl::Status RefusedByPeer(const PingPongWord& word);

// Belongs to one thread. Its program is killed with it.
class ProgramRun final {
 public:
  ProgramRun(MeasuringSocket& socket, const PerftestProgram& program, const InfinibandPort& port,
             bool is_client);

  // Starts the program and returns when it has ended well. FAILED_PRECONDITION: it failed, or the
  // peer says that its one did. Others are the socket's.
  absl::Status RunToEnd();
  // Afterwards: waits until the peer's program has ended, too. Errors as those.
  absl::Status AwaitPeer();
  // Whether the peer has refused to go on.
  bool is_refused() const { return is_refused_; }

  const std::string& output() const { return process_.output(); }
  // FAILED_PRECONDITION: "mlx5_0 port 1: ib_write_lat WHAT".
  absl::Status Failed(absl::string_view what) const;

 private:
  absl::Status Start();
  absl::Status Step(std::chrono::milliseconds wait);
  // The program's connection: a server's is made, a client's is taken.
  absl::Status Connect();
  absl::Status Accept();
  absl::Status Begin();
  // False: it has nothing to say now, or nothing any more.
  absl::StatusOr<bool> TakeFromProgram();
  absl::Status TakeFromPeer();
  absl::Status Deliver(absl::string_view bytes);
  absl::Status End();

  MeasuringSocket& socket_;
  const PerftestProgram& program_;
  const InfinibandPort& port_;
  const bool is_client_;
  Subprocess process_;
  OwnedFd listener_;           // where the client is to come
  OwnedFd reserved_;           // the port where the server is to listen, until it is reached
  uint16_t tcp_port_ = 0;      // of it, or of the server
  OwnedFd local_;              // the connection with the program
  bool is_connected_ = false;  // it is or was
  bool has_ended_ = false;     // the program
  std::string early_;          // for it, before it was connected
  bool is_refused_ = false, has_peer_ended_ = false;
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_PROGRAM_RUN_H_
