// Threads that accept the connections of some listening sockets. Knows neither whose sockets they
// are nor what becomes of the connections.
#ifndef COPPICE_DAEMON_RPC_LISTEN_ACCEPT_LOOP_H_
#define COPPICE_DAEMON_RPC_LISTEN_ACCEPT_LOOP_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace coppice {

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_LISTEN_ACCEPT_LOOP_H_
