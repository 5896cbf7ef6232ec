#include "daemon/tools/tree_report.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/fabric/endpoint_names.h"

namespace coppice {
namespace {

using Json = nlohmann::ordered_json;

std::string SwitchId(const Fabric& fabric, VertexIndex v) {
  return absl::StrCat("switch:", ToString(fabric.switch_info(fabric.AsSwitch(v)).guid));
}

std::string RankId(uint32_t rank) { return absl::StrCat("rank:", rank); }

std::string NodeId(const Fabric& fabric, const AggregationTree& tree, uint32_t node) {
  return tree.IsRank(node) ? RankId(node) : SwitchId(fabric, tree.vertices[node]);
}

std::string Text(absl::string_view word) { return std::string(word); }

Json NodesJson(const Fabric& fabric, const TreePlan& plan) {
  Json nodes = Json::array();
  for (uint32_t node = 0; node < plan.tree.node_count(); ++node) {
    const bool rank = plan.tree.IsRank(node);
    const int32_t parent = plan.tree.parents[node];
    Json json;
    json["id"] = NodeId(fabric, plan.tree, node);
    json["kind"] = rank ? "rank" : "switch";
    json["rank"] = rank ? Json(node) : Json();
    json["endpoint"] =
        rank ? Json(EndpointName(fabric, fabric.AsEndpoint(plan.tree.vertices[node]))) : Json();
    json["parent"] =
        parent < 0 ? Json() : Json(NodeId(fabric, plan.tree, static_cast<uint32_t>(parent)));
    json["links"] = plan.edges[node].links_up;
    nodes.push_back(std::move(json));
  }
  return nodes;
}

Json PhysicalJson(const Fabric& fabric, const TreePlan& plan) {
  absl::flat_hash_map<uint32_t, uint32_t> lowest_rank;  // vertex -> rank
  for (uint32_t rank = 0; rank < plan.tree.rank_count; ++rank) {
    lowest_rank.emplace(plan.tree.vertices[rank].value(), rank);
  }
  const auto id = [&](size_t position) {
    const VertexIndex v = plan.physical->vertices[position];
    return fabric.IsSwitch(v) ? SwitchId(fabric, v) : RankId(lowest_rank.at(v.value()));
  };
  Json json = Json::array();
  for (size_t i = 0; i < plan.physical->vertices.size(); ++i) {
    const int32_t parent = plan.physical->parents[i];
    Json vertex;
    vertex["id"] = id(i);
    vertex["parent"] = parent < 0 ? Json() : Json(id(static_cast<size_t>(parent)));
    json.push_back(std::move(vertex));
  }
  return json;
}

Json AlternativesJson(const TreePlan& plan) {
  Json json = Json::array();
  for (const Alternative& other : plan.alternatives) {
    json.push_back({{"type", Text(ToString(other.type))},
                    {"builder", Text(ToString(other.builder))},
                    {"width", other.width},
                    {"total_us", other.total_us ? Json(*other.total_us) : Json()},
                    {"why_not", other.why_not}});
  }
  return json;
}

Json TradeoffsJson(const TreePlan& plan) {
  Json json = Json::array();
  for (const Tradeoff& one : plan.tradeoffs) {
    json.push_back({{"type", Text(ToString(one.type))},
                    {"builder", Text(ToString(one.builder))},
                    {"width", one.width},
                    {"total_us", one.total_us},
                    {"entries", one.entries},
                    {"busiest_link_us", one.busiest_link_us},
                    {"busiest_link_packets", one.busiest_link_packets},
                    {"chosen", one.chosen}});
  }
  return json;
}

void TradeoffsTable(const TreePlan& plan, std::string& text) {
  if (plan.tradeoffs.empty()) return;
  absl::StrAppend(&text, "  trees that none beats:\n");
  absl::StrAppendFormat(&text, "    %-4s %-13s %5s %10s %8s %10s %9s\n", "type", "builder", "width",
                        "us", "entries", "link us", "messages");
  for (const Tradeoff& one : plan.tradeoffs) {
    absl::StrAppendFormat(&text, "  %s %-4s %-13s %5s %10.3f %8d %10.4f %9d\n",
                          one.chosen ? "*" : " ", Text(ToString(one.type)),
                          Text(ToString(one.builder)),
                          one.width > 0 ? absl::StrCat(one.width) : std::string("-"), one.total_us,
                          one.entries, one.busiest_link_us, one.busiest_link_packets);
  }
  absl::StrAppend(&text, "\n");
}

// "0-15,20" from ascending numbers.
std::string Runs(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t j = i;
    while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
    absl::StrAppend(&text, i > 0 ? "," : "", numbers[i]);
    if (j > i) absl::StrAppend(&text, "-", numbers[j]);
    i = j + 1;
  }
  return text;
}

std::string Count(uint32_t count, absl::string_view thing, absl::string_view things) {
  return absl::StrCat(count, " ", count == 1 ? thing : things);
}

std::string NodeLine(const Fabric& fabric, const TreePlan& plan, uint32_t node) {
  std::string line = NodeId(fabric, plan.tree, node);
  const VertexIndex v = plan.tree.vertices[node];
  absl::StrAppend(&line, "  ",
                  plan.tree.IsRank(node) ? EndpointName(fabric, fabric.AsEndpoint(v))
                                         : fabric.switch_info(fabric.AsSwitch(v)).description);
  if (plan.tree.parents[node] >= 0) {
    absl::StrAppend(&line, "  (", Count(plan.edges[node].links_up, "link", "links"), ")");
  }
  return line;
}

// Iterative: a tree may be as deep as it has ranks.
void DrawTree(const Fabric& fabric, const TreePlan& plan, std::string& text) {
  const ChildLists children = ChildrenOf(plan.tree.parents);
  std::vector<std::pair<uint32_t, uint32_t>> stack = {{plan.tree.root(), 0}};  // node, depth
  while (!stack.empty()) {
    const auto [node, depth] = stack.back();
    stack.pop_back();
    absl::StrAppend(&text, std::string(size_t{2} * depth, ' '), NodeLine(fabric, plan, node), "\n");
    std::vector<uint32_t> leaves;
    const absl::Span<const uint32_t> row = children.of(node);
    for (const uint32_t child : row) {
      if (children.of(child).empty()) leaves.push_back(child);
    }
    if (!leaves.empty()) {
      absl::StrAppend(&text, std::string(size_t{2} * depth + 2, ' '),
                      leaves.size() == 1 ? "rank " : "ranks ", Runs(leaves), "\n");
    }
    for (auto child = row.rbegin(); child != row.rend(); ++child) {
      if (!children.of(*child).empty()) stack.emplace_back(*child, depth + 1);
    }
  }
}

}  // namespace

