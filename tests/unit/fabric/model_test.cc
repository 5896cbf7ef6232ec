// Every generated fabric against the formulas of its paper: counts, degrees, diameter, capacities.
#include "daemon/fabric/models/model.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/topology_lines.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fabric_check.h"

namespace coppice::model_test {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const Fabric> Generate(const std::string& spec) {
  const auto fabric = GenerateModel(spec);
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  return fabric.ok() ? *fabric : nullptr;
}

struct Counts {
  uint32_t switches, endpoints, hosts, links, components;
  friend bool operator==(const Counts&, const Counts&) = default;
  friend void PrintTo(const Counts& c, std::ostream* out) {
    *out << c.switches << " switches, " << c.endpoints << " endpoints, " << c.hosts << " hosts, "
         << c.links << " links, " << c.components << " components";
  }
};

Counts CountsOf(const Fabric& fabric) {
  return {fabric.switch_count(), fabric.endpoint_count(), fabric.host_count(), fabric.link_count(),
          fabric.component_count()};
}

std::vector<uint32_t> HopsFrom(const Fabric& fabric, uint32_t start) {
  std::vector<uint32_t> hops(fabric.switch_count(), UINT32_MAX), queue = {start};
  hops[start] = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const Channel& c : fabric.switch_channels(SwitchIndex(queue[i]))) {
      if (hops[c.to.value()] != UINT32_MAX) continue;
      hops[c.to.value()] = hops[queue[i]] + 1;
      queue.push_back(c.to.value());
    }
  }
  return hops;
}

// Greatest distance between two switches; UINT32_MAX if some pair has no path.
uint32_t Diameter(const Fabric& fabric) {
  uint32_t diameter = 0;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    const std::vector<uint32_t> hops = HopsFrom(fabric, s);
    diameter = std::max(diameter, *std::max_element(hops.begin(), hops.end()));
  }
  return diameter;
}

// Degree towards switches -> number of switches.
std::map<size_t, uint32_t> Degrees(const Fabric& fabric) {
  std::map<size_t, uint32_t> degrees;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    ++degrees[fabric.switch_channels(SwitchIndex(s)).size()];
  }
  return degrees;
}

using DegreeMap = std::map<size_t, uint32_t>;

TEST(FatTreeModelTest, TheStandardIsThe512PortFabric) {
  const auto fabric = Generate("fat-tree");
  EXPECT_EQ(CountsOf(*fabric), (Counts{48, 512, 512, 1024, 1}));
  EXPECT_EQ(Degrees(*fabric), (DegreeMap{{16, 32}, {32, 16}}));
  EXPECT_EQ(Diameter(*fabric), 2);
  EXPECT_EQ(fabric->switch_info(SwitchIndex(0)).description, "L0");
  EXPECT_EQ(fabric->switch_info(SwitchIndex(47)).description, "S15");
  EXPECT_TRUE(fabric->FindHost("n0511").has_value());
}

TEST(FatTreeModelTest, HostsMayHaveTwoPortsAndLeavesFewerUplinks) {
  const auto fabric = Generate("fat-tree(hosts-per-leaf=8,ports-per-host=2,uplinks-per-leaf=8)");
  EXPECT_EQ(CountsOf(*fabric), (Counts{48, 512, 256, 768, 1}));
  EXPECT_EQ(Degrees(*fabric), (DegreeMap{{8, 32}, {16, 16}}));
}

TEST(FatTreeModelTest, EqualSwitchesFollowTheFormula) {
  // 2 (k/2)^n hosts, (2n - 1) (k/2)^(n-1) switches, n * hosts links.
  for (const auto& [ports, levels] :
       std::vector<std::pair<uint32_t, uint32_t>>{{4, 1}, {4, 2}, {4, 3}, {6, 3}, {8, 2}, {2, 4}}) {
    const auto fabric = Generate("fat-tree(ports=" + std::to_string(ports) +
                                 ",levels=" + std::to_string(levels) + ")");
    uint32_t power = 1;
    for (uint32_t i = 1; i < levels; ++i) power *= ports / 2;
    const uint32_t hosts = power * ports;
    EXPECT_EQ(CountsOf(*fabric),
              (Counts{(2 * levels - 1) * power, hosts, hosts, levels * hosts, 1}));
    for (uint32_t s = 0; s < fabric->switch_count(); ++s) {
      EXPECT_EQ(fabric->channels(VertexIndex(s)).size(), ports);
    }
    EXPECT_EQ(Diameter(*fabric), 2 * (levels - 1));
  }
}

