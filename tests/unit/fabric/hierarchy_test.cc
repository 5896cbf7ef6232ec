#include "daemon/fabric/hierarchy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/models/model.h"
#include "tests/support/fabric_check.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"

namespace coppice::hierarchy_test {
namespace {

std::string Summary(const Hierarchy& hierarchy) {
  std::string text = hierarchy.shape;
  for (const auto& level : hierarchy.levels) {
    text += "; " + level.name + " " + std::to_string(level.group_count);
  }
  return text;
}

void ExpectNested(const Fabric& fabric, const Hierarchy& hierarchy) {
  ASSERT_GE(hierarchy.levels.size(), 3);
  EXPECT_EQ(hierarchy.levels[0].name, "host");
  EXPECT_EQ(hierarchy.levels[1].name, "leaf switch");
  EXPECT_EQ(hierarchy.levels.back().name, "component");
  for (size_t i = 0; i < hierarchy.levels.size(); ++i) {
    const auto& level = hierarchy.levels[i];
    ASSERT_EQ(level.group.size(), fabric.endpoint_count());
    uint32_t next = 0;
    std::map<uint32_t, uint32_t> parent;
    for (uint32_t e = 0; e < level.group.size(); ++e) {
      ASSERT_LE(level.group[e], next) << "numbered by lowest endpoint";
      if (level.group[e] == next) ++next;
      if (i + 1 == hierarchy.levels.size()) continue;
      const uint32_t above = hierarchy.levels[i + 1].group[e];
      ASSERT_EQ(parent.try_emplace(level.group[e], above).first->second, above);
    }
    EXPECT_EQ(level.group_count, next);
  }
}

TEST(Hierarchy, KnownFabrics) {
  EXPECT_EQ(Summary(*DeriveHierarchy(*TwoLevelFatTree(4, 2, 3, 2))),
            "fat tree; host 12; leaf switch 4; component 1");
  EXPECT_EQ(Summary(*DeriveHierarchy(*ThreeLevelFatTree(3, 4, 2, 4, 2))),
            "fat tree; host 24; leaf switch 12; pod 3; component 1");
  EXPECT_EQ(Summary(*DeriveHierarchy(**GenerateModel("torus(dims=4x3x2,hosts=2)"))),
            "torus; host 48; leaf switch 24; line 6; plane 2; component 1");
  EXPECT_EQ(Summary(*DeriveHierarchy(**GenerateModel("hyperx(dims=4x4x3,hosts=1)"))),
            "hyperx; host 48; leaf switch 48; group 12; group 2 3; component 1");
}

// Every group of every level is in one piece.
void ExpectNear(const Hierarchy& hierarchy, const std::vector<EndpointIndex>& members,
                const std::vector<uint32_t>& order) {
  for (const Hierarchy::Level& level : hierarchy.levels) {
    std::set<uint32_t> seen;
    for (size_t i = 0; i < order.size(); ++i) {
      const uint32_t group = level.group[members[order[i]].value()];
      const bool begins = i == 0 || level.group[members[order[i - 1]].value()] != group;
      EXPECT_TRUE(!begins || seen.insert(group).second) << level.name << " at " << i;
    }
  }
}

TEST(OrderByNearness, KeepsGroupsOfAllLevelsTogether) {
  std::mt19937_64 random(TestSeed());
  for (const char* model :
       {"fat-tree(supernodes=3,leaves=4,spines=2,hosts-per-leaf=4,tops=2)",
        "torus(dims=4x3x2,hosts=2)", "fat-tree(leaves=4,spines=2,hosts-per-leaf=3)"}) {
    const auto hierarchy = DeriveHierarchy(**GenerateModel(model));
    const auto endpoints = static_cast<uint32_t>(hierarchy->levels[0].group.size());
    for (int round = 0; round < 20; ++round) {
      std::vector<EndpointIndex> members;
      for (uint64_t left = 1 + random() % 40; left > 0; --left) {
        members.emplace_back(static_cast<uint32_t>(random() % endpoints));
      }
      const auto first = static_cast<uint32_t>(random() % members.size());
      std::vector<uint32_t> order = OrderByNearness(*hierarchy, members, first);
      ASSERT_EQ(order.size(), members.size());
      EXPECT_EQ(order[0], first);
      ExpectNear(*hierarchy, members, order);
      std::sort(order.begin(), order.end());
      for (uint32_t member = 0; member < order.size(); ++member) EXPECT_EQ(order[member], member);
    }
  }
}

TEST(OrderByNearness, OfNobodyIsEmpty) {
  EXPECT_TRUE(OrderByNearness(*DeriveHierarchy(*TwoLevelFatTree(4, 2, 3, 2)), {}, 0).empty());
}

TEST(Hierarchy, ModelsAtScale) {
  const std::pair<const char*, const char*> golden[] = {
      {"fat-tree(supernodes=80,leaves=32,spines=16,hosts-per-leaf=16,tops=64)",
       "fat tree; host 40960; leaf switch 2560; pod 80; component 1"},
      {"fat-tree(ports=16,levels=3,rails=2)",
       "fat tree; host 2048; leaf switch 256; pod 32; component 2"},
      {"torus(dims=8x8x8,hosts=2)",
       "torus; host 1024; leaf switch 512; line 64; plane 8; component 1"},
      {"hypercube(dims=5,hosts=1)",
       "hypercube; host 32; leaf switch 32; line 16; plane 8; block 3 4; block 4 2; component 1"},
      {"dragonfly(p=4,a=8,h=4)", "dragonfly; host 1056; leaf switch 264; group 33; component 1"},
      {"dragonfly-plus", "dragonfly; host 272; leaf switch 68; group 17; component 1"},
      {"percs(supernodes=289)", "dragonfly; host 9248; leaf switch 9248; group 289; component 1"},
  };
  for (const auto& [model, summary] : golden) {
    const auto fabric = GenerateModel(model);
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    EXPECT_EQ(Summary(*DeriveHierarchy(**fabric)), summary) << model;
  }
}

// Seven leaf switches in two blocks of an old cluster, as data/plafrim says where it comes from.
TEST(Hierarchy, OfARealCluster) {
  const auto fabric = LoadFabric(
      absl::StrCat("file:", COPPICE_SOURCE_DIR, "/tests/data/plafrim/ibnetdiscover.txt"));
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  EXPECT_EQ(Summary(*DeriveHierarchy(**fabric)),
            "dragonfly; host 125; leaf switch 7; group 2; component 1");
}

TEST(Hierarchy, PodsAreTheModelsPods) {
  const FabricPtr fabric = ThreeLevelFatTree(3, 4, 2, 4, 2);
  const auto hierarchy = DeriveHierarchy(*fabric);
  for (uint32_t e = 0; e < 24; ++e) EXPECT_EQ(hierarchy->levels[2].group[e], e / 8);
}

TEST(Hierarchy, ASpineWithAHostKeepsItsPodTogether) {
  FabricPlan plan = ThreeLevelFatTreePlan(2, 4, 2, 2, 8);
  plan.hosts.push_back({4});  // the first pod's first spine
  const auto hierarchy = DeriveHierarchy(*MakeFabric(plan));
  EXPECT_EQ(Summary(*hierarchy), "fat tree; host 65; leaf switch 9; pod 2; component 1");
  EXPECT_EQ(hierarchy->levels[2].group[64], 0);
}

TEST(Hierarchy, NestsOnEveryModel) {
  for (const Model& model : Models()) {
    const auto fabric = GenerateModel(model.name);
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    EXPECT_TRUE(CheckFabric(**fabric).ok()) << CheckFabric(**fabric);
    ExpectNested(**fabric, *DeriveHierarchy(**fabric));
  }
}

TEST(Hierarchy, NestsOnRandomFabricsWhateverTheirOrder) {
  std::mt19937_64 rng(TestSeed());
  const int rounds = FullTier() ? 2000 : 200;
  for (int round = 0; round < rounds; ++round) {
    const FabricPlan plan = RandomFabricPlan(rng, 1 + rng() % 20, rng() % 60, rng() % 30);
    const FabricPtr fabric = MakeFabric(plan);
    const FabricPtr shuffled = MakeFabric(plan, &rng);
    ASSERT_TRUE(CheckFabric(*fabric).ok()) << CheckFabric(*fabric);
    ASSERT_TRUE(CheckFabric(*shuffled).ok()) << CheckFabric(*shuffled);
    const auto one = DeriveHierarchy(*fabric), other = DeriveHierarchy(*shuffled);
    ExpectNested(*fabric, *one);
    ASSERT_EQ(Summary(*one), Summary(*other));
    for (size_t i = 0; i < one->levels.size(); ++i) {
      ASSERT_EQ(one->levels[i].group, other->levels[i].group);
    }
  }
}

TEST(Hierarchy, OfAnEmptyFabricHasNoGroups) {
  const auto hierarchy = DeriveHierarchy(*MakeFabric({}));
  for (const auto& level : hierarchy->levels) EXPECT_EQ(level.group_count, 0);
}

}  // namespace
}  // namespace coppice::hierarchy_test
