// A tree as text and as JSON.
#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxLineNodes = 12;  // runs of leaf ranks shown on one line
constexpr int kMaxLineSwitches = 4;   // names of switches

std::string GuidText(uint64_t guid) { return absl::StrFormat("%016x", guid); }

bool IsRank(const v1::Tree& tree, int node) { return node < static_cast<int>(tree.rank_count()); }

std::string NodeId(const v1::Tree& tree, int node) {
  if (IsRank(tree, node)) return absl::StrCat("rank:", node);
  return absl::StrCat("switch:",
                      GuidText(tree.nodes().switches(node - static_cast<int>(tree.rank_count()))));
}

// "leaf 3", or "switch:0002c90000000003" where it has no name; "rank 7".
std::string NodeText(const v1::Tree& tree, int node, const SwitchNames& names) {
  if (IsRank(tree, node)) return absl::StrCat("rank ", node);
  const auto name = names.find(tree.nodes().switches(node - static_cast<int>(tree.rank_count())));
  const bool is_named = name != names.end() && !name->second.empty();
  return is_named ? ShownText(name->second) : NodeId(tree, node);
}

// Of what is told of a tree below its first line.
void PrintLine(std::ostream& out, absl::string_view text) {
  out << Folded(absl::StrCat("  ", text), 4) << "\n";
}

// " 8 B and 4096 B"; a barrier moves none.
std::string SizesText(const v1::Tree& tree) {
  std::string text;
  if (tree.operation() == v1::OPERATION_BARRIER) return text;
  for (const v1::SizeShare& size : tree.sizes()) {
    absl::StrAppend(&text, text.empty() ? " " : " and ", size.bytes(), " B");
  }
  return text;
}

// A forest goes both ways at once.
std::string TimesText(const v1::Tree& tree) {
  const v1::Prediction& predicted = tree.predicted();
  if (tree.forest_size() > 0) {
    return absl::StrCat(Fixed(predicted.total_us()), " us in all over ",
                        Counted(static_cast<uint32_t>(tree.forest_size()), "tree"));
  }
  return absl::StrCat(Fixed(predicted.aggregate_us()), " us up + ",
                      Fixed(predicted.distribute_us()), " us down, ", Fixed(predicted.total_us()),
                      " us in all");
}

// The root first.
void PrintServing(std::ostream& out, const v1::Tree& tree, const SwitchNames& names) {
  if (tree.nodes().switches().empty()) return;
  const int first = static_cast<int>(tree.rank_count()), root = static_cast<int>(tree.root());
  std::string line = "served by " + NodeText(tree, root, names);
  int told = 1;
  for (int node = first; node < first + tree.nodes().switches_size(); ++node) {
    if (node == root || told++ >= kMaxLineSwitches) continue;
    absl::StrAppend(&line, ", ", NodeText(tree, node, names));
  }
  if (told > kMaxLineSwitches) absl::StrAppend(&line, " and ", told - kMaxLineSwitches, " more");
  PrintLine(out, line);
}

Json IdOrNull(const v1::Tree& tree, int node) {
  return node < 0 ? Json() : Json(NodeId(tree, node));
}

std::string EndpointName(const EndpointNames& names, uint64_t port_guid) {
  const auto it = names.find(port_guid);
  return it != names.end() ? it->second : GuidText(port_guid);
}

Json NodesJson(const v1::Tree& tree, const EndpointNames& names) {
  Json nodes = Json::array();
  for (int node = 0; node < tree.nodes().parents_size(); ++node) {
    const bool rank = IsRank(tree, node);
    Json json;
    json["id"] = NodeId(tree, node);
    json["kind"] = rank ? "rank" : "switch";
    json["rank"] = rank ? Json(node) : Json();
    json["endpoint"] = rank ? Json(EndpointName(names, tree.nodes().endpoints(node))) : Json();
    json["parent"] = IdOrNull(tree, tree.nodes().parents(node));
    json["links"] = tree.nodes().links(node);
    nodes.push_back(std::move(json));
  }
  return nodes;
}

