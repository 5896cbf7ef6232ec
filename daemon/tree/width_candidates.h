// Which widths k are worth building a type I tree for: a bounded set out of the interval that the
// closed form allows (Chen 2024, 3.1, formulas (5) and (6)).
#ifndef COPPICE_DAEMON_TREE_WIDTH_CANDIDATES_H_
#define COPPICE_DAEMON_TREE_WIDTH_CANDIDATES_H_

#include <cstdint>
#include <vector>

#include "daemon/tree/cost_profile.h"
#include "daemon/tree/member_places.h"
#include "daemon/tree/planner.h"

namespace coppice {

// Ascending, distinct, each >= 2, at most eight. The requested width alone, if there is one. Else
// k*, both ends of the interval of widths whose F(k) over both directions is within twice the
// profile's tolerance (which is per direction) of F(k*), and what lies in that interval of the
// widths that make whole groups: the most ranks on one leaf switch, the number of leaf switches,
// and the least width of a tree of two levels. Widths in between give trees between these;
// evaluating each exactly would cost more than they can differ (tolerance). A width above
// `nic_degree` or above the members is cut to it.
std::vector<uint32_t> WidthCandidates(const CostProfile& profile, const TreeRequest& request,
                                      const MemberPlaces& places, uint32_t nic_degree);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_WIDTH_CANDIDATES_H_
