#include "daemon/ib/umad_subnet_port.h"

#include <infiniband/umad.h>
#include <infiniband/umad_types.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

// Kernel's port states and physical states (IBA vol. 1, 14.2.5.6).
constexpr unsigned kActive = 4, kLinkUp = 5;

bool IsInfiniBand(const umad_port_t& port) {
  const absl::string_view layer(port.link_layer);
  return layer.empty() || layer == "InfiniBand" || layer == "IB";
}

absl::StatusOr<PortSelection> FindNamedPort(const PortSelection& wanted) {
  umad_port_t port;
  if (umad_get_port(wanted.adapter.c_str(), wanted.port, &port) < 0) {
    return absl::NotFoundError(absl::StrCat(
        ToString(wanted), ": no such adapter and port; ibstat lists those that exist"));
  }
  const bool usable = IsInfiniBand(port);
  umad_release_port(&port);
  if (!usable) {
    return absl::FailedPreconditionError(
        absl::StrCat(ToString(wanted), ": the port's link layer is not InfiniBand"));
  }
  return wanted;
}

std::vector<std::string> AdapterNames() {
  char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
  const int count = umad_get_cas_names(names, UMAD_MAX_DEVICES);
  std::vector<std::string> adapters;
  for (int i = 0; i < count; ++i) adapters.emplace_back(names[i]);
  absl::c_sort(adapters);
  return adapters;
}

absl::StatusOr<PortSelection> FindFirstPort() {
  PortSelection up, down;
  for (const std::string& adapter : AdapterNames()) {
    umad_ca_t ca;
    if (umad_get_ca(adapter.c_str(), &ca) < 0) continue;
    PortSelection active;
    for (const umad_port_t* port : ca.ports) {
      if (port == nullptr || !IsInfiniBand(*port)) continue;
      const PortSelection here{adapter, port->portnum};
      if (port->state == kActive && active.adapter.empty()) active = here;
      PortSelection& other = port->phys_state == kLinkUp ? up : down;
      if (other.adapter.empty()) other = here;
    }
    umad_release_ca(&ca);
    if (!active.adapter.empty()) return active;
  }
  if (!up.adapter.empty()) return up;
  if (!down.adapter.empty()) return down;
  return absl::NotFoundError(
      "umad: no InfiniBand port on this machine; ibstat lists the adapters that the kernel knows");
}

constexpr int kPermissiveDestination = 0xFFFF;
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

// Answers that are still under way when the device is closed would find no reader; the simulator's
// preload crashes on them.
constexpr absl::Duration kMaxDrain = absl::Milliseconds(200);

// Of switches and endpoints that are in both.
bool HaveSameLids(const Fabric& a, const Fabric& b) {
  for (uint32_t i = 0; i < b.switch_count(); ++i) {
    const SwitchInfo& now = b.switch_info(SwitchIndex(i));
    const std::optional<SwitchIndex> then = a.FindSwitch(now.guid);
    if (then && a.switch_info(*then).lid != now.lid) return false;
  }
  for (uint32_t i = 0; i < b.endpoint_count(); ++i) {
    const EndpointInfo& now = b.endpoint(EndpointIndex(i));
    const std::optional<EndpointIndex> then = a.FindEndpoint(now.port_guid);
    if (then && a.endpoint(*then).lid != now.lid) return false;
  }
  return true;
}

}  // namespace

std::string ToString(const PortSelection& selection) {
  if (selection.adapter.empty()) return "umad";
  return absl::StrCat("umad:", selection.adapter, ":", selection.port);
}

absl::StatusOr<PortSelection> ParsePortSelection(absl::string_view spec) {
  if (spec == "umad") return PortSelection();
  const std::vector<std::string> parts = absl::StrSplit(spec, ':');
  PortSelection selection;
  if (parts.size() != 3 || parts[0] != "umad" || parts[1].empty() ||
      parts[1].size() >= UMAD_CA_NAME_LEN || parts[1].find('/') != std::string::npos ||
      !absl::SimpleAtoi(parts[2], &selection.port) || selection.port < 1 || selection.port > 254) {
    return absl::InvalidArgumentError(absl::StrCat(
        "port \"", spec,
        "\" is neither umad nor umad:ADAPTER:PORT with a port of 1-254, such as umad:mlx5_0:1"));
  }
  selection.adapter = parts[1];
  return selection;
}