TEST(FatTreeModelTest, PruningTakesUplinksAndWhatIsAbove) {
  // k = 8, n = 3, p = 2: 32 leaves with 2 uplinks, 16 + 8 switches above where there were 32 + 16.
  const auto fabric = Generate("fat-tree(ports=8,levels=3,pruning=2)");
  EXPECT_EQ(CountsOf(*fabric), (Counts{32 + 16 + 8, 128, 128, 128 + 64 + 64, 1}));
  EXPECT_EQ(Degrees(*fabric), (DegreeMap{{2, 32}, {8, 16 + 8}}));
  EXPECT_EQ(Diameter(*fabric), 4);
  EXPECT_EQ(CountsOf(*Generate("fat-tree(ports=8,levels=1,pruning=4)")), (Counts{1, 8, 8, 8, 1}));
}

TEST(FatTreeModelTest, RailsAreSeparateSubnets) {
  const auto fabric = Generate("fat-tree(ports=8,levels=2,rails=2)");
  EXPECT_EQ(CountsOf(*fabric), (Counts{24, 64, 32, 128, 2}));
  EXPECT_EQ(fabric->endpoints_of_host(HostIndex(0)).size(), 2);
}

TEST(FatTreeModelTest, SupernodesHangUnderTops) {
  const auto fabric = Generate("fat-tree(supernodes=80,leaves=32,spines=16,tops=64)");
  EXPECT_EQ(CountsOf(*fabric), (Counts{80 * 48 + 64, 40960, 40960, 40960 + 80 * 512 + 64 * 80, 1}));
  EXPECT_EQ(Degrees(*fabric), (DegreeMap{{16, 2560}, {36, 1280}, {80, 64}}));
}

TEST(XgftModelTest, FollowsOhring) {
  // Level i has w1..wi * m_{i+1}..mh switches.
  const auto fabric = Generate("xgft(m=3x4x5,w=1x2x3)");
  EXPECT_EQ(CountsOf(*fabric), (Counts{20 + 10 + 6, 60, 60, 60 + 40 + 30, 1}));
  EXPECT_EQ(Degrees(*fabric), (DegreeMap{{2, 20}, {7, 10}, {5, 6}}));
  EXPECT_EQ(Diameter(*fabric), 4);
  EXPECT_EQ(Generate("xgft(m=2x2,w=2x1)")->endpoint_count(), 8);  // two ports a host
}

TEST(GridModelTest, TorusMeshAndHypercube) {
  const auto torus = Generate("torus(dims=4x3x2,hosts=2)");
  EXPECT_EQ(CountsOf(*torus), (Counts{24, 48, 48, 48 + 24 + 24 + 12, 1}));
  EXPECT_EQ(Degrees(*torus), (DegreeMap{{5, 24}}));
  EXPECT_EQ(Diameter(*torus), 2 + 1 + 1);
  EXPECT_EQ(torus->switch_info(SwitchIndex(5)).description, "sw(1,1,0;4x3x2 torus)");
  const auto mesh = Generate("mesh(dims=4x3)");
  EXPECT_EQ(CountsOf(*mesh), (Counts{12, 12, 12, 12 + 9 + 8, 1}));
  EXPECT_EQ(Diameter(*mesh), 3 + 2);
  const auto cube = Generate("hypercube(dims=5)");
  EXPECT_EQ(CountsOf(*cube), (Counts{32, 32, 32, 32 + 80, 1}));
  EXPECT_EQ(Degrees(*cube), (DegreeMap{{5, 32}}));
  EXPECT_EQ(Diameter(*cube), 5);
}

TEST(DragonflyModelTest, GroupsAreJoinedOnceAtFullSize) {
  // g = a h + 1 groups, every pair joined by one link: three hops at most.
  const auto fabric = Generate("dragonfly(p=2,a=4,h=2)");
  EXPECT_EQ(CountsOf(*fabric), (Counts{36, 72, 72, 72 + 9 * 6 + 36, 1}));
  EXPECT_EQ(Degrees(*fabric), (DegreeMap{{5, 36}}));
  EXPECT_EQ(Diameter(*fabric), 3);
  const auto small = Generate("dragonfly(p=1,a=4,h=2,g=3)");
  EXPECT_EQ(CountsOf(*small), (Counts{12, 12, 12, 12 + 18 + 3 * 4, 1}));
}

TEST(DragonflyPlusModelTest, GlobalLinksAreOnSpines) {
  const auto fabric = Generate("dragonfly-plus(p=2,leaves=3,spines=2,h=2)");
  EXPECT_EQ(CountsOf(*fabric), (Counts{25, 30, 30, 30 + 5 * 6 + 10, 1}));
  EXPECT_EQ(Degrees(*fabric), (DegreeMap{{2, 15}, {5, 10}}));
}

