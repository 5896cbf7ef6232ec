// Measured distances as the D of a mapping (Wang 2015, 3.3 and 4.2): how long a byte takes from
// place to place.
//
//   D(a, b) = 1/S + L/m    in units of the least that is not 0;  0 within a host, on one switch
//
// S bandwidth, L latency. Wang's D is the gap, 1/S alone, as bytes times gap is time. Where the
// pattern counts messages, m is the mean message: then the sum of D_ij * (1/S + L/m) is
// GraphHunter's sum of L * N_ij + D_ij / S (Baranov 2022), exactly if all pairs have messages of
// one size. A pattern without counts has m without bound, and Wang's D. Wang measures within a
// node, too (1 : 3.7 : 4.1); agents measure between nodes and not between the ports of one. These
// are 0 apart here where they are on one switch. On two they stand for pairs of hosts as many links
// apart, or nearest to that: a message between them may take those links. Where no pair was
// measured they are 0 apart.
#ifndef COPPICE_DAEMON_MANAGER_DISTANCES_MEASURED_PLACES_H_
#define COPPICE_DAEMON_MANAGER_DISTANCES_MEASURED_PLACES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/manager/distances/distance_store.h"
#include "daemon/mapping/places.h"

namespace coppice {

// A matrix. `message_bytes`: m; 0: the pattern counts no messages. All of it is over one transport,
// PrevailingTransport of the hosts; a pair that was not measured over it has the median of those as
// many links apart (distance_listing.h). FAILED_PRECONDITION, naming two hosts: no such pair was
// either. INVALID_ARGUMENT: as PlaceDistances::Matrix. O(places^2 + kept).
absl::StatusOr<std::shared_ptr<const PlaceDistances>> MeasuredDistances(
    const Places& places, const Snapshot& snapshot, const DistanceStore& distance_store,
    double message_bytes);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_DISTANCES_MEASURED_PLACES_H_
