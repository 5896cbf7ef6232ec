// A quadratic assignment problem from a file as QAPLIB keeps it (Burkard, Karisch, Rendl 1997):
// numbers in free format, n, then n x n distances between locations, then n x n flows between
// facilities.
//
//   min over permutations p of   sum over i, j of   flow[i][j] * distance[p(i)][p(j)]
//
// Facilities are ranks and locations places of one rank each: p(i) is the place of rank i. Both
// matrices may be asymmetric and may have diagonals.
#ifndef COPPICE_DAEMON_MAPPING_INPUT_QAPLIB_H_
#define COPPICE_DAEMON_MAPPING_INPUT_QAPLIB_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/mapping/pattern.h"
#include "daemon/mapping/place_distances.h"

namespace coppice {

struct QapInstance {
  std::shared_ptr<const Pattern> flows;  // neither is null
  std::shared_ptr<const PlaceDistances> distances;
};

// INVALID_ARGUMENT, naming `origin`, the line and which number it is: empty, n of 0 or more than
// PlaceDistances::kMaxMatrixPlaces, a number that ParseWeight refuses, more or fewer than 1 + 2 n^2
// numbers, flows that overflow together. O(n^2).
absl::StatusOr<QapInstance> ReadQaplib(absl::string_view text, absl::string_view origin);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_INPUT_QAPLIB_H_
