// Contradictions by name, what each constraint leaves, and hosts that cannot be included.
#include "daemon/placement/placement_constraints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "daemon/placement/placer.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"
#include "tests/unit/placement/placement_oracle.h"

namespace coppice::placement_constraints_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Three pods of two leaf switches with three hosts each: n0 n1 n2 | n3 n4 n5 || n6 ...
PlacementScene ThreePods() {
  return MakeScene("model:fat-tree(supernodes=3,leaves=2,spines=2,hosts-per-leaf=3,tops=2)");
}

std::vector<HostIndex> Hosts(std::initializer_list<uint32_t> numbers) {
  std::vector<HostIndex> hosts;
  for (const uint32_t n : numbers) hosts.push_back(HostIndex(n));
  return hosts;
}

absl::Status StatusOf(const PlacementScene& scene, const PlacementConstraints& c) {
  PlacementRequest request;
  request.constraints = c;
  return Place(*scene.snapshot, *scene.index, scene.occupancy, request, {}).status();
}

TEST(PlacementConstraints, NamesBothThatContradictEachOther) {
  using Change = std::function<void(PlacementConstraints&)>;
  struct Case {
    Change change;
    const char *a, *b;
  };
  const Case cases[] = {
      {[](auto& c) { c.max_leaf_switches = 1, c.min_leaf_switches = 2; }, "max leaf switches",
       "min leaf switches"},
      {[](auto& c) { c.same_pod = true, c.min_pods = 2; }, "same pod", "min pods"},
      {[](auto& c) { c.hosts_per_leaf = 3, c.max_hosts_per_leaf = 2; }, "hosts per leaf",
       "max hosts per leaf"},
      {[](auto& c) { c.max_hosts_per_leaf = 1, c.max_leaf_switches = 3; }, "max hosts per leaf",
       "max leaf switches"},
      {[](auto& c) { c.hosts_per_leaf = 1, c.max_leaf_switches = 3; }, "hosts per leaf",
       "max leaf switches"},
      {[](auto& c) { c.hosts_per_leaf = 2, c.min_leaf_switches = 3; }, "hosts per leaf",
       "min leaf switches"},
      {[](auto& c) { c.min_leaf_switches = 5; }, "host count", "min leaf switches"},
      {[](auto& c) { c.min_pods = 3, c.max_leaf_switches = 2; }, "max leaf switches", "min pods"},
      {[](auto& c) {
         c.include = Hosts({0, 1, 2, 3, 4});
       },
       "host count", "include"},
      {[](auto& c) {
         c.candidates = Hosts({0, 1, 2});
       },
       "host count", "candidates"},
      {[](auto& c) { c.include = c.avoid = Hosts({4}); }, "include", "avoid"},
      {[](auto& c) {
         c.include = Hosts({0, 7}), c.same_pod = true;
       },
       "include", "same pod"},
      {[](auto& c) {
         c.include = Hosts({0, 1}), c.max_hosts_per_leaf = 1;
       },
       "include", "max hosts per leaf"},
      {[](auto& c) {
         c.include = Hosts({0, 4, 7}), c.max_leaf_switches = 2;
       },
       "include", "max leaf switches"},
  };
  const PlacementScene scene = ThreePods();
  for (const Case& one : cases) {
    PlacementConstraints c;
    c.host_count = 4;
    one.change(c);
    const absl::Status status = StatusOf(scene, c);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << one.a << ", " << one.b;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(one.a), HasSubstr(one.b), HasSubstr("contradict each other")));
  }
}

TEST(PlacementConstraints, RefusesWhatIsNoRequest) {
  const PlacementScene scene = ThreePods();
  PlacementConstraints c;
  EXPECT_THAT(std::string(StatusOf(scene, c).message()), HasSubstr("no hosts"));
  c.host_count = 19;
  EXPECT_EQ(StatusOf(scene, c).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(StatusOf(scene, c).message()),
              HasSubstr("19 hosts wanted of a fabric with 18"));
  c.host_count = 2;
  c.avoid = Hosts({3, 3});
  EXPECT_THAT(std::string(StatusOf(scene, c).message()), HasSubstr("avoid names host n0003 twice"));
  c.avoid = Hosts({99});
  EXPECT_EQ(StatusOf(scene, c).code(), absl::StatusCode::kInvalidArgument);
}

TEST(PlacementConstraints, WhatTheFabricCannotDoIsInvalidAndWhatIsHeldIsExhausted) {
  PlacementScene scene = ThreePods();
  PlacementConstraints c;
  c.host_count = 7;
  c.same_pod = true;
  EXPECT_EQ(StatusOf(scene, c).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(StatusOf(scene, c).message()),
              AllOf(HasSubstr("same pod"), HasSubstr("at most 6")));
  c.host_count = 6;
  EXPECT_TRUE(StatusOf(scene, c).ok());
  for (const uint32_t h : {0U, 7U, 13U}) scene.occupancy.holder[h] = 1;
  EXPECT_EQ(StatusOf(scene, c).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(StatusOf(scene, c).message()),
              AllOf(HasSubstr("same pod leaves at most 5 of 15"), HasSubstr("6 are wanted")));
}

