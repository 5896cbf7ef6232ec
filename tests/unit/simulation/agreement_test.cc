// The simulator against the exact evaluation, where both must say the same: one packet an edge, no
// load, and no channel that two edges of the tree share but their parent's own port.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/tree/tree_metrics.h"
#include "gtest/gtest.h"
#include "tests/support/tables.h"
#include "tests/support/tier.h"
#include "tests/unit/simulation/simulated_cases.h"

namespace coppice::agreement_test {
namespace {

double Draw(std::mt19937_64& random, double least, double most) {
  return std::uniform_real_distribution<double>(least, most)(random);
}
uint32_t Below(std::mt19937_64& random, size_t bound) {
  return static_cast<uint32_t>(random() % bound);
}

NodeCost AnyNode(std::mt19937_64& random) {
  return {.forward_us = Draw(random, 0, 1),
          .forward_us_per_byte = Draw(random, 0, 1e-4),
          .match_us = Draw(random, 0, 0.1),
          .reduce_us_per_byte = Draw(random, 0, 2e-4),
          .send_us = Draw(random, 0, 0.1)};
}

CostProfile AnyProfile(std::mt19937_64& random) {
  CostProfile profile;
  profile.name = "random";
  profile.nic = AnyNode(random);
  profile.switch_ = AnyNode(random);
  profile.init_us = Draw(random, 0, 1);
  profile.link_us = Draw(random, 0.01, 0.3);
  profile.same_host_us = Draw(random, 0, 0.2);
  profile.mtu_bytes = 4096;
  profile.forward_includes_serialisation = Below(random, 4) == 0;
  return profile;
}

Snapshot AnyShortestPaths(std::mt19937_64& random) {
  static const char* const kSpeeds[] = {"hdr", "edr/hdr", "hdr/edr", "qdr/hdr/edr"};
  const char* const speeds = kSpeeds[Below(random, 4)];
  switch (Below(random, 4)) {
    case 0:
      return SnapshotOf(Chain(2 + Below(random, 6), 1 + Below(random, 3)));
    case 1:
      return SnapshotOf(RandomFabric(random, 6, 14, 10));
    case 2:
      return SnapshotOfModel(
          absl::StrCat("model:torus(dims=3x3,hosts=2,lids=1,speeds=", speeds, ")"));
    default:
      return SnapshotOfModel(
          absl::StrCat("model:fat-tree(leaves=", 2 + Below(random, 5),
                       ",spines=", 1 + Below(random, 8), ",hosts-per-leaf=", 1 + Below(random, 6),
                       ",ports-per-host=", 1 + Below(random, 2), ",lids=1,speeds=", speeds, ")"));
  }
}

// Over shortest paths, tables that say the same, and in dimension order where the fabric is a grid.
Snapshot AnyFabric(std::mt19937_64& random) {
  Snapshot snapshot = AnyShortestPaths(random);
  const auto grid = Routes::DimensionOrder(snapshot.fabric);
  if (grid.ok() && Below(random, 2) == 0) snapshot.routes = *grid;
  if (Below(random, 3) == 0) snapshot.routes = TablesLike(*snapshot.routes, snapshot.fabric);
  return snapshot;
}

// Any tree over some endpoints, and for type II some switches as well.
AggregationTree AnyTree(std::mt19937_64& random, const Fabric& fabric) {
  AggregationTree tree;
  const bool type2 = Below(random, 3) == 0;
  tree.type = type2 ? TreeType::kTypeII : TreeType::kTypeI;
  tree.rank_count = 2 + Below(random, std::min<uint32_t>(11, fabric.endpoint_count()));
  for (uint32_t r = 0; r < tree.rank_count; ++r) {
    tree.vertices.push_back(fabric.Vertex(EndpointIndex(Below(random, fabric.endpoint_count()))));
  }
  const uint32_t switches = type2 ? 1 + Below(random, std::min(3U, fabric.switch_count())) : 0;
  for (uint32_t s = 0; s < switches; ++s) {
    tree.vertices.push_back(fabric.Vertex(SwitchIndex(Below(random, fabric.switch_count()))));
  }
  for (uint32_t n = 0; n < tree.vertices.size(); ++n) {
    const uint32_t first = type2 ? tree.rank_count : 0;  // the root, and who may have children
    const uint32_t parent = n < first    ? first + Below(random, switches)
                            : n == first ? UINT32_MAX
                                         : first + Below(random, n - first);
    tree.parents.push_back(static_cast<int32_t>(parent));
  }
  return tree;
}

// Every serving switch has children: a switch that serves nobody would count in the prediction,
// but is no part of what members wait for.
bool EverySwitchServes(const AggregationTree& tree) {
  for (uint32_t n = tree.rank_count; n < tree.node_count(); ++n) {
    if (std::count(tree.parents.begin(), tree.parents.end(), static_cast<int32_t>(n)) == 0) {
      return false;
    }
  }
  return true;
}

// Whether edges share channels only where a parent's port takes or sends what is its own.
bool SharesOnlyParentsPorts(const Snapshot& snapshot, const AggregationTree& tree, bool down) {
  std::map<uint32_t, int32_t> taken;  // channel -> parent at whose port it is; -2: elsewhere
  for (uint32_t n = 0; n < tree.node_count(); ++n) {
    if (tree.parents[n] < 0) continue;
    const VertexIndex child = tree.vertices[n], parent = tree.vertices[tree.parents[n]];
    std::vector<ChannelIndex> path;
    if (!snapshot.routes->Append(down ? parent : child, down ? child : parent, path).ok()) {
      return false;
    }
    for (const ChannelIndex c : path) {
      const bool port = c == (down ? path.front() : path.back());
      const auto [at, is_new] = taken.emplace(c.value(), port ? tree.parents[n] : -2);
      if (!is_new && (!port || at->second != tree.parents[n])) return false;
    }
  }
  return true;
}

TEST(Agreement, SimulatorAndEvaluationSayTheSameOfSinglePackets) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  const int wanted = FullTier() ? 1000 : 100;
  double largest = 0;
  for (int cases = 0; cases < wanted;) {
    const Snapshot snapshot = AnyFabric(random);
    for (int attempt = 0; attempt < 5 && cases < wanted; ++attempt) {
      const AggregationTree tree = AnyTree(random, *snapshot.fabric);
      if (!EverySwitchServes(tree) || !SharesOnlyParentsPorts(snapshot, tree, false) ||
          !SharesOnlyParentsPorts(snapshot, tree, true)) {
        continue;
      }
      ++cases;
      const CostProfile profile = AnyProfile(random);
      const Payload payload =
          PayloadOf(static_cast<Operation>(Below(random, 4)), Below(random, profile.mtu_bytes + 1),
                    Below(random, 2) == 0);
      const auto edges = EdgeCosts(snapshot, profile, tree);
      ASSERT_TRUE(edges.ok()) << edges.status();
      const Prediction predicted = Evaluate(profile, tree, *edges, payload);
      const CollectiveTimes simulated =
          Simulated(snapshot, profile, {{.tree = tree, .payload = payload, .skew_us = {}}})
              .collectives[0];
      const double difference =
          std::abs(simulated.total_us - predicted.total_us) / predicted.total_us;
      largest = std::max(largest, difference);
      EXPECT_LT(difference, 0.05) << "case " << cases << " of seed " << seed << ": simulated "
                                  << simulated.aggregate_us << " + " << simulated.distribute_us
                                  << ", predicted " << predicted.aggregate_us << " + "
                                  << predicted.distribute_us;
    }
  }
  RecordProperty("largest_difference", std::to_string(largest));
  std::printf("largest difference: %.4g %%\n", 100 * largest);
}

}  // namespace
}  // namespace coppice::agreement_test
