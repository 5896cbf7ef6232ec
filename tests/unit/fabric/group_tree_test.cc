// The text for Slurm is read again by a reader of this file's own, which knows of Slurm's grammar
// what its manual says, and is held against the fabric.
#include "daemon/fabric/group_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/fabric/models/model.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"

namespace coppice::group_tree_test {
namespace {

using testing::ElementsAre;
using Names = std::vector<std::string>;

// "a[1-2,07]b,c": a1b a2b a07b c
Names Expand(const std::string& list) {
  Names names;
  for (size_t at = 0; at < list.size();) {
    Names made{""};
    for (; at < list.size() && list[at] != ','; ++at) {
      if (list[at] != '[') {
        for (std::string& name : made) name += list[at];
        continue;
      }
      const size_t end = list.find(']', at);
      Names longer;
      for (const std::string& name : made) {
        for (const auto range : absl::StrSplit(list.substr(at + 1, end - at - 1), ',')) {
          const Names ends = absl::StrSplit(range, '-');
          for (uint64_t i = std::stoull(ends.front()); i <= std::stoull(ends.back()); ++i) {
            std::string digits = std::to_string(i);
            if (digits.size() < ends.front().size()) {
              digits.insert(0, ends.front().size() - digits.size(), '0');
            }
            longer.push_back(name + digits);
          }
        }
      }
      made = std::move(longer);
      at = end;
    }
    names.insert(names.end(), made.begin(), made.end());
    ++at;
  }
  return names;
}

struct SlurmSwitch {
  Names nodes, switches;
};

// What topology/tree makes of the text; fails where its manual forbids something.
std::map<std::string, SlurmSwitch> ReadSlurm(const std::string& text) {
  std::map<std::string, SlurmSwitch> switches;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line[0] == '#') continue;
    const Names words = absl::StrSplit(line, ' ');
    EXPECT_EQ(words.size(), 2) << line;
    EXPECT_TRUE(absl::StartsWith(words[0], "SwitchName=")) << line;
    const std::string name = words[0].substr(11);
    EXPECT_FALSE(name.empty()) << line;
    EXPECT_EQ(name.find_first_of("[]=,# \t\""), std::string::npos) << line;
    EXPECT_FALSE(switches.contains(name)) << name << " twice";
    if (absl::StartsWith(words[1], "Nodes=")) {
      switches[name].nodes = Expand(words[1].substr(6));
    } else {
      EXPECT_TRUE(absl::StartsWith(words[1], "Switches=")) << line;
      switches[name].switches = Expand(words[1].substr(9));
    }
    EXPECT_FALSE(switches[name].nodes.empty() && switches[name].switches.empty()) << line;
  }
  return switches;
}

// Every host below `name`; counts how often each switch and host is reached.
std::set<std::string> Below(const std::map<std::string, SlurmSwitch>& switches,
                            const std::string& name, std::map<std::string, int>& reached) {
  ++reached[name];
  EXPECT_TRUE(switches.contains(name)) << name << " is a child and no switch";
  if (!switches.contains(name) || reached[name] > 1) return {};
  const SlurmSwitch& one = switches.at(name);
  std::set<std::string> hosts(one.nodes.begin(), one.nodes.end());
  EXPECT_EQ(hosts.size(), one.nodes.size());
  for (const std::string& child : one.switches) hosts.merge(Below(switches, child, reached));
  return hosts;
}

std::set<std::string> NamesOf(const Fabric& fabric, const std::vector<EndpointIndex>& endpoints) {
  std::set<std::string> names;
  for (const EndpointIndex e : endpoints) names.emplace(fabric.host_name(fabric.host(e)));
  return names;
}

