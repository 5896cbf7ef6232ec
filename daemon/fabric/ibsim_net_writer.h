// Writes a fabric as a net file for ibsim, the simulated subnet that tests and demonstrations run
// on.
#ifndef COPPICE_DAEMON_FABRIC_IBSIM_NET_WRITER_H_
#define COPPICE_DAEMON_FABRIC_IBSIM_NET_WRITER_H_

#include <string>

#include "daemon/fabric/fabric.h"

namespace coppice {

// Total; the same text for equal fabrics. Nodes are named by the host (adapters) or the description
// (switches), then by the whole description, then by letter and GUID, whichever is unique first;
// characters other than letters, digits, '_', '.' and '-' become '_', so that SIM_HOST=n0000 and
// ibsim's `Unlink "S5"[1]` work.
//
// What ibsim cannot hold: port GUIDs other than node GUID + port, vendor ids, 2x links and speeds
// beyond QDR (it gets the widest and fastest it knows below them) and capacities, which a comment
// keeps for ibsim_net_reader.h, node descriptions beyond 64 characters.
std::string WriteIbsimNet(const Fabric& fabric);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_IBSIM_NET_WRITER_H_
