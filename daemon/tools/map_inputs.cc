#include "daemon/tools/map_inputs.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/input/pattern_file.h"
#include "daemon/mapping/input/square_matrix.h"
#include "daemon/tools/tree_inputs.h"
#include "daemon/tools/tree_options.h"
#include "proto/text/option_words.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

using PatternPtr = std::shared_ptr<const Pattern>;
using PlacesPtr = std::shared_ptr<const Places>;
using DistancesPtr = std::shared_ptr<const PlaceDistances>;

absl::StatusOr<PatternPtr> LoadPattern(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  return ReadPattern(text, path);
}

absl::StatusOr<PatternPtr> LoadPatterns(const MapOptions& options) {
  ASSIGN_OR_RETURN(PatternPtr pattern, LoadPattern(options.pattern));
  if (!options.messages.empty()) {
    ASSIGN_OR_RETURN(const PatternPtr counts, LoadPattern(options.messages));
    auto both = WithMessages(*pattern, *counts);
    RETURN_IF_ERROR(Annotate(both.status(), options.messages));
    pattern = *std::move(both);
  }
  if (options.bytes_per_message.value_or(0) == 0) return pattern;
  // A time of latency * messages + bytes / bandwidth, in bytes that take as long.
  return AsTimes(*pattern, *options.bytes_per_message, 1);
}

absl::StatusOr<DistancesPtr> LoadDistances(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  return ReadDistanceMatrix(text, path);
}

absl::Status LoadQap(const MapOptions& options, MapQuestion& question) {
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.qap));
  ASSIGN_OR_RETURN(QapInstance instance, ReadQaplib(text, options.qap));
  ASSIGN_OR_RETURN(question.problem.places, Places::Numbered(instance.distances->count(), 1));
  question.problem.pattern = std::move(instance.flows);
  question.problem.distances = std::move(instance.distances);
  return absl::OkStatus();
}

// In rank order; without --hosts every host of the fabric, by its lowest endpoint.
absl::StatusOr<std::vector<EndpointIndex>> LoadHosts(const MapOptions& options,
                                                     const Fabric& fabric) {
  if (!options.hosts.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadNodesText(options.hosts));
    return ReadMembers(fabric, text, options.hosts);
  }
  std::vector<EndpointIndex> hosts;
  absl::flat_hash_set<HostIndex> seen;
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
    if (seen.insert(fabric.host(EndpointIndex(e))).second) hosts.emplace_back(e);
  }
  return hosts;
}

absl::Status LoadFabricPlaces(const MapOptions& options, MapQuestion& question) {
  TreeOptions source;
  source.fabric = options.fabric;
  source.load = options.load;
  if (!options.routes.empty()) source.routes = options.routes;
  ASSIGN_OR_RETURN(Snapshot loaded, LoadSnapshot(source));
  const auto snapshot = std::make_shared<const Snapshot>(std::move(loaded));
  const Fabric& fabric = *snapshot->fabric;
  ASSIGN_OR_RETURN(const std::vector<EndpointIndex> hosts, LoadHosts(options, fabric));
  MappingProblem& problem = question.problem;
  ASSIGN_OR_RETURN(problem.places,
                   Places::OfEndpoints(fabric, hosts, options.ranks_per_place.value_or(1)));
  problem.snapshot = snapshot;
  problem.use_load = !options.load.empty();
  for (uint32_t p = 0; p < problem.places->count(); ++p) {
    const EndpointIndex e = problem.places->endpoint(PlaceIndex(p));
    question.host_of_place.emplace_back(fabric.host_name(fabric.host(e)));
  }
  if (options.distance.empty() || options.distance == "hops") {
    ASSIGN_OR_RETURN(problem.distances,
                     PlaceDistances::Hops(*problem.places, snapshot->routes->distances()));
  } else if (options.distance == "routes") {
    ASSIGN_OR_RETURN(problem.distances,
                     PlaceDistances::RouteLengths(*problem.places, *snapshot->routes));
  } else {
    ASSIGN_OR_RETURN(problem.distances, LoadDistances(options.distance));
  }
  return absl::OkStatus();
}

