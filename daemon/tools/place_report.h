// A placement as coppice-plan prints it: JSON with the names that the service's messages have, and
// lines for people. Decides nothing.
#ifndef COPPICE_DAEMON_TOOLS_PLACE_REPORT_H_
#define COPPICE_DAEMON_TOOLS_PLACE_REPORT_H_

#include <string>

#include "daemon/placement/placer.h"

namespace coppice {

std::string PlacementToJson(const Fabric& fabric, const PlacementPlan& plan);
std::string PlacementToText(const Fabric& fabric, const PlacementPlan& plan);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_PLACE_REPORT_H_