// Each host exactly once, below a switch that it is cabled to; one root for each component.
void ExpectRight(const Fabric& fabric) {
  const auto hierarchy = DeriveHierarchy(fabric);
  const GroupTree tree = MakeGroupTree(fabric, *hierarchy);
  const auto switches = ReadSlurm(WriteSlurmTopology(tree, hierarchy->shape));
  ASSERT_EQ(switches.size(), tree.nodes.size());
  std::set<std::string> children, hosts;
  for (const auto& [name, one] : switches) {
    for (const std::string& child : one.switches) {
      ASSERT_TRUE(children.insert(child).second) << child << " has two parents";
    }
    for (const std::string& host : one.nodes) {
      ASSERT_TRUE(hosts.insert(host).second) << host << " twice";
      const auto found = fabric.FindHost(host);
      ASSERT_TRUE(found) << host;
      std::set<std::string> attached;
      for (const EndpointIndex e : fabric.endpoints_of_host(*found)) {
        const auto s = fabric.attached_switch(e);
        if (!s) attached.insert(absl::StrCat("direct", fabric.component(fabric.Vertex(e))));
        if (!s) continue;
        attached.insert(fabric.switch_info(*s).description);
        attached.insert(absl::StrCat("s", ToString(fabric.switch_info(*s).guid)));
      }
      EXPECT_TRUE(attached.contains(name)) << host << " below " << name;
    }
    EXPECT_NE(one.switches.size(), 1) << name << " stands for its only child";
  }
  EXPECT_EQ(hosts.size() + tree.left_out.size(), fabric.host_count());
  EXPECT_EQ(hosts.size(), tree.host_count);
  std::map<std::string, int> reached;
  size_t roots = 0;
  std::set<uint32_t> components;
  for (const auto& [name, one] : switches) {
    if (children.contains(name)) continue;
    ++roots;
    const std::set<std::string> below = Below(switches, name, reached);
    for (const std::string& host : below) {
      std::set<uint32_t> of_host;
      for (const EndpointIndex e : fabric.endpoints_of_host(*fabric.FindHost(host))) {
        of_host.insert(fabric.component(fabric.Vertex(e)));
      }
      if (of_host.size() == 1) components.insert(*of_host.begin());
    }
  }
  EXPECT_EQ(reached.size(), switches.size()) << "a switch that no root reaches";
  EXPECT_EQ(roots, tree.roots.size());
  EXPECT_LE(components.size(), roots);
  EXPECT_LE(roots, fabric.component_count());
}

// The groups of the hierarchy are subtrees: a scheduler that fills one fills a group.
void ExpectGroupsAreSubtrees(const Fabric& fabric) {
  const auto hierarchy = DeriveHierarchy(fabric);
  const auto switches =
      ReadSlurm(WriteSlurmTopology(MakeGroupTree(fabric, *hierarchy), hierarchy->shape));
  std::set<std::set<std::string>> subtrees;
  for (const auto& [name, one] : switches) {
    std::map<std::string, int> reached;
    subtrees.insert(Below(switches, name, reached));
  }
  for (size_t level = 1; level < hierarchy->levels.size(); ++level) {
    std::map<uint32_t, std::vector<EndpointIndex>> groups;
    for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
      groups[hierarchy->levels[level].group[e]].push_back(EndpointIndex(e));
    }
    for (const auto& [group, endpoints] : groups) {
      EXPECT_TRUE(subtrees.contains(NamesOf(fabric, endpoints)))
          << hierarchy->levels[level].name << " " << group;
    }
  }
}

TEST(GroupTree, AllModels) {
  for (const Model& model : Models()) {
    SCOPED_TRACE(std::string(model.name));
    const auto fabric = GenerateModel(model.name);
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    ExpectRight(**fabric);
    ExpectGroupsAreSubtrees(**fabric);
  }
  for (const char* spec :
       {"fat-tree(supernodes=4,leaves=8,spines=4,hosts-per-leaf=4,tops=8)",
        "torus(dims=4x3x2,hosts=2)", "torus(dims=8x8x8,hosts=1)", "hyperx(dims=4x4x3,hosts=1)",
        "hypercube(dims=6,hosts=1)", "mesh(dims=5x4,hosts=3)", "xgft(m=4x3x2,w=1x2x2)"}) {
    SCOPED_TRACE(spec);
    const auto fabric = GenerateModel(spec);
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    ExpectRight(**fabric);
    ExpectGroupsAreSubtrees(**fabric);
  }
}

TEST(GroupTree, RandomFabrics) {
  std::mt19937_64 rng(TestSeed());
  for (int round = 0; round < (FullTier() ? 2000 : 100); ++round) {
    const uint32_t switches = 1 + static_cast<uint32_t>(rng() % 40);
    const FabricPlan plan = RandomFabricPlan(rng, switches, static_cast<uint32_t>(rng() % 80),
                                             1 + static_cast<uint32_t>(rng() % 60));
    ExpectRight(*MakeFabric(plan));
    if (HasFailure()) return;
  }
}

TEST(GroupTree, TextIsWhatSlurmReads) {
  const FabricPtr fabric = TwoLevelFatTree(2, 2, 3);
  const auto hierarchy = DeriveHierarchy(*fabric);
  EXPECT_EQ(WriteSlurmTopology(MakeGroupTree(*fabric, *hierarchy), hierarchy->shape),
            "# Switches of the fabric for Slurm's topology/tree, as Coppice sees it.\n"
            "# fat tree: 6 hosts, 3 switches, 1 root\n"
            "SwitchName=S0 Nodes=n[0-2]\n"
            "SwitchName=S1 Nodes=n[3-5]\n"
            "SwitchName=root0 Switches=S[0-1]\n");
}

