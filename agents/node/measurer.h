// Carries out the daemon's measurements one after the other, on a thread of its own: a ping-pong
// wants a processor for itself and waits without a loop.
#ifndef COPPICE_AGENTS_NODE_MEASURER_H_
#define COPPICE_AGENTS_NODE_MEASURER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "agents/node/ping_pong.h"
#include "coppice/v1/agents.pb.h"

namespace coppice {

class Measurer final {
 public:
  using OnResult = std::function<void(const v1::PingPongResult&)>;

  // Without a listener it can take the active side only. `port`: the one for tasks that want
  // verbs. `on_result` is called on the thread, or in Take.
  Measurer(std::optional<PingPongListener> listener, PortChoice port, OnResult on_result);
  // Breaks off what is under way.
  ~Measurer();

  // Begun as soon as what is under way has been broken off: a host is in one pair at a time, so
  // the daemon has given up any older task, and its peer may be gone. `stream`: of the daemon's
  // that it came by; ids ascend within one, streams ascend. A task older than the newest is dropped
  // with an error. Its time runs from now. The active side is answered with figures or an error,
  // the passive side only when it fails: nobody else could tell why. Thread-safe.
  void Take(const v1::PingPongTask& task, uint64_t stream = 0);
  // Breaks that task off, which then ends as one that fails, unless it is over or a newer one has
  // come. Thread-safe.
  void Stop(uint64_t id, uint64_t stream = 0);

 private:
  struct Waiting {
    v1::PingPongTask task;
    std::chrono::steady_clock::time_point deadline;
    bool is_taken_back = false;
  };

  void RunUntilStopped();
  v1::PingPongResult Measure(const Waiting& waiting);

  std::optional<PingPongListener> listener_;
  const PortChoice port_;
  const OnResult on_result_;
  std::atomic<bool> is_broken_off_{false};  // what is under way is
  std::mutex mu_;
  std::condition_variable changed_;
  // Guarded by mu_.
  bool is_stopped_ = false;
  std::pair<uint64_t, uint64_t> newest_{0, 0};  // stream and id
  std::optional<Waiting> waiting_;
  std::thread thread_;
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_MEASURER_H_
