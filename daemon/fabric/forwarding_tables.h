// Linear forwarding tables of a subnet's switches (IBA vol. 1, 14.2.5.10): for each switch and
// destination LID the port that a packet leaves by. Immutable once shared.
#ifndef COPPICE_DAEMON_FABRIC_FORWARDING_TABLES_H_
#define COPPICE_DAEMON_FABRIC_FORWARDING_TABLES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/strong_id.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

inline constexpr uint16_t kMaxUnicastLid = 0xBFFF;  // IBA vol. 1, 4.1.3

class ForwardingTables {
 public:
  static constexpr uint8_t kNoRoute = 255;  // IBA vol. 1, 14.2.5.10

  explicit ForwardingTables(uint32_t switch_count) : rows_(switch_count) {}

  // Replaces the table of one switch: row[lid] = port. LIDs beyond its end have no route.
  void SetRow(SwitchIndex s, std::vector<uint8_t> row) { rows_[s.value()] = std::move(row); }
  absl::Span<const uint8_t> row(SwitchIndex s) const { return rows_[s.value()]; }
  uint32_t switch_count() const { return static_cast<uint32_t>(rows_.size()); }

  // kNoRoute where the table says nothing; 0 = the switch itself.
  uint8_t port(SwitchIndex s, Lid lid) const {
    const std::vector<uint8_t>& row = rows_[s.value()];
    return lid.value() < row.size() ? row[lid.value()] : kNoRoute;
  }
  friend bool operator==(const ForwardingTables&, const ForwardingTables&) = default;

 private:
  std::vector<std::vector<uint8_t>> rows_;  // [switch][LID]
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_FORWARDING_TABLES_H_
