// What UmadSubnetPort does with a device, done with a scripted subnet: one engine, and what the
// last full sweep saw.
#ifndef COPPICE_TESTS_UNIT_IB_SCRIPTED_PORT_H_
#define COPPICE_TESTS_UNIT_IB_SCRIPTED_PORT_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/ib/mad_engine.h"
#include "daemon/ib/swept_subnet.h"
#include "tests/unit/ib/scripted_subnet.h"

namespace coppice {

class ScriptedPort {
 public:
  explicit ScriptedPort(ScriptedSubnet& subnet, MadEngineOptions options = {})
      : subnet_(subnet), engine_(subnet, subnet, options) {}

  absl::Status Sweep() {
    absl::StatusOr<SubnetRecord> record = ReadSubnet(engine_, {});
    if (!record.ok()) return record.status();
    swept_ = RememberSwitches(*record);
    const absl::StatusOr<SweepResult> result = AssembleFabric(*std::move(record), {});
    if (!result.ok()) return result.status();
    RenewAgents(swept_, agents_);
    return absl::OkStatus();
  }
  absl::StatusOr<LightSweepResult> LightSweep() {
    lids_are_doubtful_ = false;
    return SweepLightly(engine_, swept_, light_sweeps_++, lids_are_doubtful_);
  }
  // By the last light sweep.
  bool lids_are_doubtful() const { return lids_are_doubtful_; }
  absl::StatusOr<CounterSweep> ReadCounters() {
    return coppice::ReadCounters(engine_, subnet_, swept_, agents_);
  }
  const MadCounts& counts() const { return engine_.counts(); }

 private:
  ScriptedSubnet& subnet_;
  MadEngine engine_;
  SweptSubnet swept_;
  uint32_t light_sweeps_ = 0;
  bool lids_are_doubtful_ = false;
  PerformanceAgents agents_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_IB_SCRIPTED_PORT_H_