// A member appears as the lowest rank on its port.
Json PhysicalJson(const v1::Tree& tree) {
  const v1::PhysicalTree& physical = tree.physical();
  absl::flat_hash_map<uint64_t, int> rank_of;
  for (int rank = 0; rank < tree.nodes().endpoints_size(); ++rank) {
    rank_of.try_emplace(tree.nodes().endpoints(rank), rank);
  }
  const auto id = [&](int vertex) {
    const uint64_t guid = physical.guids(vertex);
    if (vertex < static_cast<int>(physical.switch_count())) {
      return absl::StrCat("switch:", GuidText(guid));
    }
    const auto rank = rank_of.find(guid);
    return rank != rank_of.end() ? absl::StrCat("rank:", rank->second)
                                 : absl::StrCat("endpoint:", GuidText(guid));
  };
  Json json = Json::array();
  for (int vertex = 0; vertex < physical.guids_size(); ++vertex) {
    const int parent = physical.parents(vertex);
    json.push_back({{"id", id(vertex)}, {"parent", parent < 0 ? Json() : Json(id(parent))}});
  }
  return json;
}

// "0-15,20" from ascending numbers; the rest is counted once it has kMaxLineNodes runs.
std::string Runs(const std::vector<int>& numbers) {
  std::vector<std::string> runs;
  size_t i = 0;
  while (i < numbers.size() && runs.size() < kMaxLineNodes) {
    size_t j = i;
    while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
    runs.push_back(i == j ? absl::StrCat(numbers[i]) : absl::StrCat(numbers[i], "-", numbers[j]));
    i = j + 1;
  }
  std::string text = absl::StrJoin(runs, ",");
  if (i < numbers.size()) absl::StrAppend(&text, " and ", numbers.size() - i, " more");
  return text;
}

using Children = std::vector<std::vector<int>>;  // [node]

// Writes the children of `node`, iteratively: a tree may be as deep as it has ranks.
void PrintBelow(std::ostream& out, const v1::Tree& tree, const Children& children, int root,
                const SwitchNames& names) {
  struct Entry {
    int node;
    std::string indent;
  };
  std::vector<Entry> stack = {{root, ""}};
  while (!stack.empty()) {
    const Entry entry = std::move(stack.back());
    stack.pop_back();
    out << entry.indent << NodeText(tree, entry.node, names);
    if (entry.node != root) {
      out << "  (" << Counted(tree.nodes().links(entry.node), "link") << ")";
    }
    out << "\n";
    const std::string indent = entry.indent + "  ";
    std::vector<int> leaves;
    for (const int child : children[static_cast<size_t>(entry.node)]) {
      if (children[static_cast<size_t>(child)].empty()) leaves.push_back(child);
    }
    if (!leaves.empty()) {
      out << indent << (leaves.size() == 1 ? "rank " : "ranks ") << Runs(leaves) << "\n";
    }
    const std::vector<int>& row = children[static_cast<size_t>(entry.node)];
    for (auto child = row.rbegin(); child != row.rend(); ++child) {
      if (!children[static_cast<size_t>(*child)].empty()) stack.push_back({*child, indent});
    }
  }
}

}  // namespace

std::string WidthText(uint32_t width) { return width > 0 ? absl::StrCat(width) : "-"; }

