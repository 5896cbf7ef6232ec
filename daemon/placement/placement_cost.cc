#include "daemon/placement/placement_cost.h"

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

double Cost(const PlacementObjective& o, const PlacementMeasures& m, double traffic) {
  return o.leaf_switches * m.leaf_switches + o.pods * m.pods + o.distance * m.mean_distance +
         o.shared_links * m.shared_links + o.load * m.mean_load +
         o.entries * m.switches_without_entries + o.fragmentation * m.fragmentation +
         o.traffic * traffic;
}

}  // namespace coppice
