// A subnet port that stands between a daemon and its real one, so that a test knows which readings
// of counters the daemon has: it notes them, and while it is held lets them pass one at a time.
// Everything else passes as it is.
//
//   gate.Hold();  AwaitTaken      the daemon has what was read last, and nothing newer comes
//   gate.Let();   AwaitTaken      the daemon has exactly one reading more
//   gate.Open();                  as if it were not there
#ifndef COPPICE_TESTS_SYSTEM_COUNTER_GATE_H_
#define COPPICE_TESTS_SYSTEM_COUNTER_GATE_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "daemon/fabric/subnet_port.h"

namespace coppice {

class CounterGate final : public SubnetPort {
 public:
  using Place = std::pair<Guid, PortNum>;

  // `port` outlives this.
  explicit CounterGate(SubnetPort* port) : port_(port) {}

  std::string Describe() const override { return port_->Describe(); }
  absl::StatusOr<SweepResult> Sweep(const SweepOptions& options) override;
  absl::StatusOr<LightSweepResult> LightSweep() override;
  // While it is held and nothing is let: a sweep that has read nothing.
  absl::StatusOr<CounterSweep> ReadCounters() override;

  // Thread-safe, all of them.
  void Hold();
  void Let();
  void Open();
  // Whether whoever reads has come back for something else since the last reading that passed: one
  // thread owns a port, so it has made of that reading what it makes of readings.
  bool IsTaken() const;
  // What passed last, by port.
  std::map<Place, CounterReading> Readings() const;
  // Management packets of all sweeps so far.
  uint64_t PacketsSent() const;

 private:
  void Enter();
  void Count(uint64_t packets);

  SubnetPort* const port_;
  mutable std::mutex mu_;
  // Guarded by mu_.
  bool held_ = false, is_let_ = false, is_reading_ = false, is_taken_ = true;
  uint64_t packets_ = 0;
  std::map<Place, CounterReading> readings_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_SYSTEM_COUNTER_GATE_H_
