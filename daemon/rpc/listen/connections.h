// The connections that were accepted at sockets of one kind: so many of each client, and of all.
// gRPC, which owns them, closes the descriptors when it likes and tells nobody.
#ifndef COPPICE_DAEMON_RPC_LISTEN_CONNECTIONS_H_
#define COPPICE_DAEMON_RPC_LISTEN_CONNECTIONS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "daemon/base/caller_bounds.h"
#include "daemon/base/clock.h"

namespace coppice {

// Thread-safe.
class Connections final {
 public:
  struct Kind {
    uint32_t ConnectionBounds::*of_one;
    uint32_t ConnectionBounds::*of_all;
    // Calls are told: who has too many loses the one that has been idle for longest, and one that
    // has never called goes in seconds.
    bool knows_calls;
  };
  static constexpr Kind kUnix = {&ConnectionBounds::of_user, &ConnectionBounds::of_all, true};
  static constexpr Kind kTcp = {&ConnectionBounds::tcp_of_address, &ConnectionBounds::tcp_of_all,
                                false};

  // `most_descriptors`: how many of the process's they may take, whatever the bounds say.
  Connections(const Kind& kind, const ConnectionBounds& bounds, const Clock* clock,
              size_t most_descriptors = std::numeric_limits<size_t>::max())
      : kind_(kind), clock_(clock), most_descriptors_(most_descriptors), bounds_(bounds) {}

  void SetBounds(const ConnectionBounds& bounds);

  // Whether a client may have this connection, too: "uid 7", a network. Where there are too many,
  // those that are closed are forgotten, and the idlest is shut for it, unless that was busy or new
  // a moment ago. From here on the descriptor may be closed by others at any time. O(connections)
  // when there are too many.
  bool Admit(int fd, const std::string& who);
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
    std::string who;
    ino_t socket = 0;  // tells it from a later one of the same descriptor
    absl::Duration idle_since;
    uint32_t calls = 0;
    bool has_called = false;
  };
  using Open = absl::flat_hash_map<int, Connection>;  // by descriptor

  bool AllHaveRoom() const;
  bool HasRoom(const std::string& who) const;
  // Forgets those that are closed, unless it did a moment ago.
  void Look();
  // Makes room among those of `who`, or of all if that is null. False: none has been idle.
  bool ShutIdlest(const std::string* who);
  void Forget(Open::iterator found);
  void Shut(Open::iterator found);

  const Kind kind_;
  const Clock* const clock_;
  const size_t most_descriptors_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  ConnectionBounds bounds_;
  absl::Duration looked_ = -absl::InfiniteDuration();
  Open open_;
  absl::flat_hash_map<std::string, uint32_t> of_one_;
};

// A warning that somebody may cause as often as he likes: it is said every ten seconds at most,
// with how many were not. Thread-safe.
class RareWarning final {
 public:
  void Say(const std::string& what);

 private:
  std::mutex mutex_;
  // Guarded by mutex_.
  absl::Time next_ = absl::InfinitePast();
  uint64_t untold_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_LISTEN_CONNECTIONS_H_