TEST(GroupTree, ThreeLevelsHavePods) {
  const FabricPtr fabric = ThreeLevelFatTree(2, 2, 2, 2, 1);
  const GroupTree tree = MakeGroupTree(*fabric, *DeriveHierarchy(*fabric));
  ASSERT_EQ(tree.nodes.size(), 7);
  EXPECT_EQ(tree.nodes[4].name, "pod0");
  EXPECT_EQ(tree.nodes[5].name, "pod1");
  EXPECT_THAT(tree.nodes[4].children, ElementsAre(0, 1));
  EXPECT_THAT(tree.nodes[6].children, ElementsAre(4, 5));
  EXPECT_THAT(tree.roots, ElementsAre(6));
}

// A switch goes by its description where a scheduler can read it and it is nobody else's.
TEST(GroupTree, NamesAreLegalAndDifferent) {
  FabricPlan plan{
      .switches = 6,
      .cables = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}},
      .hosts = {{0}, {1}, {2}, {3}, {4}, {5}},
      .descriptions = {"leaf", "leaf", "MF0;sw-1:MSX6036/U1", "n3", "DEFAULT", "root0"}};
  const FabricPtr fabric = MakeFabric(plan);
  ExpectRight(*fabric);
  Names names;
  for (const auto& node : MakeGroupTree(*fabric, *DeriveHierarchy(*fabric)).nodes) {
    if (node.children.empty()) names.push_back(node.name);
  }
  EXPECT_THAT(names, ElementsAre("s0000000000001000", "s0000000000001001", "s0000000000001002",
                                 "s0000000000001003", "s0000000000001004", "root0"));
}

TEST(GroupTree, PlainNames) {
  for (const char* name : {"n1", "S-1", "rack_2.node", "7"}) EXPECT_TRUE(IsPlainName(name)) << name;
  for (const char* name : {"", "a b", "a,b", "n[1]", "a=b", "a#b", "a\"b", "a/b", "a;b", "-a",
                           "all", "Default", "n\xc3\xa9"}) {
    EXPECT_FALSE(IsPlainName(name)) << name;
  }
  EXPECT_FALSE(IsPlainName(std::string(201, 'n')));
}

// The drawing in group_tree.h.
TEST(LeafClusters, NearSwitchesComeTogether) {
  const FabricPtr two = MakeFabric({.switches = 8,
                                    .cables = {{0, 1},
                                               {0, 4},
                                               {0, 5},
                                               {1, 4},
                                               {1, 5},
                                               {4, 5},
                                               {2, 3},
                                               {2, 6},
                                               {2, 7},
                                               {3, 6},
                                               {3, 7},
                                               {6, 7},
                                               {5, 6}},
                                    .hosts = {{0}},
                                    .descriptions = {}});
  std::vector<SwitchIndex> leaves;
  for (uint32_t s = 0; s < 8; ++s) leaves.emplace_back(s);
  const auto clusters = ClusterLeaves(*two, leaves);
  ASSERT_EQ(clusters.size(), 3);
  EXPECT_THAT(clusters[2].parts, ElementsAre(0, 1));
  const auto of = [](std::vector<uint32_t> numbers) {
    return std::vector<SwitchIndex>(numbers.begin(), numbers.end());
  };
  EXPECT_EQ(clusters[1].leaves, of({0, 1, 4, 5}));
  EXPECT_EQ(clusters[0].leaves, of({2, 3, 6, 7}));
}

TEST(LeafClusters, PartsOfRandomFabrics) {
  std::mt19937_64 rng(TestSeed());
  for (int round = 0; round < 200; ++round) {
    const uint32_t switches = 2 + static_cast<uint32_t>(rng() % 60);
    FabricPlan plan{.switches = switches, .cables = {}, .hosts = {{0}}, .descriptions = {}};
    for (uint32_t s = 1; s < switches; ++s) plan.cables.emplace_back(rng() % s, s);
    const FabricPtr fabric = MakeFabric(plan);
    std::vector<SwitchIndex> leaves;
    for (uint32_t s = 0; s < switches; ++s) {
      if (rng() % 3 != 0 || s == 0) leaves.emplace_back(s);
    }
    const auto clusters = ClusterLeaves(*fabric, leaves);
    std::vector<std::set<SwitchIndex>> inside(clusters.size());
    for (size_t i = 0; i < clusters.size(); ++i) {
      inside[i].insert(clusters[i].leaves.begin(), clusters[i].leaves.end());
      ASSERT_EQ(inside[i].size(), clusters[i].leaves.size());
      for (const uint32_t part : clusters[i].parts) {
        ASSERT_LT(part, i);
        const size_t together = inside[i].size() + inside[part].size();
        inside[i].insert(inside[part].begin(), inside[part].end());
        ASSERT_EQ(inside[i].size(), together) << "a leaf in two parts";
      }
      for (const uint32_t part : clusters[i].parts) {
        ASSERT_GE(inside[part].size(), inside[i].size() / 3);
      }
    }
    ASSERT_EQ(inside.back(), std::set<SwitchIndex>(leaves.begin(), leaves.end()));
  }
}

}  // namespace
}  // namespace coppice::group_tree_test
