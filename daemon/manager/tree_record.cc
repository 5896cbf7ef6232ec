#include "daemon/manager/tree_record.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/job_ports.h"
#include "daemon/manager/tree_draft.h"
#include "daemon/tree/tree_metrics.h"

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

constexpr int kMaxNamedLinks = 4;  // of what one tree has lost

std::string PortGuidOf(const Fabric& fabric, VertexIndex v) {
  return ToString(fabric.IsSwitch(v) ? fabric.switch_info(fabric.AsSwitch(v)).guid
                                     : fabric.endpoint(fabric.AsEndpoint(v)).port_guid);
}

TreeStanding Broken(std::string lost) {
  TreeStanding standing;
  standing.standing = Standing::kBroken;
  standing.lost = std::move(lost);
  return standing;
}

// The first cable of the physical tree that is gone, or empty.
std::string LostCable(const PhysicalTree& physical, const TreeRecord& record) {
  for (size_t i = 0; i < physical.vertices.size(); ++i) {
    if (physical.parents[i] < 0 || physical.up[i] != kNoChannel) continue;
    return absl::StrCat("no cable joins ", ToString(Guid(record.physical[2 * i])), " to ",
                        ToString(Guid(record.physical[2 * physical.parents[i]])));
  }
  return "";
}

// Ids of the links that are used, ascending.
std::vector<int64_t> LinksOf(absl::Span<const ChannelUse> uses,
                             absl::Span<const int64_t> link_ids) {
  std::vector<int64_t> ids;
  for (const ChannelUse& use : uses) ids.push_back(link_ids[Fabric::link_of(use.channel).value()]);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

bool SameLengths(const TreeRecord& record, absl::Span<const EdgeCost> edges) {
  for (size_t node = 0; node < edges.size(); ++node) {
    if (edges[node].links_up != record.edge_links_up[node] ||
        edges[node].links_down != record.edge_links_down[node]) {
      return false;
    }
  }
  return true;
}

// How packets reach the tree's root over the routes of its edges: each edge adds what of its way is
// not there yet, those nearest the root first. So every cable in it is one that packets cross.
PhysicalTree PhysicalOfRoutes(const Snapshot& snapshot, const AggregationTree& tree) {
  const Fabric& fabric = *snapshot.fabric;
  const ChildLists children = ChildrenOf(tree.parents);
  PhysicalTree physical;
  absl::flat_hash_map<uint32_t, int32_t> position;  // vertex -> in `physical`
  const auto add = [&](VertexIndex vertex, int32_t parent, ChannelIndex up) {
    position[vertex.value()] = static_cast<int32_t>(physical.vertices.size());
    physical.vertices.push_back(vertex);
    physical.parents.push_back(parent);
    physical.up.push_back(up);
  };
  std::vector<uint32_t> next;
  for (uint32_t node = 0; node < tree.node_count(); ++node) {
    if (tree.parents[node] == AggregationTree::kNoParent) next.push_back(node);
  }
  physical.root = tree.vertices[next.front()];
  add(physical.root, -1, kNoChannel);
  std::vector<ChannelIndex> path;
  for (size_t i = 0; i < next.size(); ++i) {
    const uint32_t parent_node = next[i];
    for (const uint32_t child : children.of(parent_node)) {
      next.push_back(child);
      path.clear();
      // There is one: the tree was judged over these routes.
      snapshot.routes->Append(tree.vertices[child], tree.vertices[parent_node], path).IgnoreError();
      const auto known = std::find_if(path.begin(), path.end(), [&](ChannelIndex channel) {
        return position.contains(fabric.channel_from(channel).value());
      });
      for (auto it = known; it != path.begin();) {
        --it;
        const auto parent = position.find(fabric.channel_to(*it).value());
        if (parent != position.end()) add(fabric.channel_from(*it), parent->second, *it);
      }
    }
  }
  return physical;
}

// Of TreeRecord::physical: each node with its parent, in order; the root's is 0.
std::vector<std::pair<uint64_t, uint64_t>> EdgesOf(const std::vector<uint64_t>& physical) {
  std::vector<std::pair<uint64_t, uint64_t>> edges;
  for (size_t i = 0; i + 1 < physical.size(); i += 2) {
    const uint64_t parent = physical[i + 1];
    edges.emplace_back(physical[i], parent == 0 ? 0 : physical[2 * (parent - 1)]);
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

// The same tree on other routes.
std::shared_ptr<const TreeRecord> Moved(const TreeRecord& record, const Snapshot& snapshot,
                                        const CostProfile& profile, const AggregationTree& tree,
                                        absl::Span<const EdgeCost> edges,
                                        std::vector<int64_t> links) {
  auto moved = std::make_shared<TreeRecord>(record);
  ++moved->revision;
  moved->fabric_version = snapshot.fabric->version();
  moved->links = std::move(links);
  const bool has_tables = snapshot.routes->kind() == RouteKind::kForwardingTables;
  if (has_tables && absl::EndsWith(moved->reason, kOverLinks)) {
    moved->reason.resize(moved->reason.size() - kOverLinks.size());
  }
  // Over shortest paths edges follow the physical tree as it is. Where routes to one switch part
  // from those to the next, no tree is theirs; the one that the tree was built on, which lives,
  // stays.
  if (!record.physical.empty() && snapshot.routes->kind() != RouteKind::kShortestPath) {
    const PhysicalTree physical = PhysicalOfRoutes(snapshot, tree);
    if (CheckAncestry(*snapshot.fabric, tree, physical).ok()) {
      std::vector<uint64_t> pairs;
      FillPhysical(*snapshot.fabric, physical, pairs);
      if (EdgesOf(pairs) != EdgesOf(record.physical)) moved->physical = std::move(pairs);
    }
  }
  for (size_t node = 0; node < edges.size(); ++node) {
    moved->edge_links_up[node] = edges[node].links_up;
    moved->edge_links_down[node] = edges[node].links_down;
  }
  moved->radius = Radius(tree, edges);
  const Prediction predicted = EvaluateMix(profile, tree, edges, record.spec);
  moved->aggregate_us = predicted.aggregate_us;
  moved->distribute_us = predicted.distribute_us;
  moved->total_us = predicted.total_us;
  return moved;
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
  record.alternatives = std::move(plan.alternatives);
  for (Alternative& alternative : record.alternatives) {  // endless is as good as not built
    if (alternative.total_us && !std::isfinite(*alternative.total_us)) alternative.total_us.reset();
  }
  // The record stays as long as the tree: without what was reserved while these grew.
  record.links.shrink_to_fit();
  record.parents.shrink_to_fit();
  record.reason.shrink_to_fit();
  record.alternatives.shrink_to_fit();
}

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

StandingJudge::StandingJudge(const FabricView& view, const FabricView* before,
                             const Snapshot& survivors, const CostProfile& profile)
    : view_(view),
      before_(before),
      survivors_(survivors),
      profile_(profile),
      present_(*view.link_ids) {
  std::sort(present_.begin(), present_.end());
  if (before == nullptr) return;
  for (size_t link = 0; link < before->link_ids->size(); ++link) {
    const int64_t id = (*before->link_ids)[link];
    if (!std::binary_search(present_.begin(), present_.end(), id)) {
      before_links_[id] = LinkIndex(static_cast<uint32_t>(link));
    }
  }
}

TreeStanding StandingJudge::Judge(const JobRecord& job,
                                  const absl::StatusOr<PartitionNum>& partition,
                                  const TreeRecord& record, std::optional<RouteKind> route_kind) {
  const Fabric& fabric = *view_.snapshot->fabric;
  const AggregationTree tree = PlaceTree(fabric, job, record);
  if (std::string lost = LostNodes(job, record, tree); !lost.empty()) {
    TreeStanding standing = Broken(lost);
    for (uint32_t node = 0; node < tree.rank_count; ++node) {
      if (tree.vertices[node] != kGoneVertex) continue;
      standing.lost_ports.push_back(job.endpoints[record.ranks[node]]);
    }
    return standing;
  }
  if (std::string lost = LostLinks(record); !lost.empty()) return Broken(lost);
  const PhysicalTree physical = PlacePhysical(fabric, *view_.link_ids, record);
  if (std::string lost = LostCable(physical, record); !lost.empty()) return Broken(lost);
  if (!partition.ok()) return Broken(std::string(partition.status().message()));
  partition_ = *partition;
  if (absl::Status barred = CheckPartition(record, tree); !barred.ok()) {
    return Broken(std::string(barred.message()));
  }
  if (Route(*view_.snapshot, record, tree, physical)) {
    return Compare(*view_.snapshot, record, tree, route_kind);
  }
  const std::string broken(routed_.message());
  const bool may_be_routed = view_.snapshot->routes->kind() == RouteKind::kForwardingTables;
  if (may_be_routed && Route(survivors_, record, tree, physical)) {
    return Compare(survivors_, record, tree, route_kind);
  }
  return Broken(broken);
}

absl::Status StandingJudge::CheckPartition(const TreeRecord& record,
                                           const AggregationTree& tree) const {
  RETURN_IF_ERROR(CheckMemberships(*view_.snapshot, partition_, tree));
  for (size_t t = 1; t < record.forest.size(); ++t) {
    AggregationTree other = tree;
    other.parents = record.forest[t].parents;
    RETURN_IF_ERROR(CheckMemberships(*view_.snapshot, partition_, other));
  }
  return absl::OkStatus();
}

bool StandingJudge::Route(const Snapshot& snapshot, const TreeRecord& record,
                          const AggregationTree& tree, const PhysicalTree& physical) {
  const bool follows =
      !record.physical.empty() && snapshot.routes->kind() == RouteKind::kShortestPath;
  counter_.Begin(snapshot);
  routed_ = counter_.AddTree(tree, follows ? &physical : nullptr);
  for (size_t t = 1; t < record.forest.size() && routed_.ok(); ++t) {
    AggregationTree other = tree;
    other.parents = record.forest[t].parents;
    routed_ = counter_.AddTree(other, nullptr);
  }
  counter_.Take(uses_);
  return routed_.ok();
}

TreeStanding StandingJudge::Compare(const Snapshot& snapshot, const TreeRecord& record,
                                    const AggregationTree& tree,
                                    std::optional<RouteKind> route_kind) {
  const absl::StatusOr<std::vector<EdgeCost>> edges = EdgeCosts(snapshot, profile_, tree);
  if (!edges.ok()) return Broken(std::string(edges.status().message()));
  if (absl::Status barred = CheckPassage(snapshot, partition_, uses_); !barred.ok()) {
    return Broken(std::string(barred.message()));
  }
  std::vector<int64_t> links = LinksOf(uses_, *view_.link_ids);
  // Of several cables between two switches the record does not tell which edge takes which.
  const bool same_links =
      std::includes(record.links.begin(), record.links.end(), links.begin(), links.end());
  TreeStanding standing;
  standing.route_kind = snapshot.routes->kind();
  const bool same_kind = route_kind.value_or(standing.route_kind) == standing.route_kind;
  if (same_kind && same_links && SameLengths(record, *edges)) return standing;
  if (!record.forest.empty()) return Broken("routes of the forest moved");
  standing.standing = Standing::kMoved;
  standing.moved = Moved(record, snapshot, profile_, tree, *edges, std::move(links));
  return standing;
}

std::string StandingJudge::LostNodes(const JobRecord& job, const TreeRecord& record,
                                     const AggregationTree& tree) const {
  for (uint32_t node = 0; node < tree.node_count(); ++node) {
    if (tree.vertices[node] != kGoneVertex) continue;
    if (!tree.IsRank(node)) {
      return absl::StrCat("switch ", ToString(record.switches[node - tree.rank_count].guid),
                          " is gone");
    }
    const uint32_t rank = record.ranks[node];
    return absl::StrCat("port ", ToString(job.endpoints[rank]), " of rank ", rank, " is gone");
  }
  return "";
}

std::string StandingJudge::LostLinks(const TreeRecord& record) const {
  std::string lost;
  int count = 0;
  for (const int64_t id : record.links) {
    if (std::binary_search(present_.begin(), present_.end(), id)) continue;
    if (++count <= kMaxNamedLinks) absl::StrAppend(&lost, count > 1 ? ", " : "", NameOfLink(id));
  }
  if (count == 0) return "";
  if (count > kMaxNamedLinks) absl::StrAppend(&lost, " and ", count - kMaxNamedLinks, " more");
  return absl::StrCat(count == 1 ? "link " : "links ", lost, count == 1 ? " is gone" : " are gone");
}

std::string StandingJudge::NameOfLink(int64_t id) const {
  const auto found = before_links_.find(id);
  if (found == before_links_.end()) return absl::StrCat("number ", id);
  const Fabric& fabric = *before_->snapshot->fabric;
  const LinkInfo& link = fabric.link(found->second);
  return absl::StrCat(PortGuidOf(fabric, link.a), "/", link.a_port.value(), " - ",
                      PortGuidOf(fabric, link.b), "/", link.b_port.value());
}

}  // namespace coppice
