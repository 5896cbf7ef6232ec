#include "daemon/mapping/mapping_problem.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace coppice {

absl::string_view ToString(TrafficModel model) {
  switch (model) {
    case TrafficModel::kRoutes:
      return "routes";
    case TrafficModel::kEvenShortestPaths:
      return "even";
    case TrafficModel::kApproximate:
      return "approximate";
  }
  return "";
}

absl::Status CheckProblem(const MappingProblem& problem) {
  const Places& places = *problem.places;
  if (problem.rank_count() > places.slot_count()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the pattern has %d ranks, but the %d hosts take %d in all; name more hosts or allow more "
        "ranks on each",
        problem.rank_count(), places.count(), places.slot_count()));
  }
  if (problem.distances->count() != places.count()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("distances between %d places, but there are %d places; give one row and "
                        "column for each host",
                        problem.distances->count(), places.count()));
  }
  const Objective& o = problem.objective;
  for (const double weight : {o.congestion, o.hop_bytes, o.qap_cost}) {
    if (std::isfinite(weight) && weight >= 0) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("the objective has a weight of %g; give numbers from 0 up", weight));
  }
  if (o == Objective{}) {
    return absl::InvalidArgumentError(
        "the objective weighs nothing; give congestion, dilation or qap a weight above 0");
  }
  if (o.needs_fabric() && (problem.snapshot == nullptr || !places.has_endpoints())) {
    return absl::InvalidArgumentError(
        "the objective is congestion or dilation, but there is no fabric whose links it could "
        "count; name a fabric and hosts, or choose the objective qap");
  }
  return absl::OkStatus();
}

}  // namespace coppice
