// Writes a fabric as ibnetdiscover prints it in its default form, so that every tool that reads
// that text reads ours, and ibnetdiscover_reader.h gets an equal fabric back.
#ifndef COPPICE_DAEMON_FABRIC_IBNETDISCOVER_WRITER_H_
#define COPPICE_DAEMON_FABRIC_IBNETDISCOVER_WRITER_H_

#include <string>

#include "daemon/fabric/fabric.h"

namespace coppice {

// Total; the same text for equal fabrics (it bears no date). A capacity that does not follow from
// width and speed is kept as "capacity 192 Gb/s" behind the rate. LMCs are kept for adapters.
// Cost: about 100 bytes a port line.
std::string WriteIbnetdiscover(const Fabric& fabric);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_IBNETDISCOVER_WRITER_H_