absl::StatusOr<PortSelection> FindPort(const PortSelection& selection) {
  if (umad_init() < 0) {
    return absl::NotFoundError(
        "umad: no InfiniBand management on this machine; load the kernel module ib_umad");
  }
  return selection.adapter.empty() ? FindFirstPort() : FindNamedPort(selection);
}

// MadTransport over libibumad: one open port, one agent for directed-route subnet management and
// one for performance management.
// Open it once and keep it: under the simulator a second port of one class in a process stays deaf.
class UmadTransport final : public MadTransport {
 public:
  // `port` names adapter and port (umad_subnet_port.h, FindPort). PERMISSION_DENIED: the device
  // needs root; UNAVAILABLE: it does not open or takes no agent.
  static absl::StatusOr<std::unique_ptr<UmadTransport>> Open(const PortSelection& port) {
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

  ~UmadTransport() override {
    umad_unregister(fd_, performance_agent_);
    umad_unregister(fd_, subnet_agent_);
    umad_close_port(fd_);
  }
  UmadTransport(const UmadTransport&) = delete;
  UmadTransport& operator=(const UmadTransport&) = delete;

  absl::Status Send(const Mad& mad, Lid lid, absl::Duration timeout) override {
    std::fill(out_.begin(), out_.begin() + umad_size(), 0);
    std::memcpy(umad_get_mad(out_.data()), mad.data(), kMadBytes);
    const bool is_performance = IsPerformance(mad);
    if (is_performance) {
      umad_set_addr(out_.data(), lid.value(), kGeneralServicesQp, /*sl=*/0, kGeneralServicesKey);
    } else {
      umad_set_addr(out_.data(), kPermissiveDestination, /*dqp=*/0, /*sl=*/0, /*qkey=*/0);
    }
    // The kernel drops answers to sends without a timeout, and gives a send back when it expires.
    const int timeout_ms =
        static_cast<int>(std::max<int64_t>(1, absl::ToInt64Milliseconds(timeout)));
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

  absl::StatusOr<MadEvent> Receive(absl::Duration wait, Mad& mad) override {
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

  // True once a call has failed with UNAVAILABLE: open the port anew.
  bool is_dead() const { return is_dead_; }

 private:
  UmadTransport(int fd, int subnet_agent, int performance_agent)
      : fd_(fd),
        subnet_agent_(subnet_agent),
        performance_agent_(performance_agent),
        out_(umad_size() + kMadBytes),
        in_(umad_size() + kMadBytes) {}

  absl::Status Die(absl::string_view what, int error) {
    is_dead_ = true;
    return absl::UnavailableError(
        absl::StrCat(what, ": ", std::strerror(error), "; check the adapter with ibstat"));
  }

  const int fd_;
  const int subnet_agent_, performance_agent_;
  std::vector<char> out_, in_;  // libibumad's envelope and a datagram behind it
  int failures_ = 0;            // receives that failed, in a row
  bool is_dead_ = false;
};

absl::StatusOr<std::unique_ptr<UmadSubnetPort>> UmadSubnetPort::Create(absl::string_view spec,
                                                                       MadEngineOptions options,
                                                                       const Clock& clock) {
  ASSIGN_OR_RETURN(PortSelection wanted, ParsePortSelection(spec));
  return absl::WrapUnique(new UmadSubnetPort(std::move(wanted), options, clock));
}

UmadSubnetPort::UmadSubnetPort(PortSelection wanted, MadEngineOptions options, const Clock& clock)
    : wanted_(std::move(wanted)), options_(options), clock_(clock) {}

UmadSubnetPort::~UmadSubnetPort() { Close(); }

std::string UmadSubnetPort::Describe() const {
  return ToString(engine_ != nullptr ? port_ : wanted_);
}

absl::Status UmadSubnetPort::Open() {
  ASSIGN_OR_RETURN(const PortSelection port, FindPort(wanted_));
  if (port != port_) swept_.reset();  // its routes begin elsewhere
  port_ = port;
  ASSIGN_OR_RETURN(transport_, UmadTransport::Open(port_));
  engine_ = std::make_unique<MadEngine>(*transport_, clock_, options_);
  return absl::OkStatus();
}

void UmadSubnetPort::Close() {
  if (engine_ == nullptr) return;
  if (!transport_->is_dead()) engine_->Drain(kMaxDrain);
  engine_.reset();
  transport_.reset();
}

// A port that serves is never closed: the simulator does not bear it.
void UmadSubnetPort::CloseUnlessStillBest() {
  if (transport_->is_dead()) return Close();
  const absl::StatusOr<PortSelection> best = FindPort(wanted_);
  if (best.ok() && *best != port_) Close();
}

absl::Status UmadSubnetPort::EnsureOpen() {
  if (engine_ != nullptr && has_failed_) CloseUnlessStillBest();
  return engine_ != nullptr ? absl::OkStatus() : Open();
}

// call() over the open port, with what it has cost; its error names the port.
template <class Call>
auto UmadSubnetPort::Ask(const Call& call) -> decltype(call()) {
  const absl::Duration start = clock_.Monotonic();
  const MadCounts before = engine_->counts();
  auto result = call();
  has_failed_ = !result.ok();
  if (!result.ok()) return Annotate(result.status(), Describe());
  const MadCounts& after = engine_->counts();
  result->mads_sent = after.sent - before.sent;
  result->mads_resent = after.resent - before.resent;
  result->mads_timed_out = after.timed_out - before.timed_out;
  result->elapsed = clock_.Monotonic() - start;
  return result;
}

absl::StatusOr<SweepResult> UmadSubnetPort::Sweep(const SweepOptions& wanted) {
  SweepOptions options = wanted;
  options.keep_forwarding_tables = wanted.keep_forwarding_tables && last_tables_ != nullptr;
  options.read_forwarding_tables = !options.keep_forwarding_tables &&
                                   (wanted.read_forwarding_tables || wanted.keep_forwarding_tables);
  RETURN_IF_ERROR(EnsureOpen());
  SweptSubnet swept;
  ASSIGN_OR_RETURN(SweepResult result, Ask([&] { return SweepAll(options, swept); }));
  result.are_tables_kept = options.keep_forwarding_tables;
  if (result.are_tables_kept && !HaveSameLids(*last_fabric_, *result.fabric)) {
    SweepOptions with_tables;  // the old ones would lead elsewhere
    with_tables.between = wanted.between;
    return Sweep(with_tables);
  }
  last_fabric_ = result.fabric;
  last_tables_ = result.tables;
  last_partitions_ = result.partitions;
  swept_ = std::move(swept);
  lids_are_doubtful_ = false;
  RenewAgents(*swept_, agents_);
  return result;
}

absl::StatusOr<SweepResult> UmadSubnetPort::SweepAll(const SweepOptions& options,
                                                     SweptSubnet& swept) {
  is_sweeping_ = true;
  absl::StatusOr<SubnetRecord> subnet = ReadSubnet(*engine_, options, last_partitions_.get());
  is_sweeping_ = false;
  RETURN_IF_ERROR(subnet.status());
  if (last_fabric_ != nullptr) {
    FillFromLast(*last_fabric_, last_tables_.get(), last_partitions_.get(),
                 !options.keep_forwarding_tables, *subnet);
  }
  swept = RememberSwitches(*subnet);
  return AssembleFabric(*std::move(subnet), options);
}

absl::Status UmadSubnetPort::EnsureSwept() {
  if (!is_sweeping_) RETURN_IF_ERROR(EnsureOpen());
  if (swept_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(Describe(), " was not swept yet, or not through this port; sweep it first"));
}

absl::StatusOr<LightSweepResult> UmadSubnetPort::LightSweep() {
  RETURN_IF_ERROR(EnsureSwept());
  return Ask([&] { return SweepLightly(*engine_, *swept_, light_sweeps_++, lids_are_doubtful_); });
}

absl::StatusOr<CounterSweep> UmadSubnetPort::ReadCounters() {
  RETURN_IF_ERROR(EnsureSwept());
  if (lids_are_doubtful_) return CounterSweep();
  return Ask([&] { return coppice::ReadCounters(*engine_, clock_, *swept_, agents_); });
}

}  // namespace coppice
