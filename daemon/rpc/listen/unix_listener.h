// Unix sockets that tell who connects: accepts on sockets of its own, asks the kernel for the
// peer's user (SO_PEERCRED: as it was when it connected, not to be forged), and hands the
// connection on. gRPC's own listener does not tell. Knows nothing of gRPC.
#ifndef COPPICE_DAEMON_RPC_LISTEN_UNIX_LISTENER_H_
#define COPPICE_DAEMON_RPC_LISTEN_UNIX_LISTENER_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/caller_bounds.h"
#include "daemon/base/clock.h"
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

// The connections that were accepted at Unix sockets: so many of each user and of all. Who has too
// many loses the one that has been idle for longest; one that has never called goes in seconds.
// Knows nothing of gRPC, which closes the descriptors when it likes and tells nobody.

// Thread-safe.
class UnixConnections final {
 public:
  UnixConnections(const ConnectionBounds& bounds, const Clock* clock)
      : bounds_(bounds), clock_(clock) {}

  void SetBounds(const ConnectionBounds& bounds);

  // Whether `uid` may have this connection, too. Where it has too many, or all have, the idlest is
  // shut for it, unless that was busy or new a moment ago. From here on the descriptor may be
  // closed by others at any time. O(descriptors) when there are too many.
  bool Admit(int fd, uid_t uid);
  // Whether an admitted one still has its place: it may have been shut before anybody owned it.
  bool IsAdmitted(int fd) const;
  void CallBegins(int fd);
  void CallEnds(int fd);
  // Shuts those that have been silent for too long, and forgets those that are closed. To be called
  // about once a second.
  void Tick();

  size_t size() const;

 private:
  struct Connection {
    bool is_open = false;
    uid_t uid = 0;
    ino_t socket = 0;  // tells it from a later one of the same descriptor
    bool has_called = false;
    uint32_t calls = 0;
    absl::Duration idle_since;
  };

  // Forgets those that are closed.
  void Look();
  bool IsOpen(int fd) const;
  // Makes room among those of `uid`, or of all. False: none has been idle for a while.
  bool ShutIdlest(const uid_t* uid);
  void Forget(Connection& connection);
  void Shut(int fd);

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  ConnectionBounds bounds_;
  const Clock* const clock_;
  std::vector<Connection> connections_;  // [descriptor]
  absl::flat_hash_map<uid_t, uint32_t> of_user_;
  size_t open_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_LISTEN_UNIX_LISTENER_H_
