#include "daemon/tools/simulation_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/text/text_table.h"

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
  json["type"] = absl::StrCat("TREE_TYPE_", ToString(row.plan->tree.type));  // as of coppice.v1
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

// "switch 00ff00000000000a \"leaf 3\" port 4 -> endpoint n0001/1".
std::string LinkText(const Fabric& fabric, ChannelIndex channel) {
  return absl::StrCat(Describe(fabric, fabric.channel_from(channel)), " port ",
                      fabric.channel_from_port(channel).value(), " -> ",
                      Describe(fabric, fabric.channel_to(channel)));
}

void Append(const TextTable& table, std::string& text) {
  absl::StrAppend(&text, absl::StrJoin(table.Lines(IsForPeople()), "\n"), "\n");
}

void AppendLinks(const Fabric& fabric, const SimulatedRow& row, std::string& text) {
  absl::StrAppendFormat(&text, "\n%s, %u B: %u links\n", row.builder, row.bytes,
                        row.channels.size());
  TextTable table({"PACKETS", "UP", "BYTES", "BUSY US", "QUEUE", "LINK"});
  for (const ChannelTraffic& use : ByPackets(row.channels)) {
    table.Add({absl::StrCat(use.packets), absl::StrCat(use.up_packets), absl::StrCat(use.bytes),
               absl::StrFormat("%.3f", use.busy_us), absl::StrCat(use.longest_queue),
               LinkText(fabric, use.channel)});
  }
  Append(table, text);
}

}  // namespace

std::string SimulationToJson(const SimulateOptions& options, const SimulatedSize& size,
                             const Fabric& fabric, const std::vector<SimulatedRow>& rows) {
  Json json = {{"operation", options.tree.operation},
               {"members", size.members},
               {"communicators", size.communicators},
               {"skew_us", options.skew_us},
               {"noise", options.simulation.noise},
               {"pattern", options.pattern},
               {"seed", options.first_seed()},
               {"runs", options.run_count()},
               {"rows", Json::array()}};
  for (const SimulatedRow& row : rows) {
    json["rows"].push_back(RowJson(fabric, row, options.links));
  }
  return absl::StrCat(json.dump(1, ' ', false, Json::error_handler_t::replace), "\n");
}

std::string SimulationToText(const SimulateOptions& options, const SimulatedSize& size,
                             const Fabric& fabric, const std::vector<SimulatedRow>& rows) {
  const uint64_t runs = options.run_count();
  std::string text = absl::StrFormat(
      "%s, %u ranks, noise %g (%s), %u run%s from seed %u\n", options.tree.operation, size.members,
      options.simulation.noise, options.pattern, runs, runs == 1 ? "" : "s", options.first_seed());
  if (size.communicators > 1) {
    absl::StrAppendFormat(&text, "%u communicators at once; times until the last is done\n",
                          size.communicators);
  }
  if (options.skew_us > 0) {
    absl::StrAppendFormat(&text, "ranks up to %g us late\n", options.skew_us);
  }
  // The times of one run are alike.
  std::vector<size_t> rest = {4};
  if (runs == 1) rest.insert(rest.end(), {7, 8});
  TextTable table(
      {"BYTES", "BUILDER", "TYPE", "WIDTH", "HEIGHT", "PREDICTED US", "SIMULATED US", "MIN", "MAX"},
      rest, options.is_wide);
  std::string none;
  const auto us = [](double time) { return absl::StrFormat("%.2f", time); };
  for (const SimulatedRow& row : rows) {
    if (!row.plan) {
      table.Add({absl::StrCat(row.bytes), row.builder, "none", "-", "-", "-", "-", "-", "-"});
      const std::string why = absl::StrCat(row.builder, ", ", row.bytes, " B: ", row.why_not);
      absl::StrAppend(&none, "none: ", IsForPeople() ? Wrapped(why, 6) : why, "\n");
      continue;
    }
    const TreePlan& plan = *row.plan;
    table.Add({absl::StrCat(row.bytes), row.builder, std::string(ToString(plan.tree.type)),
               absl::StrCat(plan.tree.width), absl::StrCat(plan.height),
               us(plan.predicted.total_us), us(Median(row.total_us)), us(row.total_us.front()),
               us(row.total_us.back())});
  }
  Append(table, text);
  text += none;
  if (!options.links) return text;
  for (const SimulatedRow& row : rows) {
    if (row.plan) AppendLinks(fabric, row, text);
  }
  return text;
}

}  // namespace coppice
