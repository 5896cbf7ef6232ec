#include "daemon/manager/placement/placement_turns.h"

#include <chrono>

#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

// Between two questions whether to wait on: nobody tells us that a caller has gone.
constexpr std::chrono::milliseconds kAskAgain(20);

}  // namespace

absl::Status PlacementTurns::WaitUntil(std::unique_lock<std::mutex>& lock, const MayWait& may_wait,
                                       absl::FunctionRef<bool()> is_due) {
  absl::Status status;
  ++waiting_;
  while (status.ok() && !is_due()) {
    changed_.wait_for(lock, kAskAgain);
    lock.unlock();
    status = may_wait();
    lock.lock();
  }
  --waiting_;
  return status;
}

absl::StatusOr<PlacementTurns::Turn> PlacementTurns::Begin(const MayWait& may_wait) {
  std::unique_lock lock(mu_);
  const uint64_t own = ++last_;
  asked_.push_back(own);
  const absl::Status status = WaitUntil(lock, may_wait, [&] { return asked_.front() == own; });
  if (status.ok()) return Turn(this);
  std::erase(asked_, own);
  changed_.notify_all();
  return status;
}

void PlacementTurns::End() {
  std::lock_guard lock(mu_);
  asked_.pop_front();
  changed_.notify_all();
}

absl::StatusOr<bool> PlacementTurns::Take(bool has_turn, const MayWait& may_wait,
                                          absl::FunctionRef<bool()> take) {
  std::unique_lock lock(mu_);
  if (!has_turn) {
    RETURN_IF_ERROR(WaitUntil(lock, may_wait, [&] { return asked_.empty(); }));
  }
  return take();
}

uint32_t PlacementTurns::waiting() const {
  std::lock_guard lock(mu_);
  return waiting_;
}

}  // namespace coppice
