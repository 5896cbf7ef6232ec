// The manager's options, of which some change while it runs: each look is at those in force, whole
// and immutable. Copies look at the same.
#ifndef COPPICE_DAEMON_MANAGER_LIVE_OPTIONS_H_
#define COPPICE_DAEMON_MANAGER_LIVE_OPTIONS_H_

#include <memory>
#include <mutex>
#include <utility>

#include "daemon/manager/options.h"

namespace coppice {

// Thread-safe. A lock of its own, under which nothing else is taken.
class LiveOptions {
 public:
  explicit LiveOptions(ManagerOptions options) : state_(std::make_shared<State>()) {
    Set(std::move(options));
  }

  std::shared_ptr<const ManagerOptions> operator->() const { return Get(); }
  std::shared_ptr<const ManagerOptions> Get() const {
    std::lock_guard lock(state_->mu);
    return state_->options;
  }
  void Set(ManagerOptions options) {
    auto next = std::make_shared<const ManagerOptions>(std::move(options));
    std::lock_guard lock(state_->mu);
    state_->options = std::move(next);
  }

 private:
  struct State {
    std::mutex mu;
    std::shared_ptr<const ManagerOptions> options;  // guarded by mu; never null
  };
  std::shared_ptr<State> state_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_LIVE_OPTIONS_H_
