#include "daemon/rpc/listen/unix_connections.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <tuple>

namespace coppice {
namespace {

// Who connects faster than that is refused: opening and shutting costs more than that.
constexpr absl::Duration kMinIdle = absl::Seconds(1);

ino_t SocketOf(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

}  // namespace

void UnixConnections::SetBounds(const ConnectionBounds& bounds) {
  std::lock_guard lock(mutex_);
  bounds_ = bounds;
}

bool UnixConnections::Admit(int fd, uid_t uid) {
  std::lock_guard lock(mutex_);
  const size_t number = static_cast<size_t>(fd);
  if (number >= connections_.size()) connections_.resize(number + 1);
  Forget(connections_[number]);
  if (of_user_[uid] >= bounds_.of_user && !ShutIdlest(&uid)) return false;
  if (open_ >= bounds_.of_all && !ShutIdlest(nullptr)) return false;
  connections_[number] = {true, uid, SocketOf(fd), false, 0, clock_->Monotonic()};
  ++of_user_[uid];
  ++open_;
  return true;
}

bool UnixConnections::IsAdmitted(int fd) const {
  std::lock_guard lock(mutex_);
  const size_t number = static_cast<size_t>(fd);
  return number < connections_.size() && connections_[number].is_open && IsOpen(fd);
}

void UnixConnections::CallBegins(int fd) {
  std::lock_guard lock(mutex_);
  const size_t number = static_cast<size_t>(fd);
  if (number >= connections_.size()) return;
  connections_[number].has_called = true;
  ++connections_[number].calls;
}

void UnixConnections::CallEnds(int fd) {
  std::lock_guard lock(mutex_);
  const size_t number = static_cast<size_t>(fd);
  // Not of a later connection: a descriptor is closed after the last call of its connection.
  if (number >= connections_.size() || connections_[number].calls == 0) return;
  if (--connections_[number].calls == 0) connections_[number].idle_since = clock_->Monotonic();
}

void UnixConnections::Tick() {
  std::lock_guard lock(mutex_);
  Look();
  const absl::Duration now = clock_->Monotonic();
  for (size_t i = 0; i < connections_.size() && open_ > 0; ++i) {
    Connection& connection = connections_[i];
    if (!connection.is_open || connection.has_called) continue;
    if (now - connection.idle_since > bounds_.longest_silence) Shut(static_cast<int>(i));
  }
}

size_t UnixConnections::size() const {
  std::lock_guard lock(mutex_);
  return open_;
}

void UnixConnections::Look() {
  for (size_t i = 0; i < connections_.size(); ++i) {
    if (connections_[i].is_open && !IsOpen(static_cast<int>(i))) Forget(connections_[i]);
  }
}

bool UnixConnections::IsOpen(int fd) const {
  return SocketOf(fd) == connections_[static_cast<size_t>(fd)].socket;
}

bool UnixConnections::ShutIdlest(const uid_t* uid) {
  int idlest = -1;
  for (size_t i = 0; i < connections_.size(); ++i) {
    const Connection& connection = connections_[i];
    if (!connection.is_open || connection.calls > 0) continue;
    if (uid != nullptr && connection.uid != *uid) continue;
    if (idlest >= 0) {
      const Connection& other = connections_[static_cast<size_t>(idlest)];
      if (std::tie(other.has_called, other.idle_since) <=
          std::tie(connection.has_called, connection.idle_since)) {
        continue;
      }
    }
    idlest = static_cast<int>(i);
  }
  if (idlest < 0) return false;
  const absl::Duration since = connections_[static_cast<size_t>(idlest)].idle_since;
  if (clock_->Monotonic() - since < kMinIdle) return false;
  Shut(idlest);
  return true;
}

void UnixConnections::Forget(Connection& connection) {
  if (!connection.is_open) return;
  connection.is_open = false;
  connection.calls = 0;
  --open_;
  --of_user_[connection.uid];
}

void UnixConnections::Shut(int fd) {
  // Its owner closes it when it sees that. A descriptor that has been closed since and is another's
  // is left alone but for an instant.
  if (IsOpen(fd)) shutdown(fd, SHUT_RDWR);
  Forget(connections_[static_cast<size_t>(fd)]);
}

}  // namespace coppice
