#include "daemon/tools/simulation_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/fabric/routes.h"

namespace coppice {
namespace {

using Json = nlohmann::ordered_json;

// Of sorted values.
double Median(const std::vector<double>& values) {
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Most packets first, then by index.
std::vector<ChannelTraffic> ByPackets(std::vector<ChannelTraffic> channels) {
  std::stable_sort(
      channels.begin(), channels.end(),
      [](const ChannelTraffic& a, const ChannelTraffic& b) { return a.packets > b.packets; });
  return channels;
}

Json LinksJson(const Fabric& fabric, const std::vector<ChannelTraffic>& channels) {
  Json json = Json::array();
  for (const ChannelTraffic& use : ByPackets(channels)) {
    json.push_back({{"from", Describe(fabric, fabric.channel_from(use.channel))},
                    {"from_port", fabric.channel_from_port(use.channel).value()},
                    {"to", Describe(fabric, fabric.channel_to(use.channel))},
                    {"packets", use.packets},
                    {"up_packets", use.up_packets},
                    {"bytes", use.bytes},
                    {"busy_us", use.busy_us},
                    {"noise_packets", use.noise_packets},
                    {"longest_queue", use.longest_queue}});
  }
  return json;
}

Json RowJson(const Fabric& fabric, const SimulatedRow& row, bool links) {
  Json json = {{"bytes", row.bytes}, {"builder", row.builder}};
  if (!row.plan) {
    json["why_not"] = row.why_not;
    return json;
  }
  json["type"] = std::string(ToString(row.plan->tree.type));
  json["tree"] = std::string(ToString(row.plan->tree.builder));
  json["width"] = row.plan->tree.width;
  json["height"] = row.plan->height;
  json["predicted_us"] = row.plan->predicted.total_us;
  json["simulated"] = {{"median_us", Median(row.total_us)},
                       {"min_us", row.total_us.front()},
                       {"max_us", row.total_us.back()}};
  if (links) json["links"] = LinksJson(fabric, row.channels);
  return json;
}

void AppendLinks(const Fabric& fabric, const SimulatedRow& row, std::string& text) {
  absl::StrAppendFormat(&text, "\n%s, %u B: %u links\n", row.builder, row.bytes,
                        row.channels.size());
  absl::StrAppendFormat(&text, "%8s %8s %12s %10s %6s  %s\n", "PACKETS", "UP", "BYTES", "BUSY US",
                        "QUEUE", "LINK");
  for (const ChannelTraffic& use : ByPackets(row.channels)) {
    absl::StrAppendFormat(&text, "%8u %8u %12u %10.3f %6u  %s port %u -> %s\n", use.packets,
                          use.up_packets, use.bytes, use.busy_us, use.longest_queue,
                          Describe(fabric, fabric.channel_from(use.channel)),
                          fabric.channel_from_port(use.channel).value(),
                          Describe(fabric, fabric.channel_to(use.channel)));
  }
}

}  // namespace

std::string SimulationToJson(const Snapshot& snapshot, const SimulationHeading& heading,
                             const std::vector<SimulatedRow>& rows) {
  Json json = {{"operation", heading.operation},
               {"members", heading.members},
               {"communicators", heading.communicators},
               {"skew_us", heading.skew_us},
               {"noise", heading.noise},
               {"pattern", heading.pattern},
               {"seed", heading.seed},
               {"runs", heading.runs},
               {"rows", Json::array()}};
  for (const SimulatedRow& row : rows) {
    json["rows"].push_back(RowJson(*snapshot.fabric, row, heading.links));
  }
  return absl::StrCat(json.dump(1, ' ', false, Json::error_handler_t::replace), "\n");
}

std::string SimulationToText(const Snapshot& snapshot, const SimulationHeading& heading,
                             const std::vector<SimulatedRow>& rows) {
  std::string text = absl::StrFormat(
      "%s, %u ranks, noise %g (%s), %u run%s from seed %u\n", heading.operation, heading.members,
      heading.noise, heading.pattern, heading.runs, heading.runs == 1 ? "" : "s", heading.seed);
  if (heading.communicators > 1) {
    absl::StrAppendFormat(&text, "%u communicators at once; times until the last is done\n",
                          heading.communicators);
  }
  if (heading.skew_us > 0)
    absl::StrAppendFormat(&text, "ranks up to %g us late\n", heading.skew_us);
  absl::StrAppendFormat(&text, "%10s  %-12s %-4s %5s %6s %12s %12s %9s %9s\n", "BYTES", "BUILDER",
                        "TYPE", "WIDTH", "HEIGHT", "PREDICTED US", "SIMULATED US", "MIN", "MAX");
  for (const SimulatedRow& row : rows) {
    if (!row.plan) {
      absl::StrAppendFormat(&text, "%10u  %-12s none: %s\n", row.bytes, row.builder, row.why_not);
      continue;
    }
    const TreePlan& plan = *row.plan;
    absl::StrAppendFormat(&text, "%10u  %-12s %-4s %5u %6u %12.2f %12.2f %9.2f %9.2f\n", row.bytes,
                          row.builder, ToString(plan.tree.type), plan.tree.width, plan.height,
                          plan.predicted.total_us, Median(row.total_us), row.total_us.front(),
                          row.total_us.back());
  }
  if (!heading.links) return text;
  for (const SimulatedRow& row : rows) {
    if (row.plan) AppendLinks(*snapshot.fabric, row, text);
  }
  return text;
}

}  // namespace coppice
