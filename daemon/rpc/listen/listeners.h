// Sockets that the daemon listens at, and the threads that accept their connections. Unix sockets
// tell who connects (SO_PEERCRED: as it was when it connected, not to be forged); of TCP sockets
// each network of clients, and all, have so many connections, and who opens more is cut off at
// once. gRPC's own listeners do neither. Know nothing of gRPC and TLS.
#ifndef COPPICE_DAEMON_RPC_LISTEN_LISTENERS_H_
#define COPPICE_DAEMON_RPC_LISTEN_LISTENERS_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/access_options.h"
#include "daemon/base/caller_bounds.h"
#include "daemon/base/log.h"
#include "daemon/rpc/listen/connections.h"

namespace coppice {

// Threads that accept the connections of some listening sockets.
class AcceptLoop final {
 public:
  // Takes over `fd`, a connected socket that does not block, from the socket of that index. Called
  // on the loop's threads, on all at once.
  using OnConnection = std::function<void(size_t listening, int fd)>;

  // `what` begins what is logged: "unix sockets". UNAVAILABLE: no descriptor is left.
  static absl::StatusOr<std::unique_ptr<AcceptLoop>> Create(std::string what);
  ~AcceptLoop();
  AcceptLoop(const AcceptLoop&) = delete;
  AcceptLoop& operator=(const AcceptLoop&) = delete;

  // `listening`: sockets that do not block, and stay open until Stop. `threads`: at least 1.
  void Start(const std::vector<int>& listening, int threads, OnConnection on_connection);
  // Afterwards nothing is accepted any more and `on_connection` is not called. Idempotent.
  void Stop();

 private:
  AcceptLoop(std::string what, int wake) : what_(std::move(what)), wake_(wake) {}
  void Run(const std::vector<int>& listening);
  // False: no descriptor is left, or the like: what waits must wait on.
  bool AcceptAll(size_t index, int listening);

  const std::string what_;
  const int wake_;                      // eventfd: set by Stop, for all threads
  std::atomic<bool> is_short_ = false;  // an accept failed, and none has gone well since; said once
  OnConnection on_connection_;
  std::vector<std::thread> threads_;
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
                                                            const AccessOptions& access);
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
  absl::Status Add(const std::string& path, const AccessOptions& access);

  std::vector<Socket> sockets_;
  std::unique_ptr<AcceptLoop> loop_;
};

class TcpListener final {
 public:
  // Takes over `fd`, which was accepted at the address of that index. On the listener's thread.
  using OnConnection =
      std::function<void(size_t address, int listening, int fd, const std::string& network)>;

  // Listens at "HOST:PORT" from here on: connections wait until Start. UNAVAILABLE, with the
  // address: it cannot be bound.
  static absl::StatusOr<std::unique_ptr<TcpListener>> Open(
      const std::vector<std::string>& addresses, const ConnectionBounds& bounds);
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  // [address] The port, which was chosen if 0 was asked for.
  const std::vector<uint16_t>& ports() const { return ports_; }
  void SetBounds(const ConnectionBounds& bounds) { connections_.SetBounds(bounds); }

  void Start(OnConnection on_connection);
  // Afterwards nothing is accepted any more and `on_connection` is not called. Idempotent.
  void Stop();

 private:
  struct Socket {
    int fd = -1;
    size_t address = 0;
  };

  explicit TcpListener(const ConnectionBounds& bounds);
  absl::Status Add(const std::string& address);

  std::vector<Socket> sockets_;
  std::vector<uint16_t> ports_;
  Connections connections_;
  std::unique_ptr<AcceptLoop> loop_;
  RareWarning refused_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_LISTEN_LISTENERS_H_
