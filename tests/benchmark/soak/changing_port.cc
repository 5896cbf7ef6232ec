#include "tests/benchmark/soak/changing_port.h"

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/fabric_builder.h"

namespace coppice {
namespace {

Guid NodeOf(const Fabric& fabric, VertexIndex v) {
  if (fabric.IsSwitch(v)) return fabric.switch_info(fabric.AsSwitch(v)).guid;
  return fabric.adapter(fabric.AsEndpoint(v)).guid;
}

// `whole` without some of its links: an adapter without a cable stays a node without ports.
absl::StatusOr<std::shared_ptr<const Fabric>> Without(const Fabric& whole,
                                                      const std::set<uint32_t>& cut) {
  FabricBuilder builder;
  for (uint32_t s = 0; s < whole.switch_count(); ++s) {
    RETURN_IF_ERROR(builder.AddSwitch(whole.switch_info(SwitchIndex(s))));
  }
  for (uint32_t a = 0; a < whole.adapter_count(); ++a) {
    RETURN_IF_ERROR(builder.AddAdapter(whole.adapter(AdapterIndex(a))));
  }
  for (uint32_t e = 0; e < whole.endpoint_count(); ++e) {
    const EndpointInfo& info = whole.endpoint(EndpointIndex(e));
    const Guid adapter = whole.adapter(EndpointIndex(e)).guid;
    RETURN_IF_ERROR(builder.SetAdapterPort(adapter, info.port, info.port_guid, info.lid, info.lmc));
  }
  for (uint32_t l = 0; l < whole.link_count(); ++l) {
    if (cut.contains(l)) continue;
    const LinkInfo& link = whole.link(LinkIndex(l));
    RETURN_IF_ERROR(builder.AddLink(NodeOf(whole, link.a), link.a_port, NodeOf(whole, link.b),
                                    link.b_port, link.rate, link.capacity_gbps));
  }
  return builder.Build();
}

}  // namespace

void ChangingPort::Change() {
  std::lock_guard lock(mu_);
  if (random_() % kMaxCut < cut_.size()) {
    cut_.erase(std::next(cut_.begin(), static_cast<int64_t>(random_() % cut_.size())));
  } else {
    cut_.insert(static_cast<uint32_t>(random_() % whole_->link_count()));
  }
}

absl::StatusOr<SweepResult> ChangingPort::Sweep(const SweepOptions&) {
  std::lock_guard lock(mu_);
  SweepResult result;
  ASSIGN_OR_RETURN(result.fabric, Without(*whole_, cut_));
  swept_ = result.fabric;
  swept_cut_ = cut_;
  return result;
}

absl::StatusOr<LightSweepResult> ChangingPort::LightSweep() {
  std::lock_guard lock(mu_);
  LightSweepResult result;
  result.has_changed = cut_ != swept_cut_;
  if (result.has_changed) result.what = absl::StrCat(cut_.size(), " links are cut now");
  return result;
}

absl::StatusOr<CounterSweep> ChangingPort::ReadCounters() {
  std::lock_guard lock(mu_);
  if (swept_ == nullptr) return absl::FailedPreconditionError("no sweep came before");
  clock_->Advance(++readings_ % 3 == 0 ? absl::Hours(12) : absl::Seconds(30));
  CounterSweep sweep;
  for (uint32_t s = 0; s < swept_->switch_count(); ++s) {
    const SwitchInfo& info = swept_->switch_info(SwitchIndex(s));
    for (int port = 1; port <= info.port_count; ++port) {
      const PortNum number(static_cast<uint8_t>(port));
      if (swept_->channel_at(SwitchIndex(s), number) == kNoChannel) continue;
      PortCounters& counts = counts_[{info.guid, number}];
      if ((s + static_cast<uint32_t>(port) + readings_) % 2 == 0) {
        counts.sent_bytes += 1'000'000'000 + random_() % 100'000'000'000;
        counts.received_bytes += 1'000'000'000 + random_() % 100'000'000'000;
        counts.symbol_errors += random_() % 1000 == 0 ? 1000 : 0;
      }
      CounterReading reading;
      reading.node = info.guid;
      reading.port = number;
      reading.values = counts;
      reading.is_extended = reading.has_extended_errors = true;
      reading.when = clock_->Monotonic();
      sweep.readings.push_back(reading);
    }
  }
  return sweep;
}

}  // namespace coppice
