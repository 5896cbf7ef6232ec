// The thread that ends expired leases and writes the activity: only a timer, what it does is handed
// in. The other thread of the manager reads the subnet: sweep/sweeper.h.
#ifndef COPPICE_DAEMON_MANAGER_BACKGROUND_H_
#define COPPICE_DAEMON_MANAGER_BACKGROUND_H_

#include <condition_variable>
#include <functional>
#include <mutex>

#include "absl/time/time.h"
#include "daemon/manager/loop_thread.h"

namespace coppice {

// Thread-safe.
class Background {
 public:
  struct Duties {
    std::function<absl::Duration()> expire;  // returns the time until it is due again
    std::function<void()> flush;
  };

  explicit Background(Duties duties);
  ~Background() { Stop(); }

  // Both idempotent. Stop joins.
  void Start() {
    thread_.Start([this] { LeaseLoop(); });
  }
  void Stop() { thread_.Stop(); }
  // `expire` may be due earlier than it said. Never blocks for long.
  void Wake();

 private:
  void LeaseLoop();
  // Until `wait` has passed, Wake, or Stop; true unless Stop.
  bool Sleep(absl::Duration wait);

  const Duties duties_;

  std::mutex mu_;
  std::condition_variable changed_;
  // Guarded by mu_.
  bool woken_ = false;

  LoopThread thread_{mu_, changed_};
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_BACKGROUND_H_
