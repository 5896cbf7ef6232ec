// Fabrics as ibsim's net files tell them: read, and written.
#ifndef COPPICE_DAEMON_FABRIC_IBSIM_NET_H_
#define COPPICE_DAEMON_FABRIC_IBSIM_NET_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/topology_lines.h"

namespace coppice {

// Reads ibsim's net files: topology text with node names of any kind and GUIDs counted up from a
// base. A file that ibsim loads and that this reads gives the fabric that ibsim then simulates.

// Understood: Switch, Hca, Ca and Rt headers, port lines with w= and s= options and "lid N lmc N",
// switchguid, hcaguids, caguid and rtguid with = or +, devid, width, speed, module prefixes,
// comments. Not understood, and refused by name: include, do, pdebug and aliases (@).
//
// A node without a GUID of its own gets the next one, as ibsim counts: switches from 0x200000 by 1,
// adapters from 0x100000 by their ports + 1. A rate and a capacity in a port line's comment, where
// our writer keeps what ibsim cannot say, go before w= and s=. INVALID_ARGUMENT: origin, line,
// object; else what `lines` cannot read.
absl::StatusOr<std::shared_ptr<const Fabric>> ReadIbsimNet(TopologyLines& lines);

// Writes a fabric as a net file for ibsim, the simulated subnet that tests and demonstrations run
// on.

// Total; the same text for equal fabrics. Nodes are named by the host (adapters) or the description
// (switches), then by the whole description, then by letter and GUID, whichever is unique first;
// characters other than letters, digits, '_', '.' and '-' become '_', so that SIM_HOST=n0000 and
// ibsim's `Unlink "S5"[1]` work.
//
// What ibsim cannot hold: port GUIDs other than node GUID + port, vendor ids, 2x links and speeds
// beyond QDR (it gets the widest and fastest it knows below them) and capacities, which a comment
// keeps for the reader, node descriptions beyond 64 characters.
std::string WriteIbsimNet(const Fabric& fabric);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_IBSIM_NET_H_
