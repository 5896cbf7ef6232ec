#include "daemon/manager/tree_record.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace coppice {
namespace {

// Ids of the links that any edge crosses, either way.
void FillLinks(absl::Span<const int64_t> link_ids, absl::Span<const ChannelUse> uses,
               std::vector<int64_t>& ids) {
  ids.clear();
  LinkIndex last(UINT32_MAX);
  for (const ChannelUse& use : uses) {  // by channel, so that both of a link stand together
    const LinkIndex link = Fabric::link_of(use.channel);
    if (link == last) continue;
    last = link;
    ids.push_back(link_ids[link.value()]);
  }
  // The store numbers the links of a first sweep in the fabric's order.
  if (!std::is_sorted(ids.begin(), ids.end())) std::sort(ids.begin(), ids.end());
}

void FillSwitches(const Fabric& fabric, const AggregationTree& tree,
                  std::vector<TreeSwitchRecord>& switches) {
  switches.clear();
  switches.reserve(tree.serving_switch_count());
  for (uint32_t node = tree.rank_count; node < tree.node_count(); ++node) {
    switches.push_back({fabric.switch_info(fabric.AsSwitch(tree.vertices[node])).guid, 0});
  }
  for (const int32_t parent : tree.parents) {
    if (parent >= static_cast<int32_t>(tree.rank_count)) {
      ++switches[parent - tree.rank_count].children;
    }
  }
}

}  // namespace

void FillPhysical(const Fabric& fabric, const PhysicalTree& tree, std::vector<uint64_t>& pairs) {
  // Switches first. Endpoints are leaves, so parents stay before their children.
  const uint32_t count = static_cast<uint32_t>(tree.vertices.size());
  std::vector<uint32_t> position(count);
  uint32_t next = 0;
  for (const bool want_switch : {true, false}) {
    for (uint32_t i = 0; i < count; ++i) {
      if (fabric.IsSwitch(tree.vertices[i]) == want_switch) position[i] = next++;
    }
  }
  pairs.assign(size_t{2} * count, 0);
  for (uint32_t i = 0; i < count; ++i) {
    const VertexIndex v = tree.vertices[i];
    const Guid guid = fabric.IsSwitch(v) ? fabric.switch_info(fabric.AsSwitch(v)).guid
                                         : fabric.endpoint(fabric.AsEndpoint(v)).port_guid;
    pairs[2 * position[i]] = guid.value();
    if (tree.parents[i] >= 0) pairs[2 * position[i] + 1] = position[tree.parents[i]] + uint64_t{1};
  }
}

void FillFromPlan(const Snapshot& snapshot, absl::Span<const int64_t> link_ids,
                  absl::Span<const ChannelUse> uses, TreePlan plan, TreeRecord& record) {
  AggregationTree& tree = plan.tree;
  FillLinks(link_ids, uses, record.links);
  record.fabric_version = snapshot.fabric->version();
  record.type = static_cast<uint8_t>(tree.type);
  record.builder = std::string(ToString(tree.builder));
  record.width = tree.width;
  record.height = plan.height;
  record.radius = plan.radius;
  FillSwitches(*snapshot.fabric, tree, record.switches);
  record.edge_links_up.reserve(plan.edges.size());
  record.edge_links_down.reserve(plan.edges.size());
  for (const EdgeCost& edge : plan.edges) {
    record.edge_links_up.push_back(edge.links_up);
    record.edge_links_down.push_back(edge.links_down);
  }
  if (plan.physical) FillPhysical(*snapshot.fabric, *plan.physical, record.physical);
  record.parents = std::move(tree.parents);
  record.aggregate_us = plan.predicted.aggregate_us;
  record.distribute_us = plan.predicted.distribute_us;
  record.total_us = plan.predicted.total_us;
  record.reason = std::move(plan.reason);
  record.alternatives = AlternativesJson(plan.alternatives);
  // The record stays as long as the tree: without what was reserved while these grew.
  record.links.shrink_to_fit();
  record.parents.shrink_to_fit();
  record.reason.shrink_to_fit();
  record.alternatives.shrink_to_fit();
}

