#include "daemon/ib/umad_transport.h"

#include <infiniband/umad.h>
#include <infiniband/umad_types.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

constexpr int kPermissiveLid = 0xFFFF;
// General services are behind queue pair 1 and its well-known key (IBA vol. 1, 13.5.1.1).
constexpr int kGeneralServicesQp = 1;
constexpr int kGeneralServicesKey = static_cast<int>(0x80010000);
// A poll that wakes for nothing looks like a failure under the simulator; a dead device fails again
// and again.
constexpr int kFailuresOfDeadPort = 64;

absl::Status PortError(const PortSelection& port, absl::string_view what, int error) {
  const std::string message = absl::StrCat(ToString(port), ": ", what, ": ", std::strerror(error));
  if (error == EACCES || error == EPERM) {
    return absl::PermissionDeniedError(absl::StrCat(message, "; run as root"));
  }
  return absl::UnavailableError(absl::StrCat(message, "; check the adapter with ibstat"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<UmadTransport>> UmadTransport::Open(const PortSelection& port) {
  const int fd = umad_open_port(port.adapter.c_str(), port.port);
  if (fd < 0) return PortError(port, "cannot open the management device", errno ? errno : -fd);
  const auto enlist = [fd](uint8_t management_class) {
    return umad_register(fd, management_class, /*mgmt_version=*/1, /*rmpp_version=*/0,
                         /*method_mask=*/nullptr);
  };
  const int subnet_agent = enlist(UMAD_CLASS_SUBN_DIRECTED_ROUTE);
  const int performance_agent = subnet_agent < 0 ? subnet_agent : enlist(UMAD_CLASS_PERF_MGMT);
  if (performance_agent < 0) {
    const int error = errno ? errno : -performance_agent;
    umad_close_port(fd);
    return PortError(port, "cannot register for subnet and performance management", error);
  }
  return absl::WrapUnique(new UmadTransport(fd, subnet_agent, performance_agent));
}

UmadTransport::UmadTransport(int fd, int subnet_agent, int performance_agent)
    : fd_(fd),
      subnet_agent_(subnet_agent),
      performance_agent_(performance_agent),
      out_(umad_size() + kMadBytes),
      in_(umad_size() + kMadBytes) {}

UmadTransport::~UmadTransport() {
  umad_unregister(fd_, performance_agent_);
  umad_unregister(fd_, subnet_agent_);
  umad_close_port(fd_);
}

absl::Status UmadTransport::Die(absl::string_view what, int error) {
  is_dead_ = true;
  return absl::UnavailableError(
      absl::StrCat(what, ": ", std::strerror(error), "; check the adapter with ibstat"));
}

absl::Status UmadTransport::Send(const Mad& mad, Lid lid, absl::Duration timeout) {
  std::fill(out_.begin(), out_.begin() + umad_size(), 0);
  std::memcpy(umad_get_mad(out_.data()), mad.data(), kMadBytes);
  const bool is_performance = IsPerformance(mad);
  if (is_performance) {
    umad_set_addr(out_.data(), lid.value(), kGeneralServicesQp, /*sl=*/0, kGeneralServicesKey);
  } else {
    umad_set_addr(out_.data(), kPermissiveLid, /*dqp=*/0, /*sl=*/0, /*qkey=*/0);
  }
  // The kernel drops answers to sends without a timeout, and gives a send back when it expires.
  const int timeout_ms = static_cast<int>(std::max<int64_t>(1, absl::ToInt64Milliseconds(timeout)));
  errno = 0;
  const int result = umad_send(fd_, is_performance ? performance_agent_ : subnet_agent_,
                               out_.data(), kMadBytes, timeout_ms, /*retries=*/0);
  if (result == 0) return absl::OkStatus();
  const int error = errno ? errno : EIO;
  if (error == EAGAIN || error == ENOMEM || error == ENOBUFS || error == EINTR) {
    return absl::ResourceExhaustedError("send queue full");
  }
  return Die("cannot send", error);
}

absl::StatusOr<MadEvent> UmadTransport::Receive(absl::Duration wait, Mad& mad) {
  int wait_ms = 0;  // zero: read at once
  if (wait > absl::ZeroDuration()) {
    wait_ms = static_cast<int>(
        absl::ToInt64Milliseconds(std::min(wait, absl::Seconds(1)) + absl::Microseconds(999)));
  }
  int length = kMadBytes;
  errno = 0;
  const int result = umad_recv(fd_, in_.data(), &length, wait_ms);
  if (result < 0) {
    const int error = errno ? errno : -result;
    if (error == ETIMEDOUT || error == EAGAIN || error == EWOULDBLOCK || error == EINTR) {
      failures_ = 0;
      return MadEvent::kNone;
    }
    if (error == ENOSPC) return MadEvent::kNone;  // a longer packet than ours
    if (error != ENODEV && ++failures_ < kFailuresOfDeadPort) return MadEvent::kNone;
    return Die("cannot receive", error);
  }
  failures_ = 0;
  std::memcpy(mad.data(), umad_get_mad(in_.data()), kMadBytes);
  const int status = umad_status(in_.data());
  if (status != 0) return status == ETIMEDOUT ? MadEvent::kTimedOut : MadEvent::kNotSent;
  return length == static_cast<int>(kMadBytes) ? MadEvent::kReceived : MadEvent::kNone;
}

}  // namespace coppice
