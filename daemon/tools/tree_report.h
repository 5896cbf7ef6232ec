// A plan as coppice-plan prints it: JSON for programs, in the shape that coppicectl prints too, and
// a drawn tree for people. Decides nothing.
#ifndef COPPICE_DAEMON_TOOLS_TREE_REPORT_H_
#define COPPICE_DAEMON_TOOLS_TREE_REPORT_H_

#include <string>

#include "daemon/fabric/snapshot.h"
#include "daemon/tree/planner.h"

namespace coppice {

// IDs are rank:R and switch:GUID. Of several ranks on one port, the lowest stands for the port in
// "physical".
std::string TreeToJson(const Snapshot& snapshot, const TreePlan& plan);

// Type, times and reason, then the tree from its root, runs of leaf ranks joined.
std::string TreeToText(const Snapshot& snapshot, const TreePlan& plan);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_TREE_REPORT_H_
