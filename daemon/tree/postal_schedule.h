// The two schedules that a postal tree is put together from. Both look for the least time T within
// which all can be reached, halving an interval, and for a given T serve greedily in order of time.
//
// Flat (Bar-Noy and Kipnis 1992, Karp et al. 1993): whoever can serve first does. Where all are
// equally far this is optimal, and N(t), how many a node reaches in time t including itself,
// follows from it; with lag 3 gap 1 the counts are 1, 1, 1, 2, 3, 4, 6, 9, ...
//
// Near and far: parts of units that are near each other (a leaf switch's), all others far.
//
//   root        far far far far | near near near        a slot goes far while some part lacks
//   part B          far | near near near near           units that its own members will not reach
//   part C              near near near                  by T, and the sender's part can spare it
//
// A part can spare a slot if its members' later slots still reach all that are missing: the sum of
// N(T - next slot) - 1 over its members, which is exact within a part. Parts that are entered late
// get several packets from outside, each for as many units as there is time for.
//
// Leaders: each part's first unit is reached once, then serves its own part, which takes `own_us`.
// It may serve others' leaders before, for as long as T leaves that time. The part that needs most
// is served first.
//
// Knows neither fabric nor ranks.
#ifndef COPPICE_DAEMON_TREE_POSTAL_SCHEDULE_H_
#define COPPICE_DAEMON_TREE_POSTAL_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace coppice {

struct PostalCosts {
  double near_us = 0, far_us = 0;  // lag within a part and between parts; near <= far
  double gap_us = 0;
  uint32_t degree = 2;  // most children of a unit, 1 or more
};

// Times at which a node that serves at most `root_degree` reaches others near it, each of which
// serves at most costs.degree: ascending, the first `count` of them. O(count).
std::vector<double> PostalTimes(const PostalCosts& costs, uint32_t root_degree, uint32_t count);

struct PostalSchedule {
  double time_us = 0;            // when the last is reached
  std::vector<int32_t> parents;  // [unit or part] the one that serves it; -1 for the first
};

// Units are numbered part after part, in each in the order in which they are reached; part 0 holds
// the root, unit 0. `sizes` are 1 or more, largest first. `root_degree`: most children of the root.
// Should the greedy way find none, all count as far. O(units log parts) for each T tried, mostly
// less than a dozen.
PostalSchedule ScheduleNearFar(absl::Span<const uint32_t> sizes, const PostalCosts& costs,
                               uint32_t root_degree);

// `own_us` largest first; part 0 holds the root. Every leader serves at most `degree` others of
// `far_us` each.
PostalSchedule ScheduleLeaders(absl::Span<const double> own_us, const PostalCosts& costs);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_POSTAL_SCHEDULE_H_
