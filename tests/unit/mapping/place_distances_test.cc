#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "daemon/fabric/forwarding_tables.h"
#include "daemon/mapping/places.h"
#include "tests/unit/mapping/mapping_oracle.h"
#include "tests/unit/mapping/routed_problems.h"

namespace coppice::place_distances_test {
namespace {

using ::testing::HasSubstr;

PlaceIndex P(uint32_t p) { return PlaceIndex(p); }

TEST(UniformDistances, AreThoseOfTheSmallestCommonGroup) {
  const auto d = PlaceDistances::Uniform({4, 8, 6}, {1, 10, 100}).value();
  ASSERT_EQ(d->count(), 192u);
  for (uint32_t a = 0; a < 192; ++a) {
    for (uint32_t b = 0; b < 192; ++b) {
      const double expected = a == b ? 0 : a / 4 == b / 4 ? 1 : a / 32 == b / 32 ? 10 : 100;
      ASSERT_EQ((*d)(P(a), P(b)), expected) << a << " " << b;
    }
  }
  EXPECT_TRUE(d->symmetric());
  EXPECT_EQ(d->greatest(), 100);
}

TEST(UniformDistances, TakeLevelsOfOneMember) {
  const auto d = PlaceDistances::Uniform({1, 3, 1, 2}, {9, 1, 9, 5}).value();
  EXPECT_EQ((*d)(P(0), P(2)), 1);
  EXPECT_EQ((*d)(P(0), P(3)), 5);
  EXPECT_EQ(d->greatest(), 5);
}

TEST(UniformDistances, RefuseByLevel) {
  const auto refusal = [](std::vector<uint32_t> extents, std::vector<double> distances) {
    return std::string(PlaceDistances::Uniform(extents, distances).status().message());
  };
  EXPECT_THAT(refusal({4, 0}, {1, 2}), HasSubstr("level 2"));
  EXPECT_THAT(refusal({4, 2}, {1}), HasSubstr("2 levels with 1"));
  EXPECT_THAT(refusal({4, 2}, {-1, 2}), HasSubstr("level 1"));
  EXPECT_THAT(refusal({1 << 20, 1 << 20}, {1, 2}), HasSubstr("level 2"));
}

TEST(HopDistances, AreTheFabricsHopsBetweenAllPairs) {
  for (const char* model : {"fat-tree(leaves=3,spines=2,hosts-per-leaf=2)", "torus(dims=3x3)",
                            "dragonfly-plus", "mesh(dims=2x3,hosts=2)"}) {
    const MappingProblem problem = ProblemOnModel(model, 6, 1, RingPattern(6, 1));
    const Fabric& fabric = *problem.snapshot->fabric;
    const auto routes =
        PlaceDistances::RouteLengths(*problem.places, *problem.snapshot->routes).value();
    for (uint32_t a = 0; a < 6; ++a) {
      for (uint32_t b = 0; b < 6; ++b) {
        const VertexIndex from = fabric.Vertex(problem.places->endpoint(P(a)));
        const VertexIndex to = fabric.Vertex(problem.places->endpoint(P(b)));
        EXPECT_EQ((*problem.distances)(P(a), P(b)),
                  *problem.snapshot->routes->distances().Hops(from, to));
        EXPECT_EQ((*routes)(P(a), P(b)), *problem.snapshot->routes->Length(from, to));
      }
    }
  }
}

// Two ports of a host are as far apart as their leaf switches say, as far as those of two hosts.
TEST(HopDistances, AreThoseOfTheSwitchesBetweenPortsOfOneHostToo) {
  const MappingProblem problem = ProblemOnHostsOfTwoLeaves(3, 1, RingPattern(6, 1));
  const Fabric& fabric = *problem.snapshot->fabric;
  const auto hops =
      PlaceDistances::Hops(*problem.places, problem.snapshot->routes->distances()).value();
  for (uint32_t a = 0; a < 6; ++a) {
    for (uint32_t b = 0; b < 6; ++b) {
      const EndpointIndex from = problem.places->endpoint(P(a)),
                          to = problem.places->endpoint(P(b));
      const bool is_near = fabric.attached_switch(from) == fabric.attached_switch(to);
      EXPECT_EQ((*hops)(P(a), P(b)), a == b ? 0 : is_near ? 2 : 4) << a << " " << b;
      EXPECT_EQ((*problem.distances)(P(a), P(b)), (*hops)(P(a), P(b))) << a << " " << b;
    }
  }
}

TEST(RouteLengths, AskTheLastSwitchToo) {
  const MappingProblem problem = ProblemOnOneWayRing(4, RingPattern(8, 1));
  const Fabric& fabric = *problem.snapshot->fabric;
  const EndpointIndex lost = problem.places->endpoint(P(5));
  const SwitchIndex last = *fabric.attached_switch(lost);
  auto tables = std::make_shared<ForwardingTables>(*problem.snapshot->routes->tables());
  std::vector<uint8_t> row(tables->row(last).begin(), tables->row(last).end());
  row[fabric.lid(fabric.Vertex(lost)).value()] = ForwardingTables::kNoRoute;
  tables->SetRow(last, std::move(row));
  const auto snapshot = MakeSnapshot(problem.snapshot->fabric, std::move(tables)).value();
  const absl::Status status =
      PlaceDistances::RouteLengths(*problem.places, *snapshot->routes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
}

TEST(MatrixDistances, SayWhatTheyAre) {
  const auto d = PlaceDistances::Matrix(2, {0, 3.7, 1, 0}).value();
  EXPECT_FALSE(d->symmetric());
  EXPECT_FALSE(d->whole());
  EXPECT_EQ((*d)(P(0), P(1)), 3.7);
  EXPECT_EQ((*d)(P(1), P(0)), 1);
}

TEST(MatrixDistances, RefuseByRowAndColumn) {
  EXPECT_THAT(std::string(PlaceDistances::Matrix(2, {0, 1, -1, 0}).status().message()),
              HasSubstr("row 2, column 1"));
  EXPECT_THAT(std::string(PlaceDistances::Matrix(2, {0, 1, 2}).status().message()),
              HasSubstr("3 values"));
}

}  // namespace
}  // namespace coppice::place_distances_test
