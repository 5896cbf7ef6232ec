// Grids without names: models whose switches are called, numbered and cabled in any order, the same
// with one cable less, more or elsewhere, and small graphs beside an oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/fabric/hierarchy.h"
#include "daemon/fabric/models/model.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"

namespace coppice::hierarchy_grid_structure_test {
namespace {

using Cable = std::pair<uint32_t, uint32_t>;

std::vector<uint32_t> Shuffled(uint32_t count, std::mt19937_64& random) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

// A host on each of `switches` switches, which are numbered and cabled in any order.
FabricPlan Anyhow(uint32_t switches, const std::vector<Cable>& cables, std::mt19937_64& random) {
  const std::vector<uint32_t> place = Shuffled(switches, random);
  FabricPlan plan;
  plan.switches = switches;
  for (auto [a, b] : cables) {
    if (random() % 2 == 0) std::swap(a, b);
    plan.cables.emplace_back(place[a], place[b]);
  }
  std::shuffle(plan.cables.begin(), plan.cables.end(), random);
  for (const uint32_t s : Shuffled(switches, random)) plan.hosts.push_back({s});
  return plan;
}

// The cables of a grid; extent 2 has one cable, whether it is a ring or not.
std::vector<Cable> GridCables(const std::vector<uint32_t>& extents,
                              const std::vector<bool>& rings) {
  const uint32_t count = std::accumulate(extents.begin(), extents.end(), 1u, std::multiplies<>());
  std::set<Cable> cables;
  for (uint32_t s = 0; s < count; ++s) {
    uint32_t stride = 1;
    for (size_t d = 0; d < extents.size(); ++d) {
      const uint32_t at = s / stride % extents[d];
      const bool is_last = at + 1 == extents[d];
      if (!is_last || rings[d]) {
        const uint32_t other = is_last ? s - at * stride : s + stride;
        if (other != s) cables.emplace(std::min(s, other), std::max(s, other));
      }
      stride *= extents[d];
    }
  }
  return {cables.begin(), cables.end()};
}

uint32_t CountOf(const std::vector<uint32_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), 1u, std::multiplies<>());
}

// "torus 48 16 1": the shape and how many leaf switches, lines, planes, ... there are.
std::string Summary(const Fabric& fabric) {
  const auto hierarchy = DeriveHierarchy(fabric);
  std::string text = hierarchy->shape;
  for (size_t i = 1; i < hierarchy->levels.size(); ++i) {
    absl::StrAppend(&text, " ", hierarchy->levels[i].group_count);
  }
  return text;
}

bool IsGridShape(const Fabric& fabric) {
  const std::string shape = DeriveHierarchy(fabric)->shape;
  return shape == "torus" || shape == "mesh" || shape == "hypercube";
}

TEST(GridStructure, IsFoundWhateverTheSwitchesAreCalled) {
  std::mt19937_64 random(TestSeed());
  struct Case {
    std::vector<uint32_t> extents;
    std::vector<bool> rings;
    const char* summary;
  };
  const std::vector<Case> cases = {
      {{4, 4, 4}, {true, true, true}, "torus 64 16 4 1"},
      {{5, 5, 5}, {true, true, true}, "torus 125 25 5 1"},
      {{3, 3, 3}, {true, true, true}, "torus 27 9 3 1"},
      {{3, 8, 5}, {true, true, true}, "torus 120 15 3 1"},
      {{6, 2, 4}, {true, true, true}, "torus 48 8 2 1"},
      {{16, 16}, {true, true}, "torus 256 16 1"},
      {{4, 3, 2, 5}, {true, true, true, true}, "torus 120 24 6 2 1"},
      {{5, 4, 3}, {false, false, false}, "mesh 60 12 3 1"},
      {{7, 3}, {false, true}, "mesh 21 3 1"},
      {{2, 2, 2}, {false, false, false}, "hypercube 8 4 2 1"},
      {{2, 2, 2, 2, 2}, {false, false, false, false, false}, "hypercube 32 16 8 4 2 1"},
      {{2, 2, 2, 2}, {false, false, false, false}, "torus 16 4 1"},
  };
  for (const Case& one : cases) {
    for (int round = 0; round < 5; ++round) {
      const FabricPlan plan =
          Anyhow(CountOf(one.extents), GridCables(one.extents, one.rings), random);
      EXPECT_EQ(Summary(*MakeFabric(plan)), one.summary);
    }
  }
}

