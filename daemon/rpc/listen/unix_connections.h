// The connections that were accepted at Unix sockets: so many of each user and of all. Who has too
// many loses the one that has been idle for longest; one that has never called goes in seconds.
// Knows nothing of gRPC, which closes the descriptors when it likes and tells nobody.
#ifndef COPPICE_DAEMON_RPC_LISTEN_UNIX_CONNECTIONS_H_
#define COPPICE_DAEMON_RPC_LISTEN_UNIX_CONNECTIONS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "daemon/base/caller_bounds.h"
#include "daemon/base/clock.h"

namespace coppice {

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

#endif  // COPPICE_DAEMON_RPC_LISTEN_UNIX_CONNECTIONS_H_
