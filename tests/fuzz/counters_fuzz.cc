// A small subnet that is swept soundly and then answers what the input says, to light sweeps and to
// readings of counters: two bytes an answer, one of its offset and one of its value, until the
// input is used up. Either may fail to hear anything, but must end, may not read a port twice, and
// may not find a port that is not there.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <utility>

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
  const uint64_t s0 = subnet.node(1).guid, s1 = subnet.node(2).guid;
  const std::set<std::pair<uint64_t, int>> cabled = {{s0, 1}, {s0, 2}, {s0, 3},
                                                     {s1, 1}, {s1, 2}, {s1, 3}};
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
    if (!counters.ok()) continue;
    std::set<std::pair<uint64_t, int>> left = cabled;
    for (const coppice::CounterReading& reading : counters->readings) {
      if (left.erase({reading.node.value(), reading.port.value()}) == 0) std::abort();
    }
  }
  return 0;
}
