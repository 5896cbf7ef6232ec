// MadTransport over libibumad: one open port, one agent for directed-route subnet management and
// one for performance management.
// Open it once and keep it: under the simulator a second port of one class in a process stays deaf.
#ifndef COPPICE_DAEMON_IB_UMAD_TRANSPORT_H_
#define COPPICE_DAEMON_IB_UMAD_TRANSPORT_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/ib/mad_transport.h"
#include "daemon/ib/port_selection.h"

namespace coppice {

class UmadTransport final : public MadTransport {
 public:
  // `port` names adapter and port (port_selection.h, FindPort). PERMISSION_DENIED: the device needs
  // root; UNAVAILABLE: it does not open or takes no agent.
  static absl::StatusOr<std::unique_ptr<UmadTransport>> Open(const PortSelection& port);
  ~UmadTransport() override;
  UmadTransport(const UmadTransport&) = delete;
  UmadTransport& operator=(const UmadTransport&) = delete;

  absl::Status Send(const Mad& mad, Lid lid, absl::Duration timeout) override;
  absl::StatusOr<MadEvent> Receive(absl::Duration wait, Mad& mad) override;

  // True once a call has failed with UNAVAILABLE: open the port anew.
  bool is_dead() const { return is_dead_; }

 private:
  absl::Status Die(absl::string_view what, int error);

  UmadTransport(int fd, int subnet_agent, int performance_agent);

  const int fd_;
  const int subnet_agent_, performance_agent_;
  std::vector<char> out_, in_;  // libibumad's envelope and a datagram behind it
  int failures_ = 0;            // receives that failed, in a row
  bool is_dead_ = false;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_IB_UMAD_TRANSPORT_H_
