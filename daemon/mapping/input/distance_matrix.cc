#include "daemon/mapping/input/distance_matrix.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/input/square_matrix.h"

namespace coppice {

absl::StatusOr<std::shared_ptr<const PlaceDistances>> ReadDistanceMatrix(absl::string_view text,
                                                                         absl::string_view origin) {
  std::vector<double> values;
  ASSIGN_OR_RETURN(
      const uint32_t places,
      ReadSquareMatrix(text, origin, "distance", PlaceDistances::kMaxMatrixPlaces,
                       [&](uint32_t, uint32_t, double value) { values.push_back(value); }));
  return PlaceDistances::Matrix(places, std::move(values));
}

}  // namespace coppice
