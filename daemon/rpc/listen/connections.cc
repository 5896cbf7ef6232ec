#include "daemon/rpc/listen/connections.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/time/clock.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

// Who connects faster than that is refused: opening and shutting costs more than that.
constexpr absl::Duration kMinIdle = absl::Seconds(1);
// A look at 32,768 descriptors takes some 10 ms.
constexpr absl::Duration kLookPeriod = absl::Milliseconds(100);

ino_t SocketOf(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

}  // namespace

void Connections::SetBounds(const ConnectionBounds& bounds) {
  std::lock_guard lock(mutex_);
  bounds_ = bounds;
}

bool Connections::AllHaveRoom() const {
  return open_.size() < std::min<size_t>(bounds_.*kind_.of_all, most_descriptors_);
}

bool Connections::HasRoom(const std::string& who) const {
  const auto found = of_one_.find(who);
  return found == of_one_.end() || found->second < bounds_.*kind_.of_one;
}

bool Connections::Admit(int fd, const std::string& who) {
  std::lock_guard lock(mutex_);
  if (const auto before = open_.find(fd); before != open_.end()) Forget(before);
  if (!HasRoom(who) || !AllHaveRoom()) Look();
  if (!HasRoom(who) && !ShutIdlest(&who)) return false;
  if (!AllHaveRoom() && !ShutIdlest(nullptr)) return false;
  open_[fd] = {who, SocketOf(fd), clock_->Monotonic()};
  ++of_one_[who];
  return true;
}

bool Connections::IsAdmitted(int fd) const {
  std::lock_guard lock(mutex_);
  const auto found = open_.find(fd);
  return found != open_.end() && SocketOf(fd) == found->second.socket;
}

void Connections::CallBegins(int fd) {
  std::lock_guard lock(mutex_);
  const auto found = open_.find(fd);
  if (found == open_.end()) return;
  found->second.has_called = true;
  ++found->second.calls;
}

void Connections::CallEnds(int fd) {
  std::lock_guard lock(mutex_);
  const auto found = open_.find(fd);
  // Not of a later connection: a descriptor is closed after the last call of its connection.
  if (found == open_.end() || found->second.calls == 0) return;
  if (--found->second.calls == 0) found->second.idle_since = clock_->Monotonic();
}

void Connections::Tick() {
  std::lock_guard lock(mutex_);
  Look();
  const absl::Duration now = clock_->Monotonic();
  for (auto next = open_.begin(); next != open_.end();) {
    const auto found = next++;
    const Connection& connection = found->second;
    if (!connection.has_called && now - connection.idle_since > bounds_.longest_silence) {
      Shut(found);
    }
  }
}

size_t Connections::size() const {
  std::lock_guard lock(mutex_);
  return open_.size();
}

void Connections::Look() {
  const absl::Duration now = clock_->Monotonic();
  if (now - looked_ < kLookPeriod) return;
  looked_ = now;
  for (auto next = open_.begin(); next != open_.end();) {
    const auto found = next++;
    if (SocketOf(found->first) != found->second.socket) Forget(found);
  }
}

bool Connections::ShutIdlest(const std::string* who) {
  if (!kind_.knows_calls) return false;
  const auto rank = [](const Connection& one) { return std::tie(one.has_called, one.idle_since); };
  auto idlest = open_.end();
  for (auto it = open_.begin(); it != open_.end(); ++it) {
    if (it->second.calls > 0 || (who != nullptr && it->second.who != *who)) continue;
    if (idlest == open_.end() || rank(it->second) < rank(idlest->second)) idlest = it;
  }
  if (idlest == open_.end() || clock_->Monotonic() - idlest->second.idle_since < kMinIdle) {
    return false;
  }
  Shut(idlest);
  return true;
}

void Connections::Forget(Open::iterator found) {
  const auto count = of_one_.find(found->second.who);
  if (--count->second == 0) of_one_.erase(count);
  open_.erase(found);
}

void Connections::Shut(Open::iterator found) {
  // Its owner closes it when it sees that. A descriptor that has been closed since and is another's
  // is left alone but for an instant.
  if (SocketOf(found->first) == found->second.socket) shutdown(found->first, SHUT_RDWR);
  Forget(found);
}

void RareWarning::Say(const std::string& what) {
  constexpr absl::Duration kPeriod = absl::Seconds(10);
  const absl::Time now = absl::Now();
  std::lock_guard lock(mutex_);
  if (now < next_) {
    ++untold_;
    return;
  }
  next_ = now + kPeriod;
  spdlog::warn("{}; {} others since the last word", what, std::exchange(untold_, 0));
}

}  // namespace coppice