namespace {

VertexIndex FindVertex(const Fabric& fabric, Guid guid, bool is_switch) {
  if (is_switch) {
    const std::optional<SwitchIndex> found = fabric.FindSwitch(guid);
    return found ? fabric.Vertex(*found) : kGoneVertex;
  }
  const std::optional<EndpointIndex> found = fabric.FindEndpoint(guid);
  return found ? fabric.Vertex(*found) : kGoneVertex;
}

ChannelIndex ChannelBetween(const Fabric& fabric, VertexIndex from, VertexIndex to,
                            absl::Span<const int64_t> link_ids, const TreeRecord& record) {
  ChannelIndex found = kNoChannel;
  if (from == kGoneVertex || to == kGoneVertex) return found;
  for (const Channel& channel : fabric.channels(from)) {
    if (channel.to != to) continue;
    const int64_t id = link_ids[Fabric::link_of(channel.index).value()];
    if (std::binary_search(record.links.begin(), record.links.end(), id)) return channel.index;
    if (found == kNoChannel) found = channel.index;
  }
  return found;
}

}  // namespace

AggregationTree PlaceTree(const Fabric& fabric, const JobRecord& job, const TreeRecord& record) {
  AggregationTree tree;
  tree.type = static_cast<TreeType>(record.type);
  tree.width = record.width;
  tree.rank_count = static_cast<uint32_t>(record.ranks.size());
  tree.parents = record.parents;
  tree.vertices.reserve(tree.parents.size());
  for (const uint32_t rank : record.ranks) {
    tree.vertices.push_back(FindVertex(fabric, job.endpoints[rank], false));
  }
  for (const TreeSwitchRecord& serving : record.switches) {
    tree.vertices.push_back(FindVertex(fabric, serving.guid, true));
  }
  return tree;
}

PhysicalTree PlacePhysical(const Fabric& fabric, absl::Span<const int64_t> link_ids,
                           const TreeRecord& record) {
  PhysicalTree tree;
  const size_t count = record.physical.size() / 2;
  for (size_t i = 0; i < count; ++i) {
    // No GUID is both a switch's and a port's in one tree.
    const Guid guid(record.physical[2 * i]);
    const int32_t parent = static_cast<int32_t>(record.physical[2 * i + 1]) - 1;
    VertexIndex vertex = FindVertex(fabric, guid, true);
    if (vertex == kGoneVertex) vertex = FindVertex(fabric, guid, false);
    tree.vertices.push_back(vertex);
    tree.parents.push_back(parent);
    tree.up.push_back(
        parent < 0 ? kNoChannel
                   : ChannelBetween(fabric, vertex, tree.vertices[parent], link_ids, record));
  }
  if (count > 0) tree.root = tree.vertices[0];
  return tree;
}

namespace {

void AppendJsonString(std::string& out, absl::string_view text) {
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

// Whole numbers as such; others so that they read back the same. JSON has no infinity.
void AppendJsonNumber(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out.append("null");
  } else if (value == std::floor(value) && std::abs(value) < 1e15) {
    absl::StrAppend(&out, static_cast<int64_t>(value));
  } else {
    absl::StrAppendFormat(&out, "%.17g", value);
  }
}

// Microseconds to six significant digits, which is beyond what any profile knows.
void AppendMicroseconds(std::string& out, double value) {
  if (std::isfinite(value)) {
    absl::StrAppendFormat(&out, "%.10g", value);
  } else {
    out.append("null");
  }
}

// Takes a text apart from left to right; every method is false at the first mistake.
class Reader {
 public:
  explicit Reader(absl::string_view text) : rest_(text) {}

  bool Skip(absl::string_view expected) { return absl::ConsumePrefix(&rest_, expected); }
  bool at_end() const { return rest_.empty(); }

  template <class Value>
  bool Number(Value& value) {
    const auto [next, error] = std::from_chars(rest_.begin(), rest_.end(), value);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(next - rest_.begin()));
    return true;
  }

  // The values of an enumeration are few: the one whose name follows.
  template <class Value>
  bool Name(std::initializer_list<Value> values, Value& value) {
    for (const Value candidate : values) {
      const absl::string_view name = ToString(candidate);
      if (!absl::StartsWith(rest_, name) || rest_.substr(name.size(), 1) != "\"") continue;
      rest_.remove_prefix(name.size());
      value = candidate;
      return true;
    }
    return false;
  }

