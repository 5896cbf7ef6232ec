// Reads ibsim's net files: topology text with node names of any kind and GUIDs counted up from a
// base. A file that ibsim loads and that this reads gives the fabric that ibsim then simulates.
#ifndef COPPICE_DAEMON_FABRIC_IBSIM_NET_READER_H_
#define COPPICE_DAEMON_FABRIC_IBSIM_NET_READER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/topology_lines.h"

namespace coppice {

// Understood: Switch, Hca, Ca and Rt headers, port lines with w= and s= options and "lid N lmc N",
// switchguid, hcaguids, caguid and rtguid with = or +, devid, width, speed, module prefixes,
// comments. Not understood, and refused by name: include, do, pdebug and aliases (@).
//
// A node without a GUID of its own gets the next one, as ibsim counts: switches from 0x200000 by 1,
// adapters from 0x100000 by their ports + 1. A rate and a capacity in a port line's comment, where
// our writer keeps what ibsim cannot say, go before w= and s=. INVALID_ARGUMENT: origin, line,
// object; else what `lines` cannot read.
absl::StatusOr<std::shared_ptr<const Fabric>> ReadIbsimNet(TopologyLines& lines);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_IBSIM_NET_READER_H_
