#include "proto/text/map_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace coppice {
namespace {

using Json = nlohmann::ordered_json;

template <class Value>
Json OrNull(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json FiguresJson(const MapFigures& figures) {
  return {{"max_congestion", OrNull(figures.max_congestion)},
          {"avg_dilation", OrNull(figures.average_dilation)},
          {"hop_bytes", OrNull(figures.hop_bytes)},
          {"qap_cost", figures.qap_cost},
          {"max_dilation", OrNull(figures.max_dilation)},
          {"inter_node_bytes", figures.inter_node_bytes},
          {"inter_switch_bytes", OrNull(figures.inter_switch_bytes)}};
}

Json LinksJson(const std::vector<MapLink>& links) {
  Json json = Json::array();
  for (const MapLink& link : links) {
    json.push_back({{"from", link.from},
                    {"to", link.to},
                    {"bytes", link.bytes},
                    {"capacity_gbps", link.capacity_gbps},
                    {"congestion", link.congestion},
                    {"share", link.share}});
  }
  return json;
}

// Large ones with all of their digits, as their neighbours in a column.
std::string Figure(double value) {
  const bool is_large = value >= 1e6 && value < 1e15;
  return is_large ? absl::StrFormat("%.0f", value) : absl::StrFormat("%.8g", value);
}

void Append(const TextTable& table, bool is_for_people, std::string& text) {
  absl::StrAppend(&text, "\n", absl::StrJoin(table.Lines(is_for_people), "\n"), "\n");
}

}  // namespace

std::string AlgorithmsJson(const std::vector<AlgorithmLine>& algorithms) {
  Json lines = Json::array();
  for (const AlgorithmLine& algorithm : algorithms) {
    Json options = Json::array();
    for (const AlgorithmLine::Option& option : algorithm.options) {
      options.push_back({{"name", option.name},
                         {"preset", option.preset},
                         {"least", option.least},
                         {"greatest", option.greatest},
                         {"meaning", option.meaning}});
    }
    lines.push_back({{"name", algorithm.name},
                     {"source", algorithm.source},
                     {"refines", algorithm.refines},
                     {"options", std::move(options)}});
  }
  return absl::StrCat(Json{{"algorithms", std::move(lines)}}.dump(1), "\n");
}

std::string AlgorithmsText(const std::vector<AlgorithmLine>& algorithms, bool is_for_people) {
  TextTable table({"ALGORITHM", "STARTS FROM", "SOURCE"});
  for (const AlgorithmLine& algorithm : algorithms) {
    table.Add({algorithm.name, algorithm.refines ? "present order" : "anew", algorithm.source});
    for (const AlgorithmLine::Option& option : algorithm.options) {
      table.Add(
          {absl::StrFormat("  %s=%.10g", option.name, option.preset), "",
           absl::StrFormat("%s (%.10g to %.10g)", option.meaning, option.least, option.greatest)});
    }
  }
  return absl::StrCat(absl::StrJoin(table.Lines(is_for_people), "\n"), "\n");
}

std::string MapProgressText(double seconds, absl::Duration budget, std::optional<double> score) {
  std::string text = absl::StrFormat("%.1f s of %s", seconds, absl::FormatDuration(budget));
  if (score) absl::StrAppendFormat(&text, ": %.4f of the present order", *score);
  return text;
}

std::string MapJson(const MapReport& report) {
  Json json;
  json["algorithm"] = report.algorithm;
  json["objective"] = FiguresJson(report.after);
  json["before"] = FiguresJson(report.before);
  json["seconds"] = report.seconds;
  json["score"] = report.score;
  json["reason"] = report.reason;
  json["traffic"] = OrNull(report.traffic);
  if (report.links) json["links"] = LinksJson(*report.links);
  json["permutation"] = report.permutation;
  json["fabric_version"] =  // as protobuf's JSON has it
      report.fabric_version ? Json(absl::StrCat(*report.fabric_version)) : Json();
  return absl::StrCat(json.dump(1, ' ', false, Json::error_handler_t::replace), "\n");
}

std::string MovesText(const std::vector<uint32_t>& permutation) {
  uint32_t moved = 0;
  for (uint32_t rank = 0; rank < permutation.size(); ++rank) moved += permutation[rank] != rank;
  return absl::StrCat(moved, " of ", permutation.size(), " ranks move");
}

std::string MapText(const MapReport& report, bool is_for_people) {
  std::string text;
  for (const absl::string_view part : absl::StrSplit(report.reason, "; ", absl::SkipEmpty())) {
    const std::string indent = text.empty() ? "" : "  ";
    absl::StrAppend(&text, indent, is_for_people ? Wrapped(part, 2) : std::string(part), "\n");
  }
  if (report.traffic) absl::StrAppend(&text, "traffic over ", *report.traffic, "\n");
  absl::StrAppend(&text, report.order, "\n");
  absl::StrAppend(&text, MovesText(report.permutation));
  if (report.places) absl::StrAppend(&text, ", ", *report.places, " places");
  if (report.fabric_version) absl::StrAppend(&text, ", fabric version ", *report.fabric_version);
  absl::StrAppendFormat(&text, ", %.2f s of search by %s\n", report.seconds, report.algorithm);
  Append(FiguresTable(report.before, report.after), is_for_people, text);
  if (report.links) Append(LinksTable(*report.links), is_for_people, text);
  return text;
}

TextTable FiguresTable(const MapFigures& before, const MapFigures& after) {
  TextTable table({"MEASURE", "BEFORE", "AFTER", "CHANGE %"});
  const auto add = [&table](const char* name, std::optional<double> old_value,
                            std::optional<double> new_value) {
    if (!old_value || !new_value) return;
    table.Add({name, Figure(*old_value), Figure(*new_value),
               *old_value > 0 ? absl::StrFormat("%+.2f", 100 * (*new_value / *old_value - 1))
                              : std::string("-")});
  };
  add("max congestion (bytes per Gb/s)", before.max_congestion, after.max_congestion);
  add("average dilation (links)", before.average_dilation, after.average_dilation);
  add("max dilation (links)", before.max_dilation, after.max_dilation);
  add("hop-bytes", before.hop_bytes, after.hop_bytes);
  add("QAP cost (bytes x distance)", before.qap_cost, after.qap_cost);
  add("bytes between nodes", before.inter_node_bytes, after.inter_node_bytes);
  add("bytes between leaf switches", before.inter_switch_bytes, after.inter_switch_bytes);
  return table;
}

TextTable LinksTable(const std::vector<MapLink>& links) {
  TextTable table({"BYTES PER Gb/s", "% OF MOST", "BYTES", "Gb/s", "LINK"});
  for (const MapLink& link : links) {
    table.Add({Figure(link.congestion), absl::StrFormat("%.1f", 100 * link.share),
               Figure(link.bytes), absl::StrFormat("%.5g", link.capacity_gbps),
               absl::StrCat(link.from, " -> ", link.to)});
  }
  return table;
}

}  // namespace coppice
