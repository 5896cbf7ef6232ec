// The algorithms that daemon/mapping/algorithm.cc has in its table: what each does, and where it
// comes from. Those of dense problems (search/dense/) minimise the QAP cost and never return worse
// than the start by it.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_ALGORITHMS_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_ALGORITHMS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "daemon/mapping/algorithm.h"

namespace coppice {

// "annealing": from the better of the start and a multisection, annealed at low temperature with
// proposals near partners (search/sparse/sparse_search.h), each round with twice the proposals of
// the one before; after each the best is polished by swaps.
//
//     start      multisection
//         \      /
//          better --> swaps --> anneal x1 --> anneal x2 --> anneal x4 ...
//
// O(ranks * proposals * 2^rounds * degree).
MappingRun RunAnnealing;

// "parallel-annealing": GraphHunter's parallel simulated annealing (Baranov 2022, section "Parallel
// algorithms"; ParallelSA).
//
//     worker 0   --n iterations--.      .--n iterations--.
//     worker 1   --n iterations--+ best +--n iterations--+ best ...
//     worker 2   --n iterations--'      '--n iterations--'
//                        all go on from the best that any has found
//
// Presets are the paper's (algorithm.cc); for n = 343, here for 257 to 512 slots, it found 100
// iterations between exchanges better than 1,000. It ends after all iterations or when nothing has
// improved for a while.
//
// Departures: the paper gives neither temperatures nor the patience; ours are measured
// (search/dense/dense_search.h), and 100 iterations for each slot, at least one exchange and at
// most a fifth of all. An iteration is one temperature with all its candidates. Workers are
// logical (search_control.h). Worker 0 begins with the start. Cost: iterations * candidates *
// workers swap costs of O(n), and a copy of n^2 for each worker and exchange.
MappingRun RunParallelAnnealing;

// What everybody compares with: orders that know the places and nothing of the pattern.
MappingRun RunIdentity;    // the start, as it is
MappingRun RunBlock;       // fills place after place
MappingRun RunRoundRobin;  // one rank on every place in turn, as long as it has room
MappingRun RunRandom;      // the slots shuffled by the seed

// Their files have the papers, pictures and departures.
MappingRun RunGreedy;                  // the heaviest edge next, to the closest place with room
MappingRun RunRecursive;               // pattern and fabric are cut in two again and again
MappingRun RunRcm;                     // reverse Cuthill-McKee orders of both, laid on each other
MappingRun RunMulticore;               // a part for every place, then another method for the parts
MappingRun RunThresholdAccepting;      // exchanges two random positions at a time
MappingRun RunCpNsc;                   // spectral clusters of ranks onto nodes
MappingRun RunHierarchicalClustering;  // cp-nsc for one level of switches at a time
MappingRun RunPairExchange;            // exchanges any two positions that gain by it
MappingRun RunCongestion;              // exchanges slots, guided by the bytes of every channel

// "combined": GraphHunter's annealing that makes the population of a genetic algorithm (Baranov
// 2022, section "Parallel algorithms", five steps; PGSA).
//
//     worker 0   anneal, anneal, ... n times --> population --> genetic generations --.
//     worker 1   anneal, anneal, ... n times --> population --> genetic generations --+--> best
//                (no exchange: populations differ)    `-- ring or master-slave --'
//
// Departures: as of parallel-annealing and parallel-genetic; an annealing takes 1,000 iterations of
// 50 candidates. Cost: workers * population * 50,000 swap costs of O(n), then as parallel-genetic.
MappingRun RunCombined;

// "local-search": swaps and moves of ranks to places near their partners', with gains from the
// neighbours alone, until none helps; where places take many ranks, moves from the border first, on
// all levels (search/sparse/sparse_search.h). O(degree^2 * near) for each rank that is looked at.
MappingRun RunLocalSearch;

// "memetic": a population of annealed solutions that learn from each other, for dense quadratic
// assignment problems whose cost has several scales: groups within groups. Ours; the parts are
// known: annealing (Connolly 1990), crossover that keeps what both parents share and searches the
// rest (Drezner 2003; Merz, Freisleben 2000), islands in a ring (Baranov 2022).
//
//     random --slow cooling--> middle --slow--> end --descent--> individual
//                 |                                                  |
//                 too dear here: another basin, away with it         v
//                                                     population of an island --best--> next island
//     parents a, b:   . . X . X X . X .   X: ranks elsewhere in b, and a tenth of the others
//     child:          a, with the X free; reheated to 1.5 times the middle temperature, cooled;
//                     takes the place of the worse parent if it is better than that and like no
//                     other
//
// Why: on Taillard's "e" instances a solution freezes group by group; no single run gets all groups
// right, and later swaps cannot mend it. Two good runs rarely have the same groups wrong: what they
// share is right, and the rest, a small problem, can be frozen again and again.
//
// An epoch ends when no island has found anything better for three times its population. The next
// begins anew; when it ends, the best of the epochs before join it. Cost: an individual is 600
// sweeps; a sweep O(n^3) at the start, a tenth and less below the middle temperature
// (search/dense/dense_search.h). Memory: n^2 for each island and for each thread.
MappingRun RunMemetic;

// "parallel-genetic": GraphHunter's parallel genetic algorithm (Baranov 2022, section "Parallel
// algorithms"; GeneticAlg::CircleSolve and MasterSlaveSolve). An individual is the array of the
// slots of all ranks; each worker keeps a population of at least n of them.
//
//     ring                                    master-slave
//     worker 0 --best--> worker 1             worker 0 --best--> master --children--> worker 0
//        ^                  |                 worker 1 --best-->        --children--> worker 1
//     worker 3 <--best-- worker 2             (the paper finds it of little use)
//
// Departures: the paper does not name its operators and rates; ours are in
// search/dense/dense_search.h; no population is below 50. The start is one individual of worker 0.
// The master is process 0, and whoever gets a child counts its cost. Cost: generations * workers *
// n / 2 whole sums of O(n^2). Memory: workers * population * 4 n.
MappingRun RunParallelGenetic;

// RESOURCE_EXHAUSTED, naming both, if so many individuals of `size` slots take more than that.
inline constexpr uint64_t kMaxPopulationBytes = uint64_t{1} << 30;
absl::Status CheckPopulationMemory(uint32_t size, uint64_t individuals);

// "multisection": the pattern is cut along the fabric's own levels.
//
//                 all ranks                    root: as many parts as there are pods
//             /       |       \                pod: as many parts as it has switches
//          pod 0    pod 1    pod 2             switch: as many parts as it has nodes
//          / | \     / \      / | \            node: a part for each place
//
// C. Schulz and J. L. Traeff, "Better process mapping and sparse quadratic assignment", SEA 2017
// (hierarchical multisection); M. Kirchbach, C. Schulz, J. L. Traeff, "Better process mapping and
// sparse quadratic assignment", JEA 2020 (imbalance per level). Cuts are METIS's, refined on all
// levels; groups come from any distances (search/groups/groups.h), so that it works on every
// fabric; the result is refined by the mapping's cost itself where places take many ranks.
// O(pairs * levels) a try, about.
MappingRun RunMultisection;

// "robust-tabu": robust taboo search for the quadratic assignment problem (Taillard 1991, Parallel
// Computing 17), for dense problems without structure, such as tai100a, where annealed solutions
// have nothing in common that a memetic search could keep.
//
//     costs of all swaps      0
//     (lower triangle)        .  0        1. the cheapest swap that is not taboo, even if it costs
//                             .  -7 0     2. ranks i, j may not return to the slots they left for
//                             .  .  .  0     a while of random length
//                                         3. update the triangle in O(1) each
//
// After a swap of r and s, for all i, j that are neither (section 2, eq. 2; symmetric problems):
//     cost(i,j) += 2 * (u[i] - u[j]) * (v[i] - v[j])       u, v: DenseState::Differences
// and O(n) for each pair with r or s: O(n^2) for a step in all. A swap of i and j is taboo while
// both are barred from the slots they would take; it is allowed all the same if it leads below the
// best found, or if neither has been there for very long (aspiration), which makes it spread out.
//
// Departures: the time on the list is 8 n x^3 steps with x even in 0..1, as in Taillard's later
// program, not 0.9 n to 1.1 n; what has not been for long is looked for in one rank a step, in
// turn; after n^2 steps without improvement a search goes on from its best after a kick of random
// swaps (iterated tabu search, Misevicius 2012): without, it stays 0.3 % dearer on tai60a and
// tai100a; several searches run beside each other, the others from random orders. Memory: 12 n^2
// bytes for each thread beside the matrices.
MappingRun RunRobustTabu;

// "auto": a portfolio that is stopped whenever the caller likes and hands back the best so far.
//
//     present order --+                         +--> proved optimal (up to 8 ranks)
//     given numbering +--> incumbent --rounds --+
//     multisection ---+       ^    \ tasks of a round, on as many threads as there are:
//                             |     anneal it, anneal another start, combine, congestion, tabu, ...
//                             +---- the best of the tasks, in their order, when all are done
//
// A round's tasks depend on nothing but round, seed and incumbent. Never worse than the present
// order by the problem's objective.
//
//   few ranks on each place   rounds of annealing, each with twice the proposals (sparse_search.h)
//   many ranks on each place  multisections with more and more care, and combinations of the best
//   congestion                "congestion" on the real routes, which goes on through all rounds
//                             (auto.h); what it comes to is then to be proven
//   dense                     beside annealing "memetic" and "robust-tabu"; most of the time goes
//                             to whichever improved last
//   up to 8 ranks             branch and bound, for a part of the time
//
// With a deadline it goes on until then; else it ends after some rounds. It ends before where
// nothing is left to gain. Of orders alike in congestion it prefers as mapping_metrics.h does; once
// the congestion is proven it goes on for that alone, until a few rounds come to nothing more.
//
// One that declines is passed over. What cannot be stopped is only begun if there is time for it:
// METIS (search/groups/metis_partition.h), measures (auto.h). The note says what ran,
// what won and why it ended.
MappingRun RunAuto;
// It searches as a dense problem, with matrices of all slots, no more slots than these.
inline constexpr uint32_t kPortfolioDenseSlots = 1024;

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_ALGORITHMS_H_
