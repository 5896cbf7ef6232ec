#include "daemon/ib/umad_subnet_port.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/ib/discovery.h"
#include "daemon/ib/fabric_assembly.h"
#include "daemon/ib/last_answers.h"
#include "daemon/ib/light_sweep.h"
#include "daemon/ib/umad_transport.h"

namespace coppice {
namespace {

// Answers that are still under way when the device is closed would find no reader; the simulator's
// preload crashes on them.
constexpr absl::Duration kDrainLimit = absl::Milliseconds(200);

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

absl::Status UmadSubnetPort::EnsureOpen() {
  if (engine_ != nullptr && has_failed_) CloseUnlessStillBest();
  return engine_ != nullptr ? absl::OkStatus() : Open();
}

absl::StatusOr<SweepResult> UmadSubnetPort::Sweep(const SweepOptions& wanted) {
  const absl::Duration start = clock_.Monotonic();
  SweepOptions options = wanted;
  options.keep_forwarding_tables = wanted.keep_forwarding_tables && last_tables_ != nullptr;
  options.read_forwarding_tables = !options.keep_forwarding_tables &&
                                   (wanted.read_forwarding_tables || wanted.keep_forwarding_tables);
  RETURN_IF_ERROR(EnsureOpen());
  const MadCounts before = engine_->counts();
  is_sweeping_ = true;
  absl::StatusOr<SubnetRecord> subnet = Discovery(*engine_).Read(options);
  is_sweeping_ = false;
  has_failed_ = !subnet.ok();
  if (!subnet.ok()) return Annotate(subnet.status(), Describe());
  if (last_fabric_ != nullptr) {
    const bool were_asked = !options.keep_forwarding_tables;
    FillFromLast(*last_fabric_, last_tables_.get(), were_asked, *subnet);
  }
  SweptSubnet swept = RememberSwitches(*subnet);
  absl::StatusOr<SweepResult> result = AssembleFabric(*std::move(subnet), options);
  if (!result.ok()) return Annotate(result.status(), Describe());
  result->are_tables_kept = options.keep_forwarding_tables;
  if (result->are_tables_kept && !HaveSameLids(*last_fabric_, *result->fabric)) {
    SweepOptions with_tables;  // the old ones would lead elsewhere
    with_tables.between = wanted.between;
    return Sweep(with_tables);
  }
  last_fabric_ = result->fabric;
  last_tables_ = result->tables;
  swept_ = std::move(swept);
  lids_are_doubtful_ = false;
  RenewAgents(*swept_, agents_);
  Account(before, start, *result);
  return result;
}

absl::Status UmadSubnetPort::EnsureSwept() {
  if (!is_sweeping_) RETURN_IF_ERROR(EnsureOpen());
  if (swept_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(Describe(), " was not swept yet, or not through this port; sweep it first"));
}

absl::StatusOr<LightSweepResult> UmadSubnetPort::LightSweep() {
  const absl::Duration start = clock_.Monotonic();
  RETURN_IF_ERROR(EnsureSwept());
  const MadCounts before = engine_->counts();
  LightSweeper sweeper(*engine_, *swept_, light_sweeps_++);
  absl::StatusOr<LightSweepResult> result = sweeper.Sweep();
  has_failed_ = !result.ok();
  if (sweeper.lids_are_doubtful()) lids_are_doubtful_ = true;
  if (!result.ok()) return Annotate(result.status(), Describe());
  Account(before, start, *result);
  return result;
}

absl::StatusOr<CounterSweep> UmadSubnetPort::ReadCounters() {
  const absl::Duration start = clock_.Monotonic();
  RETURN_IF_ERROR(EnsureSwept());
  if (lids_are_doubtful_) return CounterSweep();
  const MadCounts before = engine_->counts();
  absl::StatusOr<CounterSweep> result = CounterReader(*engine_, clock_, *swept_, agents_).Read();
  has_failed_ = !result.ok();
  if (!result.ok()) return Annotate(result.status(), Describe());
  Account(before, start, *result);
  return result;
}

// What a call has cost, into its result.
template <typename Result>
void UmadSubnetPort::Account(const MadCounts& before, absl::Duration start, Result& result) const {
  const MadCounts& after = engine_->counts();
  result.mads_sent = after.sent - before.sent;
  result.mads_resent = after.resent - before.resent;
  result.mads_timed_out = after.timed_out - before.timed_out;
  result.elapsed = clock_.Monotonic() - start;
}

}  // namespace coppice
