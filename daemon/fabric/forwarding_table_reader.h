// Forwarding tables as text: what `ibroute` prints for one switch and `dump_lfts` for all of them.
//
//   Unicast lids [0x0-0x91] of switch Lid 142 guid 0x0008f10500108c9e (Voltaire 4036 # 4036-8C9E):
//     Lid  Out   Destination
//          Port     Info
//   0x0001 001 : (Channel Adapter portguid 0x0002c9030002da23: 'bonobo020 HCA-1')
//   134 valid lids dumped
#ifndef COPPICE_DAEMON_FABRIC_FORWARDING_TABLE_READER_H_
#define COPPICE_DAEMON_FABRIC_FORWARDING_TABLE_READER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/forwarding_tables.h"

namespace coppice {

// Reads the tables of one or many switches, in any order. Switches are found by GUID; those of the
// fabric that the text leaves out have empty tables; destinations that the fabric does not know are
// kept, because a table may be newer than the fabric's file. Port 255 is no route.
// INVALID_ARGUMENT, naming line and switch: an unknown switch, one named twice, a LID outside the
// table's range or above 0xbfff (IBA vol. 1, 4.1.3) or twice, a port above the switch's count, a
// table that ends early or with another count than it states, a line that is none of these.
// O(text).
absl::StatusOr<ForwardingTables> ReadForwardingTables(const Fabric& fabric, absl::string_view text);

// The same form, switches by index; switches without a table are left out.
// ReadForwardingTables returns tables that answer port() alike. O(switches * LIDs).
std::string WriteForwardingTables(const Fabric& fabric, const ForwardingTables& tables);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_FORWARDING_TABLE_READER_H_
