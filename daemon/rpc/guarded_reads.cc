#include "daemon/rpc/guarded_reads.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "daemon/base/log.h"
#include "daemon/rpc/http2_guard.h"

namespace coppice {
namespace {

constexpr size_t kMaxDescriptors = 1 << 20;
constexpr absl::Duration kLogPeriod = absl::Seconds(10);

// Of one socket, in whatever descriptor it is. One read at a time: gRPC sees to that.
struct GuardedSocket {
  uint64_t cookie;  // the kernel's, never used again
  uid_t uid;
  Http2Guard guard;
};

// Tells whether `fd` is still the socket that it was. 0: it is no socket.
uint64_t CookieOf(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

// [descriptor]. A slot is written when a socket is accepted in it, which is after the last read of
// the one before, and when a read finds another socket in it.
class GuardTable final {
 public:
  static GuardTable& Get() {
    static GuardTable* const table = new GuardTable;  // gRPC's threads may outlive main
    return *table;
  }

  void Put(int fd, uid_t uid) {
    if (static_cast<size_t>(fd) >= size_) return;
    const uint64_t cookie = CookieOf(fd);
    // Where the kernel gives none, a later socket of the descriptor could not be told from this
    // one.
    Replace(fd, cookie == 0 ? nullptr : new GuardedSocket{cookie, uid, {}});
    in_use_.store(true, std::memory_order_release);
  }

  // Null: `fd` is not guarded.
  GuardedSocket* Find(int fd) {
    if (!in_use_.load(std::memory_order_acquire)) return nullptr;
    if (fd < 0 || static_cast<size_t>(fd) >= size_) return nullptr;
    GuardedSocket* const found = slots_[fd].load(std::memory_order_acquire);
    if (found == nullptr) return nullptr;
    if (found->cookie == CookieOf(fd)) return found;
    Replace(fd, nullptr);
    return nullptr;
  }

 private:
  using Slot = std::atomic<GuardedSocket*>;

  GuardTable() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    size_ = std::min<size_t>(limit.rlim_max, kMaxDescriptors);
    // calloc: pages of descriptors that never come are never touched. Zeros are null pointers.
    slots_ = static_cast<Slot*>(std::calloc(size_, sizeof(Slot)));
    if (slots_ == nullptr) size_ = 0;
  }
  void Replace(int fd, GuardedSocket* with) {
    delete slots_[fd].exchange(with, std::memory_order_acq_rel);
  }

  size_t size_ = 0;
  Slot* slots_ = nullptr;
  std::atomic<bool> in_use_{false};
};

// A client that comes again and again must not fill the log.
void LogDropped(uid_t uid, absl::string_view why) {
  static std::atomic<int64_t> next_ns{0};
  static std::atomic<uint64_t> untold{0};
  const absl::Time now = absl::Now();
  int64_t due = next_ns.load();
  if (absl::ToUnixNanos(now) < due ||
      !next_ns.compare_exchange_strong(due, absl::ToUnixNanos(now + kLogPeriod))) {
    ++untold;
    return;
  }
  spdlog::warn("unix sockets: a connection of uid {} was closed: {}; {} others since the last word",
               uid, std::string(why), untold.exchange(0));
}

bool IsGood(GuardedSocket& socket, const msghdr& message, size_t size) {
  for (size_t i = 0; i < message.msg_iovlen && size > 0; ++i) {
    const iovec& part = message.msg_iov[i];
    const size_t here = std::min(size, part.iov_len);
    const absl::string_view why =
        socket.guard.Take({static_cast<const char*>(part.iov_base), here}, absl::Now());
    if (!why.empty()) {
      LogDropped(socket.uid, why);
      return false;
    }
    size -= here;
  }
  return true;
}

}  // namespace

void GuardReads(int fd, uid_t uid) { GuardTable::Get().Put(fd, uid); }

}  // namespace coppice

// The C library's in every other respect but that no thread can be cancelled in it
// (pthread_cancel).
extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  const ssize_t size = syscall(SYS_recvmsg, fd, message, flags);
  if (size <= 0 || (flags & MSG_PEEK) != 0) return size;
  coppice::GuardedSocket* const socket = coppice::GuardTable::Get().Find(fd);
  if (socket == nullptr || coppice::IsGood(*socket, *message, static_cast<size_t>(size))) {
    return size;
  }
  shutdown(fd, SHUT_RDWR);
  errno = ECONNRESET;
  return -1;
}
