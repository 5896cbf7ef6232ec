// The verifier must say no: every rule is broken once.
#include "tests/support/tree_check.h"

#include <vector>

#include "daemon/tree/type1.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fabrics.h"

namespace coppice::tree_check_test {
namespace {

using ::testing::HasSubstr;

// n0 n1 on S0, n2 n3 on S1, spine S2. Vertices: S0-S2 = 0-2, endpoints = 3-6.
class TreeCheck : public ::testing::Test {
 protected:
  const FabricPtr fabric_ = TwoLevelFatTree(2, 1, 2);
  const std::vector<EndpointIndex> members_ = AllEndpoints(*fabric_);

  VertexIndex S(uint32_t s) const { return fabric_->Vertex(SwitchIndex(s)); }
  VertexIndex N(uint32_t e) const { return fabric_->Vertex(EndpointIndex(e)); }

  ChannelIndex Channel(VertexIndex from, VertexIndex to) const {
    for (const auto& channel : fabric_->channels(from)) {
      if (channel.to == to) return channel.index;
    }
    return kNoChannel;
  }

  AggregationTree TypeI() const { return *BuildKary(*fabric_, members_, 2, 64); }

  // n0 n1 below S0, n2 n3 and S0 below S2.
  AggregationTree TypeII() const {
    return {.type = TreeType::kTypeII,
            .builder = TreeBuilder::kMinimumCost,
            .width = 0,
            .rank_count = 4,
            .vertices = {N(0), N(1), N(2), N(3), S(0), S(2)},
            .parents = {4, 4, 5, 5, 5, -1}};
  }
  PhysicalTree Physical() const {
    return {.root = S(2),
            .vertices = {S(2), S(0), S(1), N(0), N(1), N(2), N(3)},
            .parents = {-1, 0, 0, 1, 1, 2, 2},
            .up = {kNoChannel, Channel(S(0), S(2)), Channel(S(1), S(2)), Channel(N(0), S(0)),
                   Channel(N(1), S(0)), Channel(N(2), S(1)), Channel(N(3), S(1))}};
  }

  static void ExpectBroken(const absl::Status& status, const char* what) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(status.message(), HasSubstr(what));
  }
  void ExpectBrokenTree(const AggregationTree& tree, const char* what) const {
    ExpectBroken(CheckTree(*fabric_, tree, members_), what);
  }
  void ExpectBrokenPhysical(const PhysicalTree& physical, const char* what) const {
    ExpectBroken(CheckPhysicalTree(*fabric_, physical, members_), what);
  }
};

TEST_F(TreeCheck, AcceptsGoodTrees) {
  EXPECT_EQ(CheckTree(*fabric_, TypeI(), members_), absl::OkStatus());
  EXPECT_EQ(CheckKary(TypeI()), absl::OkStatus());
  EXPECT_EQ(CheckTree(*fabric_, TypeII(), members_), absl::OkStatus());
  EXPECT_EQ(CheckDegrees(TypeII(), 64, {3, 3, 3}), absl::OkStatus());
  EXPECT_EQ(CheckPhysicalTree(*fabric_, Physical(), members_), absl::OkStatus());
  EXPECT_EQ(CheckAncestry(*fabric_, TypeII(), Physical()), absl::OkStatus());
}

TEST_F(TreeCheck, RefusesWhatIsNoTree) {
  AggregationTree tree = TypeI();
  tree.parents = {1, 0, 0, -1};
  ExpectBrokenTree(tree, "is its own ancestor");
  tree.parents = {-1, -1, 0, 0};
  ExpectBrokenTree(tree, "2 roots");
  tree.parents = {1, 0, 0, 1};
  ExpectBrokenTree(tree, "0 roots");
  tree.parents = {-1, 4, 0, 0};
  ExpectBrokenTree(tree, "has parent 4");
  tree.parents = {-1, -2, 0, 0};
  ExpectBrokenTree(tree, "has parent -2");
  tree.parents = {-1, 0, 0};
  ExpectBrokenTree(tree, "different lengths");
}

TEST_F(TreeCheck, RefusesOtherMembersAndSwitches) {
  AggregationTree tree = TypeI();
  tree.vertices[2] = N(3);
  ExpectBrokenTree(tree, "rank 2 is not on");
  tree = TypeI();
  tree.rank_count = 3;
  ExpectBrokenTree(tree, "3 ranks, not 4");
  tree = TypeII();
  tree.type = TreeType::kTypeI;
  ExpectBrokenTree(tree, "type I tree has switches");
  tree = TypeII();
  std::swap(tree.vertices[4], tree.vertices[5]);
  ExpectBrokenTree(tree, "not in order");
  tree = TypeII();
  tree.parents = {5, 5, 5, 5, 5, -1};
  ExpectBrokenTree(tree, "serves nobody");
  tree = TypeII();
  tree.vertices[5] = N(3);
  ExpectBrokenTree(tree, "is no switch");
}

TEST_F(TreeCheck, RefusesTooManyChildrenAndWrongFormulas) {
  ExpectBroken(CheckDegrees(TypeI(), 1, {}), "2 children, limit 1");
  ExpectBroken(CheckDegrees(TypeII(), 64, {2, 9, 2}), "3 children, limit 2");
  AggregationTree below_a_rank = TypeII();
  below_a_rank.parents[1] = 0;
  ExpectBroken(CheckDegrees(below_a_rank, 64, {}), "limit 0");
  AggregationTree tree = TypeI();
  tree.parents[3] = 0;
  ExpectBroken(CheckKary(tree), "rank 3");
  EXPECT_EQ(CheckKnomial(*BuildKnomial(*fabric_, members_, 2, 64)), absl::OkStatus());
  ExpectBroken(CheckKnomial(tree), "rank 3");
  tree.parents = {-1, 0, 0, 0};  // both of n2, n3 below n0, on another leaf switch
  ExpectBroken(CheckGroups(*DeriveHierarchy(*fabric_), members_, tree), "parents outside");
}

TEST_F(TreeCheck, RefusesOtherPhysicalTrees) {
  PhysicalTree physical = Physical();
  physical.up[3] = physical.up[4];
  ExpectBrokenPhysical(physical, "not joined to its parent");
  physical = Physical();
  physical.parents[1] = 2;
  ExpectBrokenPhysical(physical, "does not come after its parent");
  physical = Physical();
  physical.vertices[6] = N(2);
  ExpectBrokenPhysical(physical, "is repeated");
  physical = Physical();
  for (int removed = 0; removed < 2; ++removed) {  // n2 and n3: S1 becomes a leaf
    physical.vertices.pop_back();
    physical.parents.pop_back();
    physical.up.pop_back();
  }
  ExpectBrokenPhysical(physical, "is not in the physical tree");
  ExpectBroken(CheckPhysicalTree(*fabric_, physical, {members_[0], members_[1]}), "no member");
  physical.root = S(0);
  ExpectBrokenPhysical(physical, "do not fit together");
}

TEST_F(TreeCheck, RefusesParentsThatAreNoAncestors) {
  AggregationTree tree = TypeII();
  tree.parents = {4, 4, 4, 5, 5, -1};  // n2 below S0
  ExpectBroken(CheckAncestry(*fabric_, tree, Physical()), "node 2 has a parent that is not its");
  tree = TypeII();
  tree.parents[1] = 0;
  ExpectBroken(CheckAncestry(*fabric_, tree, Physical()), "no switch");
}

}  // namespace
}  // namespace coppice::tree_check_test
