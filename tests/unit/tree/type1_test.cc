// The three type I builders: the paper's figures, the verifier on every tree, and bad input.
#include "daemon/tree/type1.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "daemon/fabric/hierarchy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"
#include "tests/support/tree_check.h"
#include "tests/support/trees.h"

namespace coppice::type1_test {
namespace {

using ::testing::HasSubstr;

// Packets that cross between leaf switches in one reduction.
struct Crossing {
  uint32_t all = 0;       // in all
  uint32_t into_one = 0;  // most that enter one switch
  uint32_t one_pair = 0;  // most between two switches, either way
};

Crossing CountCrossing(const Fabric& fabric, const AggregationTree& tree) {
  Crossing crossing;
  std::map<SwitchIndex, uint32_t> into;
  std::map<std::pair<SwitchIndex, SwitchIndex>, uint32_t> between;
  for (uint32_t node = 0; node < tree.node_count(); ++node) {
    if (tree.parents[node] < 0) continue;
    const auto from = *fabric.attached_switch(fabric.AsEndpoint(tree.vertices[node]));
    const auto to = *fabric.attached_switch(fabric.AsEndpoint(tree.vertices[tree.parents[node]]));
    if (from == to) continue;
    ++crossing.all;
    crossing.into_one = std::max(crossing.into_one, ++into[to]);
    crossing.one_pair = std::max(crossing.one_pair, ++between[std::minmax(from, to)]);
  }
  return crossing;
}

class PaperFabric : public ::testing::Test {
 protected:
  // 512 single-port hosts, 16 on each of 32 leaf switches, in the order of the switches.
  const FabricPtr fabric_ = TwoLevelFatTree(32, 16, 16);
  const std::vector<EndpointIndex> members_ = AllEndpoints(*fabric_);
};

TEST_F(PaperFabric, KaryCrosses496) {
  const auto tree = BuildKary(*fabric_, members_, 32, 64);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const Crossing crossing = CountCrossing(*fabric_, *tree);
  EXPECT_EQ(crossing.all, 496U);
  EXPECT_EQ(crossing.into_one, 496U);
  EXPECT_EQ(crossing.one_pair, 16U);
}

TEST_F(PaperFabric, KnomialCrosses271) {
  const auto tree = BuildKnomial(*fabric_, members_, 32, 64);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const Crossing crossing = CountCrossing(*fabric_, *tree);
  EXPECT_EQ(crossing.all, 271U);
  EXPECT_EQ(crossing.into_one, 31U);
  EXPECT_EQ(crossing.one_pair, 16U);
  const ChildLists children = ChildrenOf(tree->parents);
  EXPECT_EQ(children.of(0).size(), 46U);  // (k-1) + 15
}

TEST_F(PaperFabric, HierarchicalCrosses31WithHeight2) {
  const auto hierarchy = DeriveHierarchy(*fabric_);
  const auto tree = BuildHierarchical(*fabric_, *hierarchy, members_, 32, 64);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const Crossing crossing = CountCrossing(*fabric_, *tree);
  EXPECT_EQ(crossing.all, 31U);
  EXPECT_EQ(crossing.into_one, 31U);
  EXPECT_EQ(crossing.one_pair, 1U);
  EXPECT_EQ(Height(*tree), 2U);
  EXPECT_TRUE(CheckGroups(*hierarchy, members_, *tree).ok());
}

TEST_F(PaperFabric, HierarchicalKeepsALowDegreeLimit) {
  const auto hierarchy = DeriveHierarchy(*fabric_);
  for (const uint32_t limit : {9U, 10U, 12U}) {
    const auto tree = BuildHierarchical(*fabric_, *hierarchy, members_, 4, limit);
    ASSERT_TRUE(tree.ok()) << tree.status() << " limit " << limit;
    EXPECT_TRUE(CheckDegrees(*tree, limit, {}).ok()) << limit;
    EXPECT_TRUE(CheckGroups(*hierarchy, members_, *tree).ok()) << limit;
  }
  // 32 blocks of 32 slots leave no choice: the root serves 15 of its own and 31 others.
  EXPECT_EQ(BuildHierarchical(*fabric_, *hierarchy, members_, 32, 45).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(TypeI, FigureSevenCrossesEightTimes) {
  const FabricPtr fabric = TwoLevelFatTree(2, 1, 8);
  const auto tree = BuildKary(*fabric, AllEndpoints(*fabric), 4, 64);
  ASSERT_TRUE(tree.ok());
  EXPECT_EQ(CountCrossing(*fabric, *tree).all, 8U);
}

TEST(TypeI, PortsOfOneHostStandTogether) {
  const FabricPtr fabric = TwoLevelFatTree(4, 2, 4, /*ports_per_host=*/2);
  const std::vector<EndpointIndex> members = AllEndpoints(*fabric);
  const auto tree = BuildHierarchical(*fabric, *DeriveHierarchy(*fabric), members, 4, 64);
  ASSERT_TRUE(tree.ok());
  uint32_t within = 0;
  for (uint32_t rank = 0; rank < tree->rank_count; ++rank) {
    const int32_t parent = tree->parents[rank];
    within += parent >= 0 && fabric->host(members[rank]) == fabric->host(members[parent]) ? 1 : 0;
  }
  EXPECT_EQ(within, 16U);  // one edge inside each host
}

TEST(TypeI, RandomCommunicatorsGiveTheirDefinitions) {
  std::mt19937_64 random(TestSeed());
  const uint32_t rounds = FullTier() ? 5000 : 300;
  for (uint32_t round = 0; round < rounds; ++round) {
    const FabricPtr fabric =
        random() % 2 == 0 ? TwoLevelFatTree(1 + random() % 6, 2, 1 + random() % 5, 1 + random() % 2)
                          : ThreeLevelFatTree(1 + random() % 3, 2, 2, 2, 1 + random() % 4);
    const auto hierarchy = DeriveHierarchy(*fabric);
    std::vector<EndpointIndex> members(1 + random() % 40);
    for (EndpointIndex& member : members) {
      member = EndpointIndex(static_cast<uint32_t>(random() % fabric->endpoint_count()));
    }
    const auto width = static_cast<uint32_t>(2 + random() % 9);
    const auto degree = static_cast<uint32_t>(random() % 3 == 0 ? 2 + random() % 6 : 64);
    SCOPED_TRACE(testing::Message() << "round " << round << " k=" << width << " D=" << degree);
    const auto kary = BuildKary(*fabric, members, width, degree);
    const auto knomial = BuildKnomial(*fabric, members, width, degree);
    const auto grouped = BuildHierarchical(*fabric, *hierarchy, members, width, degree);
    for (const auto* tree : {&kary, &knomial, &grouped}) {
      if (!tree->ok()) {
        EXPECT_EQ(tree->status().code(), absl::StatusCode::kResourceExhausted);
        continue;
      }
      EXPECT_EQ(CheckTree(*fabric, **tree, members), absl::OkStatus());
      EXPECT_EQ(CheckDegrees(**tree, degree, {}), absl::OkStatus());
    }
    if (kary.ok()) {
      EXPECT_EQ(CheckKary(*kary), absl::OkStatus());
    }
    if (knomial.ok()) {
      EXPECT_EQ(CheckKnomial(*knomial), absl::OkStatus());
    }
    if (grouped.ok()) {
      EXPECT_EQ(CheckGroups(*hierarchy, members, *grouped), absl::OkStatus());
    }
  }
}

TEST(TypeI, OneMemberIsOneNodeWhateverTheWidth) {
  const FabricPtr fabric = TwoLevelFatTree(2, 1, 2);
  const auto hierarchy = DeriveHierarchy(*fabric);
  const std::vector<EndpointIndex> one = {EndpointIndex(3)};
  for (const uint32_t width : {0U, 1U, 2U, 4'000'000'000U}) {
    for (const auto& tree :
         {BuildKary(*fabric, one, width, 0), BuildKnomial(*fabric, one, width, 0),
          BuildHierarchical(*fabric, *hierarchy, one, width, 0)}) {
      ASSERT_TRUE(tree.ok()) << tree.status();
      EXPECT_EQ(Height(*tree), 0U);
      EXPECT_EQ(tree->root(), 0U);
    }
  }
}

TEST(TypeI, AbsurdWidthsAreStars) {
  const FabricPtr fabric = TwoLevelFatTree(2, 1, 4);
  const auto members = AllEndpoints(*fabric);
  const uint32_t width = 4'294'967'295U;
  for (const auto& tree :
       {BuildKary(*fabric, members, width, 64), BuildKnomial(*fabric, members, width, 64)}) {
    ASSERT_TRUE(tree.ok());
    EXPECT_EQ(Height(*tree), 1U);
  }
  const auto grouped = BuildHierarchical(*fabric, *DeriveHierarchy(*fabric), members, width, 64);
  ASSERT_TRUE(grouped.ok());
  EXPECT_EQ(Height(*grouped), 2U);  // one star per leaf switch
}

TEST(TypeI, RefusesBadInput) {
  const FabricPtr fabric = TwoLevelFatTree(2, 1, 4);
  const auto hierarchy = DeriveHierarchy(*fabric);
  const auto build = [&](const std::vector<EndpointIndex>& members, uint32_t width,
                         uint32_t degree) {
    return std::vector<absl::Status>{
        BuildKary(*fabric, members, width, degree).status(),
        BuildKnomial(*fabric, members, width, degree).status(),
        BuildHierarchical(*fabric, *hierarchy, members, width, degree).status()};
  };
  const auto all = AllEndpoints(*fabric);
  for (const absl::Status& status : build({}, 2, 64)) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("at least one member"));
  }
  for (const uint32_t width : {0U, 1U}) {
    for (const absl::Status& status : build(all, width, 64)) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(status.message(), HasSubstr("width " + std::to_string(width)));
    }
  }
  for (const absl::Status& status : build({EndpointIndex(0), EndpointIndex(99)}, 2, 64)) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("rank 1 is endpoint 99"));
  }
  for (const absl::Status& status : build(all, 4, 0)) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(status.message(), HasSubstr("rank 0 would have"));
    EXPECT_THAT(status.message(), HasSubstr("at most 0"));
  }
}

}  // namespace
}  // namespace coppice::type1_test
