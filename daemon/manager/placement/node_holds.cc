#include "daemon/manager/placement/node_holds.h"

#include <chrono>

#include "daemon/base/status_macros.h"

namespace coppice {

bool NodeHolds::MayTake(const Wish& wish, uint64_t since) const {
  for (const std::string& name : wish.nodes) {
    const auto node = nodes_.find(name);
    if (node != nodes_.end() && (node->second.is_held || node->second.taken > since)) return false;
  }
  for (const Guid guid : wish.leaves) {
    const auto found = leaves_.find(guid);
    if (found == leaves_.end()) continue;
    const Leaf& leaf = found->second;
    if (leaf.exclusive_users > 0 || leaf.used_alone > since) return false;
    if (wish.is_exclusive && (leaf.users > 0 || leaf.used > since)) return false;
  }
  return true;
}

void NodeHolds::Hold(const Wish& wish) {
  for (const std::string& name : wish.nodes) nodes_[name].is_held = true;
  for (const Guid guid : wish.leaves) {
    Leaf& leaf = leaves_[guid];
    ++leaf.users;
    if (wish.is_exclusive) ++leaf.exclusive_users;
  }
  count_ += wish.nodes.size();
}

void NodeHolds::Stamp(const Wish& wish) {
  for (const std::string& name : wish.nodes) nodes_[name].taken = generation_;
  for (const Guid guid : wish.leaves) {
    Leaf& leaf = leaves_[guid];
    leaf.used = generation_;
    if (wish.is_exclusive) leaf.used_alone = generation_;
  }
}

bool NodeHolds::TakeAll(const std::vector<const Wish*>& wishes, uint64_t since) {
  for (size_t i = 0; i < wishes.size(); ++i) {
    if (MayTake(*wishes[i], since)) {
      Hold(*wishes[i]);
      continue;
    }
    while (i-- > 0) Free(*wishes[i]);
    return false;
  }
  ++generation_;
  for (const Wish* const wish : wishes) Stamp(*wish);
  return true;
}

void NodeHolds::Restore(const Wish& wish) {
  Hold(wish);
  Stamp(wish);
}

void NodeHolds::Free(const Wish& wish) {
  for (const std::string& name : wish.nodes) nodes_[name].is_held = false;
  for (const Guid guid : wish.leaves) {
    Leaf& leaf = leaves_[guid];
    --leaf.users;
    if (wish.is_exclusive) --leaf.exclusive_users;
  }
  count_ -= wish.nodes.size();
}

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
