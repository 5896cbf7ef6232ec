// coppice-plan tree: the tree that the daemon would plan for a communicator, from files alone.
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tools/command.h"
#include "daemon/tools/tree_options.h"
#include "daemon/tree/planner.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

// A plan as coppice-plan prints it: JSON for programs, in the shape that coppicectl prints too, and
// a drawn tree for people. Decides nothing.

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

// IDs are rank:R and switch:GUID. Of several ranks on one port, the lowest stands for the port in
// "physical".
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

// Type, times and reason, then the tree from its root, runs of leaf ranks joined.
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

constexpr char kPhysicalHelp[] =
    "\nIn the JSON's \"physical\", the lowest rank on a port stands for the port.";

struct TradeOptions {
  TradePolicy policy;
  bool has_policy = false, has_limit = false, list = false;
};

// "latency=1,entries=0.5,link=0" into the weights; false: it is not such a text.
bool ParsePolicy(absl::string_view text, TradePolicy& policy) {
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> words = absl::StrSplit(part, '=');
    double weight = 0;
    if (words.size() != 2 || !absl::SimpleAtod(words[1], &weight)) return false;
    if (words[0] == "latency") {
      policy.latency = weight;
    } else if (words[0] == "entries") {
      policy.entries = weight;
    } else if (words[0] == "link") {
      policy.link_load = weight;
    } else {
      return false;
    }
  }
  return true;
}

// A limit without a policy: the fastest tree within it.
void AddTo(const TradeOptions& trade, TreeRequest& request) {
  request.list_tradeoffs = trade.list;
  if (!trade.has_policy && !trade.has_limit) return;
  request.policy = trade.policy;
  if (!trade.has_policy) request.policy->latency = 1;
}

absl::Status RunTree(const TreeOptions& options, const TradeOptions& trade) {
  ASSIGN_OR_RETURN(const CostProfile profile, LoadProfile(options.profile));
  ASSIGN_OR_RETURN(const Snapshot snapshot, LoadSnapshot(options));
  ASSIGN_OR_RETURN(const std::vector<SwitchCapacity> capacity,
                   LoadCapacity(options, *snapshot.fabric));
  ASSIGN_OR_RETURN(TreeRequest request, MakeRequest(options, *snapshot.fabric));
  AddTo(trade, request);
  ASSIGN_OR_RETURN(TreePlan plan, PlanTree(snapshot, profile, capacity, request));
  LinkUseCounter links;
  RETURN_IF_ERROR(MeasureLinks(snapshot, profile, request, links, plan));
  return PrintText(options.json ? TreeToJson(snapshot, plan) : TreeToText(snapshot, plan));
}

void AddChoiceOptions(CLI::App& command, TreeOptions& options) {
  command.add_option("--type", options.type, "1: NICs only, 2: switches aggregate; default auto")
      ->check(CLI::IsMember({"auto", "1", "2"}));
  command.add_option("--builder", options.builder, "how a type I tree is built; default auto")
      ->check(CLI::IsMember({"auto", "kary", "knomial", "hierarchical", "postal"}));
}

void AddTradeOptions(CLI::App& command, const std::shared_ptr<TradeOptions>& trade) {
  command
      .add_option_function<std::string>(
          "--policy",
          [trade](const std::string& text) {
            trade->has_policy = ParsePolicy(text, trade->policy);
          },
          "weights of what to save, such as latency=1,entries=0.5,link=0")
      ->check([](const std::string& text) {
        TradePolicy policy;
        return ParsePolicy(text, policy)
                   ? std::string()
                   : text + " is no list of weights, such as latency=1,entries=0.5,link=0";
      });
  command.add_option_function<uint32_t>(
      "--max-entries",
      [trade](uint32_t most) {
        trade->policy.max_entries = most;
        trade->has_limit = true;
      },
      "most switches that serve; 0: type I");
  command
      .add_option_function<double>(
          "--max-link-us",
          [trade](double most) {
            trade->policy.max_busiest_link_us = most;
            trade->has_limit = true;
          },
          "longest that one collective may keep a link busy")
      ->check([](const std::string& text) {
        double most = 0;
        return absl::SimpleAtod(text, &most) && most > 0
                   ? std::string()
                   : text + " us: every tree keeps a link busy; give more than 0, or no limit";
      });
  command.add_flag("--tradeoffs", trade->list,
                   "list the trees that none beats in all of time, entries and busiest link");
}

}  // namespace

void RegisterTreeCommand(CLI::App& app, CommandOutcome& outcome) {
  CLI::App* const command = app.add_subcommand("tree", "The best tree for one communicator");
  const auto options = std::make_shared<TreeOptions>();
  AddPlaceOptions(*command, *options);
  AddPayloadOptions(*command, *options);
  AddChoiceOptions(*command, *options);
  AddShapeOptions(*command, *options);
  AddHardwareOptions(*command, *options);
  command->add_flag("--json", options->json, "print JSON");
  command->footer(absl::StrCat(kTreeFilesHelp, kPhysicalHelp));
  const auto trade = std::make_shared<TradeOptions>();
  AddTradeOptions(*command, trade);
  command->callback([command, options, trade, &outcome] {
    for (const CLI::Option* const option : command->get_options()) {
      if (option->count() == 0) continue;
      const std::string fault =
          FaultOfTreeOption(options->type, option->get_name(), option->results().front());
      if (!fault.empty()) throw CLI::ValidationError(option->get_name(), fault);
    }
    outcome.status = RunTree(*options, *trade);
  });
}

}  // namespace coppice
