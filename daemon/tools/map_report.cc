#include "daemon/tools/map_report.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/output/mapping_answer.h"
#include "daemon/tools/command.h"
#include "proto/text/map_report.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

using Json = nlohmann::ordered_json;

std::string Printed(const Json& json) {
  return absl::StrCat(json.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

// "forwarding tables", "even shares of shortest paths", ...
std::string TrafficName(const MappingProblem& problem) {
  switch (problem.traffic) {
    case TrafficModel::kRoutes:
      return std::string(ToString(problem.snapshot->routes->kind()));
    case TrafficModel::kEvenShortestPaths:
      return "even shares of all shortest paths";
    case TrafficModel::kApproximate:
      return "shortest paths, approximately";
  }
  return "";
}

MapFigures FiguresOf(const MappingMeasures& measures) {
  MapFigures figures;
  figures.max_congestion = measures.max_congestion;
  figures.average_dilation = measures.average_dilation;
  figures.hop_bytes = measures.hop_bytes;
  figures.qap_cost = measures.qap_cost;
  figures.max_dilation = measures.max_dilation;
  figures.inter_node_bytes = measures.inter_node_bytes;
  figures.inter_switch_bytes = measures.inter_switch_bytes;
  return figures;
}

absl::StatusOr<MapReport> ReportOf(const MapOptions& options, const MappingProblem& problem,
                                   const MapResult& result) {
  const MappingAnswer& answer = result.answer;
  MapReport report;
  report.algorithm = answer.algorithm;
  report.reason = answer.reason;
  report.before = FiguresOf(answer.before);
  report.after = FiguresOf(answer.after);
  report.seconds = absl::ToDoubleSeconds(result.took);
  report.score = answer.score;
  report.permutation = answer.slots;
  report.places = problem.places->count();
  if (problem.snapshot != nullptr) report.traffic = TrafficName(problem);
  if (!options.links) return report;
  const size_t most = *options.links > 0 ? *options.links : std::numeric_limits<size_t>::max();
  ASSIGN_OR_RETURN(const std::vector<BusyLink> busiest,
                   FindBusyLinks(problem, answer.mapping, most));
  report.links.emplace();
  for (const BusyLink& link : busiest) {
    report.links->push_back({.from = link.from,
                             .to = link.to,
                             .bytes = link.bytes,
                             .capacity_gbps = link.capacity_gbps,
                             .congestion = link.congestion,
                             .share = link.share});
  }
  return report;
}

}  // namespace

absl::Status PrintMap(const MapOptions& options, const MapQuestion& question,
                      const MapResult& result) {
  if (!options.emit.empty()) {
    ASSIGN_OR_RETURN(
        const std::string text,
        LaunchText(*ParseLaunchFormat(options.emit), question.HostOfSlot(), result.answer.slots));
    if (options.out.empty()) return PrintText(text);
    RETURN_IF_ERROR(WriteTextFile(options.out, text));
  }
  ASSIGN_OR_RETURN(const MapReport report, ReportOf(options, question.problem, result));
  return PrintText(options.json ? MapJson(report) : MapText(report, IsForPeople()));
}

std::string AlgorithmsToJson() {
  Json json = Json::array();
  for (const MappingAlgorithm* algorithm : MappingAlgorithms()) {
    Json parameters = Json::array();
    for (const AlgorithmParameter& p : algorithm->parameters) {
      parameters.push_back({{"name", std::string(p.name)},
                            {"preset", p.preset},
                            {"least", p.least},
                            {"greatest", p.greatest},
                            {"meaning", std::string(p.meaning)}});
    }
    json.push_back({{"name", std::string(algorithm->name)},
                    {"source", std::string(algorithm->source)},
                    {"refines", algorithm->refines},
                    {"parameters", std::move(parameters)}});
  }
  return Printed(json);
}

std::string AlgorithmsToText() {
  size_t width = 0;
  for (const MappingAlgorithm* algorithm : MappingAlgorithms()) {
    width = std::max(width, algorithm->name.size());
  }
  const auto shown = [](std::string text, size_t indent) {
    return IsForPeople() ? Wrapped(text, indent) : text;
  };
  std::string text;
  for (const MappingAlgorithm* algorithm : MappingAlgorithms()) {
    const std::string source =
        absl::StrCat(algorithm->source, algorithm->refines ? " (improves a start)" : "");
    absl::StrAppendFormat(&text, "%-*s  %s\n", static_cast<int>(width), algorithm->name,
                          shown(source, width + 2));
    for (const AlgorithmParameter& p : algorithm->parameters) {
      const std::string option = absl::StrFormat("--option %s=%.10g  %s (%.10g to %.10g)", p.name,
                                                 p.preset, p.meaning, p.least, p.greatest);
      absl::StrAppend(&text, std::string(width + 2, ' '), shown(option, width + 2), "\n");
    }
  }
  return text;
}

}  // namespace coppice
