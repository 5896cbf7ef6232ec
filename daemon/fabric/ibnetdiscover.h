// Fabrics as ibnetdiscover prints them: read, and written.
#ifndef COPPICE_DAEMON_FABRIC_IBNETDISCOVER_H_
#define COPPICE_DAEMON_FABRIC_IBNETDISCOVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/topology_lines.h"

namespace coppice {

// Reads the two texts that ibnetdiscover prints: its default form, and the report of -p. Both may
// carry the tool's chatter ("DR path ...", "ibwarn: ...") in front and in between.
//
// Must not guess: whatever is not understood is an error with its line.

// The default form:
//
//     Switch  36 "S-0002c9020040b0e0"      # "leaf 3" enhanced port 0 lid 7 lmc 0
//     [1]  "H-0002c9030006db4c"[1](2c9030006db4d)      # "n1 mlx5_0" lid 3 4xQDR
//     Ca  1 "H-0002c9030006db4c"           # "n1 mlx5_0"
//     [1](2c9030006db4d)  "S-0002c9020040b0e0"[1]      # lid 3 lmc 0 "leaf 3" lid 7 4xQDR
//
// also with -f and -g, and with our own "capacity 192 Gb/s" behind a rate that names none. Comments
// may be missing: then LIDs are 0, rates unknown, descriptions empty. Every cable must be stated at
// both ends. INVALID_ARGUMENT: origin, line and object; else what `lines` cannot read.
absl::StatusOr<std::shared_ptr<const Fabric>> ReadIbnetdiscover(TopologyLines& lines);

// The report of -p, one line a port:
//
//     CA   3  1 0x0002c9030006db4d 4x QDR - SW   7  1 0x0002c9020040b0e0 ( 'n1 mlx5_0' - 'leaf 3' )
//     SW   7  2 0x0002c9020040b0e0 4x ???                                    'leaf 3'
//
// It names ports only, so: a node has as many ports as its highest line; an adapter's GUID is its
// port GUID less the port number, as vendors number them, and the port GUID itself where that
// would merge adapters with different descriptions. Errors as above.
absl::StatusOr<std::shared_ptr<const Fabric>> ReadIbnetdiscoverPorts(TopologyLines& lines);

// Writes a fabric as ibnetdiscover prints it in its default form, so that every tool that reads
// that text reads ours, and the reader gets an equal fabric back.

// Total; the same text for equal fabrics (it bears no date). A capacity that does not follow from
// width and speed is kept as "capacity 192 Gb/s" behind the rate. LMCs are kept for adapters.
// Cost: about 100 bytes a port line.
std::string WriteIbnetdiscover(const Fabric& fabric);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_IBNETDISCOVER_H_