TEST(PlacementConstraints, SaysWhatEachConstraintLeaves) {
  PlacementScene scene = ThreePods();
  for (uint32_t h = 0; h < 18; h += 3) scene.occupancy.holder[h] = 1;  // one on each leaf switch
  scene.occupancy.is_out[17] = true;
  struct Case {
    std::function<void(PlacementConstraints&)> change;
    const char* message;
  };
  const Case cases[] = {
      {[](auto& c) { c.host_count = 13; }, "only 11 of 18 hosts are free, but 13 are wanted"},
      {[](auto& c) { c.max_leaf_switches = 2; }, "max leaf switches leave at most 4 of 11"},
      {[](auto& c) { c.exclusive_switches = true; }, "exclusive switches leave 0 hosts"},
      {[](auto& c) {
         c.candidates = Hosts({1, 2, 4, 5, 7, 17}), c.avoid = Hosts({1});
       },
       "candidates and hosts to avoid leave 4 hosts"},
      {[](auto& c) { c.hosts_per_leaf = 3; }, "hosts per leaf"},
  };
  for (const Case& one : cases) {
    PlacementConstraints c;
    c.host_count = 5;
    one.change(c);
    const absl::Status status = StatusOf(scene, c);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(one.message));
  }
}

TEST(PlacementConstraints, HostsToIncludeThatCannotBe) {
  PlacementScene scene = ThreePods();
  scene.occupancy.holder[3] = 1;
  scene.occupancy.is_placed[4] = true;
  scene.occupancy.is_out[5] = true;
  const auto message = [&](uint32_t host, bool name_others) {
    PlacementConstraints c;
    c.host_count = 2;
    c.include = Hosts({host});
    if (name_others) c.candidates = Hosts({0, 1, 2});
    const absl::Status status = StatusOf(scene, c);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(message(3, false), HasSubstr("host n0003 to include is held"));
  EXPECT_THAT(message(4, false), HasSubstr("host n0004 to include is held"));
  EXPECT_THAT(message(5, false), HasSubstr("host n0005 to include is out"));
  EXPECT_THAT(message(8, true), HasSubstr("host n0008 to include is not among the candidates"));
}

TEST(PlacementConstraints, ANamedCandidateOfAJobIsGivenOneOfAPlacementIsNot) {
  PlacementScene scene = ThreePods();
  scene.occupancy.holder[3] = 1;
  scene.occupancy.holder[4] = 2;
  scene.occupancy.is_placed[4] = true;
  PlacementRequest request;
  request.constraints.host_count = 1;
  request.constraints.candidates = Hosts({3, 4});
  const auto plan = Place(*scene.snapshot, *scene.index, scene.occupancy, request, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->hosts, Hosts({3}));
  request.constraints.host_count = 2;
  EXPECT_EQ(Place(*scene.snapshot, *scene.index, scene.occupancy, request, {}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(PlacementConstraints, HostsOfTwoComponentsAreNeverGivenTogether) {
  // S0 and S1 are not joined.
  const PlacementScene scene = MakeScene(MakeFabric(
      {.switches = 2, .cables = {}, .hosts = {{0}, {0}, {1}, {1}, {1}}, .descriptions = {}}));
  PlacementConstraints c;
  c.host_count = 3;
  EXPECT_TRUE(StatusOf(scene, c).ok());
  c.host_count = 4;
  EXPECT_EQ(StatusOf(scene, c).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(StatusOf(scene, c).message()),
              HasSubstr("connected hosts leave at most 3 of 5"));
  c.host_count = 2;
  c.include = Hosts({0, 4});
  EXPECT_THAT(std::string(StatusOf(scene, c).message()), HasSubstr("are not connected"));
}

// Anything at all: an answer is right (Place verifies it) or the refusal says why; nothing crashes.
TEST(PlacementConstraints, SurvivesAnything) {
  std::mt19937_64 rng(TestSeed() + 7);
  const uint32_t rounds = FullTier() ? 20000 : 1500;
  for (uint32_t round = 0; round < rounds; ++round) {
    PlacementScene scene = round % 3 == 0 ? MakeScene(RandomFabric(rng, 5, 6, 9)) : ThreePods();
    if (round % 2 == 0) OccupyAtRandom(scene, 0.3, rng);
    const auto number = [&]() -> uint32_t {
      const uint32_t kinds[] = {0, 0, 0, 1, 2, 3, 7, 18, 0xffffffff};
      return kinds[rng() % std::size(kinds)];
    };
    const auto list = [&] {
      std::vector<HostIndex> hosts;
      for (uint64_t i = rng() % 3 == 0 ? rng() % 12 : 0; i > 0; --i) {
        hosts.push_back(HostIndex(static_cast<uint32_t>(rng() % 19)));
      }
      return hosts;
    };
    PlacementConstraints c;
    c.host_count = 1 + static_cast<uint32_t>(rng() % (round % 5 == 0 ? 20 : 6));
    c.candidates = list(), c.include = list(), c.avoid = list();
    c.hosts_per_leaf = number(), c.max_hosts_per_leaf = number();
    c.max_leaf_switches = number(), c.min_leaf_switches = number(), c.min_pods = number();
    c.same_pod = rng() % 4 == 0, c.exclusive_switches = rng() % 4 == 0;
    const absl::Status status = StatusOf(scene, c);
    if (status.ok()) continue;
    EXPECT_NE(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::Not(IsEmpty()));
  }
}

}  // namespace
}  // namespace coppice::placement_constraints_test
