// Schedules of messages: cases summed by hand, the same as trees where both can say it, the
// schedules that forests are compared with, and what is refused.
#include "daemon/simulation/schedule.h"

#include <array>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/schedules.h"
#include "tests/unit/simulation/simulated_cases.h"

namespace coppice::schedule_test {
namespace {

using ::testing::HasSubstr;

constexpr double kExact = 1e-9;

ScheduledMessage Message(uint32_t from, uint32_t to, uint64_t bytes, bool reduced,
                         std::vector<uint32_t> after = {}) {
  ScheduledMessage message;
  message.from = from;
  message.to = to;
  message.bytes = bytes;
  message.reduced = reduced;
  message.after = std::move(after);
  return message;
}

absl::StatusOr<ScheduleResult> Play(const FabricPtr& fabric, const MessageSchedule& schedule,
                                    const SimulationOptions& options = {}) {
  return SimulateSchedule(SnapshotOf(fabric), RoundProfile(), schedule, options, 1);
}

double TotalUs(const FabricPtr& fabric, const MessageSchedule& schedule) {
  const auto result = Play(fabric, schedule);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->total_us : 0;
}

TEST(Schedule, OneMessage) {
  //     n0 --- S0 --- n1     1 + 2 * 0.2 + 0.04, and 0.1 + 1 to reduce it
  const FabricPtr fabric = Chain(1, 2);
  MessageSchedule schedule = {.places = AllEndpoints(*fabric),
                              .messages = {Message(0, 1, 1000, false)}};
  EXPECT_NEAR(TotalUs(fabric, schedule), 1.44, kExact);
  schedule.messages[0].reduced = true;
  EXPECT_NEAR(TotalUs(fabric, schedule), 2.54, kExact);
  schedule.messages.push_back(Message(1, 0, 1000, false, {0}));
  EXPECT_NEAR(TotalUs(fabric, schedule), 2.54 + 1.44, kExact);
}

TEST(Schedule, LongMessagesGoOnWhenTheyAreWholeAndReduced) {
  //     three packets, 0.04 apart on the wire, 1.1 each to reduce
  const FabricPtr fabric = Chain(1, 3);
  MessageSchedule schedule = {
      .places = AllEndpoints(*fabric),
      .messages = {Message(0, 1, 3000, false), Message(1, 2, 3000, false, {0})}};
  EXPECT_NEAR(TotalUs(fabric, schedule), 2 * (1.44 + 2 * 0.04), kExact);
  schedule.messages[0].reduced = true;
  EXPECT_NEAR(TotalUs(fabric, schedule), 1.44 + 3 * 1.1 + 1.44 + 2 * 0.04, kExact);
}

TEST(Schedule, ARankReducesItsMessagesInTurn) {
  const FabricPtr fabric = Chain(1, 3);
  EXPECT_NEAR(TotalUs(fabric, {.places = AllEndpoints(*fabric),
                               .messages = {Message(0, 2, 1000, true), Message(1, 2, 1000, true)}}),
              1.44 + 2 * 1.1, kExact);
}

TEST(Schedule, RanksOfOneHostCrossNoLink) {
  const FabricPtr host = TwoLevelFatTree(1, 0, 1, 2);
  const auto result =
      Play(host, {.places = AllEndpoints(*host), .messages = {Message(0, 1, 5000, true)}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(result->total_us, 0.3 + 5 * 1.1, kExact);
  EXPECT_TRUE(result->channels.empty());
}

// Between ranks of one host one packet waits, however long the message: n0's unit, busy with packet
// 1 of n1, takes packet 2 next, and then what has come from the other host at 1.44.
TEST(Schedule, ALongMessageWithinAHostDoesNotKeepOthersWaiting) {
  const FabricPtr fabric = TwoLevelFatTree(1, 0, 2, 2);
  const double reduced_us = 0.3 + 3 * 1.1 + 1.1;
  const auto result =
      Play(fabric, {.places = AllEndpoints(*fabric),
                    .messages = {Message(1, 0, 10000, true), Message(2, 0, 1000, true),
                                 Message(0, 3, 1000, false, {1})}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(result->finish_us[3], reduced_us + 1.44, kExact);
  EXPECT_NEAR(result->finish_us[0], 0.3 + 11 * 1.1, kExact);
  std::vector<SimulatedCollective> trees(
      2, {.tree = {}, .payload = PayloadOf(Operation::kReduce, 10000), .skew_us = {}, .forest = 0});
  trees[0].tree = TreeOf(*fabric, {0, 1}, {-1, 0});
  trees[1].tree = TreeOf(*fabric, {0, 2}, {-1, 0});
  trees[1].payload = PayloadOf(Operation::kReduce, 1000);
  const SimulationResult both = Simulated(SnapshotOf(fabric), RoundProfile(), trees);
  EXPECT_NEAR(both.collectives[1].aggregate_us, reduced_us, kExact);
  EXPECT_NEAR(both.collectives[0].aggregate_us, 0.3 + 11 * 1.1, kExact);
}

// A tree whose inner nodes have one child, upwards, is a chain of messages of one packet each.
TEST(Schedule, AChainOfMessagesIsAChainOfTreeEdges) {
  const FabricPtr fabric = Chain(3, 1);
  const double up = Simulated(SnapshotOf(fabric), RoundProfile(),
                              {{.tree = TreeOf(*fabric, {0, 1, 2}, {-1, 0, 1}),
                                .payload = PayloadOf(Operation::kReduce, 1000),
                                .skew_us = {}}})
                        .collectives[0]
                        .aggregate_us;
  EXPECT_NEAR(
      up,
      TotalUs(fabric, {.places = AllEndpoints(*fabric),
                       .messages = {Message(2, 1, 1000, true), Message(1, 0, 1000, true, {0})}}),
      kExact);
}

// Trees of one forest share their ranks' units; others meet on channels alone.
TEST(Schedule, TreesOfAForestReduceInTurn) {
  const FabricPtr fabric = Chain(1, 3);
  std::vector<SimulatedCollective> trees(
      2, {.tree = {}, .payload = PayloadOf(Operation::kReduce, 1000), .skew_us = {}});
  trees[0].tree = TreeOf(*fabric, {0, 1, 2}, {-1, 0, 1});
  trees[1].tree = TreeOf(*fabric, {0, 1, 2}, {1, -1, 0});
  const auto last = [&] {
    const SimulationResult result = Simulated(SnapshotOf(fabric), RoundProfile(), trees);
    return std::max(result.collectives[0].aggregate_us, result.collectives[1].aggregate_us);
  };
  // n2 -> n1 -> n0 and n2 -> n0 -> n1: both first packets leave n2, the second 0.04 later.
  EXPECT_NEAR(last(), 2 * 2.54 + 0.04, kExact);
  trees[0].forest = trees[1].forest = 0;
  EXPECT_NEAR(last(), 2 * 2.54 + 0.04, kExact);  // no rank has two to reduce at once
  trees[1].tree = TreeOf(*fabric, {0, 1, 2}, {-1, 2, 0});
  // n0 gets n1's packet over n2, and n2's over n1, both at 2.54 + 1.44: one waits for the other.
  EXPECT_NEAR(last(), 2 * 2.54 + 1.1, kExact);
  trees[1].forest = std::nullopt;
  EXPECT_NEAR(last(), 2 * 2.54 + 0.04, kExact);
}

TEST(Schedule, AllThatForestsAreComparedWithAreAllreduces) {
  for (uint32_t ranks = 1; ranks <= 21; ++ranks) {
    EXPECT_TRUE(CheckAllreduce(RingAllreduce(ranks)).ok()) << ranks;
    for (const bool far_first : {false, true}) {
      EXPECT_TRUE(CheckAllreduce(HalvingDoubling(ranks, far_first)).ok()) << ranks;
      EXPECT_TRUE(CheckAllreduce(BineAllreduce(ranks, far_first)).ok()) << ranks;
    }
  }
  EXPECT_TRUE(CheckAllreduce(HalvingDoubling(32, true)).ok());
  EXPECT_TRUE(CheckAllreduce(BineAllreduce(64, false)).ok());
}

TEST(Schedule, TheVerifierSeesWhatIsWrong) {
  BlockSchedule schedule = RingAllreduce(4);
  schedule.messages[5].after.clear();
  EXPECT_THAT(std::string(CheckAllreduce(schedule).message()), HasSubstr("more may still arrive"));
  schedule = RingAllreduce(4);
  schedule.messages.pop_back();
  schedule.held.pop_back();
  EXPECT_THAT(std::string(CheckAllreduce(schedule).message()), HasSubstr("0 times"));
  schedule = HalvingDoubling(4, true);
  for (ScheduledMessage& message : schedule.messages) message.reduced = true;
  EXPECT_THAT(std::string(CheckAllreduce(schedule).message()), HasSubstr("times"));
}

// Each rank sends and receives 2 (N - 1) / N of the vector: no fewer bytes make an Allreduce.
TEST(Schedule, BytesOfAPort) {
  const FabricPtr fabric = Chain(1, 8);
  SimulationOptions options;
  options.header_bytes = 0;
  for (const BlockSchedule& schedule :
       {RingAllreduce(8), HalvingDoubling(8, true), BineAllreduce(8, false)}) {
    const auto result = Play(fabric, ForBytes(schedule, AllEndpoints(*fabric), 80000), options);
    ASSERT_TRUE(result.ok()) << result.status();
    for (const ChannelTraffic& channel : result->channels) EXPECT_EQ(channel.bytes, 140000U);
  }
}

TEST(Schedule, ADoubleBinaryTreeHasEveryRankInsideOnceAtMost) {
  for (uint32_t ranks = 2; ranks <= 70; ++ranks) {
    const std::array<std::vector<int32_t>, 2> trees = DoubleBinaryTree(ranks);
    std::vector<int> inside(ranks, 0);
    for (const std::vector<int32_t>& parents : trees) {
      const std::vector<uint32_t> children = ChildCounts(parents);
      int roots = 0;
      for (uint32_t r = 0; r < ranks; ++r) {
        roots += parents[r] == -1 ? 1 : 0;
        if (children[r] > 0 && parents[r] != -1) ++inside[r];
        EXPECT_LE(children[r], 2U);
      }
      EXPECT_EQ(roots, 1);
    }
    for (uint32_t r = 0; r < ranks; ++r) EXPECT_LE(inside[r], 1) << ranks << " " << r;
  }
}

TEST(Schedule, SaysWhatIsWrong) {
  const FabricPtr fabric = Chain(1, 3);
  MessageSchedule schedule = {.places = AllEndpoints(*fabric), .messages = {}};
  const auto expect_error = [&](std::vector<ScheduledMessage> messages, const std::string& words) {
    schedule.messages = std::move(messages);
    const auto result = Play(fabric, schedule);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(words));
  };
  expect_error({Message(0, 3, 8, false)}, "message 0 goes from rank 0 to 3; the schedule has 3");
  expect_error({Message(1, 1, 8, false)}, "message 0 goes from rank 1 to itself");
  expect_error({Message(0, 1, 8, false, {0})}, "message 0 waits for message 0, a later one");
  expect_error({Message(0, 1, 8, false), Message(2, 1, 8, false, {0})},
               "message 1 leaves rank 2 after message 0, which ends at rank 1");
  schedule.places[2] = EndpointIndex(3);
  expect_error({Message(0, 1, 8, false)}, "rank 2 is at endpoint 3; the fabric has 3");
  schedule.places[2] = EndpointIndex(2);
  schedule.messages = {Message(0, 1, 1'000'000, false)};
  SimulationOptions options;
  options.max_events = 500;
  EXPECT_EQ(Play(fabric, schedule, options).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace coppice::schedule_test
