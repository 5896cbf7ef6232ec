#include "daemon/placement/placement_cost.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace coppice {

PlacementObjective DefaultObjective() {
  PlacementObjective objective;
  objective.leaf_switches = 1;
  objective.pods = 4;
  objective.distance = 1;
  objective.shared_links = 0.02;
  objective.load = 2;
  objective.entries = 2;
  objective.fragmentation = 0.1;
  objective.traffic = 2;
  return objective;
}

absl::Status CheckObjective(const PlacementObjective& o) {
  const struct {
    const char* name;
    double weight;
  } weights[] = {
      {"leaf switches", o.leaf_switches}, {"pods", o.pods},      {"distance", o.distance},
      {"shared links", o.shared_links},   {"load", o.load},      {"entries", o.entries},
      {"fragmentation", o.fragmentation}, {"traffic", o.traffic}};
  for (const auto& weight : weights) {
    if (!std::isfinite(weight.weight) || weight.weight < 0) {
      return absl::InvalidArgumentError(absl::StrCat("the weight ", weight.weight, " of ",
                                                     weight.name, " is not a number from 0 up"));
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