// As the generator's names say, where no two dimensions are equally long and the first is longest.
TEST(GridStructure, SaysWhatTheNamesSay) {
  std::mt19937_64 random(TestSeed());
  const FabricPtr named = *GenerateModel("torus(dims=6x5x3,hosts=1)");
  const FabricPtr unnamed =
      MakeFabric(Anyhow(90, GridCables({6, 5, 3}, {true, true, true}), random));
  EXPECT_EQ(Summary(*named), Summary(*unnamed));
}

TEST(GridStructure, LinesAreLines) {
  std::mt19937_64 random(TestSeed());
  std::vector<Cable> cables = GridCables({5, 4}, {true, true});
  const FabricPtr fabric = MakeFabric(Anyhow(20, cables, random));
  const auto hierarchy = DeriveHierarchy(*fabric);
  const Hierarchy::Level& line = hierarchy->levels[2];
  ASSERT_EQ(line.group_count, 4u);
  // Each switch has both neighbours of its ring of five in its line, and no other.
  for (uint32_t e = 0; e < fabric->endpoint_count(); ++e) {
    const SwitchIndex s = *fabric->attached_switch(EndpointIndex(e));
    int inside = 0;
    for (const Channel& channel : fabric->switch_channels(s)) {
      for (uint32_t other = 0; other < fabric->endpoint_count(); ++other) {
        if (fabric->attached_switch(EndpointIndex(other))->value() != channel.to.value()) continue;
        inside += line.group[other] == line.group[e];
      }
    }
    EXPECT_EQ(inside, 2);
  }
}

TEST(GridStructure, ATorusWithoutACableIsNone) {
  std::mt19937_64 random(TestSeed());
  for (const std::vector<uint32_t>& extents :
       std::vector<std::vector<uint32_t>>{{4, 4, 4}, {5, 5, 5}, {3, 4, 5}, {6, 6}, {3, 3}}) {
    const std::vector<bool> rings(extents.size(), true);
    const uint32_t count = CountOf(extents);
    for (int round = 0; round < 20; ++round) {
      std::vector<Cable> less = GridCables(extents, rings);
      const size_t gone = random() % less.size();
      std::vector<Cable> more = less, moved = less;
      less.erase(less.begin() + static_cast<std::ptrdiff_t>(gone));
      Cable added;
      do {
        added = {static_cast<uint32_t>(random() % count), static_cast<uint32_t>(random() % count)};
      } while (added.first >= added.second ||
               std::find(more.begin(), more.end(), added) != more.end());
      more.push_back(added);
      moved[gone] = added;
      EXPECT_FALSE(IsGridShape(*MakeFabric(Anyhow(count, less, random))));
      EXPECT_FALSE(IsGridShape(*MakeFabric(Anyhow(count, more, random))));
      EXPECT_FALSE(IsGridShape(*MakeFabric(Anyhow(count, moved, random))));
    }
  }
}

TEST(GridStructure, ATreeOfSwitchesIsNone) {
  std::mt19937_64 random(TestSeed());
  // Two leaf and two spine switches are a ring of four; spines have no hosts.
  EXPECT_EQ(DeriveHierarchy(*TwoLevelFatTree(2, 2, 3))->shape, "fat tree");
  EXPECT_FALSE(IsGridShape(*Ring(7, 1)));
  EXPECT_FALSE(IsGridShape(*Chain(7, 1)));
  FabricPlan spines = Anyhow(64, GridCables({4, 4, 4}, {true, true, true}), random);
  spines.hosts.pop_back();
  EXPECT_FALSE(IsGridShape(*MakeFabric(spines)));
}

