// The dense problem and its swap costs: every width and both directions against the whole sum, the
// AVX2 kernels against the portable ones, dummies, slots of one place, loops, and the limit.
#include "daemon/mapping/search/dense/dense_qap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::dense_qap_test {
namespace {

struct Shape {
  std::string name;
  DenseElement element;
  double greatest;  // of the values, whole unless below 1
  bool symmetric_flows, symmetric_distances, loops;
};

std::vector<double> RandomMatrix(uint32_t size, double greatest, bool symmetric, bool loops,
                                 Xoshiro& random) {
  std::vector<double> cells(static_cast<size_t>(size) * size);
  for (uint32_t r = 0; r < size; ++r) {
    for (uint32_t c = 0; c < size; ++c) {
      double value = greatest * random.Unit();
      if (greatest >= 1) value = std::round(value);
      if (random.Below(3) == 0) value = 0;
      cells[r * size + c] = r == c && !loops ? 0 : value;
      if (symmetric && c < r) cells[r * size + c] = cells[c * size + r];
    }
  }
  cells[1] = symmetric ? (cells[size] = greatest) : greatest;
  if (loops) cells[0] = greatest >= 1 ? 1 : 0.5;
  return cells;
}

DenseOrder RandomOrder(uint32_t size, Xoshiro& random) {
  DenseOrder order(size);
  std::iota(order.begin(), order.end(), 0);
  for (uint32_t i = size; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  return order;
}

class DenseStateShapes : public ::testing::TestWithParam<Shape> {};

TEST_P(DenseStateShapes, DeltaIsTheDifferenceOfWholeSums) {
  const Shape& shape = GetParam();
  const uint64_t seed = TestSeed();
  Xoshiro random(seed);
  for (const uint32_t size : {2u, 3u, 7u, 31u, 33u, 64u, 65u, 130u}) {
    const DenseQap qap = DenseQap::OfMatrices(
        size, RandomMatrix(size, shape.greatest, shape.symmetric_flows, shape.loops, random),
        RandomMatrix(size, shape.greatest, shape.symmetric_distances, shape.loops, random));
    if (size >= 31) {
      EXPECT_EQ(qap.element(), shape.element);
      EXPECT_EQ(qap.symmetric(), shape.symmetric_flows || shape.symmetric_distances);
      EXPECT_EQ(qap.hollow(), !shape.loops);
    }
    DenseState fast(qap, RandomOrder(size, random));
    DenseState portable(qap, fast.order(), PortableKernels());
    const double scale = std::max(1.0, fast.cost());
    for (int i = 0; i < (FullTier() ? 400 : 40); ++i) {
      const uint32_t r = random.Below(size);
      const uint32_t s = (r + 1 + random.Below(size - 1)) % size;
      const double delta = fast.Delta(r, s), before = fast.cost();
      EXPECT_EQ(delta, portable.Delta(r, s));
      EXPECT_NEAR(delta, fast.Delta(s, r), 1e-12 * scale);
      fast.Swap(r, s, delta);
      portable.Swap(r, s, delta);
      const double whole = qap.Cost(fast.order());
      EXPECT_NEAR(whole - before, delta, 1e-12 * scale) << size << " " << r << " " << s;
      if (shape.element != DenseElement::kDouble) {
        EXPECT_EQ(whole, fast.cost());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DenseStateShapes,
    ::testing::Values(
        Shape{"Bytes", DenseElement::kInt8, 127, true, true, false},
        Shape{"BytesWithLoops", DenseElement::kInt8, 60, true, true, true},
        Shape{"BytesUnequalFlows", DenseElement::kInt8, 63, false, true, false},
        Shape{"BytesUnequalDistances", DenseElement::kInt8, 63, true, false, true},
        Shape{"BytesUnequal", DenseElement::kInt8, 127, false, false, false},
        Shape{"Int16", DenseElement::kInt16, 8000, true, true, false},
        Shape{"Int16UnequalWithLoops", DenseElement::kInt16, 8000, false, false, true},
        Shape{"Int32", DenseElement::kInt32, 400000, true, true, false},
        Shape{"Int32UnequalWithLoops", DenseElement::kInt32, 400000, false, false, true},
        Shape{"Double", DenseElement::kDouble, 0.9, true, true, true},
        Shape{"DoubleUnequal", DenseElement::kDouble, 0.9, false, false, false}),
    [](const auto& shape) { return shape.param.name; });

// The greatest differences that a width admits, in every lane.
template <typename T>
void ExpectExtremesHold(T greatest) {
  constexpr size_t kCount = 4 * kDenseRowBytes / sizeof(T);
  if (Avx2Kernels() == nullptr) return;  // this machine runs the portable form only
  DenseMatrix rows(2, kCount * sizeof(T));
  std::fill_n(rows.row<T>(0), kCount, greatest);
  const T *const full = rows.row<T>(0), *const empty = rows.row<T>(1);
  const auto expected =
      static_cast<DenseSum<T>>(greatest) * greatest * static_cast<DenseSum<T>>(kCount);
  for (const DenseKernels* const kernels : {Avx2Kernels(), &PortableKernels()}) {
    const auto product = std::get<RowProduct<T>>(kernels->products);
    EXPECT_EQ(product(full, empty, full, empty, kCount), expected);
    EXPECT_EQ(product(full, empty, empty, full, kCount), -expected);
    EXPECT_EQ(product(empty, full, empty, full, kCount), expected);
  }
}

TEST(RowProduct, HoldsTheGreatestDifferences) {
  ExpectExtremesHold<int8_t>(127);
  ExpectExtremesHold<int16_t>(11000);  // 128 elements: 128 * 11000^2 < 8 * 2^31
  ExpectExtremesHold<int32_t>(100000000);
  ExpectExtremesHold<double>(1e9);
}

TEST(CostRowUpdate, IsTheSameInBothForms) {
  const DenseKernels* const fast = Avx2Kernels();
  if (fast == nullptr) return;  // this machine runs the portable form only
  Xoshiro random(TestSeed());
  for (size_t count = 0; count < 20; ++count) {
    std::vector<double> u(count), v(count), costs(count);
    for (size_t i = 0; i < count; ++i) u[i] = random.Unit(), v[i] = random.Unit();
    std::vector<double> portable = costs;
    fast->update_row(costs.data(), u.data(), v.data(), 0.3, 0.7, count);
    PortableKernels().update_row(portable.data(), u.data(), v.data(), 0.3, 0.7, count);
    EXPECT_EQ(costs, portable);
  }
}

TEST(FirstBelow, IsTheSameInBothForms) {
  const DenseKernels* const fast = Avx2Kernels();
  if (fast == nullptr) return;  // this machine runs the portable form only
  Xoshiro random(TestSeed());
  for (size_t count = 0; count < 40; ++count) {
    std::vector<double> costs(count);
    for (double& cost : costs) cost = random.Below(20);
    for (size_t from = 0; from <= count; ++from) {
      EXPECT_EQ(fast->first_below(costs.data(), from, count, 2),
                PortableKernels().first_below(costs.data(), from, count, 2));
    }
  }
}

TEST(DenseQap, CountsWhatTheMeasuresCountWithDummiesAndSharedPlaces) {
  const uint64_t seed = TestSeed();
  Xoshiro random(seed);
  for (uint32_t round = 0; round < 20; ++round) {
    const uint32_t ranks = 5 + round % 4;
    const MappingProblem problem = ProblemOnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=2)", 5,
                                                  2, RandomPattern(ranks, 0.6, seed + round));
    const DenseQap qap = DenseQap::Of(problem).value();
    ASSERT_EQ(qap.size(), 10u);
    DenseState state(qap, qap.OrderOf(problem, problem.present()));
    EXPECT_EQ(DenseQap::MappingOf(problem, state.order()), problem.present());
    for (int i = 0; i < 30; ++i) {
      const uint32_t r = random.Below(10), s = (r + 1 + random.Below(9)) % 10;
      state.Swap(r, s, state.Delta(r, s));
      const Mapping mapping = DenseQap::MappingOf(problem, state.order());
      EXPECT_NEAR(state.cost() * qap.unit(), QapCost(*problem.pattern, *problem.distances, mapping),
                  1e-9);
      EXPECT_EQ(DenseQap::MappingOf(problem, qap.OrderOf(problem, mapping)), mapping);
    }
  }
}

TEST(DenseQap, DividesByWhatAllValuesShare) {
  const std::vector<double> flows = {0, 8192, 8192, 0}, distances = {0, 300, 100, 0};
  const DenseQap qap = DenseQap::OfMatrices(2, flows, distances);
  EXPECT_EQ(qap.element(), DenseElement::kInt8);
  const DenseOrder order = {0, 1};
  EXPECT_EQ(qap.Cost(order) * qap.unit(), 8192.0 * 400);
}

TEST(DenseQap, RefusesMoreSlotsThanItsMatricesMayHave) {
  MappingProblem problem;
  problem.pattern = RandomPattern(3, 1, 1);
  problem.places = Places::Numbered(DenseQap::kMaxSlots / 4 + 1, 4).value();
  problem.distances = PlaceDistances::Uniform(std::vector<uint32_t>{DenseQap::kMaxSlots / 4 + 1},
                                              std::vector<double>{1})
                          .value();
  const absl::Status status = DenseQap::Of(problem).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("4100 slots"));
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("takes 4096"));
}

}  // namespace
}  // namespace coppice::dense_qap_test