void PrintTreeJson(std::ostream& out, const v1::Tree& tree, const EndpointNames& names) {
  Json json;
  json["id"] = tree.id().empty() ? Json() : Json(tree.id());
  json["job_id"] = tree.job_id().empty() ? Json() : Json(tree.job_id());
  json["type"] = v1::TreeType_Name(tree.type());
  json["builder"] = v1::TreeBuilder_Name(tree.builder());
  json["width"] = tree.width();
  json["height"] = tree.height();
  json["radius"] = tree.radius();
  json["switches"] = tree.switch_count();
  json["predicted"] = JsonOf(tree.predicted());
  json["busiest_link_us"] = tree.busiest_link_us();
  json["busiest_link_packets"] = tree.busiest_link_packets();
  json["alternatives"] = Json::array();
  for (const v1::Alternative& one : tree.alternatives()) {
    json["alternatives"].push_back(JsonOf(one));
  }
  for (const v1::Tradeoff& one : tree.tradeoffs()) json["tradeoffs"].push_back(JsonOf(one));
  json["reason"] = tree.reason();
  json["routes"] = v1::RouteKind_Name(tree.route_kind());
  json["root"] = IdOrNull(tree, static_cast<int>(tree.root()));
  json["nodes"] = NodesJson(tree, names);
  for (const v1::ForestTree& one : tree.forest()) {
    json["forest"].push_back({{"share", one.share()}, {"parents", one.parents()}});
  }
  if (tree.type() == v1::TREE_TYPE_II) json["physical"] = PhysicalJson(tree);
  out << json.dump(1) << "\n";
}

void PrintTreeSummary(std::ostream& out, const v1::Tree& tree, const SwitchNames& names) {
  out << "tree " << (tree.id().empty() ? "(advice)" : tree.id())
      << (tree.job_id().empty() ? "" : " of job " + tree.job_id()) << ": type " << Word(tree.type())
      << ", " << Word(tree.builder());
  if (tree.width() > 0) out << ", width " << tree.width();
  out << "\n";
  PrintLine(out, absl::StrCat(Counted(tree.rank_count(), "rank"), ", ",
                              Counted(tree.switch_count(), "serving switch", "es"), ", height ",
                              tree.height(), ", radius ", Counted(tree.radius(), "link"), " (",
                              Word(tree.route_kind()), ")"));
  PrintLine(out, absl::StrCat(Word(tree.operation()), SizesText(tree), ": ", TimesText(tree)));
  PrintLine(out, absl::StrCat("busiest link ", Fixed(tree.busiest_link_us(), 4), " us (",
                              Counted(tree.busiest_link_packets(), "message"), ")"));
  PrintServing(out, tree, names);
  PrintLine(out, tree.reason());
}

void PrintTradeoffs(std::ostream& out, const v1::Tree& tree) {
  if (tree.tradeoffs().empty()) return;
  Table table({"TYPE", "BUILDER", "WIDTH", "US", "ENTRIES", "LINK US", "MESSAGES", ""});
  for (const v1::Tradeoff& one : tree.tradeoffs()) {
    table.Add(CellsOf(Word(one.type()), Word(one.builder()), WidthText(one.width()),
                      Fixed(one.total_us(), 3), one.entries(), Fixed(one.busiest_link_us(), 4),
                      one.busiest_link_packets(), one.chosen() ? "chosen" : ""));
  }
  out << "trees that none beats:\n";
  table.Print(out);
}

void PrintTreeNodes(std::ostream& out, const v1::Tree& tree, const SwitchNames& names) {
  Children children(static_cast<size_t>(tree.nodes().parents_size()));
  for (int node = 0; node < tree.nodes().parents_size(); ++node) {
    const int parent = tree.nodes().parents(node);
    if (parent >= 0) children[static_cast<size_t>(parent)].push_back(node);
  }
  PrintBelow(out, tree, children, static_cast<int>(tree.root()), names);
}

void PrintAlternatives(std::ostream& out, const v1::Tree& tree) {
  if (tree.alternatives().empty()) {
    out << "no alternative is on record\n";
    return;
  }
  Table table({"TYPE", "BUILDER", "WIDTH", "US", "WHY NOT"});
  for (const v1::Alternative& other : tree.alternatives()) {
    table.Add({Word(other.type()), Word(other.builder()), WidthText(other.width()),
               other.has_total_us() ? Fixed(other.total_us()) : "-", other.why_not()});
  }
  out << "considered as well:\n";
  table.Print(out);
}

}  // namespace coppice
