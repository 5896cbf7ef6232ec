#include "client/library/agent_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

namespace coppice {
namespace {

// Held for a system call or a step in the list, and by fork().
std::mutex mu;
OwnDescriptor* first_descriptor = nullptr;  // guarded by mu

}  // namespace

// In a child, with mu held since before fork().
void OwnDescriptor::CloseAll() {
  for (OwnDescriptor* each = first_descriptor; each != nullptr; each = each->after_) {
    close(each->fd_);
    each->fd_ = -1;
  }
  mu.unlock();
}

void OwnDescriptor::Watch() {
  static const int watched = pthread_atfork([] { mu.lock(); }, [] { mu.unlock(); }, CloseAll);
  static_cast<void>(watched);  // without memory for it a child keeps what it has
}

bool OwnDescriptor::Keep(int fd) {
  if (fd < 0) return false;
  fd_ = fd;
  after_ = first_descriptor;
  if (first_descriptor != nullptr) first_descriptor->before_ = this;
  first_descriptor = this;
  return true;
}

bool OwnDescriptor::OpenUnixSocket() {
  Watch();
  const std::lock_guard<std::mutex> lock(mu);
  return Keep(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

bool OwnDescriptor::OpenEvent() {
  Watch();
  const std::lock_guard<std::mutex> lock(mu);
  return Keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

OwnDescriptor::~OwnDescriptor() {
  const std::lock_guard<std::mutex> lock(mu);
  if (fd_ < 0) return;
  if (first_descriptor == this) first_descriptor = after_;
  if (before_ != nullptr) before_->after_ = after_;
  if (after_ != nullptr) after_->before_ = before_;
  close(fd_);
}

namespace {

constexpr size_t kReadBytes = 64 << 10;

Outcome NoAgent(const std::string& path, int error) {
  return {COPPICE_UNAVAILABLE, "no agent at " + path + ": " +
                                   std::generic_category().message(error) +
                                   " (is coppice-agent running on this node?)"};
}

// A full queue of connections makes connect(2) wait no longer than this says, but for EINTR.
void LimitConnect(int fd, SteadyTime deadline) {
  const int milliseconds = std::max(MillisecondsUntil(deadline), 1);
  timeval limit{};
  limit.tv_sec = milliseconds / 1000;
  limit.tv_usec = milliseconds % 1000 * 1000;
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

// EAGAIN: not before the deadline.
int ConnectTo(int fd, const sockaddr_un& address, SteadyTime deadline) {
  for (;;) {
    LimitConnect(fd, deadline);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return 0;
    if (errno != EINTR) return errno;
    // A program with a timer is interrupted for ever.
    if (MillisecondsUntil(deadline) == 0) return EAGAIN;
  }
}

}  // namespace

int MillisecondsUntil(SteadyTime deadline) {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, std::numeric_limits<int>::max()));
}

Outcome AgentSocket::Connect(const std::string& path, SteadyTime deadline,
                             std::shared_ptr<AgentSocket>& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return {COPPICE_INVALID_ARGUMENT,
            "agent socket \"" + path + "\": a path of 1 to 107 characters is needed"};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  std::shared_ptr<AgentSocket> made(new AgentSocket);
  if (!made->fd_.OpenUnixSocket()) return NoAgent(path, errno);
  const int fd = made->fd_.get();
  if (const int error = ConnectTo(fd, address, deadline); error != 0) {
    if (error == EAGAIN) {
      return {COPPICE_DEADLINE_EXCEEDED,
              "agent at " + path + ": it does not accept connections; allow more time"};
    }
    return NoAgent(path, error);
  }
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  socket = std::move(made);
  return {};
}

AgentSocket::Io AgentSocket::Send(std::string_view& bytes) {
  const ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) {
    bytes.remove_prefix(static_cast<size_t>(sent));
    return Io::kSome;
  }
  if (errno == EINTR) return Io::kSome;
  return errno == EAGAIN || errno == EWOULDBLOCK ? Io::kNotNow : Io::kLost;
}

AgentSocket::Io AgentSocket::Receive() {
  char bytes[kReadBytes];
  const ssize_t count = recv(fd_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (count > 0) {
    frames_.Append(std::string_view(bytes, static_cast<size_t>(count)));
    return Io::kSome;
  }
  if (count == 0) return Io::kLost;
  if (errno == EINTR) return Io::kSome;
  return errno == EAGAIN || errno == EWOULDBLOCK ? Io::kNotNow : Io::kLost;
}

bool AgentSocket::Wait(short events, SteadyTime deadline, int wake) const {
  pollfd descriptors[2] = {{fd_.get(), events, 0}, {wake, POLLIN, 0}};
  for (;;) {
    const int ready = poll(descriptors, wake < 0 ? 1 : 2, MillisecondsUntil(deadline));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

void AgentSocket::Shut() { shutdown(fd_.get(), SHUT_RDWR); }

namespace {

// Does something when a block ends, by an exception, too.
template <class Work>
class AtEnd final {
 public:
  explicit AtEnd(Work work) : work_(std::move(work)) {}
  ~AtEnd() { work_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  const Work work_;
};

}  // namespace

Outcome AgentCalls::TooLate() const {
  return {COPPICE_DEADLINE_EXCEEDED,
          "agent at " + path_ + ": no answer in time; allow more, or see the agent's log"};
}

Outcome AgentCalls::Lost() const {
  return {COPPICE_UNAVAILABLE, "agent at " + path_ + ": it closed the connection; call again"};
}

Outcome AgentCalls::Make(const Call& call, std::string& answer) {
  bool is_lost = false;
  Outcome outcome = MakeOnce(call, answer, is_lost);
  if (is_lost && call.may_repeat) outcome = MakeOnce(call, answer, is_lost);
  return outcome;
}

Outcome AgentCalls::MakeOnce(const Call& call, std::string& answer, bool& is_lost) {
  Lock lock(mu_);
  is_lost = false;
  if (Outcome outcome = Connect(lock, call.deadline); !outcome.ok()) return outcome;
  Slot slot;
  Outcome outcome = Exchange(lock, call, slot);
  is_lost = slot.is_lost;
  if (outcome.ok()) answer = std::move(slot.message);
  return outcome;
}

Outcome AgentCalls::Exchange(Lock& lock, const Call& call, Slot& slot) {
  const uint64_t id = ++last_call_;
  const uint32_t timeout_ms = static_cast<uint32_t>(std::max(MillisecondsUntil(call.deadline), 1));
  std::string frame;
  AppendFrame(EncodeCall(id, call.method, call.request, timeout_ms), frame);
  if (frame.size() > kMaxFrameBytes) {
    return {COPPICE_RESOURCE_EXHAUSTED, std::string(call.method) + ": a request of " +
                                            std::to_string(frame.size()) +
                                            " bytes is more than the agent takes (64 MiB)"};
  }
  slots_.emplace(id, &slot);
  const AtEnd forget([&] { slots_.erase(id); });
  Outcome outcome = Send(lock, frame, call.deadline);
  return outcome.ok() ? Await(lock, slot, call.deadline) : outcome;
}

Outcome AgentCalls::Connect(Lock& lock, SteadyTime deadline) {
  while (is_connecting_) {
    if (changed_.wait_until(lock, deadline) == std::cv_status::timeout) return TooLate();
  }
  if (socket_ != nullptr) Receive();  // notices that the agent went while nobody called
  if (socket_ != nullptr) return {};
  if (bell_.get() < 0 && !bell_.OpenEvent()) {
    return {COPPICE_RESOURCE_EXHAUSTED,
            "agent at " + path_ + ": the process has no descriptor left to call it"};
  }
  std::shared_ptr<AgentSocket> socket;
  is_connecting_ = true;
  lock.unlock();
  const AtEnd connected([&] {
    lock.lock();
    is_connecting_ = false;
    socket_ = std::move(socket);
    changed_.notify_all();
  });
  return AgentSocket::Connect(path_, deadline, socket);
}

Outcome AgentCalls::Send(Lock& lock, std::string_view frame, SteadyTime deadline) {
  const std::shared_ptr<AgentSocket> socket = socket_;
  while (is_sending_) {
    if (changed_.wait_until(lock, deadline) == std::cv_status::timeout) return TooLate();
  }
  if (socket_ != socket) return Lost();
  is_sending_ = true;
  const AtEnd sent([&] {
    is_sending_ = false;
    changed_.notify_all();
  });
  return SendAlone(lock, frame, deadline);
}

Outcome AgentCalls::SendAlone(Lock& lock, std::string_view frame, SteadyTime deadline) {
  const std::shared_ptr<AgentSocket> socket = socket_;
  const size_t size = frame.size();
  while (!frame.empty()) {
    const AgentSocket::Io io = socket->Send(frame);
    if (io == AgentSocket::Io::kSome) continue;
    bool is_in_time = true;
    if (io == AgentSocket::Io::kNotNow) {
      // An agent that waits for us to read does not read itself.
      lock.unlock();
      is_in_time = socket->Wait(POLLOUT | POLLIN, deadline);
      lock.lock();
      if (socket_ == socket) Receive();
    } else if (socket_ == socket) {
      Drop();
    }
    if (socket_ != socket) return Lost();
    if (is_in_time) continue;
    if (frame.size() < size) Drop();  // half a frame: nothing can follow it
    return TooLate();
  }
  return {};
}

Outcome AgentCalls::Await(Lock& lock, const Slot& slot, SteadyTime deadline) {
  while (!slot.has_ended && !slot.is_lost) {
    bool is_in_time = true;
    if (is_polling_) {
      is_in_time = changed_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    } else {
      const std::shared_ptr<AgentSocket> socket = socket_;
      is_polling_ = true;
      lock.unlock();
      is_in_time = socket->Wait(POLLIN, deadline, bell_.get());
      lock.lock();
      is_polling_ = false;
      uint64_t rung = 0;
      while (read(bell_.get(), &rung, sizeof rung) < 0 && errno == EINTR) {
      }
      if (socket_ == socket) Receive();
      changed_.notify_all();  // one of the others polls on
    }
    if (!is_in_time && !slot.has_ended && !slot.is_lost) return TooLate();
  }
  return slot.has_ended ? slot.end : Lost();
}

void AgentCalls::Receive() {
  try {
    ReceiveAll();
  } catch (...) {
    if (socket_ != nullptr) Drop();
    throw;
  }
}

void AgentCalls::ReceiveAll() {
  for (;;) {
    const AgentSocket::Io io = socket_->Receive();
    if (io == AgentSocket::Io::kNotNow) return;
    bool is_good = io == AgentSocket::Io::kSome;
    while (is_good) {
      const std::optional<std::string_view> frame = socket_->Next();
      if (!frame) break;
      is_good = Dispatch(*frame);
    }
    if (!is_good || socket_->is_broken()) return Drop();
  }
}

bool AgentCalls::Dispatch(std::string_view frame) {
  AgentReply reply;
  if (!DecodeReply(frame, reply)) return false;
  const auto found = slots_.find(reply.call);
  if (found == slots_.end()) return true;  // late: nobody waits for it any more
  Slot& slot = *found->second;
  if (reply.is_end) {
    slot.end = std::move(reply.end);
    slot.has_ended = true;
    changed_.notify_all();
    if (is_polling_) Ring();
  } else {
    slot.message.assign(reply.message);
  }
  return true;
}

void AgentCalls::Ring() {
  const uint64_t one = 1;
  while (write(bell_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void AgentCalls::Drop() {
  socket_->Shut();
  socket_.reset();
  for (auto& [id, slot] : slots_) slot->is_lost = !slot->has_ended;
  changed_.notify_all();
}

}  // namespace coppice
