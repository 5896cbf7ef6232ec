// Whether a mapping's congestion is the least there is: looks for a set of places whose ranks,
// whichever they are, exchange so much with the others that the cables around them are as full.
//
//     [ places of S ]==cables==[ others ]      k ranks sit in S under any mapping, and any k ranks
//                                              exchange at least f with the others:
//                                              congestion >= f / capacity of the cables
//
// Only cuts that the mapping itself fills to its greatest congestion can show it: their ranks are
// one of the sets that count. That leaves few to search (search/least_cut.h), mostly one or none.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_LINKS_CONGESTION_PROOF_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_LINKS_CONGESTION_PROOF_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/search/links/congestion_bound.h"
#include "daemon/mapping/search/links/place_cuts.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// Not for traffic that is shared approximately: its shares depend on each other.
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
  // Whether Prove has anything to search.
  bool HasCandidates(const Mapping& mapping, double congestion) const {
    return !Candidates(mapping, congestion).empty();
  }

 private:
  // Cuts that bound alike: as many ranks, as much capacity.
  struct Kind {
    std::vector<const PlaceCut*> cuts;
  };
  std::vector<const Kind*> Candidates(const Mapping& mapping, double congestion) const;
  double ValueOf(const PlaceCut& cut, const Mapping& mapping) const;
  CongestionBound BoundOf(const Kind& kind, double enough, uint64_t& nodes,
                          const SearchControl& control) const;

  const MappingProblem& problem_;
  const std::vector<PlaceCut> cuts_;
  std::vector<Kind> kinds_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_LINKS_CONGESTION_PROOF_H_
