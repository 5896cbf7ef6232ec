#include "daemon/mapping/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace coppice::pattern_test {
namespace {

using ::testing::HasSubstr;

std::string Refusal(uint32_t ranks, std::vector<Pattern::Entry> entries) {
  const absl::Status status = Pattern::Make(ranks, std::move(entries)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(Pattern, AddsUpDuplicatesAndKeepsLoopsApart) {
  const auto pattern =
      Pattern::Make(3, {{0, 1, 5, 1}, {1, 0, 2, 1}, {0, 1, 3, 4}, {2, 2, 9, 1}, {1, 2, 0, 7}})
          .value();
  ASSERT_EQ(pattern->exchanges(0).size(), 1u);
  EXPECT_EQ(pattern->exchanges(0)[0].peer, 1u);
  EXPECT_EQ(pattern->exchanges(0)[0].out_bytes, 8);
  EXPECT_EQ(pattern->exchanges(0)[0].in_bytes, 2);
  EXPECT_EQ(pattern->out_messages(0)[0], 5);
  EXPECT_EQ(pattern->out_messages(1)[0], 1);
  EXPECT_TRUE(pattern->exchanges(2).empty());
  EXPECT_EQ(pattern->self_bytes(2), 9);
  EXPECT_EQ(pattern->self_bytes(0), 0);
  EXPECT_EQ(pattern->total_bytes(), 10);
  EXPECT_EQ(pattern->pair_count(), 1u);
  EXPECT_FALSE(pattern->symmetric());
  EXPECT_TRUE(pattern->whole());
}

TEST(Pattern, RefusesWhatIsNoWeight) {
  EXPECT_THAT(Refusal(2, {{0, 1, -1, 0}}), HasSubstr("0 -> 1 is -1"));
  EXPECT_THAT(Refusal(2, {{1, 0, std::nan(""), 0}}), HasSubstr("1 -> 0 is nan"));
  EXPECT_THAT(Refusal(2, {{1, 0, 1, std::numeric_limits<double>::infinity()}}), HasSubstr("inf"));
  EXPECT_THAT(Refusal(2, {{0, 2, 1, 0}}), HasSubstr("0 -> 2"));
  EXPECT_THAT(Refusal(0, {}), HasSubstr("1 to"));
  EXPECT_THAT(Refusal(2, {{0, 1, 1e308, 0}, {1, 0, 1e308, 0}}), HasSubstr("scale them down"));
  EXPECT_THAT(Refusal(2, {{1, 1, 1e308, 0}, {1, 1, 1e308, 0}}), HasSubstr("scale them down"));
  EXPECT_THAT(Refusal(2, {{1, 1, 1, 1e308}, {1, 1, 1, 1e308}}), HasSubstr("scale them down"));
}

TEST(Pattern, KeepsMessagesWithoutBytesApart) {
  const auto pattern =
      Pattern::Make(
          3, {{0, 1, 5, 2}, {1, 0, 0, 3}, {2, 2, 9, 4}, {1, 0, 0, 1}, {1, 1, 0, 7}, {2, 0, 0, 0}})
          .value();
  ASSERT_EQ(pattern->empty_messages().size(), 3u);
  const auto expect = [&](size_t i, uint32_t from, uint32_t to, double messages) {
    const Pattern::Entry& e = pattern->empty_messages()[i];
    EXPECT_EQ(e.from, from);
    EXPECT_EQ(e.to, to);
    EXPECT_EQ(e.bytes, 0);
    EXPECT_EQ(e.messages, messages);
  };
  expect(0, 1, 0, 4);
  expect(1, 1, 1, 7);
  expect(2, 2, 2, 4);
  EXPECT_EQ(pattern->total_messages(), 2 + 4);
  EXPECT_EQ(pattern->pair_count(), 1u);
  EXPECT_EQ(pattern->exchanges(0)[0].in_bytes, 0);
}

// A few bytes of a file must not take hundreds of megabytes.
TEST(Pattern, IsOfManyRanksOnlyIfTheyTalk) {
  EXPECT_THAT(Refusal(Pattern::kMaxRanks, {}), HasSubstr("16777216 ranks, but only 0 pairs"));
  EXPECT_THAT(Refusal(Pattern::kMaxIdleRanks + 16, {{0, 1, 1, 1}}), HasSubstr("only 1 pairs"));
  EXPECT_EQ(Pattern::Make(Pattern::kMaxIdleRanks, {}).value()->rank_count(),
            Pattern::kMaxIdleRanks);
  constexpr uint32_t kTwice = 2 * Pattern::kMaxIdleRanks;
  EXPECT_THAT(Refusal(kTwice, std::vector<Pattern::Entry>(kTwice / 16, {5, 6, 1, 1})),
              HasSubstr("only 1 pairs"));  // one pair, named again and again
  std::vector<Pattern::Entry> entries;
  for (uint32_t to = 0; to < kTwice / 16; ++to) entries.push_back({kTwice - 1, to, 0, 1});
  EXPECT_THAT(Refusal(kTwice, {entries.begin() + 1, entries.end()}),
              HasSubstr("only 131071 pairs"));
  const auto pattern = Pattern::Make(kTwice, std::move(entries)).value();
  EXPECT_EQ(pattern->rank_count(), kTwice);
  EXPECT_EQ(AsTimes(*pattern, 1, 1).value()->pair_count(), kTwice / 16);  // taken once, taken again
}

TEST(Pattern, KnowsWhetherSumsAreExact) {
  EXPECT_FALSE(Pattern::Make(2, {{0, 1, 0.5, 0}}).value()->whole());
  EXPECT_FALSE(Pattern::Make(2, {{0, 1, 0x1p53, 0}}).value()->whole());
}

TEST(AsTimes, AddsLatencyPerMessageAndBytesOverBandwidth) {
  const auto pattern = Pattern::Make(2, {{0, 1, 1000, 3}, {1, 0, 500, 0}}).value();
  const auto times = AsTimes(*pattern, 2.0, 100.0).value();
  EXPECT_EQ(times->exchanges(0)[0].out_bytes, 16);  // 2 * 3 + 1000 / 100
  EXPECT_EQ(times->exchanges(0)[0].in_bytes, 7);    // 2 * 1 + 500 / 100
  EXPECT_FALSE(AsTimes(*pattern, -1, 100).ok());
  EXPECT_FALSE(AsTimes(*pattern, 1, 0).ok());
}

// t = L N + D / S of every pair, whether it is of one rank or carries no byte.
TEST(AsTimes, CountsRanksThatTalkToThemselvesAndMessagesWithoutBytes) {
  const auto pattern = Pattern::Make(4, {{0, 0, 1000, 3},
                                         {1, 1, 500, 0},
                                         {2, 2, 0, 4},
                                         {0, 1, 0, 6},
                                         {1, 0, 100, 2},
                                         {3, 0, 0, 5}})
                           .value();
  const auto times = AsTimes(*pattern, 2.0, 100.0).value();
  EXPECT_EQ(times->self_bytes(0), 2 * 3 + 10);
  EXPECT_EQ(times->self_bytes(1), 2 * 1 + 5);
  EXPECT_EQ(times->self_bytes(2), 2 * 4);
  ASSERT_EQ(times->exchanges(0).size(), 2u);
  EXPECT_EQ(times->exchanges(0)[0].out_bytes, 2 * 6);
  EXPECT_EQ(times->exchanges(0)[0].in_bytes, 2 * 2 + 1);
  EXPECT_EQ(times->exchanges(0)[1].peer, 3u);
  EXPECT_EQ(times->exchanges(0)[1].in_bytes, 2 * 5);
  EXPECT_EQ(times->total_messages(), 6 + 2 + 5);
  // Without latency they weigh nothing again, and are still there.
  const auto transfers = AsTimes(*pattern, 0, 100.0).value();
  EXPECT_EQ(transfers->pair_count(), 1u);
  EXPECT_EQ(transfers->self_bytes(2), 0);
  EXPECT_EQ(transfers->total_messages(), 6 + 2 + 5);
}

TEST(AsTimes, RefusesTimesBeyondADouble) {
  const auto pattern = Pattern::Make(2, {{0, 1, 1e300, 1e10}, {1, 0, 0, 1e10}}).value();
  EXPECT_FALSE(AsTimes(*pattern, 0, 1e-300).ok());
  EXPECT_FALSE(AsTimes(*pattern, 1e300, 1).ok());
}

}  // namespace
}  // namespace coppice::pattern_test
