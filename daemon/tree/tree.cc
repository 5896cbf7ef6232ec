#include "daemon/tree/tree.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace coppice {

uint32_t AggregationTree::root() const {
  const auto it = absl::c_find(parents, kNoParent);
  return static_cast<uint32_t>(it - parents.begin());
}

std::vector<uint32_t> ChildCounts(absl::Span<const int32_t> parents) {
  std::vector<uint32_t> counts(parents.size(), 0);
  for (const int32_t parent : parents) {
    if (parent >= 0) ++counts[parent];
  }
  return counts;
}

ChildLists ChildrenOf(absl::Span<const int32_t> parents) {
  ChildLists lists;
  lists.begin.assign(parents.size() + 1, 0);
  for (const int32_t parent : parents) {
    if (parent >= 0) ++lists.begin[parent + 1];
  }
  for (size_t i = 0; i < parents.size(); ++i) lists.begin[i + 1] += lists.begin[i];
  lists.children.resize(lists.begin.back());
  std::vector<uint32_t> next(lists.begin.begin(), lists.begin.end() - 1);
  for (uint32_t node = 0; node < parents.size(); ++node) {
    if (parents[node] >= 0) lists.children[next[parents[node]]++] = node;
  }
  return lists;
}

namespace {

absl::Status NotOver(uint32_t node, absl::string_view why) {
  return absl::InternalError(absl::StrCat("node ", node, " ", why));
}

}  // namespace

absl::Status CheckAncestry(const Fabric& fabric, const AggregationTree& tree,
                           const PhysicalTree& physical) {
  std::vector<int64_t> position_of(fabric.vertex_count(), -1);
  for (size_t p = 0; p < physical.vertices.size(); ++p) {
    position_of[physical.vertices[p].value()] = static_cast<int64_t>(p);
  }
  for (uint32_t node = 0; node < tree.node_count(); ++node) {
    int64_t position = position_of[tree.vertices[node].value()];
    if (position < 0) return NotOver(node, "is not in the physical tree");
    if (tree.parents[node] == AggregationTree::kNoParent) continue;
    const VertexIndex parent = tree.vertices[tree.parents[node]];
    if (!fabric.IsSwitch(parent)) return NotOver(node, "has a parent that is no switch");
    do {
      position = physical.parents[position];
    } while (position >= 0 && physical.vertices[position] != parent);
    if (position < 0) return NotOver(node, "has a parent that is not its ancestor");
  }
  return absl::OkStatus();
}

namespace {

absl::Status CheckMembers(const Fabric& fabric, Members members) {
  if (members.empty()) {
    return absl::InvalidArgumentError(
        "the communicator has no members; name at least one endpoint");
  }
  for (size_t rank = 0; rank < members.size(); ++rank) {
    if (members[rank].value() < fabric.endpoint_count()) continue;
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " is on endpoint number ",
                                                   members[rank].value(), ", but the fabric has ",
                                                   fabric.endpoint_count(), " endpoints"));
  }
  const uint32_t component = fabric.component(fabric.Vertex(members[0]));
  for (size_t rank = 1; rank < members.size(); ++rank) {
    if (fabric.component(fabric.Vertex(members[rank])) == component) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("rank 0 on ", Describe(fabric, fabric.Vertex(members[0])), " and rank ", rank,
                     " on ", Describe(fabric, fabric.Vertex(members[rank])),
                     " are in different subnetworks: no cable joins them; cable these or split the "
                     "communicator"));
  }
  return absl::OkStatus();
}

// Neighbours in `endpoints` are mostly on one switch, which is then looked up once.
void FindLeafSwitches(const Fabric& fabric, MemberPlaces& places) {
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> leaf_of(places.endpoints.size());
  uint32_t last = kNone;
  for (size_t i = 0; i < leaf_of.size(); ++i) {
    const std::optional<SwitchIndex> leaf = fabric.attached_switch(places.endpoints[i]);
    leaf_of[i] = leaf ? leaf->value() : kNone;
    if (!leaf) places.all_on_switches = false;
    if (leaf && leaf_of[i] != last) places.leaf_switches.push_back(*leaf);
    last = leaf_of[i];
  }
  std::vector<SwitchIndex>& leaves = places.leaf_switches;
  absl::c_sort(leaves);
  leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
  places.leaf_of_endpoint.resize(leaf_of.size(), static_cast<uint32_t>(leaves.size()));
  for (size_t i = 0; i < leaf_of.size(); ++i) {
    if (leaf_of[i] == kNone) continue;
    if (i > 0 && leaf_of[i] == leaf_of[i - 1]) {
      places.leaf_of_endpoint[i] = places.leaf_of_endpoint[i - 1];
      continue;
    }
    const auto at = absl::c_lower_bound(leaves, SwitchIndex(leaf_of[i]));
    places.leaf_of_endpoint[i] = static_cast<uint32_t>(at - leaves.begin());
  }
}

}  // namespace

absl::StatusOr<MemberPlaces> FindMemberPlaces(const Snapshot& snapshot, Members members) {
  const Fabric& fabric = *snapshot.fabric;
  if (absl::Status status = CheckMembers(fabric, members); !status.ok()) return status;
  MemberPlaces places;
  places.endpoint_of_rank.resize(members.size());
  if (absl::c_adjacent_find(members, std::greater_equal<>()) == members.end()) {
    // Every endpoint once, in ascending order, as those of a whole partition usually are.
    absl::c_iota(places.endpoint_of_rank, 0U);
    places.endpoints.assign(members.begin(), members.end());
    places.ranks_at.assign(members.size(), 1);
    FindLeafSwitches(fabric, places);
    return places;
  }
  absl::flat_hash_map<uint32_t, uint32_t> position;  // [endpoint]
  for (uint32_t rank = 0; rank < members.size(); ++rank) {
    const auto [at, is_new] =
        position.try_emplace(members[rank].value(), static_cast<uint32_t>(places.endpoints.size()));
    places.endpoint_of_rank[rank] = at->second;
    if (is_new) {
      places.endpoints.push_back(members[rank]);
      places.ranks_at.push_back(0);
    }
    ++places.ranks_at[at->second];
  }
  FindLeafSwitches(fabric, places);
  return places;
}

}  // namespace coppice
