// Which widths k a type I tree may have: the interval that the closed form allows (Chen 2024, 3.1,
// formulas (5) and (6)).
#ifndef COPPICE_DAEMON_TREE_WIDTH_CANDIDATES_H_
#define COPPICE_DAEMON_TREE_WIDTH_CANDIDATES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/tree/closed_form.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree_plan.h"

namespace coppice {

// The requested width alone, if there is one. Else k* and the whole widths whose F(k) over both
// directions is within twice the profile's tolerance (which is per direction) of F(k*), none above
// `nic_degree` or above the members less one; but never below 2.
WidthInterval WidthCandidates(const CostProfile& profile, const TreeRequest& request,
                              uint32_t nic_degree);

// Every width of that interval, and of a ladder from 2 to 64 those whose closed form is at most
// half as much again as the best: what few ranks, contention and a long message's stages make of a
// width the closed form only guesses. Ascending; the interval alone where none of these matters,
// and for more than `kMaxRanksForLadder` members, which are judged one by one.
inline constexpr size_t kFewRanks = 32;
inline constexpr size_t kMaxRanksForLadder = 16384;
std::vector<uint32_t> WidthsToTry(const CostProfile& profile, const TreeRequest& request,
                                  uint32_t nic_degree);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_WIDTH_CANDIDATES_H_