  // What AppendJsonString wrote.
  bool String(std::string& text) {
    if (!Skip("\"")) return false;
    for (;;) {
      const size_t plain = rest_.find_first_of("\"\\");
      if (plain == absl::string_view::npos) return false;
      text.append(rest_.data(), plain);
      rest_.remove_prefix(plain);
      if (Skip("\"")) return true;
      rest_.remove_prefix(1);
      if (!Escaped(text)) return false;
    }
  }

 private:
  bool Escaped(std::string& text) {
    if (rest_.empty()) return false;
    const char kind = rest_.front();
    rest_.remove_prefix(1);
    if (kind == '"' || kind == '\\') {
      text.push_back(kind);
      return true;
    }
    uint8_t code = 0;
    if (kind != 'u' || !Skip("00") || rest_.size() < 2) return false;
    const auto [next, error] = std::from_chars(rest_.begin(), rest_.begin() + 2, code, 16);
    if (error != std::errc() || next != rest_.begin() + 2) return false;
    text.push_back(static_cast<char>(code));
    rest_.remove_prefix(2);
    return true;
  }

  absl::string_view rest_;
};

// "[]", or items between commas, and then the end; otherwise an empty list.
template <class Item, class Read>
std::vector<Item> ParseList(absl::string_view json, Read read) {
  Reader in(json);
  std::vector<Item> items;
  if (!in.Skip("[")) return {};
  if (in.Skip("]")) return {};
  do {
    if (!read(in, items.emplace_back())) return {};
  } while (in.Skip(","));
  if (!in.Skip("]") || !in.at_end()) return {};
  return items;
}

bool ReadAlternative(Reader& in, Alternative& alternative) {
  if (!in.Skip("{\"type\":\"") ||
      !in.Name({TreeType::kTypeII, TreeType::kTypeI}, alternative.type) ||
      !in.Skip("\",\"builder\":\"") ||
      !in.Name({TreeBuilder::kKary, TreeBuilder::kKnomial, TreeBuilder::kHierarchical,
                TreeBuilder::kMinimumCost, TreeBuilder::kPostal},
               alternative.builder) ||
      !in.Skip("\",\"width\":") || !in.Number(alternative.width) || !in.Skip(",\"total_us\":")) {
    return false;
  }
  if (!in.Skip("null") && !in.Number(alternative.total_us.emplace())) return false;
  return in.Skip(",\"why_not\":") && in.String(alternative.why_not) && in.Skip("}");
}

}  // namespace

std::string SizesJson(absl::Span<const SizeShare> sizes) {
  std::string out = "[";
  for (const SizeShare& share : sizes) {
    absl::StrAppend(&out, out.size() > 1 ? "," : "", "[", share.bytes, ",");
    AppendJsonNumber(out, share.weight);
    out.push_back(']');
  }
  out.push_back(']');
  return out;
}

std::string AlternativesJson(absl::Span<const Alternative> alternatives) {
  std::string out = "[";
  for (const Alternative& alternative : alternatives) {
    absl::StrAppend(&out, out.size() > 1 ? "," : "", "{\"type\":\"", ToString(alternative.type),
                    "\",\"builder\":\"", ToString(alternative.builder),
                    "\",\"width\":", alternative.width, ",\"total_us\":");
    if (alternative.total_us) {
      AppendMicroseconds(out, *alternative.total_us);
    } else {
      out.append("null");
    }
    out.append(",\"why_not\":");
    AppendJsonString(out, alternative.why_not);
    out.push_back('}');
  }
  out.push_back(']');
  return out;
}

std::vector<SizeShare> ParseSizes(absl::string_view json) {
  return ParseList<SizeShare>(json, [](Reader& in, SizeShare& share) {
    return in.Skip("[") && in.Number(share.bytes) && in.Skip(",") && in.Number(share.weight) &&
           in.Skip("]");
  });
}

std::vector<Alternative> ParseAlternatives(absl::string_view json) {
  return ParseList<Alternative>(json, ReadAlternative);
}

}  // namespace coppice
