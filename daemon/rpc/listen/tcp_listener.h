// TCP sockets, of which each network of clients, and all, have so many connections: who opens more
// is cut off at once, and never has the descriptors that Unix sockets and files need. gRPC's own
// listener takes all that come. Knows neither gRPC nor TLS: both come with the connection's first
// bytes.
#ifndef COPPICE_DAEMON_RPC_LISTEN_TCP_LISTENER_H_
#define COPPICE_DAEMON_RPC_LISTEN_TCP_LISTENER_H_

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

// The connections that are open. Thread-safe.
class TcpConnections final {
 public:
  // `most_descriptors`: how many of the process's they may take, whatever the bounds say.
  TcpConnections(const ConnectionBounds& bounds, size_t most_descriptors, const Clock* clock)
      : bounds_(bounds), most_descriptors_(most_descriptors), clock_(clock) {}

  void SetBounds(const ConnectionBounds& bounds);

  // Whether a client of `network` may have this connection, too. Others may close the descriptor at
  // any time: when there are too many, those that are closed are forgotten, some times a second.
  bool Admit(int fd, const std::string& network);
  size_t size() const;

 private:
  struct Connection {
    std::string network;
    ino_t socket = 0;  // tells it from a later one of the same descriptor
  };
  using Connections = absl::flat_hash_map<int, Connection>;

  bool HasRoom(const std::string& network) const;
  // Forgets those that are closed, unless it did a moment ago.
  void Look();
  void Forget(Connections::iterator found);

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  ConnectionBounds bounds_;
  const size_t most_descriptors_;
  const Clock* const clock_;
  absl::Duration looked_ = -absl::InfiniteDuration();
  Connections connections_;  // by descriptor
  absl::flat_hash_map<std::string, uint32_t> of_network_;
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
  void LogRefused(const std::string& network);

  std::vector<Socket> sockets_;
  std::vector<uint16_t> ports_;
  TcpConnections connections_;
  std::unique_ptr<AcceptLoop> loop_;
  // Of the loop's thread.
  absl::Time next_word_ = absl::InfinitePast();
  uint64_t untold_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_LISTEN_TCP_LISTENER_H_
