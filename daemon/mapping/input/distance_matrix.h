// Measured distances between places from a dense text matrix (square_matrix.h): row a, column b is
// how far b is from a, in any unit. Both directions are given and may differ; every pair must be.
#ifndef COPPICE_DAEMON_MAPPING_INPUT_DISTANCE_MATRIX_H_
#define COPPICE_DAEMON_MAPPING_INPUT_DISTANCE_MATRIX_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/mapping/place_distances.h"

namespace coppice {

// INVALID_ARGUMENT as ReadSquareMatrix, with at most PlaceDistances::kMaxMatrixPlaces rows.
absl::StatusOr<std::shared_ptr<const PlaceDistances>> ReadDistanceMatrix(absl::string_view text,
                                                                         absl::string_view origin);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_INPUT_DISTANCE_MATRIX_H_
