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
#include "proto/text/option_words.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

constexpr uint32_t kMaxThreads = 1024;

std::optional<uint64_t> ParseSeed(absl::string_view text) {
  uint64_t seed = 0;
  if (!ParseCount(text, seed)) return std::nullopt;
  return seed;
}

void AddPatternOptions(CLI::App& command, MapOptions& options) {
  AddText(command, "--pattern", options.pattern,
          "who sends how much to whom: a Matrix Market file, a METIS graph, a dense text matrix or "
          "a trace");
  AddText(command, "--messages", options.messages,
          "the same with counts of messages for weights, or a trace, of which its messages count");
  command
      .add_option("--bytes-per-message", options.bytes_per_message,
                  "what a message weighs beside its bytes, such as 8K: latency times bandwidth; "
                  "default 0")
      ->transform(PlainBytes)
      ->check([](const std::string& text) {
        double bytes = 0;
        const bool is_weight = ParseWeight(text, bytes).ok();
        return is_weight ? std::string()
                         : absl::StrCat("\"", text, "\" is not a number of bytes from 0 up");
      });
  AddText(command, "--qap", options.qap, "a QAPLIB file instead of pattern, places and distances");
}

void AddPlaceOptions(CLI::App& command, MapOptions& options) {
  AddText(command, "--fabric", options.fabric, "file:PATH or model:NAME(ARGUMENT=VALUE,...)");
  AddText(command, "--hosts", options.hosts,
          "the present allocation in rank order, a file or a list as n[001-128]; default all hosts "
          "of the fabric");
  AddCount(command, "--ranks-per-host,--ranks-per-place", options.ranks_per_place,
           "ranks on each line of --hosts, or on each place of --hierarchy or --distance; default "
           "1");
  AddText(command, "--distance", options.distance,
          "between places: hops, routes, or a file with a measured matrix; default hops");
  command
      .add_option("--hierarchy", options.hierarchy,
                  "places without a fabric: members of each level from the innermost, as 4:8:6")
      ->check(Understood(ParseExtents, "a list of whole numbers such as 4:8:6"));
  command
      .add_option("--distances", options.distances,
                  "of the levels of --hierarchy from the innermost, as 1:10:100")
      ->check(Understood(ParseLevelDistances, "a list of numbers such as 1:10:100"));
  AddText(command, "--routes", options.routes,
          "shortest, dimension-order, or a file as dump_lfts or ibroute prints it, or a directory "
          "of such");
  command
      .add_option("--traffic", options.traffic,
                  "over the routes, even shares of all shortest paths, or approximate; default "
                  "routes where --routes names them, else even")
      ->check(CLI::IsMember({"routes", "even", "approximate"}));
  AddText(command, "--load", options.load, "utilisation of links, which lowers their capacity");
}

void AddSearchOptions(CLI::App& command, MapOptions& options) {
  AddText(command, "--algorithm", options.algorithm, "a name of --list; default auto");
  AddText(command, "--start", options.start,
          "the algorithm whose result --algorithm starts from; default the present order");
  command
      .add_option("--objective", options.objective,
                  "congestion, dilation, qap, or weights as congestion=1,dilation=0.5; default "
                  "congestion, without a fabric qap")
      ->check(Understood(ParseObjective,
                         "congestion, dilation, qap or weights such as congestion=1,dilation=0.5"));
  command.add_option("--budget", options.budget, "time for the search; default 1s")
      ->check(Understood(ParseBudget,
                         "a duration above 0, and at most a year, such as 500ms, 1s or 2m"));
  command.add_option("--seed", options.seed, "of all that is random; default 1")
      ->check(Understood(ParseSeed, absl::StrCat("a whole number from 0 to ", UINT64_MAX)));
  AddCount(command, "--threads", options.threads, "for the search; default all processors")
      ->check(CLI::Range(uint32_t{1}, kMaxThreads));
  command
      .add_option("--option", options.parameters,
                  "NAME=VALUE, a parameter of the algorithm; may be given again")
      ->allow_extra_args(false)
      ->check(Understood(ParseParameter, "NAME=VALUE with a number"));
}

void AddOutputOptions(CLI::App& command, MapOptions& options) {
  command.add_flag("--json", options.json, "print JSON");
  AddCount(command, "--links", options.links,
           "list so many links by what they carry over their capacity; 0: all that carry anything");
  command.add_flag("--list", options.list, "list the algorithms, their sources and parameters");
  CLI::Option* const emit =
      command.add_option("--emit", options.emit, "the order as a file for a launcher");
  emit->check(CLI::IsMember(LaunchFormatNames()));
  AddText(command, "--out", options.out, "write what --emit says there")->needs(emit);
}

struct Named {
  const char* name;
  bool is_given;
};

void Exclude(const char* name, std::initializer_list<Named> others) {
  for (const Named& other : others) {
    if (other.is_given) throw CLI::ExcludesError(name, other.name);
  }
}

void CheckNoFabric(const MapOptions& o) {
  const char* const without = "no --fabric";
  Exclude(without, {{"--routes", !o.routes.empty()},
                    {"--traffic", !o.traffic.empty()},
                    {"--load", !o.load.empty()},
                    {"--links", o.links.has_value()},
                    {"--distance hops", o.distance == "hops"},
                    {"--distance routes", o.distance == "routes"}});
  const Named distance = {"--distance", !o.distance.empty()}, hosts = {"--hosts", !o.hosts.empty()},
              distances = {"--distances", !o.distances.empty()},
              per_place = {"--ranks-per-place", o.ranks_per_place.has_value()};
  if (!o.qap.empty()) {
    Exclude("--qap",
            {distance, hosts, distances, per_place, {"--hierarchy", !o.hierarchy.empty()}});
  } else if (!o.hierarchy.empty()) {
    Exclude("--hierarchy", {distance, hosts});
    if (o.distances.empty()) throw CLI::RequiredError("--distances beside --hierarchy");
  } else if (o.distance.empty()) {
    throw CLI::RequiredError("--fabric, --hierarchy or --distance FILE");
  } else {
    Exclude("--distance", {distances});
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

void AddMapOptions(CLI::App& command, MapOptions& options) {
  AddPatternOptions(command, options);
  AddPlaceOptions(command, options);
  AddSearchOptions(command, options);
  AddOutputOptions(command, options);
}

void CheckUsage(const MapOptions& o) {
  if (o.list) return;
  const Named qap = {"--qap", !o.qap.empty()};
  if (o.pattern.empty() && !qap.is_given) throw CLI::RequiredError("--pattern or --qap");
  if (!o.pattern.empty()) Exclude("--pattern", {qap});
  if (!o.messages.empty()) Exclude("--messages", {qap});
  if (o.bytes_per_message) Exclude("--bytes-per-message", {qap});
  if (!o.fabric.empty()) {
    Exclude("--fabric",
            {qap, {"--hierarchy", !o.hierarchy.empty()}, {"--distances", !o.distances.empty()}});
  } else {
    CheckNoFabric(o);
  }
  // Both go to standard output.
  if (!o.emit.empty() && o.out.empty()) Exclude("--emit without --out", {{"--json", o.json}});
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
