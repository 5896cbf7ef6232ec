// A subnet for the soak: a port that hands out one fabric with links cut and mended at random, and
// counts that rise while a clock that it turns itself goes through weeks. Knows no manager.
//
//   ReadCounters:  30 s   30 s   12 h   30 s   30 s   12 h  ...   since the reading before
//
// So each resolution of history fills up to what is kept of it within some hundred readings.
#ifndef COPPICE_TESTS_BENCHMARK_SOAK_CHANGING_PORT_H_
#define COPPICE_TESTS_BENCHMARK_SOAK_CHANGING_PORT_H_

#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "daemon/fabric/fabric.h"
#include "daemon/fabric/subnet_port.h"
#include "tests/support/manual_clock.h"

namespace coppice {

// Thread-safe. `clock` outlives it.
class ChangingPort final : public SubnetPort {
 public:
  ChangingPort(std::shared_ptr<const Fabric> whole, ManualClock* clock, uint64_t seed)
      : whole_(std::move(whole)), clock_(clock), random_(seed) {}

  // Cuts a link or mends one; the more are cut, the likelier it mends. Cuts those of hosts, too.
  void Change();

  std::string Describe() const override { return "soak"; }
  absl::StatusOr<SweepResult> Sweep(const SweepOptions& options) override;
  absl::StatusOr<LightSweepResult> LightSweep() override;
  // Half of the ports count something, by their number and the reading's.
  absl::StatusOr<CounterSweep> ReadCounters() override;

 private:
  static constexpr uint32_t kMaxCut = 8;

  const std::shared_ptr<const Fabric> whole_;
  ManualClock* const clock_;

  std::mutex mu_;
  // Guarded by mu_.
  std::mt19937_64 random_;
  std::set<uint32_t> cut_, swept_cut_;  // links of whole_: now, and at the last sweep
  std::shared_ptr<const Fabric> swept_;
  std::map<std::pair<Guid, PortNum>, PortCounters> counts_;
  uint64_t readings_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_BENCHMARK_SOAK_CHANGING_PORT_H_
