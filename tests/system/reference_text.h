// What the reference tools print, as sorted lines that a Fabric and its tables can be turned into
// too. Reads the tools' text by itself, without the project's readers, so that a fault shared by
// reader and discovery would show.
#ifndef COPPICE_TESTS_SYSTEM_REFERENCE_TEXT_H_
#define COPPICE_TESTS_SYSTEM_REFERENCE_TEXT_H_

#include <string>
#include <vector>

#include "daemon/fabric/fabric.h"
#include "daemon/fabric/forwarding_tables.h"

namespace coppice {

using Lines = std::vector<std::string>;  // sorted

// Nodes: `S 200000 ports 36 "L0" lid 3`, `H 100000 ports 1 "n0"`. Cables, from both ends:
// `S 200000[17] H 100000[1] 4xQDR`; ports of adapters: `H 100000[1] guid 100001 lid 1 lmc 0`.
Lines DescribeFabric(const Fabric& fabric);
Lines DescribeIbnetdiscover(const std::string& text);

// One line for every 16 LIDs of a switch that have a route: `S 200000 LIDs from 16: 16:3 17:4`.
// dump_lfts' text may be cut behind the ports. A top LID that begins a block of 64 is left out, as
// the tool leaves it out.
Lines DescribeTables(const Fabric& fabric, const ForwardingTables& tables);
Lines DescribeDumpLfts(const std::string& text);

// Ports that a packet leaves switches by, from `ibtracert FROM TO`: {{guid, port}, ...} as text
// `S 200000[17]`.
std::vector<std::string> SwitchHopsOfIbtracert(const std::string& text);

// At most ten lines that are in one only, "-" and "+" in front; empty if both are equal.
std::string Difference(const Lines& expected, const Lines& found);

}  // namespace coppice

#endif  // COPPICE_TESTS_SYSTEM_REFERENCE_TEXT_H_
