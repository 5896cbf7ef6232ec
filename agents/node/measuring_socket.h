// A TCP socket that never waits longer than a deadline. For ping_pong.
#ifndef COPPICE_AGENTS_NODE_MEASURING_SOCKET_H_
#define COPPICE_AGENTS_NODE_MEASURING_SOCKET_H_

#include <poll.h>

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "agents/node/measuring_limit.h"

namespace coppice {

class MeasuringSocket final {
 public:
  using Limit = MeasuringLimit;

  // Takes over `fd`; sends without delay from now on.
  MeasuringSocket(int fd, Limit limit);
  MeasuringSocket(MeasuringSocket&& other) noexcept;
  ~MeasuringSocket();

  // To "HOST:PORT", within the limit. INVALID_ARGUMENT: it is none. UNAVAILABLE: nobody is there.
  static absl::StatusOr<MeasuringSocket> Connect(const std::string& address, Limit limit);
  // Listens at "HOST:PORT"; a descriptor that does not block. INVALID_ARGUMENT, UNAVAILABLE.
  static absl::StatusOr<int> Listen(const std::string& address);

  // All of it. UNAVAILABLE: the peer broke off; DEADLINE_EXCEEDED; CANCELLED.
  absl::Status Send(const void* bytes, size_t size);
  absl::Status Receive(void* bytes, size_t size);

  // For poll(2), beside other descriptors: readable when the peer has said something, or broken
  // off.
  int fd() const { return fd_; }
  const Limit& limit() const { return limit_; }

 private:
  absl::Status Wait(short events) const;

  int fd_;
  const Limit limit_;
};

// Waits until one of the descriptors (poll(2)) is ready.
absl::Status WaitForAny(pollfd* descriptors, size_t count, const MeasuringSocket::Limit& limit);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_MEASURING_SOCKET_H_
