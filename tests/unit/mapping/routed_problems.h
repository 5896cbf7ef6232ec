// Mapping problems over forwarding tables: a real cluster's, and a ring whose packets all go one
// way round, so that the way back is longer than the way there. And live load on any of them.
#ifndef COPPICE_TESTS_UNIT_MAPPING_ROUTED_PROBLEMS_H_
#define COPPICE_TESTS_UNIT_MAPPING_ROUTED_PROBLEMS_H_

#include <cstdint>
#include <memory>

#include "daemon/mapping/mapping_problem.h"

namespace coppice {

// `hosts` hosts of tests/data/plafrim, drawn by `seed`, routed by its subnet manager's tables;
// distances are those of the routes.
MappingProblem ProblemOnPlafrim(uint32_t hosts, uint32_t ranks_per_host,
                                std::shared_ptr<const Pattern> pattern, uint64_t seed);

//     S0 -> S1 -> S2 -> ... -> S0     two hosts on each; as many slots on host h as 1 + h % 3
MappingProblem ProblemOnOneWayRing(uint32_t switches, std::shared_ptr<const Pattern> pattern);

// Two ports a host, on two leaf switches of so many, each a place of `ranks_per_port` slots.
MappingProblem ProblemOnHostsOfTwoLeaves(uint32_t leaves, uint32_t ranks_per_port,
                                         std::shared_ptr<const Pattern> pattern);

// So many switches with as many hosts on each; tables lead to the hosts of a switch alone.
// Distances are the caller's.
MappingProblem ProblemOnIslands(uint32_t switches, uint32_t hosts,
                                std::shared_ptr<const Pattern> pattern);

// Every channel is used to some degree, by `seed`; some wholly.
MappingProblem WithLoad(MappingProblem problem, uint64_t seed);

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_MAPPING_ROUTED_PROBLEMS_H_