TEST(PercsModelTest, LinksAndCapacities) {
  const auto fabric = Generate("percs");
  EXPECT_EQ(CountsOf(*fabric), (Counts{9248, 9248, 9248, 9248 + 289 * 496 + 289 * 288 / 2, 1}));
  EXPECT_EQ(Degrees(*fabric), (DegreeMap{{7 + 24 + 9, 9248}}));
  std::map<int, uint32_t> by_capacity;
  for (uint32_t l = 0; l < fabric->link_count(); ++l) {
    ++by_capacity[static_cast<int>(fabric->link(LinkIndex(l)).capacity_gbps)];
  }
  EXPECT_EQ(by_capacity, (std::map<int, uint32_t>{{42, 289 * 384},      // LR, 5 GiB/s
                                                  {85, 289 * 288 / 2},  // D, 10 GiB/s
                                                  {206, 289 * 112},     // LL, 24 GiB/s
                                                  {824, 9248}}));
  EXPECT_EQ(fabric->trunk_gbps(), std::nullopt);
  EXPECT_EQ(Generate("dragonfly(p=2,a=4,h=2)")->trunk_gbps(), 200);
  const auto text = [](const char* spec) { return WriteIbnetdiscover(*Generate(spec)); };
  EXPECT_EQ(text("percs(supernodes=3,seed=7)"), text("percs(supernodes=3,seed=7)"));
  EXPECT_NE(text("percs(supernodes=3,seed=7)"), text("percs(supernodes=3,seed=8)"));
}

TEST(HyperxModelTest, JoinsEveryLine) {
  const auto fabric = Generate("hyperx(dims=4x3,hosts=2,parallel=2)");
  EXPECT_EQ(CountsOf(*fabric), (Counts{12, 24, 24, 24 + 2 * (3 * 6 + 4 * 3), 1}));
  EXPECT_EQ(Degrees(*fabric), (DegreeMap{{10, 12}}));
  EXPECT_EQ(Diameter(*fabric), 2);
}

TEST(ModelTest, SpeedsRepeatTheLastAndLidsAreSwitchesFirst) {
  const auto fabric =
      Generate("fat-tree(leaves=2,spines=1,hosts-per-leaf=1,speeds=hdr/2xndr,lids=1)");
  EXPECT_EQ(fabric->lid(VertexIndex(0)), Lid(1));
  EXPECT_EQ(fabric->lid(VertexIndex(3)), Lid(4));
  EXPECT_EQ(ToString(fabric->link(Fabric::link_of(fabric->uplink(EndpointIndex(0)))).rate),
            "4xHDR");
  const Channel up = fabric->switch_channels(SwitchIndex(0))[0];
  EXPECT_EQ(ToString(fabric->link(Fabric::link_of(up.index)).rate), "2xNDR");
}

// Rates of the cables between switches, and how many have each.
std::map<std::string, uint32_t> SwitchRates(const Fabric& fabric) {
  std::map<std::string, uint32_t> rates;
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    const LinkInfo& link = fabric.link(LinkIndex(l));
    if (fabric.IsSwitch(link.a) && fabric.IsSwitch(link.b)) ++rates[ToString(link.rate)];
  }
  return rates;
}

TEST(ModelTest, EveryLevelHasItsSpeed) {
  using Rates = std::map<std::string, uint32_t>;
  const auto rates = [](const std::string& spec) { return SwitchRates(*Generate(spec)); };
  EXPECT_EQ(rates("fat-tree(supernodes=2,leaves=3,spines=2,tops=4,speeds=qdr/edr/1xxdr)"),
            (Rates{{"4xEDR", 12}, {"1xXDR", 8}}));
  EXPECT_EQ(rates("fat-tree(ports=4,levels=3,speeds=qdr/edr/ndr)"),
            (Rates{{"4xEDR", 16}, {"4xNDR", 16}}));
  EXPECT_EQ(rates("xgft(m=2x2x2,w=1x2x1,speeds=qdr/edr/ndr)"), (Rates{{"4xEDR", 8}, {"4xNDR", 4}}));
  EXPECT_EQ(rates("dragonfly(p=1,a=4,h=1,speeds=qdr/edr/ndr)"),
            (Rates{{"4xEDR", 5 * 6}, {"4xNDR", 10}}));
  EXPECT_EQ(rates("dragonfly-plus(p=1,leaves=2,spines=2,h=1,speeds=qdr/edr/ndr)"),
            (Rates{{"4xEDR", 3 * 4}, {"4xNDR", 3}}));
  EXPECT_EQ(rates("torus(dims=3x4,speeds=qdr/edr/ndr)"), (Rates{{"4xEDR", 12}, {"4xNDR", 12}}));
  EXPECT_EQ(rates("mesh(dims=3x4,speeds=qdr/edr/ndr)"), (Rates{{"4xEDR", 8}, {"4xNDR", 9}}));
  EXPECT_EQ(rates("hypercube(dims=3,speeds=qdr/edr/ndr)"), (Rates{{"4xEDR", 4}, {"4xNDR", 8}}));
  EXPECT_EQ(rates("hyperx(dims=3x4,speeds=qdr/edr/ndr)"), (Rates{{"4xEDR", 12}, {"4xNDR", 18}}));
}