// Whether `joined` is some grid of two or more dimensions: tries all of them, and all ways to lay
// its switches out, by backtracking.
class Oracle {
 public:
  explicit Oracle(std::vector<std::vector<bool>> joined) : joined_(std::move(joined)) {}

  bool IsGrid() {
    std::vector<uint32_t> extents;
    std::vector<bool> rings;
    return Try(static_cast<uint32_t>(joined_.size()), extents, rings);
  }

 private:
  bool Try(uint32_t left, std::vector<uint32_t>& extents, std::vector<bool>& rings) {
    if (left == 1) return extents.size() >= 2 && IsIsomorphic(GridCables(extents, rings));
    for (uint32_t extent = extents.empty() ? 2 : extents.back(); extent <= left; ++extent) {
      if (left % extent != 0) continue;
      for (const bool ring : {false, true}) {
        if (ring && extent == 2) continue;
        extents.push_back(extent);
        rings.push_back(ring);
        if (Try(left / extent, extents, rings)) return true;
        extents.pop_back();
        rings.pop_back();
      }
    }
    return false;
  }

  bool IsIsomorphic(const std::vector<Cable>& cables) {
    grid_.assign(joined_.size(), std::vector<bool>(joined_.size(), false));
    for (const auto& [a, b] : cables) grid_[a][b] = grid_[b][a] = true;
    image_.clear();
    return Extend();
  }
  bool Extend() {
    if (image_.size() == joined_.size()) return true;
    const size_t v = image_.size();
    for (uint32_t w = 0; w < joined_.size(); ++w) {
      bool fits = std::find(image_.begin(), image_.end(), w) == image_.end();
      for (size_t u = 0; u < v && fits; ++u) fits = grid_[v][u] == joined_[w][image_[u]];
      if (!fits) continue;
      image_.push_back(w);
      if (Extend()) return true;
      image_.pop_back();
    }
    return false;
  }

  const std::vector<std::vector<bool>> joined_;
  std::vector<std::vector<bool>> grid_;
  std::vector<uint32_t> image_;
};

// Grids with a few cables taken, added and moved, and random graphs, of 6 to 12 switches.
TEST(GridStructure, AgreesWithAnOracle) {
  std::mt19937_64 random(TestSeed());
  const std::vector<std::pair<std::vector<uint32_t>, std::vector<bool>>> grids = {
      {{3, 2}, {true, false}},
      {{3, 2}, {false, false}},
      {{2, 2, 2}, {false, false, false}},
      {{3, 3}, {true, true}},
      {{3, 3}, {true, false}},
      {{4, 2}, {false, false}},
      {{4, 3}, {true, true}},
      {{4, 3}, {false, true}},
      {{5, 2}, {true, false}},
      {{6, 2}, {true, false}},
      {{3, 2, 2}, {false, false, false}}};
  int found = 0;
  const int rounds = FullTier() ? 4000 : 400;
  for (int round = 0; round < rounds; ++round) {
    const auto& [extents, rings] = grids[random() % grids.size()];
    const uint32_t count = CountOf(extents);
    const std::vector<Cable> grid = GridCables(extents, rings);
    std::set<Cable> cables(grid.begin(), grid.end());
    for (uint64_t changes = random() % 4; changes > 0; --changes) {
      const auto a = static_cast<uint32_t>(random() % count);
      const auto b = static_cast<uint32_t>(random() % count);
      if (a < b && cables.erase({a, b}) == 0) cables.emplace(a, b);
    }
    std::vector<std::vector<bool>> joined(count, std::vector<bool>(count, false));
    for (const auto& [a, b] : cables) joined[a][b] = joined[b][a] = true;
    const FabricPtr fabric = MakeFabric(Anyhow(count, {cables.begin(), cables.end()}, random));
    if (fabric->component_count() > 1) continue;
    const bool is_grid = Oracle(joined).IsGrid();
    ASSERT_EQ(IsGridShape(*fabric), is_grid) << count << " switches, round " << round;
    found += is_grid;
  }
  EXPECT_GT(found, rounds / 10);
}

}  // namespace
}  // namespace coppice::hierarchy_grid_structure_test
