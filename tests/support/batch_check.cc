#include "tests/support/batch_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/batch/batch.h"
#include "tests/support/tree_check.h"

namespace coppice {
namespace {

template <class... Parts>
absl::Status Broken(const Parts&... parts) {
  return absl::InternalError(absl::StrCat(parts...));
}

class Recount {
 public:
  Recount(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity)
      : snapshot_(snapshot),
        fabric_(*snapshot.fabric),
        capacity_(capacity),
        taken_(fabric_.switch_count(), 0),
        packets_(fabric_.channel_count(), 0) {
    for (const SwitchCapacity& c : capacity) limits_.push_back(c.degree_limit);
  }

  absl::Status Add(Members members, const BatchTree& batch) {
    ASSIGN_OR_RETURN(const RankTree ranks, HangBatchTree(snapshot_, capacity_, members, batch));
    RETURN_IF_ERROR(CheckTree(fabric_, ranks.tree, members));
    RETURN_IF_ERROR(CheckDegrees(ranks.tree, 0, limits_));
    if (members.size() == 1) return CheckSingle(batch);
    RETURN_IF_ERROR(CheckPhysicalTree(fabric_, ranks.physical, members));
    RETURN_IF_ERROR(CheckAncestry(fabric_, ranks.tree, ranks.physical));
    RETURN_IF_ERROR(CheckRoutes(ranks.physical));
    RETURN_IF_ERROR(CheckServers(ranks.tree, batch));
    return CheckPackets(ranks, batch);
  }

  absl::Status CheckTotals(const BatchOptions& options, const BatchTotals& totals) const {
    uint64_t entries = 0;
    for (uint32_t s = 0; s < taken_.size(); ++s) {
      entries += taken_[s];
      if (taken_[s] > capacity_[s].entries_free) {
        return Broken("switch ", s, " serves ", taken_[s], " trees with ",
                      capacity_[s].entries_free, " free entries");
      }
    }
    if (entries != totals.entries) {
      return Broken("the trees take ", entries, " entries, the totals say ", totals.entries);
    }
    uint64_t most = 0;
    for (uint32_t c = 0; c < packets_.size(); ++c) {
      if (packets_[c] == 0 || !IsBetweenSwitches(ChannelIndex(c))) continue;
      most = std::max(most, LoadOn(options, c));
    }
    if (most != totals.most_packets) {
      return Broken("the most loaded link carries ", most, ", the totals say ",
                    totals.most_packets);
    }
    const uint32_t where = totals.most_loaded.value();
    if (most > 0 && (packets_[where] == 0 || LoadOn(options, where) != most)) {
      return Broken("channel ", where, " is not the most loaded one");
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status CheckSingle(const BatchTree& batch) {
    if (batch.serving.empty()) return absl::OkStatus();
    return Broken("switches serve for one rank");
  }

  bool IsBetweenSwitches(ChannelIndex c) const {
    return fabric_.IsSwitch(fabric_.channel_from(c)) && fabric_.IsSwitch(fabric_.channel_to(c));
  }

  uint64_t LoadOn(const BatchOptions& options, uint32_t c) const {
    const double u = std::clamp<double>(snapshot_.utilisation(ChannelIndex(c)), 0, 1);
    return packets_[c] + static_cast<uint64_t>(std::lround(u * options.packets_at_full_load));
  }

  // Over shortest paths every hop comes nearer to the root; else it is the route's.
  absl::Status CheckRoutes(const PhysicalTree& physical) const {
    const bool any_path = snapshot_.routes->kind() == RouteKind::kShortestPath;
    for (size_t v = 1; v < physical.vertices.size(); ++v) {
      if (!fabric_.IsSwitch(physical.vertices[v])) continue;
      const SwitchIndex at = fabric_.AsSwitch(physical.vertices[v]);
      if (!any_path) {
        if (physical.up[v] == snapshot_.routes->NextChannel(at, physical.root)) continue;
        return Broken("physical vertex ", v, " leaves the route");
      }
      const SwitchIndex next = fabric_.AsSwitch(fabric_.channel_to(physical.up[v]));
      const SwitchDistances& distances = snapshot_.routes->distances();
      const SwitchIndex root = fabric_.AsSwitch(physical.root);
      if (distances.Between(next, root) + 1 != distances.Between(at, root)) {
        return Broken("physical vertex ", v, " does not come nearer to the root");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckServers(const AggregationTree& tree, const BatchTree& batch) {
    if (tree.serving_switch_count() != batch.serving.size()) {
      return Broken("the tree has ", tree.serving_switch_count(), " switches, the plan ",
                    batch.serving.size());
    }
    for (uint32_t node = tree.rank_count; node < tree.node_count(); ++node) {
      ++taken_[tree.vertices[node].value()];
      if (std::count(tree.parents.begin(), tree.parents.end(), static_cast<int32_t>(node)) < 2) {
        return Broken("node ", node, " takes an entry for one child");
      }
    }
    return absl::OkStatus();
  }

  // Walks every edge of the tree up the physical tree and counts one packet on each channel.
  absl::Status CheckPackets(const RankTree& ranks, const BatchTree& batch) {
    std::map<VertexIndex, size_t> position;
    for (size_t v = 0; v < ranks.physical.vertices.size(); ++v) {
      position[ranks.physical.vertices[v]] = v;
    }
    std::vector<uint32_t> crossed(ranks.physical.vertices.size(), 0);
    for (uint32_t node = 0; node < ranks.tree.node_count(); ++node) {
      if (ranks.tree.parents[node] < 0) continue;
      const size_t end = position[ranks.tree.vertices[ranks.tree.parents[node]]];
      for (size_t v = position[ranks.tree.vertices[node]]; v != end;
           v = static_cast<size_t>(ranks.physical.parents[v])) {
        ++crossed[v];
        ++packets_[ranks.physical.up[v].value()];
      }
    }
    for (size_t v = 0; v < batch.packets.size(); ++v) {
      if (crossed[v] == batch.packets[v]) continue;
      return Broken("physical vertex ", v, " sends ", crossed[v], " packets, the plan says ",
                    batch.packets[v]);
    }
    return absl::OkStatus();
  }

  const Snapshot& snapshot_;
  const Fabric& fabric_;
  const absl::Span<const SwitchCapacity> capacity_;
  std::vector<uint32_t> limits_;
  std::vector<uint32_t> taken_;    // [switch]
  std::vector<uint64_t> packets_;  // [channel]
};

}  // namespace

absl::Status CheckBatch(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity,
                        absl::Span<const BatchCommunicator> communicators,
                        const BatchOptions& options, const BatchPlan& plan) {
  if (plan.communicators.size() != communicators.size()) {
    return Broken("the plan answers ", plan.communicators.size(), " of ", communicators.size(),
                  " communicators");
  }
  Recount recount(snapshot, capacity);
  uint32_t admitted = 0, farther = 0;
  for (size_t c = 0; c < communicators.size(); ++c) {
    const CommunicatorResult& result = plan.communicators[c];
    if (!result.tree) {
      if (result.why_not.empty()) return Broken("communicator ", c, " is refused for no reason");
      continue;
    }
    ++admitted;
    farther += result.tree->extra_hops > 0 ? 1 : 0;
    RETURN_IF_ERROR(Annotate(recount.Add(communicators[c].members, *result.tree),
                             absl::StrCat("communicator ", c)));
  }
  if (admitted != plan.totals.admitted || farther != plan.totals.farther_roots ||
      admitted + plan.totals.failures != communicators.size()) {
    return Broken("the totals do not add up");
  }
  return recount.CheckTotals(options, plan.totals);
}

}  // namespace coppice
