// Fabrics as they stand in machine rooms: some cable, switch or host is always missing, and some
// switch always too many. Groups must then be those of the whole fabric, or parts of them; above
// all no two of them may become one.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "daemon/fabric/fabric_builder.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/hierarchy.h"
#include "daemon/fabric/models/model.h"
#include "daemon/fabric/routes.h"
#include "gtest/gtest.h"
#include "tests/support/fabric_check.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"

namespace coppice::hierarchy_damage_test {
namespace {

// What is taken away: cables between switches, switches, adapters, by index.
struct Damage {
  std::set<uint32_t> links, switches, adapters;
  size_t size() const { return links.size() + switches.size() + adapters.size(); }
};

// Also joins one switch more, "service", to each of `joined`, on ports added to them.
FabricPtr Without(const Fabric& fabric, const Damage& damage,
                  const std::set<uint32_t>& joined = {}) {
  FabricBuilder builder;
  const Guid service(0x7777);
  if (!joined.empty()) {
    EXPECT_TRUE(builder.AddSwitch({service, Lid(), 64, 0, 0, "service"}).ok());
  }
  uint8_t next_port = 0;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    if (damage.switches.count(s) > 0) continue;
    SwitchInfo info = fabric.switch_info(SwitchIndex(s));
    if (joined.count(s) > 0) ++info.port_count;
    EXPECT_TRUE(builder.AddSwitch(info).ok());
    if (joined.count(s) == 0) continue;
    EXPECT_TRUE(
        builder.AddLink(service, PortNum(++next_port), info.guid, PortNum(info.port_count)).ok());
  }
  for (uint32_t a = 0; a < fabric.adapter_count(); ++a) {
    if (damage.adapters.count(a) > 0) continue;
    EXPECT_TRUE(builder.AddAdapter(fabric.adapter(AdapterIndex(a))).ok());
  }
  const auto guid = [&](VertexIndex v) {
    return fabric.IsSwitch(v) ? fabric.switch_info(fabric.AsSwitch(v)).guid
                              : fabric.adapter(fabric.AsEndpoint(v)).guid;
  };
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    const LinkInfo& link = fabric.link(LinkIndex(l));
    if (damage.links.count(l) > 0) continue;
    if (!builder.FindNode(guid(link.a)) || !builder.FindNode(guid(link.b))) continue;
    EXPECT_TRUE(
        builder.AddLink(guid(link.a), link.a_port, guid(link.b), link.b_port, link.rate).ok());
  }
  const auto built = builder.Build();
  EXPECT_TRUE(built.ok()) << built.status();
  return *built;
}

Damage RandomDamage(const Fabric& fabric, std::mt19937_64& random) {
  Damage damage;
  const uint64_t count = 1 + random() % 5;
  while (damage.size() < count) {
    switch (random() % 3) {
      case 0: {
        const auto l = static_cast<uint32_t>(random() % fabric.link_count());
        if (fabric.IsSwitch(fabric.link(LinkIndex(l)).b)) damage.links.insert(l);
        break;
      }
      case 1:
        damage.switches.insert(static_cast<uint32_t>(random() % fabric.switch_count()));
        break;
      default:
        damage.adapters.insert(static_cast<uint32_t>(random() % fabric.adapter_count()));
    }
  }
  return damage;
}

const Hierarchy::Level* FindLevel(const Hierarchy& hierarchy, const std::string& name) {
  for (const auto& level : hierarchy.levels) {
    if (level.name == name) return &level;
  }
  return nullptr;
}

// Every group of `level` of the damaged fabric lies in one of the whole fabric. Returns how many
// groups there are more than whole ones that still have endpoints.
uint32_t ExpectParts(const Fabric& whole, const Hierarchy& whole_hierarchy, const Fabric& damaged,
                     const Hierarchy& hierarchy, const std::string& name) {
  const Hierarchy::Level* const truth = FindLevel(whole_hierarchy, name);
  const Hierarchy::Level* const level = FindLevel(hierarchy, name);
  EXPECT_TRUE(truth != nullptr && level != nullptr) << "no level " << name;
  if (truth == nullptr || level == nullptr) return 0;
  std::map<uint32_t, uint32_t> whole_of;
  std::set<uint32_t> left;
  for (uint32_t e = 0; e < damaged.endpoint_count(); ++e) {
    const auto before = whole.FindEndpoint(damaged.endpoint(EndpointIndex(e)).port_guid);
    const uint32_t group = truth->group[before->value()];
    left.insert(group);
    EXPECT_EQ(whole_of.try_emplace(level->group[e], group).first->second, group)
        << name << " " << level->group[e] << " joins two groups of the whole fabric";
  }
  return level->group_count - static_cast<uint32_t>(left.size());
}

struct Case {
  const char* model;
  const char* level;
};

class DamagedFabric : public ::testing::TestWithParam<Case> {};

TEST_P(DamagedFabric, KeepsItsGroups) {
  const auto whole = GenerateModel(GetParam().model);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const auto truth = DeriveHierarchy(**whole);
  std::mt19937_64 random(TestSeed());
  const int rounds = FullTier() ? 200 : 40;
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    const Damage damage = RandomDamage(**whole, random);
    const FabricPtr damaged = Without(**whole, damage);
    const auto hierarchy = DeriveHierarchy(*damaged);
    EXPECT_EQ(hierarchy->shape, truth->shape) << "round " << round;
    const uint32_t more = ExpectParts(**whole, *truth, *damaged, *hierarchy, GetParam().level);
    EXPECT_LE(more, damage.size()) << "round " << round;
  }
}

