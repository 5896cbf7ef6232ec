// Unix sockets that tell who connects: accepts on sockets of its own, asks the kernel for the
// peer's user (SO_PEERCRED: as it was when it connected, not to be forged), and hands the
// connection on. gRPC's own listener does not tell. Knows nothing of gRPC.
#ifndef COPPICE_DAEMON_RPC_LISTEN_UNIX_LISTENER_H_
#define COPPICE_DAEMON_RPC_LISTEN_UNIX_LISTENER_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/rpc/listen/accept_loop.h"

namespace coppice {

// Who may open the sockets' files.
struct SocketAccess {
  mode_t mode = 0660;
  std::string group = {};        // of the files; empty: that of this process
  bool needs_the_group = false;  // else, where the files cannot be its: their owner's alone
};

class UnixListener final {
 public:
  // Takes over `fd`, a connected socket that does not block. Called on the listener's threads.
  using OnConnection = std::function<void(int fd, uid_t uid)>;

  // Listens from here on: connections wait until Start. Before the sockets' files have their group
  // and mode nobody can open them. The paths have been made way for (PrepareListenAddress).
  // UNAVAILABLE, with the path: it cannot be bound. FAILED_PRECONDITION: it cannot be the group's,
  // which is needed; where it is not, a warning says whose the file is instead.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Open(const std::vector<std::string>& paths,
                                                            const SocketAccess& access);
  // Stops, and removes the files that are still its own.
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  void Start(OnConnection on_connection);
  // Afterwards nothing is accepted any more and `on_connection` is not called. Idempotent.
  void Stop();

 private:
  struct Socket {
    std::string path;
    int fd = -1;
    dev_t device = 0;
    ino_t file = 0;
  };

  UnixListener() = default;
  absl::Status Add(const std::string& path, const SocketAccess& access);

  std::vector<Socket> sockets_;
  std::unique_ptr<AcceptLoop> loop_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_LISTEN_UNIX_LISTENER_H_
