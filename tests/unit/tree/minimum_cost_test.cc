// Minimum cost against exhaustive search over all sets of serving switches, against the min-plus
// recurrence, and against the figures of Chen 2024.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "daemon/tree/type2_candidate.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"

namespace coppice::minimum_cost_test {
namespace {

// The bound that no physical tree can beat: the fewest switches whose largest K - 1 sum to
// members - 1, i.e. ceil((members - 1) / (K - 1)) for one K. More than there are if all of them do
// not suffice.
uint32_t FewestServingBound(uint32_t members, absl::Span<const uint32_t> degrees) {
  if (members <= 1) return 0;
  std::vector<uint32_t> sorted(degrees.begin(), degrees.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  uint64_t absorbed = 0;
  uint32_t count = 0;
  for (const uint32_t degree : sorted) {
    if (degree < 2 || absorbed >= members - uint64_t{1}) break;
    absorbed += degree - uint64_t{1};
    ++count;
  }
  return absorbed >= members - uint64_t{1} ? count : count + 1;
}

// A physical tree on plain arrays: vertices 0..n-1, parents before children.
struct Shape {
  std::vector<int32_t> parents;
  std::vector<uint32_t> members, degrees;

  uint32_t Add(int32_t parent, uint32_t degree, uint32_t member_count = 0) {
    parents.push_back(parent);
    degrees.push_back(degree);
    members.push_back(member_count);
    return static_cast<uint32_t>(parents.size() - 1);
  }
  uint32_t member_total() const {
    uint32_t total = 0;
    for (const uint32_t m : members) total += m;
    return total;
  }
  ReductionProblem problem() const { return {parents, members, degrees, {}}; }
};

// Items that leave the root if exactly the vertices of `serving` (a bit set) serve.
uint32_t ItemsLeft(const Shape& shape, uint32_t serving) {
  std::vector<uint32_t> items(shape.members);
  for (size_t v = items.size(); v-- > 0;) {
    if ((serving >> v & 1) != 0 && items[v] > 0 && shape.degrees[v] > 0) {
      const uint32_t taken = std::min(items[v], shape.degrees[v]);
      items[v] = items[v] - taken + 1;
    }
    if (v == 0) break;
    items[static_cast<size_t>(shape.parents[v])] += items[v];
  }
  return items.empty() ? 0 : items[0];
}

struct Answer {
  bool feasible = false;
  uint32_t count = 0;
};

Answer Exhaustive(const Shape& shape) {
  if (shape.member_total() <= 1) return {true, 0};
  Answer best;
  for (uint32_t set = 0; set < uint32_t{1} << shape.parents.size(); ++set) {
    const auto count = static_cast<uint32_t>(std::popcount(set));
    if ((!best.feasible || count < best.count) && ItemsLeft(shape, set) == 1) best = {true, count};
  }
  return best;
}

// The recurrence as the paper's algorithm suggests it: out[u][j], quadratic.
Answer MinPlus(const Shape& shape) {
  const uint32_t total = shape.member_total();
  if (total <= 1) return {true, 0};
  std::vector<std::vector<uint32_t>> out(shape.parents.size(), {0});
  for (size_t v = shape.parents.size(); v-- > 0;) {
    for (uint32_t& items : out[v]) items += shape.members[v];
    std::vector<uint32_t> with(out[v].size() + 1, UINT32_MAX);
    for (size_t j = 0; j < out[v].size(); ++j) {
      with[j] = std::min(with[j], out[v][j]);
      if (shape.degrees[v] == 0 || out[v][j] == 0) continue;
      const uint32_t taken = std::min(out[v][j], shape.degrees[v]);
      with[j + 1] = std::min(with[j + 1], out[v][j] - taken + 1);
    }
    if (with.back() == UINT32_MAX) with.pop_back();
    out[v] = with;
    if (v == 0) break;
    std::vector<uint32_t>& above = out[static_cast<size_t>(shape.parents[v])];
    std::vector<uint32_t> sum(above.size() + out[v].size() - 1, UINT32_MAX);
    for (size_t i = 0; i < above.size(); ++i) {
      for (size_t j = 0; j < out[v].size(); ++j) {
        if (above[i] == UINT32_MAX || out[v][j] == UINT32_MAX) continue;
        sum[i + j] = std::min(sum[i + j], above[i] + out[v][j]);
      }
    }
    above = sum;
  }
  for (size_t j = 0; j < out[0].size(); ++j) {
    if (out[0][j] == 1) return {true, static_cast<uint32_t>(j)};
  }
  return {};
}

// Independent verifier of the hard constraints; returns the number of serving vertices.
void ExpectValid(const Shape& shape, const ReductionChoice& choice) {
  const ReductionProblem problem = shape.problem();
  const ReductionTree tree = HangItems(problem, choice.serving);
  std::vector<bool> serves(shape.parents.size(), false);
  for (const uint32_t v : choice.serving) serves[v] = true;
  std::vector<uint32_t> children(shape.parents.size(), 0);
  const auto is_ancestor = [&](uint32_t above, uint32_t v, bool itself) {
    int32_t at = itself ? static_cast<int32_t>(v) : shape.parents[v];
    while (at >= 0 && static_cast<uint32_t>(at) != above)
      at = shape.parents[static_cast<size_t>(at)];
    return at >= 0;
  };
  uint32_t roots = 0;
  for (uint32_t v = 0; v < serves.size(); ++v) {
    const int32_t parent = tree.serving_parents[v];
    if (!serves[v]) {
      EXPECT_EQ(parent, ReductionProblem::kNoParent);
    } else if (parent < 0) {
      ++roots;
    } else {
      EXPECT_TRUE(serves[static_cast<size_t>(parent)]);
      EXPECT_TRUE(is_ancestor(static_cast<uint32_t>(parent), v, false));
      ++children[static_cast<size_t>(parent)];
    }
    for (uint32_t m = tree.first_member[v]; m < tree.first_member[v + 1]; ++m) {
      const int32_t above = tree.member_parents[m];
      if (choice.serving.empty()) continue;
      ASSERT_GE(above, 0);
      EXPECT_TRUE(serves[static_cast<size_t>(above)]);
      EXPECT_TRUE(is_ancestor(static_cast<uint32_t>(above), v, true));
      ++children[static_cast<size_t>(above)];
    }
  }
  EXPECT_EQ(roots, shape.member_total() >= 2 ? 1U : 0U);
  for (const uint32_t v : choice.serving) {
    EXPECT_LE(children[v], shape.degrees[v]);
    EXPECT_GE(children[v], 2U);
  }
}

// Up to `most` vertices, members at the leaves and sometimes inside, degrees mixed, some full.
Shape RandomShape(std::mt19937_64& random, uint32_t most) {
  Shape shape;
  const uint32_t n = 1 + static_cast<uint32_t>(random() % most);
  const uint32_t depth_bias = 1 + static_cast<uint32_t>(random() % 4);
  const uint32_t largest = 2 + static_cast<uint32_t>(random() % 8);
  const bool uniform = random() % 4 == 0;
  const uint32_t full_in_ten = static_cast<uint32_t>(random() % 6);
  for (uint32_t v = 0; v < n; ++v) {
    int32_t parent = -1;
    if (v > 0) {
      const uint32_t from = v > depth_bias && random() % 2 == 0 ? v - depth_bias : 0;
      parent = static_cast<int32_t>(from + random() % (v - from));
    }
    uint32_t degree = uniform ? largest : static_cast<uint32_t>(random() % (largest + 1));
    if (random() % 10 < full_in_ten) degree = 0;
    shape.Add(parent, degree, random() % 3 == 0 ? static_cast<uint32_t>(random() % 6) : 0);
  }
  std::vector<bool> inner(n, false);
  for (uint32_t v = 1; v < n; ++v) inner[static_cast<size_t>(shape.parents[v])] = true;
  for (uint32_t v = 0; v < n; ++v) {
    if (!inner[v] && random() % 8 != 0) shape.members[v] += 1 + static_cast<uint32_t>(random() % 4);
  }
  return shape;
}

TEST(MinimumCost, EqualsExhaustiveSearchOnRandomTrees) {
  std::mt19937_64 random(TestSeed());
  const int rounds = FullTier() ? 20000 : 3000;
  int infeasible = 0;
  for (int round = 0; round < rounds; ++round) {
    const Shape shape = RandomShape(random, 11);
    const ReductionChoice choice = ChooseServing(shape.problem());
    const Answer expected = Exhaustive(shape);
    ASSERT_EQ(choice.feasible, expected.feasible) << "round " << round;
    if (!expected.feasible) {
      ++infeasible;
      continue;
    }
    ASSERT_EQ(choice.serving.size(), expected.count) << "round " << round;
    ASSERT_GE(expected.count, FewestServingBound(shape.member_total(), shape.degrees));
    ExpectValid(shape, choice);
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  EXPECT_GT(infeasible, rounds / 50);
  EXPECT_LT(infeasible, rounds * 9 / 10);
}

TEST(MinimumCost, EqualsTheRecurrenceOnLargerTrees) {
  std::mt19937_64 random(TestSeed() + 1);
  const int rounds = FullTier() ? 3000 : 300;
  for (int round = 0; round < rounds; ++round) {
    const Shape shape = RandomShape(random, 120);
    const ReductionChoice choice = ChooseServing(shape.problem());
    const Answer expected = MinPlus(shape);
    ASSERT_EQ(choice.feasible, expected.feasible) << "round " << round;
    if (!expected.feasible) continue;
    ASSERT_EQ(choice.serving.size(), expected.count) << "round " << round;
    ExpectValid(shape, choice);
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

// Of the least sets, none has a lower topmost vertex.
TEST(MinimumCost, PutsTheRootAsNearTheMembersAsTheLeastSetAllows) {
  std::mt19937_64 random(TestSeed() + 2);
  for (int round = 0; round < 500; ++round) {
    const Shape shape = RandomShape(random, 9);
    const ReductionChoice choice = ChooseServing(shape.problem());
    if (!choice.feasible || choice.serving.empty()) continue;
    const auto depth = [&](uint32_t v) {
      uint32_t d = 0;
      for (int32_t at = shape.parents[v]; at >= 0; at = shape.parents[static_cast<size_t>(at)]) ++d;
      return d;
    };
    uint32_t lowest = 0;
    for (uint32_t set = 1; set < uint32_t{1} << shape.parents.size(); ++set) {
      if (static_cast<size_t>(std::popcount(set)) != choice.serving.size()) continue;
      if (ItemsLeft(shape, set) != 1) continue;
      lowest = std::max(lowest, depth(static_cast<uint32_t>(std::countr_zero(set))));
    }
    ASSERT_EQ(depth(choice.serving[0]), lowest) << "round " << round;
  }
}

TEST(MinimumCost, MoreEntriesAndHigherDegreesNeverCostMore) {
  std::mt19937_64 random(TestSeed() + 3);
  for (int round = 0; round < 1000; ++round) {
    Shape shape = RandomShape(random, 40);
    const ReductionChoice before = ChooseServing(shape.problem());
    shape.degrees[random() % shape.degrees.size()] += 1 + static_cast<uint32_t>(random() % 5);
    const ReductionChoice after = ChooseServing(shape.problem());
    if (!before.feasible) continue;
    ASSERT_TRUE(after.feasible) << "round " << round;
    ASSERT_LE(after.serving.size(), before.serving.size()) << "round " << round;
  }
}

// Chen 2024, figure 11: 16 members, 13 switches, K = 5 everywhere, 4 switches serve.
//
//                  R
//        A         B         C
//      a b c     d e f     g h i
//      2 2 2     2 2 2     2 1 1     members
TEST(MinimumCost, FigureElevenTakesFourOfThirteenSwitches) {
  Shape shape;
  shape.Add(-1, 5);
  for (int i = 0; i < 3; ++i) shape.Add(0, 5);
  const uint32_t members[] = {2, 2, 2, 2, 2, 2, 2, 1, 1};
  for (int i = 0; i < 9; ++i) shape.Add(1 + i / 3, 5, members[i]);
  const ReductionChoice choice = ChooseServing(shape.problem());
  ASSERT_TRUE(choice.feasible);
  EXPECT_EQ(choice.serving.size(), 4U);
  EXPECT_EQ(choice.serving[0], 0U);
  EXPECT_EQ(FewestServingBound(16, shape.degrees), 4U);  // ceil(15 / 4)
  ExpectValid(shape, choice);
}

TEST(MinimumCost, NobodyServesForNoMemberOrOne) {
  EXPECT_TRUE(ChooseServing({}).feasible);
  Shape shape;
  shape.Add(-1, 0);
  shape.Add(0, 0, 1);
  const ReductionChoice choice = ChooseServing(shape.problem());
  EXPECT_TRUE(choice.feasible);
  EXPECT_TRUE(choice.serving.empty());
}

TEST(MinimumCost, TwoMembersTakeTheLowestSwitchThatHasBoth) {
  Shape shape;  // a chain of three switches above one port with two ranks
  shape.Add(-1, 2);
  shape.Add(0, 2);
  shape.Add(1, 2);
  shape.Add(2, 0, 2);
  EXPECT_EQ(ChooseServing(shape.problem()).serving, std::vector<uint32_t>{2});
  shape.degrees[2] = 0;
  EXPECT_EQ(ChooseServing(shape.problem()).serving, std::vector<uint32_t>{1});
}

TEST(MinimumCost, ForwardOnlySwitchesAreNamedWhereTheyAreInTheWay) {
  Shape shape;
  shape.Add(-1, 0);
  shape.Add(0, 8, 3);
  shape.Add(0, 1, 3);
  shape.Add(0, 0, 1);
  const ReductionChoice choice = ChooseServing(shape.problem());
  EXPECT_FALSE(choice.feasible);
  EXPECT_EQ(choice.in_the_way, (std::vector<uint32_t>{0, 2}));
}

TEST(MinimumCost, SmallDegreesCanFailWithoutAnyFullSwitch) {
  Shape shape;
  shape.Add(-1, 2, 3);
  const ReductionChoice choice = ChooseServing(shape.problem());
  EXPECT_FALSE(choice.feasible);
  EXPECT_TRUE(choice.in_the_way.empty());
}

TEST(MinimumCost, OneSwitchTakesAnyDegree) {
  for (const uint32_t degree : {3U, 4U, 1000U, UINT32_MAX}) {
    Shape shape;
    shape.Add(-1, degree, 3);
    EXPECT_EQ(ChooseServing(shape.problem()).serving, std::vector<uint32_t>{0}) << degree;
  }
}

TEST(MinimumCost, PreferenceDecidesAmongEqualSwitches) {
  Shape shape;  // the root takes 3 of its 4 x 2 members' items: three leaf switches must serve
  shape.Add(-1, 5);
  for (int i = 0; i < 4; ++i) shape.Add(0, 5, 2);
  ReductionProblem problem = shape.problem();
  const std::vector<uint32_t> preference = {0, 9, 1, 0, 1};
  problem.preference = preference;
  EXPECT_EQ(ChooseServing(problem).serving, (std::vector<uint32_t>{0, 2, 3, 4}));
}

TEST(MinimumCost, BoundCountsTheStrongestSwitchesFirst) {
  EXPECT_EQ(FewestServingBound(1, {}), 0U);
  EXPECT_EQ(FewestServingBound(9, std::vector<uint32_t>{2, 5, 3, 5}), 2U);
  EXPECT_EQ(FewestServingBound(10, std::vector<uint32_t>{2, 5, 3, 5}), 3U);
  EXPECT_EQ(FewestServingBound(100, std::vector<uint32_t>{2, 2}), 3U);
}

}  // namespace
}  // namespace coppice::minimum_cost_test
