// Over which transport the distances between some hosts are taken together: figures over TCP and
// over verbs cannot be compared, so that a matrix, or the medians of levels, of both would say of a
// pair how it was measured, not how far it is.
#ifndef COPPICE_DAEMON_MANAGER_DISTANCES_MEASURED_TRANSPORT_H_
#define COPPICE_DAEMON_MANAGER_DISTANCES_MEASURED_TRANSPORT_H_

#include <string>
#include <vector>

#include "daemon/manager/distances/distance_shelf.h"

namespace coppice {

// "TCP", "verbs".
const char* NameOf(Transport transport);

// The one over which most pairs of these hosts were measured, or, if none were, most of all pairs;
// verbs if equally many. O(kept).
Transport PrevailingTransport(const DistanceShelf& shelf, const std::vector<std::string>& hosts);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_DISTANCES_MEASURED_TRANSPORT_H_
