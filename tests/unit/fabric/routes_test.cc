#include "daemon/fabric/routes.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/fabric/models/model.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"

namespace coppice::routes_test {
namespace {

constexpr uint32_t kFar = 1000000;

// Floyd and Warshall over switches.
std::vector<std::vector<uint32_t>> AllHops(const Fabric& fabric) {
  const uint32_t n = fabric.switch_count();
  std::vector<std::vector<uint32_t>> d(n, std::vector<uint32_t>(n, kFar));
  for (uint32_t s = 0; s < n; ++s) {
    d[s][s] = 0;
    for (const Channel& c : fabric.switch_channels(SwitchIndex(s))) {
      if (c.to.value() != s) d[s][c.to.value()] = 1;
    }
  }
  for (uint32_t k = 0; k < n; ++k) {
    for (uint32_t i = 0; i < n; ++i) {
      for (uint32_t j = 0; j < n; ++j) d[i][j] = std::min(d[i][j], d[i][k] + d[k][j]);
    }
  }
  return d;
}

// Hops between two vertices by the oracle; kFar if there is no way. Two ports of one host are no
// hops apart on one switch, and where the host alone joins their switches.
uint32_t OracleHops(const Fabric& fabric, const std::vector<std::vector<uint32_t>>& d,
                    VertexIndex from, VertexIndex to) {
  if (from == to) return 0;
  uint32_t links = 0;
  VertexIndex ends[2] = {from, to};
  for (VertexIndex& v : ends) {
    if (fabric.IsSwitch(v)) continue;
    ++links;
    v = fabric.Vertex(*fabric.attached_switch(fabric.AsEndpoint(v)));
  }
  const uint32_t between = d[ends[0].value()][ends[1].value()];
  if (links == 2 && fabric.host(fabric.AsEndpoint(from)) == fabric.host(fabric.AsEndpoint(to)) &&
      (between == 0 || between >= kFar)) {
    return 0;
  }
  return std::min(kFar, links + between);
}

void ExpectChain(const Fabric& fabric, VertexIndex from, VertexIndex to,
                 const std::vector<ChannelIndex>& path) {
  VertexIndex here = from;
  for (const ChannelIndex c : path) {
    ASSERT_EQ(fabric.channel_from(c), here);
    here = fabric.channel_to(c);
  }
  ASSERT_EQ(here, to);
}

TEST(ShortestPaths, AreMinimalAndFormATreePerDestination) {
  std::mt19937_64 rng(TestSeed());
  const int rounds = FullTier() ? 400 : 40;
  for (int round = 0; round < rounds; ++round) {
    const FabricPtr fabric = RandomFabric(rng, 1 + rng() % 12, rng() % 25, rng() % 10);
    const auto routes = Routes::ShortestPaths(fabric);
    const auto oracle = AllHops(*fabric);
    for (uint32_t t = 0; t < fabric->vertex_count(); ++t) {
      const VertexIndex to(t);
      std::vector<ChannelIndex> leaving(fabric->vertex_count(), kNoChannel);
      for (uint32_t f = 0; f < fabric->vertex_count(); ++f) {
        const VertexIndex from(f);
        const uint32_t expected = OracleHops(*fabric, oracle, from, to);
        std::vector<ChannelIndex> path{kNoChannel};
        const absl::Status status = routes->Append(from, to, path);
        const auto hops = routes->distances().Hops(from, to);
        if (expected == kFar) {
          EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
          EXPECT_EQ(path.size(), 1);
          EXPECT_FALSE(hops.has_value());
          continue;
        }
        ASSERT_TRUE(status.ok()) << status;
        ASSERT_EQ(path.size() - 1, expected);
        ASSERT_EQ(hops, expected);
        ASSERT_EQ(*routes->Length(from, to), expected);
        path.erase(path.begin());
        if (path.empty()) continue;
        ExpectChain(*fabric, from, to, path);
        for (const ChannelIndex c : path) {
          ChannelIndex& known = leaving[fabric->channel_from(c).value()];
          ASSERT_TRUE(known == kNoChannel || known == c);
          known = c;
        }
      }
    }
  }
}

//       S2            n0 and n1: port 1 on S0, port 2 on S1; n2 and n3 the other way round
//      /  \.
//    S0    S1
TEST(ShortestPaths, BetweenPortsOfOneHostOnTwoSwitchesAreThoseOfTheSwitches) {
  const FabricPtr fabric = HostsOnTwoLeaves(2, 1, 2);
  const auto tables = std::make_shared<ForwardingTables>(3);
  const auto shortest = Routes::ShortestPaths(fabric);
  for (uint32_t s = 0; s < 3; ++s) {
    std::vector<uint8_t> row(fabric->vertex_count() + 1, ForwardingTables::kNoRoute);
    for (uint32_t v = 0; v < fabric->vertex_count(); ++v) {
      const ChannelIndex next = shortest->NextChannel(SwitchIndex(s), VertexIndex(v));
      if (next != kNoChannel) row[v + 1] = fabric->channel_from_port(next).value();
    }
    tables->SetRow(SwitchIndex(s), row);
  }
  const VertexIndex a = fabric->Vertex(EndpointIndex(0)), b = fabric->Vertex(EndpointIndex(1));
  for (const auto& routes : {shortest, *Routes::FromTables(fabric, tables)}) {
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      std::vector<ChannelIndex> path;
      ASSERT_TRUE(routes->Append(from, to, path).ok());
      EXPECT_EQ(path.size(), 4U);
      ExpectChain(*fabric, from, to, path);
      EXPECT_EQ(*routes->Length(from, to), 4U);
      EXPECT_EQ(routes->distances().Hops(from, to), 4U);
    }
  }
  EXPECT_FALSE(fabric->StayWithinHost(EndpointIndex(0), EndpointIndex(1)));
  EXPECT_TRUE(fabric->StayWithinHost(EndpointIndex(0), EndpointIndex(0)));
}

TEST(ShortestPaths, BetweenPortsOfOneHostOnOneSwitchHaveNoLinks) {
  const FabricPtr fabric = TwoLevelFatTree(2, 1, 2, /*ports_per_host=*/2);
  const auto routes = Routes::ShortestPaths(fabric);
  const VertexIndex a = fabric->Vertex(EndpointIndex(0)), b = fabric->Vertex(EndpointIndex(1));
  EXPECT_EQ(*routes->Length(a, b), 0U);
  EXPECT_EQ(routes->distances().Hops(a, b), 0U);
  EXPECT_TRUE(fabric->StayWithinHost(EndpointIndex(0), EndpointIndex(1)));
}

// Two planes that no cable joins: the host passes on from its one port to the other, and for nobody
// else.
TEST(ShortestPaths, BetweenPortsOfOneHostThatNoCableJoinsHaveNoLinks) {
  const FabricPtr fabric = MakeFabric({2, {}, {{0, 1}, {0, 1}}, {}});
  const auto routes = Routes::ShortestPaths(fabric);
  const auto port = [&](uint32_t e) { return fabric->Vertex(EndpointIndex(e)); };
  EXPECT_EQ(*routes->Length(port(0), port(1)), 0U);
  EXPECT_EQ(routes->distances().Hops(port(0), port(1)), 0U);
  EXPECT_EQ(*routes->Length(port(0), port(2)), 2U);
  EXPECT_EQ(routes->Length(port(0), port(3)).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(routes->distances().Hops(port(0), port(3)), std::nullopt);
}

// The channel that the stated tie-break takes at switch `s` towards `to`, by its definition.
ChannelIndex OracleNext(const Fabric& fabric, const std::vector<std::vector<uint32_t>>& d,
                        uint32_t s, VertexIndex to) {
  const uint32_t target =
      fabric.IsSwitch(to) ? to.value() : fabric.attached_switch(fabric.AsEndpoint(to))->value();
  std::vector<ChannelIndex> nearer;
  for (const Channel& c : fabric.channels(VertexIndex(s))) {
    if (s == target) {
      if (c.to == to && to.value() != s) return c.index;
    } else if (fabric.IsSwitch(c.to) && d[s][target] < kFar &&
               d[c.to.value()][target] + 1 == d[s][target]) {
      nearer.push_back(c.index);
    }
  }
  return nearer.empty() ? kNoChannel : nearer[to.value() % nearer.size()];
}

void ExpectTheTieBreakEverywhere(const FabricPtr& fabric) {
  const auto oracle = AllHops(*fabric);
  const auto routes = Routes::ShortestPaths(fabric);
  const SwitchDistances& distances = routes->distances();
  const SwitchDistances asked_in_turn(fabric);  // rows made by Between() alone, of either end
  for (uint32_t s = 0; s < fabric->switch_count(); ++s) {
    for (uint32_t t = 0; t < fabric->switch_count(); ++t) {
      ASSERT_EQ(asked_in_turn.Between(SwitchIndex(s), SwitchIndex(t)),
                std::min<uint32_t>(oracle[s][t], SwitchDistances::kUnreachable))
          << s << " " << t;
    }
  }
  for (uint32_t t = 0; t < fabric->vertex_count(); ++t) {
    for (uint32_t s = 0; s < fabric->switch_count(); ++s) {
      ASSERT_EQ(routes->NextChannel(SwitchIndex(s), VertexIndex(t)),
                OracleNext(*fabric, oracle, s, VertexIndex(t)))
          << "at switch " << s << " to vertex " << t;
      if (t >= fabric->switch_count()) continue;
      const uint32_t hops = std::min<uint32_t>(oracle[s][t], SwitchDistances::kUnreachable);
      ASSERT_EQ(distances.Between(SwitchIndex(s), SwitchIndex(t)), hops) << s << " " << t;
    }
  }
}

TEST(ShortestPaths, TakeTheStatedTieBreakOnRandomFabrics) {
  std::mt19937_64 rng(TestSeed());
  const int rounds = FullTier() ? 4000 : 300;
  for (int round = 0; round < rounds; ++round) {
    const uint32_t switches = 1 + rng() % 16;
    ExpectTheTieBreakEverywhere(RandomFabric(rng, switches, rng() % (3 * switches), rng() % 8));
  }
}

TEST(ShortestPaths, TakeTheStatedTieBreakOnModelsWithAndWithoutTwins) {
  for (const char* model :
       {"fat-tree(supernodes=3,leaves=4,spines=2,hosts-per-leaf=2,tops=4)",
        "fat-tree(ports=4,levels=3)", "torus(dims=4x3x2,hosts=1)", "hypercube(dims=4,hosts=1)",
        "hyperx(dims=3x3x2,hosts=1)", "xgft(m=2x3x4,w=1x2x2)"}) {
    const auto fabric = GenerateModel(model);
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    ExpectTheTieBreakEverywhere(*fabric);
  }
}

//   S4 and S5 above S0..S3, S0 by two cables to S4; S6 hangs on S5 alone, S7 on nothing.
TEST(TwinClasses, FoldWhatHasTheSameNeighbours) {
  FabricPlan plan = TwoLevelFatTreePlan(4, 2, 1);
  plan.switches = 8;
  plan.cables.insert(plan.cables.end(), {{0, 4}, {5, 6}, {1, 1}});
  const FabricPtr fabric = MakeFabric(plan);
  const TwinClasses classes(*fabric);
  std::vector<uint32_t> class_of;
  for (uint32_t s = 0; s < 8; ++s) class_of.push_back(classes.class_of(SwitchIndex(s)));
  EXPECT_EQ(class_of, (std::vector<uint32_t>{0, 0, 0, 0, 1, 2, 3, 4}));
  EXPECT_EQ(classes.RowTo(3), (std::vector<uint8_t>{2, 3, 1, 0, TwinClasses::kFar}));
  ExpectTheTieBreakEverywhere(fabric);
}

TEST(SwitchDistances, BeyondTheLongestCountableAreUnreachable) {
  const FabricPtr fabric = Chain(300, 0);
  const SwitchDistances distances(fabric);
  EXPECT_EQ(distances.Between(SwitchIndex(254), SwitchIndex(0)), 254);
  EXPECT_EQ(distances.Between(SwitchIndex(255), SwitchIndex(0)), SwitchDistances::kUnreachable);
  EXPECT_EQ(distances.Between(SwitchIndex(45), SwitchIndex(299)), 254);
  EXPECT_EQ(distances.Between(SwitchIndex(44), SwitchIndex(299)), SwitchDistances::kUnreachable);
}

TEST(SwitchDistances, ThreadsThatAskAtOnceGetTheSameRows) {
  const FabricPtr fabric = *GenerateModel("fat-tree(ports=8,levels=3)");
  const auto alone = Routes::ShortestPaths(fabric);
  for (int round = 0; round < 20; ++round) {
    const auto routes = Routes::ShortestPaths(fabric);
    std::vector<std::vector<ChannelIndex>> paths(4);
    std::vector<std::vector<const uint8_t*>> rows(4);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < paths.size(); ++i) {
      threads.emplace_back([&, i] {
        const SwitchDistances& distances = routes->distances();
        for (uint32_t s = 0; s < fabric->switch_count(); ++s) {
          const uint32_t c = distances.classes().class_of(SwitchIndex(s));
          rows[i].push_back(distances.ClassRowTo(c).data());
          (void)routes->Append(fabric->Vertex(EndpointIndex(0)), VertexIndex(s), paths[i]);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 1; i < paths.size(); ++i) {
      EXPECT_EQ(paths[i], paths[0]);
      EXPECT_EQ(rows[i], rows[0]);
    }
    for (uint32_t c = 0; c < routes->distances().classes().class_count(); ++c) {
      ASSERT_EQ(routes->distances().ClassRowTo(c), alone->distances().ClassRowTo(c));
    }
  }
}

TEST(ShortestPaths, SpreadDestinationsOverTheSpinesByTheStatedTieBreak) {
  const FabricPtr fabric = TwoLevelFatTree(2, 4, 4);
  const auto routes = Routes::ShortestPaths(fabric);
  for (uint32_t e = 4; e < 8; ++e) {
    const VertexIndex to = fabric->Vertex(EndpointIndex(e));
    const auto up = fabric->switch_channels(SwitchIndex(0));
    EXPECT_EQ(routes->NextChannel(SwitchIndex(0), to), up[to.value() % 4].index);
  }
}

// S0 - S1 - S2, one host each; LIDs 1-3 for switches, 4-6 for n0-n2.
class TableRoutes : public ::testing::Test {
 protected:
  void Route(uint32_t s, uint16_t lid, VertexIndex next) {
    for (const Channel& c : fabric_->channels(VertexIndex(s))) {
      if (c.to == next) rows_[s][lid] = c.port.value();
    }
  }
  std::shared_ptr<const Routes> Make() {
    auto tables = std::make_shared<ForwardingTables>(3);
    for (uint32_t s = 0; s < 3; ++s) tables->SetRow(SwitchIndex(s), rows_[s]);
    return *Routes::FromTables(fabric_, tables);
  }
  VertexIndex Host(uint32_t e) const { return fabric_->Vertex(EndpointIndex(e)); }

  FabricPtr fabric_ = Chain(3, 1);
  std::vector<std::vector<uint8_t>> rows_{3, std::vector<uint8_t>(7, 255)};
  std::vector<ChannelIndex> path_;
};

TEST_F(TableRoutes, FollowTheTables) {
  Route(0, 6, VertexIndex(1));
  Route(1, 6, VertexIndex(2));
  Route(2, 6, Host(2));
  const auto routes = Make();
  ASSERT_TRUE(routes->Append(Host(0), Host(2), path_).ok());
  ExpectChain(*fabric_, Host(0), Host(2), path_);
  EXPECT_EQ(path_.size(), 4);
  EXPECT_EQ(ToString(routes->kind()), "forwarding tables");
}

TEST_F(TableRoutes, AHoleNamesTheSwitchWhereItBreaksOff) {
  Route(0, 6, VertexIndex(1));
  const absl::Status status = Make()->Append(Host(0), Host(2), path_);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(status.message()).find("\"S1\""), std::string::npos) << status;
  EXPECT_TRUE(path_.empty());
}

TEST_F(TableRoutes, ALoopIsAnError) {
  Route(0, 6, VertexIndex(1));
  Route(1, 6, VertexIndex(0));
  const absl::Status status = Make()->Append(Host(0), Host(2), path_);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(status.message()).find("loops"), std::string::npos) << status;
}

TEST_F(TableRoutes, TheWrongHostEndsTheRoute) {
  Route(0, 6, Host(0));
  EXPECT_EQ(Make()->Append(VertexIndex(0), Host(2), path_).code(), absl::StatusCode::kNotFound);
}

TEST_F(TableRoutes, TablesOfAnotherFabricAreRefused) {
  const auto routes = Routes::FromTables(fabric_, std::make_shared<ForwardingTables>(2));
  EXPECT_EQ(routes.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DimensionOrder, CorrectsTheLowestDimensionFirstTheShorterWayRound) {
  const FabricPtr fabric = *GenerateModel("torus(dims=5x4,hosts=1)");
  const auto routes = Routes::DimensionOrder(fabric);
  ASSERT_TRUE(routes.ok()) << routes.status();
  std::vector<ChannelIndex> path;
  ASSERT_TRUE((*routes)->Append(VertexIndex(0), VertexIndex(4 + 5), path).ok());
  ASSERT_EQ(path.size(), 2);
  EXPECT_EQ(fabric->channel_to(path[0]), VertexIndex(4));
  for (uint32_t from = 0; from < fabric->vertex_count(); ++from) {
    for (uint32_t to = 0; to < fabric->vertex_count(); ++to) {
      const auto length = (*routes)->Length(VertexIndex(from), VertexIndex(to));
      ASSERT_TRUE(length.ok()) << length.status();
      EXPECT_EQ(*length, (*routes)->distances().Hops(VertexIndex(from), VertexIndex(to)));
    }
  }
  EXPECT_EQ(Routes::DimensionOrder(Ring(4, 1)).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace coppice::routes_test
