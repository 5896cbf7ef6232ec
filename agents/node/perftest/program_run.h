// One of perftest's programs on one side of a measurement, from its start to its end, and what it
// and the one on the other side tell each other (perftest.h has the picture).
#ifndef COPPICE_AGENTS_NODE_PERFTEST_PROGRAM_RUN_H_
#define COPPICE_AGENTS_NODE_PERFTEST_PROGRAM_RUN_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agents/node/measuring_socket.h"
#include "agents/node/owned_fd.h"
#include "agents/node/perftest/perftest_port.h"
#include "agents/node/perftest/subprocess.h"
#include "agents/node/ping_pong_words.h"

namespace coppice {

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
  ProgramRun(MeasuringSocket& socket, const PerftestProgram& program, const PerftestPort& port,
             bool is_client);

  // Starts the program and returns when it has ended well. FAILED_PRECONDITION: it failed, or the
  // peer says that its one did. Others are the socket's.
  absl::Status RunToEnd();
  // Afterwards: waits until the peer's program has ended, too. Errors as those.
  absl::Status AwaitPeer();
  // Whether the peer has refused to go on.
  bool is_refused() const { return is_refused_; }

  const std::string& output() const { return process_->output(); }
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
  const PerftestPort& port_;
  const bool is_client_;
  std::optional<Subprocess> process_;
  OwnedFd listener_;           // where the client is to come
  uint16_t tcp_port_ = 0;      // of it, or of the server
  OwnedFd local_;              // the connection with the program
  bool is_connected_ = false;  // it is or was
  bool has_ended_ = false;     // the program
  std::string early_;          // for it, before it was connected
  bool is_refused_ = false, has_peer_ended_ = false;
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_PERFTEST_PROGRAM_RUN_H_
