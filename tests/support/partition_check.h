// The verifier of what partitions let speak, by the keys of tables as `smpquery pkeys` prints them
// and by the edges of trees alone (IBA vol. 1, 10.9.3). Shares no code with the daemon.
#ifndef COPPICE_TESTS_SUPPORT_PARTITION_CHECK_H_
#define COPPICE_TESTS_SUPPORT_PARTITION_CHECK_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace coppice {

using KeyTables = std::map<uint64_t, std::vector<uint16_t>>;  // GUID -> keys
using GuidEdges = std::vector<std::pair<uint64_t, uint64_t>>;

inline bool HoldsKey(const KeyTables& tables, uint64_t guid, int key) {
  const auto table = tables.find(guid);
  if (table == tables.end()) return false;
  for (const uint16_t one : table->second) {
    if (one == key) return true;
  }
  return false;
}

// Whether two ports may speak in the partition of that number.
inline bool TheySpeak(const KeyTables& tables, uint64_t a, uint64_t b, int number) {
  const int full = number + 0x8000;
  const bool a_full = HoldsKey(tables, a, full), b_full = HoldsKey(tables, b, full);
  const bool a_any = a_full || HoldsKey(tables, a, number);
  const bool b_any = b_full || HoldsKey(tables, b, number);
  return (a_full && b_any) || (b_full && a_any);
}

// Whether every edge can be crossed in that one partition.
inline bool AllSpeak(const KeyTables& tables, const GuidEdges& edges, int number) {
  for (const auto& [a, b] : edges) {
    if (!TheySpeak(tables, a, b, number)) return false;
  }
  return true;
}

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_PARTITION_CHECK_H_
