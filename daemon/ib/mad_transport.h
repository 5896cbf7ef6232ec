// Carries management datagrams, unreliably and in any order: libibumad's port (umad_transport.h) or
// a scripted subnet (tests/unit/ib). Knows a datagram's class but not what it means.
#ifndef COPPICE_DAEMON_IB_MAD_TRANSPORT_H_
#define COPPICE_DAEMON_IB_MAD_TRANSPORT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/ib/mad_codec.h"

namespace coppice {

enum class MadEvent : uint8_t {
  kNone,      // nothing arrived
  kReceived,  // a datagram from the subnet, of any kind
  kTimedOut,  // one of ours, given back: nobody answered within its timeout
  kNotSent,   // one of ours, given back: the port could not send it
};

// Not thread-safe.
class MadTransport {
 public:
  virtual ~MadTransport() = default;

  // Hands over one datagram that expects an answer within `timeout`. `lid`: where one of
  // performance management goes; the others hold their way in themselves. RESOURCE_EXHAUSTED: not
  // now, ask again later; UNAVAILABLE: the port is gone.
  virtual absl::Status Send(const Mad& mad, Lid lid, absl::Duration timeout) = 0;

  // Waits at most `wait` (zero: not at all) for the next event; unless it is kNone, `mad` holds the
  // datagram. UNAVAILABLE: the port is gone.
  virtual absl::StatusOr<MadEvent> Receive(absl::Duration wait, Mad& mad) = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_IB_MAD_TRANSPORT_H_