std::string TreeToJson(const Snapshot& snapshot, const TreePlan& plan) {
  const Fabric& fabric = *snapshot.fabric;
  Json json;
  json["type"] = Text(ToString(plan.tree.type));
  json["builder"] = Text(ToString(plan.tree.builder));
  json["width"] = plan.tree.width;
  json["height"] = plan.height;
  json["radius"] = plan.radius;
  json["switches"] = plan.tree.serving_switch_count();
  json["predicted"] = {{"aggregate_us", plan.predicted.aggregate_us},
                       {"distribute_us", plan.predicted.distribute_us},
                       {"total_us", plan.predicted.total_us}};
  json["busiest_link_us"] = plan.busiest.us;
  json["busiest_link_packets"] = plan.busiest.packets;
  json["alternatives"] = AlternativesJson(plan);
  if (!plan.tradeoffs.empty()) json["tradeoffs"] = TradeoffsJson(plan);
  json["reason"] = plan.reason;
  json["routes"] = Text(ToString(snapshot.routes->kind()));
  json["root"] = NodeId(fabric, plan.tree, plan.tree.root());
  json["nodes"] = NodesJson(fabric, plan);
  if (plan.physical) json["physical"] = PhysicalJson(fabric, plan);
  return absl::StrCat(json.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

std::string TreeToText(const Snapshot& snapshot, const TreePlan& plan) {
  std::string text =
      absl::StrCat("type ", ToString(plan.tree.type), ", ", ToString(plan.tree.builder));
  if (plan.tree.width > 0) absl::StrAppend(&text, ", width ", plan.tree.width);
  absl::StrAppend(&text, "\n  ", Count(plan.tree.rank_count, "rank", "ranks"), ", ",
                  Count(plan.tree.serving_switch_count(), "serving switch", "serving switches"),
                  ", height ", plan.height, ", radius ", Count(plan.radius, "link", "links"), " (",
                  ToString(snapshot.routes->kind()), ")\n");
  absl::StrAppendFormat(&text, "  %.2f us up + %.2f us down, %.2f us in all\n",
                        plan.predicted.aggregate_us, plan.predicted.distribute_us,
                        plan.predicted.total_us);
  absl::StrAppendFormat(&text, "  busiest link %.4f us (%d messages)\n  %s\n\n", plan.busiest.us,
                        plan.busiest.packets, plan.reason);
  TradeoffsTable(plan, text);
  DrawTree(*snapshot.fabric, plan, text);
  return text;
}

}  // namespace coppice
