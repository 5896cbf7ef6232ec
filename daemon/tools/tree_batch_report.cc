#include "daemon/tools/tree_batch_report.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace coppice {
namespace {

using Json = nlohmann::ordered_json;

std::string SwitchId(const Fabric& fabric, SwitchIndex s) {
  return absl::StrCat("switch:", ToString(fabric.switch_info(s).guid));
}

Json LineJson(const Fabric& fabric, size_t number, const BatchLine& line) {
  Json json;
  json["communicator"] = number;
  json["ranks"] = line.ranks;
  json["type"] = line.type ? Json(std::string(ToString(*line.type))) : Json();
  json["switches"] = line.switches;
  json["root"] = line.root ? Json(SwitchId(fabric, *line.root)) : Json();
  json["extra_hops"] = line.extra_hops;
  json["height"] = line.height;
  json["radius"] = line.radius;
  json["total_us"] = line.type ? Json(line.total_us) : Json();
  json["reason"] = line.reason;
  return json;
}

Json MostLoadedJson(const Fabric& fabric, const BatchTotals& totals) {
  if (totals.most_loaded == kNoChannel) return {};
  const ChannelIndex c = totals.most_loaded;
  return {{"packets", totals.most_packets},
          {"from", SwitchId(fabric, fabric.AsSwitch(fabric.channel_from(c)))},
          {"port", fabric.channel_from_port(c).value()},
          {"to", SwitchId(fabric, fabric.AsSwitch(fabric.channel_to(c)))}};
}

Json TotalsJson(const Fabric& fabric, const BatchTotals& totals) {
  return {{"admitted", totals.admitted},
          {"failures", totals.failures},
          {"entries", totals.entries},
          {"farther_roots", totals.farther_roots},
          {"most_loaded", MostLoadedJson(fabric, totals)}};
}

std::string LineText(const Fabric& fabric, size_t number, const BatchLine& line) {
  if (!line.type) return absl::StrFormat("%6d %6d  refused: %s\n", number, line.ranks, line.reason);
  std::string root = "-";
  if (line.root) {
    const SwitchInfo& info = fabric.switch_info(*line.root);
    root = absl::StrCat(ToString(info.guid), " \"", info.description, "\"");
  }
  return absl::StrFormat("%6d %6d  %-4s %8d %6d %6d %5d %9.2f  %s%s%s\n", number, line.ranks,
                         std::string(ToString(*line.type)), line.switches, line.height, line.radius,
                         line.extra_hops, line.total_us, root, line.reason.empty() ? "" : "  ",
                         line.reason);
}

std::string TotalsText(const Fabric& fabric, absl::string_view name, const BatchTotals& totals) {
  std::string most = "none";
  if (totals.most_loaded != kNoChannel) {
    const ChannelIndex c = totals.most_loaded;
    most = absl::StrCat(totals.most_packets, " packets, ", Describe(fabric, fabric.channel_from(c)),
                        " port ", fabric.channel_from_port(c).value());
  }
  return absl::StrFormat("%-28s %9d %9d %9d %14d  %s\n", std::string(name), totals.admitted,
                         totals.failures, totals.entries, totals.farther_roots, most);
}

}  // namespace

std::string BatchToJson(const Snapshot& snapshot, const BatchReport& report) {
  const Fabric& fabric = *snapshot.fabric;
  Json json;
  json["routes"] = std::string(ToString(snapshot.routes->kind()));
  json["communicators"] = Json::array();
  for (size_t c = 0; c < report.lines.size(); ++c) {
    json["communicators"].push_back(LineJson(fabric, c, report.lines[c]));
  }
  json["totals"] = TotalsJson(fabric, report.batch);
  json["one_by_one"] = TotalsJson(fabric, report.one_by_one);
  json["unreduced"] = TotalsJson(fabric, report.unreduced);
  json["bounds"] = {{"entries_alone", report.bounds.alone},
                    {"entries_counting", report.bounds.counting},
                    {"no_nearest_root", report.bounds.no_nearest_root},
                    {"failures", report.bounds.failures},
                    {"most_packets", report.bounds.most_packets}};
  return absl::StrCat(json.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

std::string BatchToText(const Snapshot& snapshot, const BatchReport& report) {
  const Fabric& fabric = *snapshot.fabric;
  std::string text = absl::StrFormat("%6s %6s  %-4s %8s %6s %6s %5s %9s  root (%s)\n", "number",
                                     "ranks", "type", "switches", "height", "radius", "extra", "us",
                                     std::string(ToString(snapshot.routes->kind())));
  for (size_t c = 0; c < report.lines.size(); ++c) {
    text += LineText(fabric, c, report.lines[c]);
  }
  absl::StrAppendFormat(&text, "\n%-28s %9s %9s %9s %14s  %s\n", "", "admitted", "refused",
                        "entries", "farther roots", "most loaded link");
  text += TotalsText(fabric, "this batch", report.batch);
  text += TotalsText(fabric, "one by one, minimum cost", report.one_by_one);
  text += TotalsText(fabric, "one by one, unreduced trees", report.unreduced);
  absl::StrAppendFormat(&text,
                        "bounds: %d entries if each were alone, %d by counting; %d refused; %d "
                        "without any nearest root that works; %d packets on the most loaded link "
                        "with a twentieth more entries\n",
                        report.bounds.alone, report.bounds.counting, report.bounds.failures,
                        report.bounds.no_nearest_root, report.bounds.most_packets);
  return text;
}

}  // namespace coppice
