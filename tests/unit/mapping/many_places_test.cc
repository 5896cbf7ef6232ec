// Groups and near places of more places than anybody asks all distances of.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "daemon/mapping/search/groups/groups.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::many_places_test {
namespace {

// The distances of the nearest places of a few places, as the lists have them, are those of all.
void ExpectNearest(const MappingProblem& problem, const SparseProblem& sparse) {
  const uint32_t count = problem.places->count();
  for (uint32_t p = 0; p < count; p += count / 7) {
    std::vector<double> all, listed;
    const auto distance = [&](uint32_t q) {
      return (*problem.distances)(PlaceIndex(p), PlaceIndex(q));
    };
    for (uint32_t q = 0; q < count; ++q) all.push_back(distance(q));
    std::sort(all.begin(), all.end());
    sparse.near.ForEach(p, 32, [&](uint32_t q) { listed.push_back(distance(q)); });
    ASSERT_EQ(listed.size(), 32u);
    EXPECT_TRUE(std::equal(listed.begin(), listed.end(), all.begin())) << p;
  }
}

TEST(ManyPlaces, OfATorusAreHalvedIntoBlocksAndKnowTheirNeighbours) {
  const MappingProblem problem =
      ProblemOnModel("torus(dims=13x13x13)", 2197, 1, RingPattern(2197, 1));
  const auto sparse = MakeSparseProblem(problem).value();
  EXPECT_FALSE(sparse->groups.exact);
  ExpectNearest(problem, *sparse);
  // A block of 4 x 4 x 4 is 11 links wide with two endpoints'; halves that METIS made need not be
  // cubes.
  for (const PlaceGroups::Node& node : sparse->groups.nodes) {
    if (node.end - node.begin < 60 || node.end - node.begin > 75) continue;
    const auto places = sparse->groups.places(node);
    double widest = 0;
    for (const uint32_t a : places) {
      for (const uint32_t b : places) {
        widest = std::max(widest, (*problem.distances)(PlaceIndex(a), PlaceIndex(b)));
      }
    }
    EXPECT_LE(widest, 17);
  }
}

TEST(ManyPlaces, OfAFatTreeAreItsLevels) {
  const MappingProblem problem =
      ProblemOnModel("fat-tree(supernodes=40,leaves=64,spines=2,hosts-per-leaf=1,tops=2)", 2560, 1,
                     RingPattern(2560, 1));
  const PlaceGroups groups =
      MakePlaceGroups(*problem.places, *problem.distances, problem.snapshot->hierarchy.get(),
                      problem.snapshot->fabric.get());
  EXPECT_TRUE(groups.exact);
  EXPECT_EQ(groups.nodes[0].child_count, 40u);
  EXPECT_EQ(groups.nodes.size(), 1u + 40u + 2560u);
}

TEST(ManyPlaces, AreLeftInOneGroupWhenStopped) {
  const MappingProblem problem =
      ProblemOnModel("torus(dims=13x13x13)", 2197, 1, RingPattern(2197, 1));
  const SearchControl stopped([] { return true; }, nullptr);
  const auto sparse = MakeSparseProblem(problem, stopped).value();
  EXPECT_EQ(sparse->groups.nodes.size(), 1u + 2197u);
  uint32_t near = 0;
  sparse->near.ForEach(7, 32, [&](uint32_t place) {
    EXPECT_LT(place, 2197u);
    ++near;
  });
  EXPECT_EQ(near, 33u);
}

}  // namespace
}  // namespace coppice::many_places_test
