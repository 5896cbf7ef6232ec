// Sets of hosts that are farther apart than the best one without traffic: where the links above
// leaf switches are thin, a pattern may be worth more of them.
#ifndef COPPICE_DAEMON_PLACEMENT_SPREAD_CHOICES_H_
#define COPPICE_DAEMON_PLACEMENT_SPREAD_CHOICES_H_

#include <vector>

#include "daemon/placement/placement_question.h"

namespace coppice {

// For half as many hosts on a leaf switch as `best` has at most, a quarter, ... and one: the best
// set without traffic that has no more on any. None for what the constraints forbid. As many
// searches as that.
std::vector<Choice> SpreadChoices(const PlacementQuestion& question, const Choice& best);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_SPREAD_CHOICES_H_
