// Arbitrary bytes as forwarding tables of a small fabric: no crash, and what is read is written and
// read again alike.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "daemon/fabric/forwarding_tables.h"
#include "tests/support/fabrics.h"
#include "tests/support/tables.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const coppice::FabricPtr fabric = coppice::TwoLevelFatTree(2, 2, 2);
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tables = coppice::ReadForwardingTables(*fabric, text);
  if (!tables.ok()) return 0;
  const auto again =
      coppice::ReadForwardingTables(*fabric, coppice::WriteForwardingTables(*fabric, *tables));
  if (!again.ok() || !(*again == *tables)) std::abort();
  return 0;
}
