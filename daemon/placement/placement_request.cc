#include "daemon/placement/placement_request.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace coppice {

PlacementObjective DefaultObjective() {
  PlacementObjective objective;
  for (const PlacementTerm& term : kPlacementTerms) objective.*term.weight = term.preset;
  return objective;
}

absl::Status CheckObjective(const PlacementObjective& objective) {
  for (const PlacementTerm& term : kPlacementTerms) {
    const double weight = objective.*term.weight;
    if (!std::isfinite(weight) || weight < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the weight ", weight, " of ", term.name, " is not a number from 0 up"));
    }
  }
  return absl::OkStatus();
}

double Cost(const PlacementObjective& objective, const PlacementMeasures& measures) {
  double cost = 0;
  for (const PlacementTerm& term : kPlacementTerms) {
    cost += objective.*term.weight * term.measure.Of(measures);
  }
  return cost;
}

}  // namespace coppice
