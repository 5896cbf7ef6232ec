// What no mapping can avoid: the bytes that must leave and enter the hosts. A search that reaches
// it can stop.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_LINKS_CONGESTION_BOUND_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_LINKS_CONGESTION_BOUND_H_

#include <string>

#include "daemon/mapping/mapping_problem.h"

namespace coppice {

struct CongestionBound {
  double value = 0;    // max congestion of every mapping >= value
  std::string reason;  // what it is made of: "rank 17's own port", ...
};

// The greatest of four bounds, for each direction. A host, that is its ports on one switch, has
// room for n ranks; a rank on it sends at least what it sends to all but its n - 1 heaviest peers
// through these ports:
//
//     rank  r:  9 7 5 2 1     n = 3:  at best the peers of 9 and 7 sit beside it: 5 + 2 + 1 leave
//
//     port      max over r of the least of (what leaves r) / (the host's ports)
//     average   (sum over r of what leaves r at least) / (all ports of all hosts)
//
// and, where every host is one place, with what its ranks send together at least, a(r) for the host
// of rank r (search/least_leaving.h):
//
//     host      max over r of a(r) / (the fastest port)
//     slow ones hosts of the k ranks with the greatest a(r) are k/n in number, rounded up: the
//               slowest of them has no faster port than that one in the order of all
//
// `problem` has a fabric. O(pairs log(peers) + ranks * kinds of hosts), and as many steps of the
// search for a(r) as take milliseconds.
CongestionBound FindCongestionBound(const MappingProblem& problem);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_LINKS_CONGESTION_BOUND_H_
