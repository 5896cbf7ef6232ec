#include "daemon/tools/map_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "daemon/mapping/algorithm.h"

namespace coppice {
namespace {

using Json = nlohmann::ordered_json;

template <class Number>
Json OrNull(const std::optional<Number>& number) {
  return number ? Json(*number) : Json();
}

Json MeasuresJson(const MappingMeasures& m) {
  return {{"max_congestion", OrNull(m.max_congestion)},
          {"avg_dilation", OrNull(m.average_dilation)},
          {"hop_bytes", OrNull(m.hop_bytes)},
          {"qap_cost", m.qap_cost},
          {"max_dilation", OrNull(m.max_dilation)},
          {"inter_node_bytes", m.inter_node_bytes},
          {"inter_switch_bytes", OrNull(m.inter_switch_bytes)}};
}

std::string Printed(const Json& json) {
  return absl::StrCat(json.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

// "forwarding tables", "even shares of shortest paths", ...; "" without a fabric.
std::string TrafficName(const MappingProblem& problem) {
  if (problem.snapshot == nullptr) return "";
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

void AddRow(absl::string_view name, std::optional<double> before, std::optional<double> after,
            std::string& text) {
  if (!before || !after) return;
  const std::string change =
      *before > 0 ? absl::StrFormat("%+.2f %%", 100 * (*after / *before - 1)) : std::string("-");
  absl::StrAppendFormat(&text, "  %-42s %14.8g %14.8g %10s\n", name, *before, *after, change);
}

Json LinksJson(absl::Span<const BusyLink> links) {
  Json json = Json::array();
  for (const BusyLink& link : links) {
    json.push_back({{"from", link.from},
                    {"to", link.to},
                    {"bytes", link.bytes},
                    {"capacity_gbps", link.capacity_gbps},
                    {"congestion", link.congestion},
                    {"share", link.share}});
  }
  return json;
}

void AddLinks(absl::Span<const BusyLink> links, std::string& text) {
  absl::StrAppendFormat(&text, "\n  %14s %8s %14s %10s  %s\n", "bytes / (Gb/s)", "of most", "bytes",
                        "Gb/s", "link");
  for (const BusyLink& link : links) {
    absl::StrAppendFormat(&text, "  %14.8g %6.1f %% %14.8g %10.5g  %s -> %s\n", link.congestion,
                          100 * link.share, link.bytes, link.capacity_gbps, link.from, link.to);
  }
}

}  // namespace

std::string MapToJson(const MapReport& report) {
  const MappingAnswer& answer = report.answer;
  Json json;
  json["algorithm"] = answer.algorithm;
  json["objective"] = MeasuresJson(answer.after);
  json["before"] = MeasuresJson(answer.before);
  json["seconds"] = absl::ToDoubleSeconds(report.took);
  json["score"] = answer.score;
  json["reason"] = answer.reason;
  const std::string traffic = TrafficName(report.problem);
  json["traffic"] = traffic.empty() ? Json() : Json(traffic);
  if (report.links) json["links"] = LinksJson(*report.links);
  json["permutation"] = answer.slots;
  return Printed(json);
}

std::string MapToText(const MapReport& report) {
  const MappingAnswer& answer = report.answer;
  uint32_t moved = 0;
  for (uint32_t rank = 0; rank < answer.slots.size(); ++rank) moved += answer.slots[rank] != rank;
  const std::string traffic = TrafficName(report.problem);
  std::string text = absl::StrFormat(
      "%s\n  %d of %d ranks move, %d places, %s of search%s%s\n\n  %-42s %14s %14s %10s\n",
      absl::StrReplaceAll(answer.reason, {{"; ", "\n  "}}), moved, answer.slots.size(),
      report.problem.places->count(),
      absl::FormatDuration(absl::Trunc(report.took, absl::Microseconds(1))),
      traffic.empty() ? "" : ", traffic over ", traffic, "", "present", "new", "change");
  const MappingMeasures &before = answer.before, &after = answer.after;
  AddRow("max congestion (bytes per Gb/s of a link)", before.max_congestion, after.max_congestion,
         text);
  AddRow("average dilation (links)", before.average_dilation, after.average_dilation, text);
  AddRow("max dilation (links)", before.max_dilation, after.max_dilation, text);
  AddRow("hop-bytes", before.hop_bytes, after.hop_bytes, text);
  AddRow("QAP cost (bytes x distance)", before.qap_cost, after.qap_cost, text);
  AddRow("bytes between nodes", before.inter_node_bytes, after.inter_node_bytes, text);
  AddRow("bytes between leaf switches", before.inter_switch_bytes, after.inter_switch_bytes, text);
  if (report.links) AddLinks(*report.links, text);
  return text;
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
  std::string text;
  for (const MappingAlgorithm* algorithm : MappingAlgorithms()) {
    absl::StrAppendFormat(&text, "%-*s  %s%s\n", static_cast<int>(width), algorithm->name,
                          algorithm->source, algorithm->refines ? " (improves a start)" : "");
    for (const AlgorithmParameter& p : algorithm->parameters) {
      absl::StrAppendFormat(&text, "%*s  --option %s=%.10g  %s (%.10g to %.10g)\n",
                            static_cast<int>(width), "", p.name, p.preset, p.meaning, p.least,
                            p.greatest);
    }
  }
  return text;
}

}  // namespace coppice