TEST_P(DamagedFabric, KeepsItsGroupsBesideASwitchTooMany) {
  const auto whole = GenerateModel(GetParam().model);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const auto truth = DeriveHierarchy(**whole);
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 10 && !HasFailure(); ++round) {
    const auto any = static_cast<uint32_t>(random() % (*whole)->switch_count());
    const FabricPtr damaged = Without(**whole, RandomDamage(**whole, random), {any});
    const auto hierarchy = DeriveHierarchy(*damaged);
    EXPECT_LE(ExpectParts(**whole, *truth, *damaged, *hierarchy, GetParam().level), 5U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, DamagedFabric,
    ::testing::Values(
        Case{"fat-tree(supernodes=6,leaves=8,spines=4,hosts-per-leaf=8,tops=8)", "pod"},
        Case{"fat-tree(ports=8,levels=3)", "pod"}, Case{"fat-tree(ports=6,levels=4)", "pod"},
        Case{"xgft(m=6x6x4,w=1x3x2)", "pod"}, Case{"dragonfly(p=4,a=8,h=4)", "group"},
        Case{"dragonfly(p=3,a=6,h=3)", "group"}, Case{"dragonfly-plus", "group"},
        Case{"percs(supernodes=9)", "group"}, Case{"torus(dims=4x4x4,hosts=2)", "line"},
        Case{"torus(dims=4x4x4,hosts=2)", "plane"}, Case{"hypercube(dims=5)", "block 3"}));

// Rows and columns of a HyperX are alike: where a row lacks a cable, a column may be the group.
TEST(DamagedFabrics, AHyperxKeepsGroupsOfNeighbours) {
  const auto whole = GenerateModel("hyperx(dims=6x6,hosts=1)");
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    const Damage damage = RandomDamage(**whole, random);
    const FabricPtr damaged = Without(**whole, damage);
    const auto hierarchy = DeriveHierarchy(*damaged);
    EXPECT_EQ(hierarchy->shape, "hyperx");
    const Hierarchy::Level* const level = FindLevel(*hierarchy, "group");
    ASSERT_NE(level, nullptr);
    EXPECT_LE(level->group_count, 6 + 2 * damage.size());
    const auto routes = Routes::ShortestPaths(damaged);
    for (uint32_t x = 0; x < damaged->endpoint_count(); ++x) {
      for (uint32_t y = 0; y < x; ++y) {
        if (level->group[x] != level->group[y]) continue;
        const VertexIndex a = damaged->Vertex(EndpointIndex(x)),
                          b = damaged->Vertex(EndpointIndex(y));
        EXPECT_LE(routes->distances().Hops(a, b), 4) << "two switches between, one cable missing";
      }
    }
  }
}

// Leaf switches that lost all but one of their hosts, and all of them: others keep their pod.
TEST(DamagedFabrics, AlmostEmptyLeavesStayInTheirPod) {
  const FabricPtr whole = ThreeLevelFatTree(3, 4, 2, 4, 8);
  const auto truth = DeriveHierarchy(*whole);
  for (const uint32_t hosts_left : {0, 1}) {
    Damage damage;
    for (const uint32_t leaf : {0, 6}) {
      for (uint32_t h = hosts_left; h < 8; ++h)
        damage.adapters.insert(8 * (leaf % 6 + leaf / 6 * 4) + h);
    }
    const FabricPtr damaged = Without(*whole, damage);
    EXPECT_EQ(ExpectParts(*whole, *truth, *damaged, *DeriveHierarchy(*damaged), "pod"), 0U);
  }
}

// The real cluster, short of each of its switches in turn, and of each of the cables between them:
// its two blocks never become one.
TEST(DamagedFabrics, TheRealClusterKeepsItsBlocks) {
  const auto whole = LoadFabric(
      absl::StrCat("file:", COPPICE_SOURCE_DIR, "/tests/data/plafrim/ibnetdiscover.txt"));
  ASSERT_TRUE(whole.ok()) << whole.status();
  const auto truth = DeriveHierarchy(**whole);
  std::vector<Damage> all;
  for (uint32_t s = 0; s < (*whole)->switch_count(); ++s) all.push_back({{}, {s}, {}});
  for (uint32_t l = 0; l < (*whole)->link_count(); ++l) {
    if ((*whole)->IsSwitch((*whole)->link(LinkIndex(l)).b)) all.push_back({{l}, {}, {}});
  }
  for (const Damage& damage : all) {
    const FabricPtr damaged = Without(**whole, damage);
    const auto hierarchy = DeriveHierarchy(*damaged);
    if (FindLevel(*hierarchy, "group") == nullptr) {
      // The blocks are components now, or only one is left: the one switch or cable between them.
      EXPECT_TRUE(damaged->component_count() > 1 || hierarchy->levels[1].group_count < 7);
      continue;
    }
    ExpectParts(**whole, *truth, *damaged, *hierarchy, "group");
  }
}

}  // namespace
}  // namespace coppice::hierarchy_damage_test
