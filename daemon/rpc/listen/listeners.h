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
#include "daemon/base/caller_bounds.h"
#include "daemon/rpc/listen/connections.h"

namespace coppice {

// Addresses, checked before anything is bound: a socket file of a daemon that is alive must not be
// taken over.

// "unix:PATH" or "HOST:PORT" (port 0: any free one). INVALID_ARGUMENT names the address and says
// what is wrong: no port, a path that is empty, relative in "unix://", or longer than a socket's
// may be; or that it is TCP without `may_be_tcp`: without TLS that carries what users ask for, and
// who they say they are, for everybody to read and to change.
absl::Status CheckListenAddress(absl::string_view address, bool may_be_tcp = true);

// True for "unix:PATH".
bool IsUnixAddress(absl::string_view address);

// The path of a Unix address.
std::string SocketPath(absl::string_view address);

// Makes way for a Unix socket: removes the file that a dead daemon left. ALREADY_EXISTS: a live
// process accepts connections there; FAILED_PRECONDITION: the file is no socket, or its directory
// is missing or not writable. OK for other addresses.
absl::Status PrepareListenAddress(const std::string& address);

// Listening sockets, and threads that accept their connections.
class Listener {
 public:
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Afterwards nothing is accepted any more and nobody is handed a connection. Idempotent.
  void Stop();

 protected:
  // Takes over `fd`, a connected socket that does not block, from the socket of that index. Called
  // on all threads at once.
  using OnConnection = std::function<void(size_t listening, int fd)>;

  // `what` begins what is logged: "unix sockets".
  explicit Listener(std::string what) : what_(std::move(what)) {}
  ~Listener();  // Stop comes before

  // UNAVAILABLE: no descriptor is left.
  absl::Status Prepare();
  // Takes over `fd`, which listens and does not block.
  void Add(int fd) { sockets_.push_back(fd); }
  int socket(size_t index) const { return sockets_[index]; }
  void Run(int threads, OnConnection on_connection);

 private:
  void Accept();
  // False: no descriptor is left, or the like: what waits must wait on.
  bool AcceptAll(size_t index);

  const std::string what_;
  std::vector<int> sockets_;
  int wake_ = -1;                       // eventfd: set by Stop, for all threads
  std::atomic<bool> is_short_ = false;  // an accept failed, and none has gone well since; said once
  OnConnection on_connection_;
  std::vector<std::thread> threads_;
};

class UnixListener final : public Listener {
 public:
  // Takes over `fd`, a connected socket that does not block. Called on the listener's threads.
  using OnUser = std::function<void(int fd, uid_t uid)>;

  // Listens from here on: connections wait until Start. Before the sockets' files have their group
  // and mode nobody can open them. The paths have been made way for (PrepareListenAddress).
  // UNAVAILABLE, with the path: it cannot be bound. FAILED_PRECONDITION: it cannot be the group's,
  // which is needed; where it is not, a warning says whose the file is instead.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Open(const std::vector<std::string>& paths,
                                                            const AccessOptions& access);
  // Stops, and removes the files that are still its own.
  ~UnixListener();

  void Start(OnUser on_user);

 private:
  struct File {
    std::string path;
    dev_t device = 0;
    ino_t file = 0;
  };

  UnixListener() : Listener("unix sockets") {}
  absl::Status Bind(const std::string& path, const AccessOptions& access);

  std::vector<File> files_;
};

class TcpListener final : public Listener {
 public:
  // Takes over `fd`, which was accepted at the address of that index. On the listener's thread.
  using OnClient =
      std::function<void(size_t address, int listening, int fd, const std::string& network)>;

  // Listens at "HOST:PORT" from here on: connections wait until Start. UNAVAILABLE, with the
  // address: it cannot be bound.
  static absl::StatusOr<std::unique_ptr<TcpListener>> Open(
      const std::vector<std::string>& addresses, const ConnectionBounds& bounds);
  ~TcpListener() { Stop(); }

  // [address] The port, which was chosen if 0 was asked for.
  const std::vector<uint16_t>& ports() const { return ports_; }
  void SetBounds(const ConnectionBounds& bounds) { connections_.SetBounds(bounds); }

  void Start(OnClient on_client);

 private:
  explicit TcpListener(const ConnectionBounds& bounds);
  absl::Status Bind(const std::string& address);

  std::vector<size_t> addresses_;  // [socket]
  std::vector<uint16_t> ports_;
  Connections connections_;
  RareWarning refused_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_LISTEN_LISTENERS_H_
