// A TCP socket that never waits longer than a deadline, and what two sides that measure say over
// it.
#ifndef COPPICE_AGENTS_NODE_MEASURING_SOCKET_H_
#define COPPICE_AGENTS_NODE_MEASURING_SOCKET_H_

#include <netdb.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/node/event_loop.h"

namespace coppice {

// Until when a measurement may wait: a deadline, and a stop that may come before it.
struct MeasuringLimit {
  // How soon a stop is noticed.
  static constexpr std::chrono::milliseconds kLookEvery{50};

  std::chrono::steady_clock::time_point deadline;
  const std::atomic<bool>* is_stopped;  // null: never

  // How long to wait for something before this is asked again. CANCELLED: it was stopped.
  // DEADLINE_EXCEEDED, in the words of `late`.
  absl::StatusOr<std::chrono::milliseconds> NextWait(absl::string_view late) const {
    if (is_stopped != nullptr && *is_stopped) {
      return absl::CancelledError(
          "it was broken off: the agent stops, the daemon takes the task back, or has a newer one");
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return absl::DeadlineExceededError(late);
    return std::min(left, kLookEvery);
  }
};

class MeasuringSocket final {
 public:
  // Sends without delay from now on.
  MeasuringSocket(OwnedFd fd, MeasuringLimit limit);

  // To "HOST:PORT", within the limit. INVALID_ARGUMENT: it is none. UNAVAILABLE: nobody is there.
  static absl::StatusOr<MeasuringSocket> Connect(const std::string& address, MeasuringLimit limit);
  // Listens at "HOST:PORT"; a descriptor that does not block. INVALID_ARGUMENT, UNAVAILABLE.
  static absl::StatusOr<OwnedFd> Listen(const std::string& address);

  // All of it. UNAVAILABLE: the peer broke off; DEADLINE_EXCEEDED; CANCELLED.
  absl::Status Send(const void* bytes, size_t size);
  absl::Status Receive(void* bytes, size_t size);

  // For poll(2), beside other descriptors: readable when the peer has said something, or broken
  // off.
  int fd() const { return fd_.get(); }
  const MeasuringLimit& limit() const { return limit_; }

 private:
  absl::Status Wait(short events) const;
  // Sends, or with POLLIN receives.
  absl::Status Transfer(char* next, size_t size, short events);

  OwnedFd fd_;
  MeasuringLimit limit_;
};

// Waits until one of the descriptors (poll(2)) is ready.
absl::Status WaitForAny(pollfd* descriptors, size_t count, const MeasuringLimit& limit);

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// Of a peer, "HOST:PORT". A name is looked up on a thread of its own, as getaddrinfo(3) hears
// neither a deadline nor a stop; it is left behind when the limit ends the wait. INVALID_ARGUMENT:
// it is no HOST:PORT. UNAVAILABLE: the host is not known, or too many look-ups hang. CANCELLED,
// DEADLINE_EXCEEDED.
absl::StatusOr<Addresses> Resolve(const std::string& address, const MeasuringLimit& limit);

// To listen at; waits for as long as it takes. INVALID_ARGUMENT, UNAVAILABLE as above.
absl::StatusOr<Addresses> ResolveOwn(const std::string& address);

// What two sides say beside the samples where verbs are wanted: a kind (1 B), a length (2 B, the
// greater one first) and so many bytes of text.
struct PingPongWord {
  enum class Kind : char {
    kOffer = 'O',   // this side has a port for verbs; text: its subnet's prefix
    kRefuse = 'N',  // verbs cannot be used, or not any more; text: why, for people
    kData = 'D',    // text: what this side's program says to the peer's
    kEnd = 'E',     // this side's program has ended well
    kTcp = 'T',     // the active side goes on over TCP, and the passive one has understood
  };
  // Of data, and of all others.
  static constexpr size_t kMaxData = 16'384, kMaxText = 512;

  Kind kind = Kind::kEnd;
  std::string text;
};

// Longer text is cut. Errors of the socket.
absl::Status SendWord(MeasuringSocket& socket, PingPongWord::Kind kind,
                      absl::string_view text = "");
// INVALID_ARGUMENT: no word that there is. The text has no control characters, unless it is data.
absl::StatusOr<PingPongWord> ReceiveWord(MeasuringSocket& socket);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_MEASURING_SOCKET_H_
