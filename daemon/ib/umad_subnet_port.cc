#include "daemon/ib/umad_subnet_port.h"

#include <utility>

#include "absl/memory/memory.h"
#include "daemon/base/status_macros.h"
#include "daemon/ib/discovery.h"
#include "daemon/ib/fabric_assembly.h"
#include "daemon/ib/umad_transport.h"

namespace coppice {
namespace {

// Answers that are still under way when the device is closed would find no reader; the simulator's
// preload crashes on them.
constexpr absl::Duration kDrainLimit = absl::Milliseconds(200);

}  // namespace

absl::StatusOr<std::unique_ptr<UmadSubnetPort>> UmadSubnetPort::Create(absl::string_view spec,
                                                                       SmpEngineOptions options,
                                                                       const Clock& clock) {
  ASSIGN_OR_RETURN(PortSelection wanted, ParsePortSelection(spec));
  return absl::WrapUnique(new UmadSubnetPort(std::move(wanted), options, clock));
}

UmadSubnetPort::UmadSubnetPort(PortSelection wanted, SmpEngineOptions options, const Clock& clock)
    : wanted_(std::move(wanted)), options_(options), clock_(clock) {}

UmadSubnetPort::~UmadSubnetPort() { Close(); }

std::string UmadSubnetPort::Describe() const {
  return ToString(engine_ != nullptr ? port_ : wanted_);
}

absl::Status UmadSubnetPort::Open() {
  ASSIGN_OR_RETURN(port_, FindPort(wanted_));
  ASSIGN_OR_RETURN(transport_, UmadTransport::Open(port_));
  engine_ = std::make_unique<SmpEngine>(*transport_, clock_, options_);
  return absl::OkStatus();
}

void UmadSubnetPort::Close() {
  if (engine_ == nullptr) return;
  if (!transport_->is_dead()) engine_->Drain(kDrainLimit);
  engine_.reset();
  transport_.reset();
}

// A port that serves is never closed: the simulator does not bear it.
void UmadSubnetPort::CloseUnlessStillBest() {
  if (transport_->is_dead()) return Close();
  const absl::StatusOr<PortSelection> best = FindPort(wanted_);
  if (best.ok() && *best != port_) Close();
}

absl::StatusOr<SweepResult> UmadSubnetPort::Sweep(const SweepOptions& options) {
  const absl::Duration start = clock_.Monotonic();
  if (engine_ != nullptr && last_sweep_failed_) CloseUnlessStillBest();
  if (engine_ == nullptr) RETURN_IF_ERROR(Open());
  const SmpCounters before = engine_->counters();
  absl::StatusOr<SubnetRecord> subnet = Discovery(*engine_).Read(options);
  last_sweep_failed_ = !subnet.ok();
  if (!subnet.ok()) return Annotate(subnet.status(), Describe());
  absl::StatusOr<SweepResult> result = AssembleFabric(*std::move(subnet), options);
  if (!result.ok()) return Annotate(result.status(), Describe());
  const SmpCounters& after = engine_->counters();
  result->mads_sent = after.sent - before.sent;
  result->mads_resent = after.resent - before.resent;
  result->mads_timed_out = after.timed_out - before.timed_out;
  result->elapsed = clock_.Monotonic() - start;
  return result;
}

absl::StatusOr<LightSweepResult> UmadSubnetPort::LightSweep() {
  return absl::UnimplementedError("light sweeps are not read from a live subnet yet");
}

absl::StatusOr<CounterSweep> UmadSubnetPort::ReadCounters() {
  return absl::UnimplementedError("counters are not read from a live subnet yet");
}

}  // namespace coppice
