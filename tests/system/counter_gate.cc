#include "tests/system/counter_gate.h"

namespace coppice {

void CounterGate::Enter() {
  std::lock_guard lock(mu_);
  is_taken_ = true;
}

void CounterGate::Count(uint64_t packets) {
  std::lock_guard lock(mu_);
  packets_ += packets;
}

absl::StatusOr<SweepResult> CounterGate::Sweep(const SweepOptions& options) {
  Enter();
  absl::StatusOr<SweepResult> result = port_->Sweep(options);
  if (result.ok()) Count(result->mads_sent);
  return result;
}

absl::StatusOr<LightSweepResult> CounterGate::LightSweep() {
  Enter();
  absl::StatusOr<LightSweepResult> result = port_->LightSweep();
  if (result.ok()) Count(result->mads_sent);
  return result;
}

absl::StatusOr<CounterSweep> CounterGate::ReadCounters() {
  Enter();
  {
    std::lock_guard lock(mu_);
    if (held_ && !is_let_) return CounterSweep();
    is_reading_ = true;
  }
  absl::StatusOr<CounterSweep> sweep = port_->ReadCounters();
  std::lock_guard lock(mu_);
  is_reading_ = false;
  if (!sweep.ok() || sweep->readings.empty()) return sweep;  // what was let is still to come
  is_let_ = is_taken_ = false;
  packets_ += sweep->mads_sent;
  readings_.clear();
  for (const CounterReading& reading : sweep->readings) {
    readings_[{reading.node, reading.port}] = reading;
  }
  return sweep;
}

void CounterGate::Hold() {
  std::lock_guard lock(mu_);
  held_ = true;
}

void CounterGate::Let() {
  std::lock_guard lock(mu_);
  is_let_ = true;
}

void CounterGate::Open() {
  std::lock_guard lock(mu_);
  held_ = is_let_ = false;
}

bool CounterGate::IsTaken() const {
  std::lock_guard lock(mu_);
  return !is_let_ && !is_reading_ && is_taken_;
}

std::map<CounterGate::Place, CounterReading> CounterGate::Readings() const {
  std::lock_guard lock(mu_);
  return readings_;
}

uint64_t CounterGate::PacketsSent() const {
  std::lock_guard lock(mu_);
  return packets_;
}

}  // namespace coppice
