// Sets of places and what the cables around them carry: a host's, a leaf switch's, those of groups
// of leaf switches. Whatever ranks sit in such a set, all that they exchange with the others goes
// over these cables.
//
//       [ leaf ]---[ leaf ]===[ core ]===[ leaf ]
//         |  |       |  |       cheapest cut between the two leaf switches on the left and all
//        places     places      others: the trunk to the core, or what their hosts' cables carry
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_LINKS_PLACE_CUTS_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_LINKS_PLACE_CUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/mapping/mapping_problem.h"

namespace coppice {

struct PlaceCut {
  std::vector<uint32_t> places;              // ascending; all of their hosts' places are among them
  uint32_t least_ranks = 0, most_ranks = 0;  // sit there under any mapping
  double out_capacity = 0, in_capacity = 0;  // Gb/s, ChannelCapacities; of least cuts
  std::string name;                          // "the host of node17", "36 places of 4 hosts"
};

// Cuts behind which some ranks must sit and not all: hosts, leaf switches, pairs of neighbours of
// these, groups by distance and by capacity. Empty where a place has no switch. The search for
// least cuts ends after some milliseconds on large fabrics; hosts and leaf switches come first.
// `problem` has a fabric.
std::vector<PlaceCut> FindPlaceCuts(const MappingProblem& problem);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_LINKS_PLACE_CUTS_H_
