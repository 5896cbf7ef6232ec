// Shapes of random trees against what a walk over the whole tree says.
#include "agents/mpi/tree/tree_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "tests/support/tier.h"

namespace coppice::mpi {
namespace {

using Parents = std::vector<int32_t>;

Parents RandomParents(int ranks, std::mt19937_64& random) {
  std::vector<int32_t> place(ranks);
  std::iota(place.begin(), place.end(), 0);
  if (random() % 2 == 0) std::shuffle(place.begin(), place.end(), random);
  Parents parents(ranks, -1);
  for (int rank = 1; rank < ranks; ++rank) parents[place[rank]] = place[random() % rank];
  return parents;
}

// Ranks below `rank` and itself, by asking every rank for its way up.
std::vector<int> Below(const Parents& parents, int rank) {
  std::vector<int> below;
  for (int other = 0; other < static_cast<int>(parents.size()); ++other) {
    int at = other;
    while (at >= 0 && at != rank) at = parents[at];
    if (at == rank) below.push_back(other);
  }
  return below;
}

// The ranks in the order in which the chains combine them, from the end.
std::vector<int> Combined(const std::vector<TreeShape>& shapes, int rank) {
  std::vector<int> order;
  for (const int place : shapes[rank].chain_from_end) {
    if (place == TreeShape::kOwn) {
      order.push_back(rank);
      continue;
    }
    const std::vector<int> part = Combined(shapes, place);
    order.insert(order.end(), part.begin(), part.end());
  }
  return order;
}

TEST(TreeShape, AgreesWithAWalkOverRandomTrees) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 2000; ++round) {
    const int ranks = 1 + static_cast<int>(random() % 12);
    const Parents parents = RandomParents(ranks, random);
    std::vector<TreeShape> shapes(ranks);
    bool is_ordered = true;
    for (int rank = 0; rank < ranks; ++rank) {
      ASSERT_TRUE(MakeTreeShape(parents, rank, &shapes[rank]));
      EXPECT_EQ(shapes[rank].parent, parents[rank]);
      EXPECT_EQ(parents[shapes[rank].root], -1);
      const std::vector<int> below = Below(parents, rank);
      is_ordered &= below.back() - below.front() + 1 == static_cast<int>(below.size());
    }
    std::vector<int> combined = Combined(shapes, shapes[0].root);
    std::reverse(combined.begin(), combined.end());
    std::vector<int> all(ranks);
    std::iota(all.begin(), all.end(), 0);
    for (const TreeShape& shape : shapes) EXPECT_EQ(shape.is_ordered, is_ordered);
    if (is_ordered) {
      EXPECT_EQ(combined, all);
    }
    std::sort(combined.begin(), combined.end());
    EXPECT_EQ(combined, all);
  }
}

TEST(FirstElements, AreSharesOfAnyCount) {
  const std::vector<double> shares = {0.25, 0.5, 0.125, 0.125};
  EXPECT_EQ(FirstElements(shares, 80), (std::vector<int>{0, 20, 60, 70, 80}));
  EXPECT_EQ(FirstElements(shares, 1), (std::vector<int>{0, 1, 1, 1, 1}));
  EXPECT_EQ(FirstElements(shares, 0), (std::vector<int>{0, 0, 0, 0, 0}));
  std::mt19937 random(7);
  for (int round = 0; round < 1000; ++round) {
    std::vector<double> parts(1 + random() % 14);
    for (double& part : parts) part = 1e-3 + static_cast<double>(random() % 1000);
    const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
    for (double& part : parts) part /= sum;
    const int count = 1 + static_cast<int>(random() % (round % 2 == 0 ? 20 : 2'000'000'000));
    const std::vector<int> first = FirstElements(parts, count);
    ASSERT_EQ(first.size(), parts.size() + 1);
    EXPECT_EQ(first.front(), 0);
    EXPECT_GE(first[1], 1);
    EXPECT_EQ(first.back(), count);
    EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_NEAR(first[i + 1] - first[i], parts[i] * count, 2);
    }
  }
}

TEST(TreeShape, RefusesWhatIsNoTree) {
  TreeShape shape;
  shape.root = 77;
  for (const Parents& parents : {Parents{}, Parents{0}, Parents{-1, -1}, Parents{-1, 2, 1},
                                 Parents{-1, 3}, Parents{-2, 0}, Parents{1, 0}}) {
    EXPECT_FALSE(MakeTreeShape(parents, 0, &shape));
  }
  EXPECT_FALSE(MakeTreeShape({-1, 0}, 2, &shape));
  EXPECT_FALSE(MakeTreeShape({-1, 0}, -1, &shape));
  EXPECT_EQ(shape.root, 77);
}

}  // namespace
}  // namespace coppice::mpi
