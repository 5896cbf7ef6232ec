// Groups of places from distances alone, for distances that are kept as a table.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_GROUPS_GROUPS_LINKAGE_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_GROUPS_GROUPS_LINKAGE_H_

#include "daemon/mapping/search/groups/groups.h"

namespace coppice {

// See MakePlaceGroups; `distances` are classes or a matrix.
PlaceGroups LinkPlaces(const Places& places, const PlaceDistances& distances,
                       const Hierarchy* hierarchy, const Fabric* fabric,
                       const SearchControl& control);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_GROUPS_GROUPS_LINKAGE_H_
