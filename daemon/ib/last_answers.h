// What a node was silent about, taken from the sweep before: one lost answer must not cost a switch
// its name, by which rules find it, or its routes.
//
// Only silence is filled in. What a node refuses to say it does not have, and of a table that is
// longer or shorter than the last one nothing is known.
#ifndef COPPICE_DAEMON_IB_LAST_ANSWERS_H_
#define COPPICE_DAEMON_IB_LAST_ANSWERS_H_

#include "daemon/fabric/fabric.h"
#include "daemon/fabric/forwarding_tables.h"
#include "daemon/ib/swept_subnet.h"

namespace coppice {

// Fills in descriptions and tables, by GUID. What is not in `fabric` stays as it is; `tables`
// (null: there are none) are of that fabric; `were_tables_asked` is false where no switch was asked
// for its table. What did not answer stays noted. O(nodes + LIDs that are missing).
void FillFromLast(const Fabric& fabric, const ForwardingTables* tables, bool were_tables_asked,
                  SubnetRecord& subnet);

}  // namespace coppice

#endif  // COPPICE_DAEMON_IB_LAST_ANSWERS_H_
