// What the simulator refuses, and whether it says what and where.
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "daemon/simulation/simulator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/simulation/simulated_cases.h"

namespace coppice::simulator_errors_test {
namespace {

using ::testing::HasSubstr;

class SimulatorErrors : public ::testing::Test {
 protected:
  void ExpectError(absl::StatusCode code, const std::string& words) {
    const auto simulator = Simulator::Prepare(snapshot_, profile_, {good_, collective_}, options_);
    EXPECT_EQ(simulator.status().code(), code) << simulator.status();
    EXPECT_THAT(std::string(simulator.status().message()), HasSubstr(words));
  }
  void ExpectInvalid(const std::string& words) {
    ExpectError(absl::StatusCode::kInvalidArgument, words);
  }

  FabricPtr fabric_ = Chain(2, 2);
  Snapshot snapshot_ = SnapshotOf(fabric_);
  CostProfile profile_ = RoundProfile();
  SimulationOptions options_;
  SimulatedCollective good_ = {.tree = TreeOf(*fabric_, {0, 1, 2, 3}, {-1, 0, 0, 1}),
                               .payload = PayloadOf(Operation::kAllreduce, 8),
                               .skew_us = {}};
  SimulatedCollective collective_ = good_;
};

TEST_F(SimulatorErrors, Trees) {
  collective_.tree.parents = {-1, 2, 3, 1};
  ExpectInvalid("collective 1: node 1 is its own ancestor");
  collective_.tree.parents = {-1, 0, -1, 0};
  ExpectInvalid("collective 1: the tree has 2 roots");
  collective_.tree.parents = {1, 2, 3, 0};
  ExpectInvalid("0 roots");
  collective_.tree.parents = {-1, 0, 4, 0};
  ExpectInvalid("node 2 has parent 4; the tree has nodes 0 to 3");
  collective_.tree.parents = {-1, 0, -2, 0};
  ExpectInvalid("node 2 has parent -2");
  collective_.tree.parents = {-1, 0, 0};
  ExpectInvalid("3 parents, 4 vertices");
  collective_.tree = good_.tree;
  collective_.tree.vertices[3] = VertexIndex(6);
  ExpectInvalid("node 3 is at vertex 6; the fabric has 6");
  collective_.tree = {};
  ExpectInvalid("no nodes");
}

TEST_F(SimulatorErrors, PayloadsAndTimes) {
  collective_.payload = {.up_bytes = 4, .down_bytes = 0, .reduced_bytes = 5};
  ExpectInvalid("collective 1: the payload reduces 5 bytes, but moves only 4 up");
  collective_ = good_;
  collective_.start_us = -1;
  ExpectInvalid("starts at -1 us");
  collective_.start_us = std::numeric_limits<double>::quiet_NaN();
  ExpectInvalid("finite");
  collective_ = good_;
  collective_.skew_us = {0, 0, 0};
  ExpectInvalid("3 skews for 4 ranks");
  collective_.skew_us = {0, 0, -0.5, 0};
  ExpectInvalid("rank 2 is -0.5 us late");
}

TEST_F(SimulatorErrors, Profiles) {
  profile_.mtu_bytes = 0;
  ExpectInvalid("profile round: mtu_bytes is 0");
  profile_ = RoundProfile();
  profile_.switch_.match_us = -1;
  ExpectInvalid("profile round: a time is negative");
}

TEST_F(SimulatorErrors, Noise) {
  for (const double noise : {-0.1, 1.0, 7.0, std::numeric_limits<double>::quiet_NaN()}) {
    options_.noise = noise;
    ExpectInvalid("noise");
  }
  options_.noise = 0.5;
  std::vector<float> load(fabric_->channel_count(), 0.0F);
  load[fabric_->uplink(EndpointIndex(3)).value()] = 0.5F;
  snapshot_.load = std::make_shared<const LinkLoad>(load);
  ExpectInvalid("link from endpoint n3/1 to switch 0000000000001001 \"S1\"");
}

TEST_F(SimulatorErrors, TooManyEvents) {
  options_.max_events = 1000;
  collective_.payload = PayloadOf(Operation::kBcast, 1'000'000);
  ExpectError(absl::StatusCode::kResourceExhausted, "collective 1: more than 1000 events");
  collective_.payload = PayloadOf(Operation::kBcast, std::numeric_limits<uint64_t>::max());
  ExpectError(absl::StatusCode::kResourceExhausted, "more than 1000 events");
}

TEST_F(SimulatorErrors, NoRoute) {
  fabric_ =
      MakeFabric({.switches = 2, .cables = {}, .hosts = {{0}, {0}, {0}, {1}}, .descriptions = {}});
  snapshot_ = SnapshotOf(fabric_);
  good_.tree = TreeOf(*fabric_, {0, 1}, {-1, 0});
  collective_.tree = TreeOf(*fabric_, {0, 1, 2, 3}, {-1, 0, 0, 1});
  ExpectError(absl::StatusCode::kNotFound, "collective 1: ");
  ExpectError(absl::StatusCode::kNotFound, "n3/1");
}

}  // namespace
}  // namespace coppice::simulator_errors_test
