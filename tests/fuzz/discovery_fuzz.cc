// A small subnet whose nodes answer what the input says: two bytes an answer, one of its offset and
// one of its value, until the input is used up. A sweep may come out incomplete or unavailable, but
// must end and must make a fabric that its builder accepts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "daemon/ib/swept_subnet.h"
#include "tests/unit/ib/scripted_subnet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  coppice::ScriptedSubnet subnet;
  subnet.Add(1, 2, "n0 mlx5_0", 1);
  subnet.Add(2, 4, "S0", 2);
  subnet.Add(2, 4, "S1", 3);
  subnet.Add(1, 1, "n1 mlx5_0", 4);
  subnet.Cable(0, 1, 1, 1);
  subnet.Cable(1, 2, 2, 2);
  subnet.Cable(1, 3, 2, 3);
  subnet.Cable(2, 1, 3, 1);
  subnet.node(1).table.assign(70, 2);
  size_t used = 0;
  subnet.on_reply = [&](int, int, coppice::Mad& reply) {
    if (used + 2 > size) return 1;
    const uint8_t offset = bytes[used++], value = bytes[used++];
    if (offset == 255) return value % 3;  // lost, delivered, doubled
    reply[offset] = value;
    return 1;
  };
  coppice::MadEngine engine(subnet, subnet, {.max_attempts = 2});
  absl::StatusOr<coppice::SubnetRecord> record = coppice::ReadSubnet(engine, {});
  if (record.ok() && !coppice::AssembleFabric(*std::move(record), {}).ok()) std::abort();
  return 0;
}
