// Linear forwarding tables of a subnet's switches (IBA vol. 1, 14.2.5.10): for each switch and
// destination LID the port that a packet leaves by. Immutable once shared.
#ifndef COPPICE_DAEMON_FABRIC_FORWARDING_TABLES_H_
#define COPPICE_DAEMON_FABRIC_FORWARDING_TABLES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
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

// Forwarding tables as text: what `ibroute` prints for one switch and `dump_lfts` for all of them.
//
//   Unicast lids [0x0-0x91] of switch Lid 142 guid 0x0008f10500108c9e (Voltaire 4036 # 4036-8C9E):
//     Lid  Out   Destination
//          Port     Info
//   0x0001 001 : (Channel Adapter portguid 0x0002c9030002da23: 'bonobo020 HCA-1')
//   134 valid lids dumped
//
// Reads the tables of one or many switches, in any order, out of one or many texts. Switches are
// found by GUID; those of the fabric that no text has get empty tables; destinations that the
// fabric does not know are kept, because a table may be newer than the fabric's file. Port 255 is
// no route.
class ForwardingTableReader {
 public:
  explicit ForwardingTableReader(const Fabric& fabric)
      : fabric_(fabric), tables_(fabric.switch_count()), seen_(fabric.switch_count(), false) {}

  // Whole tables. INVALID_ARGUMENT, naming line and switch: an unknown switch, one named twice, a
  // LID outside the table's range or above 0xbfff (IBA vol. 1, 4.1.3) or twice, a port above the
  // switch's count, a table that ends early or with another count than it states, a line that is
  // none of these. O(text).
  absl::Status Read(absl::string_view text);
  // Lines after a table in which ibroute says that it failed ("iberror: ..."): passed over.
  uint32_t skipped() const { return skipped_; }
  ForwardingTables Take() { return std::move(tables_); }

 private:
  absl::Status Bad(absl::string_view what) const;
  absl::Status ReadLine(absl::string_view line);
  absl::Status ReadHeader(absl::string_view line);
  absl::Status ReadRoute(absl::string_view line);
  absl::Status ReadTrailer(absl::string_view line);

  const Fabric& fabric_;
  ForwardingTables tables_;
  std::vector<bool> seen_;    // [switch]
  uint64_t line_number_ = 0;  // in the text at hand
  uint32_t skipped_ = 0;

  // The table being read.
  bool open_ = false;
  SwitchIndex switch_;
  uint64_t first_lid_ = 0;
  std::vector<uint8_t> row_;
  std::vector<bool> listed_;  // [LID]
  uint32_t routes_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_FORWARDING_TABLES_H_
