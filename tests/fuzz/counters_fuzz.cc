// A small subnet that is swept soundly and then answers what the input says, to light sweeps and to
// readings of counters: two bytes an answer, one of its offset and one of its value, until the
// input is used up. Either may fail to hear anything, but must end, may not read a port twice, and
// may not find a port that is not there.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "tests/unit/ib/scripted_port.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  coppice::ScriptedSubnet subnet;
  subnet.Add(1, 1, "n0 mlx5_0", 1);
  subnet.Add(2, 4, "S0", 2);
  subnet.Add(2, 4, "S1", 3);
  subnet.Add(1, 1, "n1 mlx5_0", 4);
  subnet.Cable(0, 1, 1, 1);
  subnet.Cable(1, 2, 2, 2);
  subnet.Cable(1, 3, 2, 3);
  subnet.Cable(2, 1, 3, 1);
  subnet.node(1).class_port_info[2] = 0x12;  // extended counters
  coppice::ScriptedPort port(subnet, {.max_attempts = 2});
  if (!port.Sweep().ok()) std::abort();
  size_t used = 0;
  subnet.on_reply = [&](int, int, coppice::Mad& reply) {
    if (used + 2 > size) return 1;
    const uint8_t offset = bytes[used++], value = bytes[used++];
    if (offset == 255) return value % 3;  // lost, delivered, doubled
    reply[offset] = value;
    return 1;
  };
  for (int round = 0; round < 2; ++round) {
    const absl::StatusOr<coppice::LightSweepResult> light = port.LightSweep();
    if (light.ok() && light->has_changed == light->what.empty()) std::abort();
    const absl::StatusOr<coppice::CounterSweep> counters = port.ReadCounters();
    if (counters.ok() && counters->readings.size() > 6) std::abort();
  }
  return 0;
}
