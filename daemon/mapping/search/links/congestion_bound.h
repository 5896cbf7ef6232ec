// What no mapping can fall below: the bytes that must leave and enter hosts and groups of places,
// and the congestion that they enforce. A search that reaches it can stop.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_LINKS_CONGESTION_BOUND_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_LINKS_CONGESTION_BOUND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// Sets of places and what the cables around them carry: a host's, a leaf switch's, those of groups
// of leaf switches. Whatever ranks sit in such a set, all that they exchange with the others goes
// over these cables.
//
//       [ leaf ]---[ leaf ]===[ core ]===[ leaf ]
//         |  |       |  |       cheapest cut between the two leaf switches on the left and all
//        places     places      others: the trunk to the core, or what their hosts' cables carry

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
// of rank r (search/links/least_cut.h):
//
//     host      max over r of a(r) / (the fastest port)
//     slow ones hosts of the k ranks with the greatest a(r) are k/n in number, rounded up: the
//               slowest of them has no faster port than that one in the order of all
//
// `problem` has a fabric. O(pairs log(peers) + ranks * kinds of hosts), and as many steps of the
// search for a(r) as take milliseconds.
CongestionBound FindCongestionBound(const MappingProblem& problem);

// Whether a mapping's congestion is the least there is: looks for a set of places whose ranks,
// whichever they are, exchange so much with the others that the cables around them are as full.
//
//     [ places of S ]==cables==[ others ]      k ranks sit in S under any mapping, and any k ranks
//                                              exchange at least f with the others:
//                                              congestion >= f / capacity of the cables
//
// Only cuts that the mapping itself fills to its greatest congestion can show it: their ranks are
// one of the sets that count. That leaves few to search (search/links/least_cut.h), mostly one or
// none. Not for traffic that is shared approximately: its shares depend on each other.
class CongestionProof final {
 public:
  // The problem must outlive it, and has a fabric. Costs as FindPlaceCuts.
  explicit CongestionProof(const MappingProblem& problem);
  CongestionProof(const CongestionProof&) = delete;
  CongestionProof& operator=(const CongestionProof&) = delete;

  // The greatest bound of all cuts that a short search finds. Value 0: none.
  CongestionBound ShortBound() const;

  // A bound of `congestion`, which is that of `mapping`, or the best that came out: stopped, out of
  // `nodes`, or there is an order with less on each cut that is as full.
  CongestionBound Prove(const Mapping& mapping, double congestion, uint64_t nodes,
                        const SearchControl& control) const;

 private:
  // Cuts that bound alike: as many ranks, as much capacity.
  using Kind = std::vector<const PlaceCut*>;
  std::vector<const Kind*> Candidates(const Mapping& mapping, double congestion) const;
  double ValueOf(const PlaceCut& cut, const Mapping& mapping) const;
  CongestionBound BoundOf(const Kind& kind, double enough, uint64_t& nodes,
                          const SearchControl& control) const;

  const MappingProblem& problem_;
  const std::vector<PlaceCut> cuts_;
  std::vector<Kind> kinds_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_LINKS_CONGESTION_BOUND_H_
