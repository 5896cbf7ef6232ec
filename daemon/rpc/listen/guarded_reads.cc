#include "daemon/rpc/listen/guarded_reads.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/base/caller_bounds.h"
#include "daemon/rpc/listen/connections.h"

namespace coppice {
namespace {

constexpr size_t kMaxDescriptors = 1 << 20;

// What one client has sent of messages that have not come whole, over all its connections.
class HalfSent final {
 public:
  // One for each name that has connections.
  static std::shared_ptr<HalfSent> Of(const std::string& who) {
    static auto* const mutex = new std::mutex;
    static auto* const known = new absl::flat_hash_map<std::string, std::weak_ptr<HalfSent>>;
    std::lock_guard lock(*mutex);
    if (known->size() >= kMaxKnown) {
      absl::erase_if(*known, [](const auto& one) { return one.second.expired(); });
    }
    std::weak_ptr<HalfSent>& place = (*known)[who];
    std::shared_ptr<HalfSent> found = place.lock();
    if (found == nullptr) place = found = std::make_shared<HalfSent>();
    return found;
  }

  // False: it has more than its share by now.
  bool Add(int64_t bytes) {
    const int64_t all = all_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    const int64_t own = own_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    return bytes <= 0 || own <= ShareOf(kMaxHalfSent, kMaxHalfSent, all - own);
  }

 private:
  static constexpr size_t kMaxKnown = 4096;

  static inline std::atomic<int64_t> all_{0};
  std::atomic<int64_t> own_{0};
};

// Of one socket, in whatever descriptor it is. One read at a time: gRPC sees to that.
struct GuardedSocket {
  GuardedSocket(uint64_t socket, std::string client)
      : cookie(socket), who(std::move(client)), half_sent(HalfSent::Of(who)) {}
  ~GuardedSocket() { GiveBack(); }

  // Empty, or why the connection is to be closed.
  absl::string_view Take(absl::string_view bytes) {
    const absl::string_view why = guard.Take(bytes, absl::Now());
    const int64_t more = guard.half_sent() - counted;
    if (more == 0 || !why.empty()) return why;
    counted += more;
    return half_sent->Add(more) ? "" : "too much of messages that do not end";
  }
  // It is over.
  void GiveBack() { half_sent->Add(-std::exchange(counted, 0)); }

  const uint64_t cookie;  // the kernel's, never used again
  const std::string who;
  Http2Guard guard;
  const std::shared_ptr<HalfSent> half_sent;
  int64_t counted = 0;
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

  void Put(int fd, std::string who) {
    if (static_cast<size_t>(fd) >= size_) return;
    const uint64_t cookie = CookieOf(fd);
    // Where the kernel gives none, a later socket of the descriptor could not be told from this
    // one.
    Replace(fd, cookie == 0 ? nullptr : new GuardedSocket(cookie, std::move(who)));
  }