// Absurd values of every argument of every model: a fabric that stands, or an error that names the
// argument or the size; quickly.
TEST(ModelTest, AbsurdArgumentsOfEveryModel) {
  for (const Model& model : Models()) {
    std::vector<std::string> names = {"speeds", "lids"};
    for (const ModelParameter& parameter : model.parameters) names.emplace_back(parameter.name);
    for (const std::string& name : names) {
      for (const char* value : {"",      "-1",          "0",
                                "1",     "2",           "255",
                                "65536", "4294967296",  "18446744073709551616",
                                "1e3",   "0x10",        "1x1",
                                "0x0",   "65536x65536", "1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1",
                                "nan",   "hdr/",        "/",
                                " ",     "4 4",         "(",
                                "\xff"}) {
        // The whole of PERCS is large: few supernodes do as well.
        const char* const few =
            model.name == "percs" && name != "supernodes" ? "supernodes=3," : "";
        const std::string spec = std::string(model.name) + "(" + few + name + "=" + value + ")";
        const auto fabric = GenerateModel(spec);
        if (fabric.ok()) {
          EXPECT_TRUE(CheckFabric(**fabric).ok()) << spec << ": " << CheckFabric(**fabric);
          continue;
        }
        EXPECT_EQ(fabric.status().code(), absl::StatusCode::kInvalidArgument) << spec;
        const std::string message(fabric.status().message());
        EXPECT_THAT(message, HasSubstr("model:" + std::string(model.name))) << spec;
        EXPECT_THAT(message, HasSubstr("usage: ")) << spec;
      }
    }
    const std::string name(model.name);
    for (const std::string& spec :
         {name + "(", name + ")", name + "()x", name + "(=)", name + "(,)", name + "(lids)",
          name + "(lids=1,lids=1)", name + "(x=1)"}) {
      EXPECT_EQ(GenerateModel(spec).status().code(), absl::StatusCode::kInvalidArgument) << spec;
    }
  }
}

TEST(ModelTest, BadArgumentsAreNamedWithRangeAndUsage) {
  const auto refused = [](const char* spec, const char* what) {
    const auto fabric = GenerateModel(spec);
    ASSERT_EQ(fabric.status().code(), absl::StatusCode::kInvalidArgument) << spec;
    EXPECT_THAT(std::string(fabric.status().message()), HasSubstr(what)) << spec;
  };
  refused("klein-bottle", "fat-tree");
  refused("torus(dims=4x4", "closing bracket");
  refused("torus(dims=4x0)", "argument dims=4x0: expected numbers from 1 to 65536");
  refused("torus(dims=)", "argument dims=");
  refused("torus(size=4)", "unknown argument \"size\"");
  refused("torus(dims=4,dims=4)", "given twice");
  refused("torus(dims=4,hosts=-1)", "argument hosts=-1: expected a number from 0 to 254");
  refused("torus(dims=4,speeds=warp)", "argument speeds=warp");
  refused("torus(dims=65536x65536)", "vertices");
  refused("torus(dims=4,hosts=254)", "ports");
  refused("hyperx(dims=255x255x255)", "make it smaller");
  refused("fat-tree(ports=7)", "argument ports=7: expected an even number");
  refused("fat-tree(ports=8,leaves=4)", "argument leaves does not go with");
  refused("fat-tree(ports=8,pruning=3)", "argument pruning=3: expected a divisor of the 4 ports");
  refused("fat-tree(leaves=8,pruning=2)", "argument pruning goes with");
  refused("percs(speeds=hdr)", "argument speeds");
  refused("fat-tree(supernodes=3)", "argument tops=0");
  refused("fat-tree(ports=254,levels=16)", "vertices");
  refused("fat-tree(ports=64,levels=3,lids=1)", "argument lids=1");
  refused("dragonfly(a=2,h=1,g=4)", "argument g=4");
  refused("percs(supernodes=300)", "argument supernodes=300");
  refused("xgft(m=2x2,w=1)", "arguments m and w");
  for (const Model& model : Models()) {
    EXPECT_THAT(ModelUsage(model), HasSubstr("speeds: "));
    EXPECT_TRUE(GenerateModel(model.name).ok()) << model.name;
  }
}

}  // namespace
}  // namespace coppice::model_test
