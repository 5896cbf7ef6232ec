#include "daemon/tools/map_options.h"

#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/input/line_scanner.h"
#include "daemon/mapping/input/pattern_file.h"
#include "daemon/mapping/input/square_matrix.h"
#include "daemon/mapping/output/mapping_answer.h"
#include "daemon/tools/tree_inputs.h"
#include "proto/text/byte_size.h"
#include "proto/text/command_line.h"
#include "proto/text/names.h"
#include "proto/text/option_words.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

constexpr uint32_t kMaxThreads = 1024;

void AddPlaceOptions(CLI::App& command, MapOptions& options) {
  AddText(command, "--fabric", options.fabric, "file:PATH or model:NAME(ARGUMENT=VALUE,...)");
  AddText(command, "--routes", options.routes,
          "shortest, dimension-order, or a file as dump_lfts or ibroute prints it, or a directory "
          "of such");
  AddText(command, "--load", options.load, "Utilisation of links, which lowers their capacity");
  command
      .add_option("--hierarchy", options.hierarchy,
                  "Places without a fabric: members of each level from the innermost, as 4:8:6")
      ->check(Understood(ParseExtents, "a list of whole numbers such as 4:8:6"));
  command
      .add_option("--distances", options.distances,
                  "Of the levels of --hierarchy from the innermost, as 1:10:100")
      ->check(Understood(ParseLevelDistances, "a list of numbers such as 1:10:100"));
  AddText(command, "--qap", options.qap, "A QAPLIB file instead of pattern, places and distances");
}

void AddSearchOptions(CLI::App& command, MapOptions& options) {
  command
      .add_option("--bytes-per-message", options.bytes_per_message,
                  "What a message weighs beside its bytes, such as 8K: latency times bandwidth; "
                  "default 0")
      ->transform(PlainBytes)
      ->check([](const std::string& text) {
        double bytes = 0;
        const bool is_weight = ParseWeight(text, bytes).ok();
        return is_weight ? std::string()
                         : absl::StrCat("\"", text, "\" is not a number of bytes from 0 up");
      });
  AddText(command, "--start", options.start,
          "The algorithm whose result --algorithm starts from; default the present order");
  AddCount(command, "--threads", options.threads, "For the search; default all processors", 1,
           kMaxThreads);
  AddCount(command, "--links", options.links,
           "List so many links by what they carry over their capacity; 0: all that carry anything");
}

// The order is to be written with names of hosts.
bool NeedsNames(const MapOptions& o) {
  return !o.emit.empty() && ParseLaunchFormat(o.emit) != LaunchFormat::kPermutation;
}

void CheckNoFabric(const CLI::App& command, const MapOptions& o) {
  CheckNoneOf(command, "no --fabric", {"--routes", "--traffic", "--load", "--links"});
  if (o.distance == "hops" || o.distance == "routes") {
    throw CLI::ExcludesError("no --fabric", "--distance " + o.distance);
  }
  if (!o.qap.empty()) {
    if (NeedsNames(o)) throw CLI::ExcludesError("--qap", "--emit " + o.emit);
    CheckNoneOf(command, "--qap",
                {"--distance", "--hosts", "--distances", "--ranks-per-place", "--hierarchy"});
  } else if (!o.hierarchy.empty()) {
    CheckNoneOf(command, "--hierarchy", {"--distance", "--hosts"});
    if (NeedsNames(o)) throw CLI::ExcludesError("--hierarchy", "--emit " + o.emit);
    if (o.distances.empty()) throw CLI::RequiredError("--distances beside --hierarchy");
  } else if (o.distance.empty()) {
    throw CLI::RequiredError("--fabric, --hierarchy or --distance FILE");
  } else {
    CheckNoneOf(command, "--distance", {"--distances"});
    if (NeedsNames(o) && o.hosts.empty())
      throw CLI::RequiredError("--hosts beside --emit " + o.emit);
  }
}

template <class Number>
std::optional<std::vector<Number>> ParseList(absl::string_view text,
                                             bool (*parse)(absl::string_view, Number*)) {
  std::vector<Number> numbers;
  for (const absl::string_view word : absl::StrSplit(text, ':')) {
    Number number;
    if (!parse(word, &number)) return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

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
                   Places::OfEndpoints(fabric, hosts, options.ranks_per_host.value_or(1)));
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
  const uint32_t ranks_each = options.ranks_per_host.value_or(1);
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
  const TrafficModel preset =
      options.routes.empty() ? TrafficModel::kEvenShortestPaths : TrafficModel::kRoutes;
  return EnumNamed<TrafficModel>(kTrafficNames, options.traffic).value_or(preset);
}

}  // namespace

void AddMapOptions(CLI::App& command, MapOptions& options) {
  AddMapWords(command, options);
  // What only files can say.
  AddPlaceOptions(command, options);
  AddSearchOptions(command, options);
  command.add_flag("--json", options.json, "Print JSON");
}

void CheckUsage(const CLI::App& command, const MapOptions& o) {
  CheckMapWords(command, o);
  if (o.list) return;
  if (o.pattern.empty() && o.qap.empty()) throw CLI::RequiredError("--pattern or --qap");
  for (const char* of_pattern : {"--pattern", "--messages", "--bytes-per-message"}) {
    if (command.count(of_pattern) > 0) CheckNoneOf(command, of_pattern, {"--qap"});
  }
  if (o.fabric.empty()) return CheckNoFabric(command, o);
  CheckNoneOf(command, "--fabric", {"--qap", "--hierarchy", "--distances"});
}

std::optional<std::vector<uint32_t>> ParseExtents(absl::string_view text) {
  return ParseList<uint32_t>(text, [](absl::string_view word, uint32_t* number) {
    return word.find_first_not_of("0123456789") == absl::string_view::npos &&
           absl::SimpleAtoi(word, number);
  });
}

std::optional<std::vector<double>> ParseLevelDistances(absl::string_view text) {
  return ParseList<double>(
      text, [](absl::string_view word, double* number) { return absl::SimpleAtod(word, number); });
}

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