  // Null: `fd` is not guarded.
  GuardedSocket* Find(int fd) {
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
};

bool IsGood(GuardedSocket& socket, const msghdr& message, size_t size) {
  for (size_t i = 0; i < message.msg_iovlen && size > 0; ++i) {
    const iovec& part = message.msg_iov[i];
    const size_t here = std::min(size, part.iov_len);
    const absl::string_view why = socket.Take({static_cast<const char*>(part.iov_base), here});
    if (!why.empty()) {
      socket.GiveBack();
      static RareWarning dropped;
      dropped.Say(absl::StrCat("a connection of ", socket.who, " was closed: ", why));
      return false;
    }
    size -= here;
  }
  return true;
}

// RFC 9113, section 6.
constexpr uint8_t kData = 0, kHeaders = 1, kResetStream = 3, kSettings = 4, kPing = 6,
                  kContinuation = 9;
constexpr uint8_t kEndStream = 1, kEndHeaders = 4;  // flags

}  // namespace

void GuardReads(int fd, std::string who) { GuardTable::Get().Put(fd, std::move(who)); }

// gRPC's own clients stay far below: they reset a stream for each call that is cancelled, change
// their settings with the window (a few times a second while much is received), and ping once for
// each round trip at most while they measure it, otherwise every few seconds.
const Http2Guard::Allowance Http2Guard::kAllowances[kLimited] = {
    {kResetStream, 1'000, 200, "calls are opened and cancelled too fast"},
    {kSettings, 200, 20, "settings change too fast"},
    {kPing, 2'000, 500, "too many pings"},
};

absl::string_view Http2Guard::Take(absl::string_view bytes, absl::Time now) {
  while (why_.empty() && !bytes.empty()) {
    size_t& left = preface_left_ > 0 ? preface_left_ : payload_left_;
    if (left > 0) {
      const size_t passed = std::min(left, bytes.size());
      if (is_data_) TakeData(bytes.substr(0, passed));
      left -= passed;
      bytes.remove_prefix(passed);
      if (is_data_ && left == 0 && !EndData()) break;
      continue;
    }
    const size_t taken = std::min(kFrameHeaderSize - header_size_, bytes.size());
    std::copy_n(bytes.begin(), taken, header_.begin() + header_size_);
    header_size_ += taken;
    bytes.remove_prefix(taken);
    if (header_size_ < kFrameHeaderSize) break;
    header_size_ = 0;
    if (!BeginFrame(now)) break;
  }
  return why_;
}

bool Http2Guard::BeginFrame(absl::Time now) {
  payload_left_ = size_t{header_[0]} << 16 | size_t{header_[1]} << 8 | header_[2];
  const uint8_t type = header_[3], flags = header_[4];
  if (type == kData) return BeginData(flags);
  if (type == kResetStream) ForgetStream(StreamOfFrame());
  if (type == kHeaders || type == kContinuation) return TakeHeaderBlock(payload_left_, flags);
  return CountLimited(type, now);
}

uint32_t Http2Guard::StreamOfFrame() const {
  return (uint32_t{header_[5]} << 24 | uint32_t{header_[6]} << 16 | uint32_t{header_[7]} << 8 |
          header_[8]) &
         0x7fffffff;
}

void Http2Guard::ForgetStream(uint32_t stream) {
  const auto found = half_messages_.find(stream);
  if (found == half_messages_.end()) return;
  half_sent_ -= found->second.got;
  half_messages_.erase(found);
}

bool Http2Guard::BeginData(uint8_t flags) {
  // Padding, which gRPC takes from nobody.
  if ((flags & ~kEndStream) != 0) {
    why_ = "data of a kind that gRPC does not know";
    return false;
  }
  is_data_ = true;
  is_last_ = (flags & kEndStream) != 0;
  message_ = {};
  if (const auto found = half_messages_.find(StreamOfFrame()); found != half_messages_.end()) {
    message_ = found->second;
    half_messages_.erase(found);
  }
  return payload_left_ > 0 || EndData();
}

void Http2Guard::TakeData(absl::string_view bytes) {
  while (!bytes.empty()) {
    size_t taken = 1;
    if (message_.header_size < kMessageHeaderSize) {
      // The flag is shifted out by the four bytes of the length.
      message_.left = message_.left << 8 | static_cast<uint8_t>(bytes.front());
      ++message_.header_size;
    } else {
      taken = std::min<size_t>(message_.left, bytes.size());
      message_.left -= static_cast<uint32_t>(taken);
    }
    bytes.remove_prefix(taken);
    message_.got += static_cast<int64_t>(taken);
    half_sent_ += static_cast<int64_t>(taken);
    if (message_.header_size < kMessageHeaderSize || message_.left > 0) continue;
    half_sent_ -= message_.got;
    message_ = {};
  }
}

bool Http2Guard::EndData() {
  is_data_ = false;
  if (is_last_) {
    half_sent_ -= message_.got;
  } else if (message_.got > 0) {
    if (half_messages_.size() >= kMaxHalfMessages) {
      why_ = "too many messages are left half sent";
      return false;
    }
    half_messages_[StreamOfFrame()] = message_;
  }
  return true;
}

bool Http2Guard::TakeHeaderBlock(size_t length, uint8_t flags) {
  block_size_ += length;
  if (block_size_ > kMaxHeaderBlock || ++block_frames_ > kMaxHeaderFrames) {
    why_ = "the headers of a call are too long";
    return false;
  }
  if ((flags & kEndHeaders) != 0) block_size_ = block_frames_ = 0;
  return true;
}

bool Http2Guard::CountLimited(uint8_t type, absl::Time now) {
  for (size_t i = 0; i < kLimited; ++i) {
    const Allowance& allowance = kAllowances[i];
    if (allowance.frame_type != type) continue;
    Used& used = used_[i];
    const double rested = absl::ToDoubleSeconds(std::max(now - used.since, absl::ZeroDuration()));
    used.frames = std::max(0.0, used.frames - rested * allowance.per_second) + 1;
    used.since = now;
    if (used.frames <= allowance.most) continue;
    why_ = allowance.refusal;
    return false;
  }
  return true;
}

}  // namespace coppice

// The C library's in every other respect but that no thread can be cancelled in it
// (pthread_cancel).
extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  const ssize_t size = syscall(SYS_recvmsg, fd, message, flags);
  const bool is_idle = size < 0 && (errno == EAGAIN || errno == EINTR);
  if (is_idle || (flags & MSG_PEEK) != 0) return size;
  const int error = errno;
  coppice::GuardedSocket* const socket = coppice::GuardTable::Get().Find(fd);
  if (size <= 0) {
    if (socket != nullptr) socket->GiveBack();
    errno = error;
    return size;
  }
  if (socket == nullptr || coppice::IsGood(*socket, *message, static_cast<size_t>(size))) {
    return size;
  }
  shutdown(fd, SHUT_RDWR);
  errno = ECONNRESET;
  return -1;
}
