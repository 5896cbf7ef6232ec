// What a placement costs: the one place where the terms are defined and weighed.
//
//   cost = sum of weight * term, over
//     leaf_switches   leaf switches used
//     pods            pods used
//     distance        mean over all pairs of hosts of the links on a shortest path; 0 for one host
//     shared_links    links between switches that its routes (job_links.h) use in a direction in
//                     which those of other holders do
//     load            mean utilisation, 0..1, of the channels between switches on its routes
//     entries         switches that its trees need and that have fewer entries left than it has
//                     trees: its leaf switches, and one switch nearest to all of them (the one with
//                     the most left) where there are several
//     fragmentation   leaf switches with held and with free hosts: how many more there are after it
//     traffic         with a pattern: max congestion times hosts times the fabric's least capacity,
//                     over the pattern's bytes: 1 if the fullest link carries no more than a host's
//                     mean share at that capacity
//
// Default weights. A leaf switch is the unit. The pods decide before leaf switches do: what leaves
// a pod passes two more switches and links that all share, and the few leaf switches that fewer
// pods cost more do not outweigh it (4). Distance tells sets apart that are alike in both, and is
// all that counts on fabrics without pods: a hop in the mean is worth a leaf switch (1). A switch
// without entries costs the job its trees (2). Breaking a leaf switch up
// costs later jobs little: in the replay of tests/benchmark 0.5 makes jobs fill up what is left
// here and there, which costs more leaf switches than it saves, 0.1 does not. Full load on all
// links is as bad as two leaf switches more (2); a shared link matters by its number, 50 of them as
// one leaf switch (0.02). Traffic is a ratio of 1 to some tens and what a run takes (2).
#ifndef COPPICE_DAEMON_PLACEMENT_PLACEMENT_COST_H_
#define COPPICE_DAEMON_PLACEMENT_PLACEMENT_COST_H_

#include "absl/status/status.h"
#include "daemon/placement/placement_request.h"
#include "daemon/placement/placer.h"

namespace coppice {

// Costs that differ by less than this part of them are equal: sums of the same numbers in another
// order.
inline constexpr double kEqualCost = 1e-9;
// A change that gains less is not made: it would go round in circles.
inline constexpr double kWorthwhileGain = 1e-9;

// What all weights 0 stands for.
PlacementObjective DefaultObjective();

// INVALID_ARGUMENT: a weight that is negative, NaN or infinite (names it).
absl::Status CheckObjective(const PlacementObjective& objective);

// Of the measures, with `traffic` as above (0 without a pattern).
double Cost(const PlacementObjective& objective, const PlacementMeasures& measures, double traffic);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PLACEMENT_COST_H_
