#include "daemon/mapping/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace coppice {
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

}  // namespace
}  // namespace coppice
