// What no mapping can avoid: the bytes that must leave and enter the hosts. A search that reaches
// it can stop.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_CONGESTION_BOUND_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_CONGESTION_BOUND_H_

#include <string>

#include "daemon/mapping/mapping_problem.h"

namespace coppice {

struct CongestionBound {
  double value = 0;    // max congestion of every mapping >= value
  std::string reason;  // what it is made of: "rank 17's own port", ...
};

// The greater of two bounds, for each direction. A host has room for n ranks; a rank on it sends at
// least what it sends to all but its n - 1 heaviest peers through the host's ports:
//
//     rank  r:  9 7 5 2 1     n = 3:  at best the peers of 9 and 7 sit beside it: 5 + 2 + 1 leave
//
//     port      max over r of the least of (what leaves r) / (the host's ports)
//     average   (sum over r of what leaves r at least) / (all ports of all hosts)
//
// `problem` has a fabric. O(pairs log(peers) + ranks * kinds of hosts).
CongestionBound FindCongestionBound(const MappingProblem& problem);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_CONGESTION_BOUND_H_
