#include "daemon/mapping/mapping_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "daemon/fabric/hierarchy.h"
#include "daemon/mapping/link_traffic.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::mapping_metrics_test {
namespace {

PlaceIndex P(uint32_t p) { return PlaceIndex(p); }

// The place whose switch is at these coordinates of a grid.
PlaceIndex At(const MappingProblem& problem, std::vector<int32_t> coordinates) {
  const Fabric& fabric = *problem.snapshot->fabric;
  for (uint32_t p = 0; p < problem.places->count(); ++p) {
    const SwitchIndex s = *fabric.attached_switch(problem.places->endpoint(P(p)));
    if (ParsePosition(fabric.switch_info(s).description)->at == coordinates) return P(p);
  }
  ADD_FAILURE() << "no such switch";
  return P(0);
}

// The most bytes over a channel between switches, whose capacities are equal.
double MostBetweenSwitches(const MappingProblem& problem, const Mapping& mapping) {
  const Fabric& fabric = *problem.snapshot->fabric;
  const LinkTraffic traffic = CountLinkTraffic(problem, mapping).value();
  double most = 0;
  for (uint32_t c = 0; c < traffic.bytes.size(); ++c) {
    const ChannelIndex channel(c);
    if (fabric.IsSwitch(fabric.channel_from(channel)) &&
        fabric.IsSwitch(fabric.channel_to(channel))) {
      most = std::max(most, traffic.bytes[c]);
    }
  }
  return most;
}

// Hoefler 2011, figure 1: a cube of 2x2x2 switches, routed x, y, z; ranks 0-1, 0-3 and 2-3 talk.
//
//    (c) 0 on 000, 1 on 111, 2 on 101, 3 on 100: 0-1 and 0-3 share 000 -> 100, and 0-1 has 3 links
//    (d) 0 on 101, 1 on 111, 2 on 000, 3 on 100: every pair has a link of its own
TEST(MappingMeasures, AreThoseOfHoeflersFigureOne) {
  MappingProblem problem = ProblemOnModel(
      "hypercube(dims=3)", 8, 1,
      Pattern::Make(
          4, {{0, 1, 1, 1}, {1, 0, 1, 1}, {0, 3, 1, 1}, {3, 0, 1, 1}, {2, 3, 1, 1}, {3, 2, 1, 1}})
          .value());
  const Snapshot& old = *problem.snapshot;
  problem.snapshot = std::make_shared<Snapshot>(
      Snapshot{old.fabric, Routes::DimensionOrder(old.fabric).value(), old.hierarchy, old.load});
  const auto at = [&](int32_t x, int32_t y, int32_t z) { return At(problem, {x, y, z}); };
  const Mapping initial = {at(0, 0, 0), at(1, 1, 1), at(1, 0, 1), at(1, 0, 0)};
  const Mapping better = {at(1, 0, 1), at(1, 1, 1), at(0, 0, 0), at(1, 0, 0)};
  EXPECT_EQ(MostBetweenSwitches(problem, initial), 2);
  EXPECT_EQ(MostBetweenSwitches(problem, better), 1);
  // Lengths here count the two links of the hosts, which the figure does not draw.
  EXPECT_EQ(*MeasureOf(problem, initial).max_dilation, 3u + 2);
  EXPECT_EQ(*MeasureOf(problem, better).max_dilation, 1u + 2);
  EXPECT_EQ(*MeasureOf(problem, initial).hop_bytes, 2 * (3 + 1 + 1 + 3 * 2));
  EXPECT_DOUBLE_EQ(*MeasureOf(problem, better).average_dilation, 1 + 2);
}

TEST(MappingMeasures, SplitBytesByHostAndSwitch) {
  const MappingProblem problem =
      ProblemOnModel("fat-tree(leaves=2,spines=1,hosts-per-leaf=2)", 4, 2,
                     Pattern::Make(4, {{0, 1, 1, 1}, {0, 2, 10, 1}, {3, 0, 100, 1}}).value());
  const MappingMeasures m = MeasureOf(problem, {P(0), P(0), P(1), P(2)});
  EXPECT_EQ(m.inter_node_bytes, 110);
  EXPECT_EQ(*m.inter_switch_bytes, 100);
  EXPECT_EQ(*m.hop_bytes, 10 * 2 + 100 * 4);
  EXPECT_EQ(m.qap_cost, 10 * 2 + 100 * 4);
}

TEST(QapCost, CountsDirectionsAndLoops) {
  const auto pattern = Pattern::Make(2, {{0, 1, 3, 1}, {1, 0, 5, 1}, {0, 0, 7, 1}}).value();
  const auto d = PlaceDistances::Matrix(2, {2, 10, 100, 4}).value();
  EXPECT_EQ(QapCost(*pattern, *d, {P(0), P(1)}), 3 * 10 + 5 * 100 + 7 * 2);
  EXPECT_EQ(QapCost(*pattern, *d, {P(1), P(0)}), 3 * 100 + 5 * 10 + 7 * 4);
}

TEST(Score, IsOneForThePresentOrder) {
  MappingProblem problem =
      ProblemOnModel("fat-tree(leaves=2,spines=1,hosts-per-leaf=2)", 4, 1, RingPattern(4, 5));
  problem.objective = {.congestion = 2, .hop_bytes = 1, .qap_cost = 3};
  EXPECT_DOUBLE_EQ(ScoreOf(problem, problem.present()), 1);
}

}  // namespace
}  // namespace coppice::mapping_metrics_test