// Hosts by name alone: one that is named again is the same place.
absl::StatusOr<PlacesPtr> NamedPlaces(const std::vector<std::string>& lines, uint32_t ranks_each,
                                      std::vector<std::string>& host_of_place) {
  if (ranks_each == 0 || lines.size() > Places::kMaxSlots / ranks_each) {
    return absl::InvalidArgumentError(absl::StrCat(ranks_each, " ranks on each of ", lines.size(),
                                                   " hosts; give 1 to ", Places::kMaxSlots,
                                                   " ranks in all"));
  }
  absl::flat_hash_map<std::string, uint32_t> place_of;
  std::vector<uint32_t> place_of_slot;
  for (const std::string& line : lines) {
    const auto [place, is_new] =
        place_of.try_emplace(line, static_cast<uint32_t>(host_of_place.size()));
    if (is_new) host_of_place.push_back(line);
    place_of_slot.insert(place_of_slot.end(), ranks_each, place->second);
  }
  return Places::OfSlots(place_of_slot);
}

absl::Status LoadOtherPlaces(const MapOptions& options, MapQuestion& question) {
  MappingProblem& problem = question.problem;
  const uint32_t ranks_each = options.ranks_per_place.value_or(1);
  if (!options.hierarchy.empty()) {
    ASSIGN_OR_RETURN(problem.distances,
                     PlaceDistances::Uniform(*ParseExtents(options.hierarchy),
                                             *ParseLevelDistances(options.distances)));
  } else {
    ASSIGN_OR_RETURN(problem.distances, LoadDistances(options.distance));
  }
  if (options.hosts.empty()) {
    ASSIGN_OR_RETURN(problem.places, Places::Numbered(problem.distances->count(), ranks_each));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string text, ReadNodesText(options.hosts));
  ASSIGN_OR_RETURN(const std::vector<std::string> lines, ReadHostNames(text, options.hosts));
  ASSIGN_OR_RETURN(problem.places, NamedPlaces(lines, ranks_each, question.host_of_place));
  return absl::OkStatus();
}

TrafficModel ModelOf(const MapOptions& options) {
  if (options.traffic == "approximate") return TrafficModel::kApproximate;
  const bool is_even = options.traffic.empty() ? options.routes.empty() : options.traffic == "even";
  return is_even ? TrafficModel::kEvenShortestPaths : TrafficModel::kRoutes;
}

}  // namespace

std::vector<absl::string_view> MapQuestion::HostOfSlot() const {
  std::vector<absl::string_view> hosts;
  if (host_of_place.empty()) return hosts;
  hosts.reserve(problem.places->slot_count());
  for (uint32_t slot = 0; slot < problem.places->slot_count(); ++slot) {
    hosts.push_back(host_of_place[problem.places->place_of_slot(slot).value()]);
  }
  return hosts;
}

absl::StatusOr<MapQuestion> LoadMapQuestion(const MapOptions& options) {
  MapQuestion question;
  MappingProblem& problem = question.problem;
  if (!options.qap.empty()) {
    RETURN_IF_ERROR(LoadQap(options, question));
  } else {
    ASSIGN_OR_RETURN(problem.pattern, LoadPatterns(options));
    RETURN_IF_ERROR(options.fabric.empty() ? LoadOtherPlaces(options, question)
                                           : LoadFabricPlaces(options, question));
  }
  problem.traffic = ModelOf(options);
  if (!options.objective.empty()) {
    const MappingWeights weights = *ParseObjective(options.objective);
    problem.objective = {weights.congestion, weights.dilation, weights.qap};
  } else if (problem.snapshot != nullptr) {
    problem.objective = {.congestion = 1};
  } else {
    problem.objective = {.qap_cost = 1};
  }
  RETURN_IF_ERROR(CheckProblem(problem));
  return question;
}

}  // namespace coppice
