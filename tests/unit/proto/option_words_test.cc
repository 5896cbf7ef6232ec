#include "proto/text/option_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "proto/text/byte_size.h"
#include "proto/text/names.h"
#include "proto/text/partition_number.h"

namespace coppice::option_words_test {
namespace {

using testing::ElementsAre;
using testing::Optional;

TEST(ByteSizes, NumbersAndPowersOf1024) {
  EXPECT_THAT(ParseByteSizes("0"), Optional(ElementsAre(0u)));
  EXPECT_THAT(ParseByteSizes("8,4K,1m"), Optional(ElementsAre(8u, 4096u, 1048576u)));
  EXPECT_THAT(ParseByteSizes("2G,1T"), Optional(ElementsAre(2ull << 30, 1ull << 40)));
  EXPECT_THAT(ParseByteSizes("64KiB,1miB"), Optional(ElementsAre(65536u, 1048576u)));
  EXPECT_THAT(ParseByteSizes("1024T"), Optional(ElementsAre(kMaxByteSize)));
}

TEST(ByteSizes, WhatIsNoSize) {
  for (const char* text : {"",
                           ",",
                           "8,",
                           "K",
                           "-5",
                           "+5",
                           "8,x",
                           "1KK",
                           "1KB",
                           "8iB",
                           "1KiBB",
                           "4 K",
                           " 8",
                           "8 ",
                           "8\n",
                           "2.5K",
                           "1025T",
                           "1125899906842625",
                           "99999999999999999999",
                           "18014398509481985K",
                           "99999999999999999999T"}) {
    EXPECT_EQ(ParseByteSizes(text), std::nullopt) << text;
  }
}

TEST(ByteSizes, ArePlainNumbersAfterwards) {
  EXPECT_EQ(PlainBytes("8K"), "8192");
  EXPECT_EQ(PlainBytes("64KiB"), "65536");
  for (const char* text : {"", "2.5", "1e100", "-1", "8KK", "8,4K"}) {
    EXPECT_EQ(PlainBytes(text), text);
  }
}

TEST(Budgets, AreAboveZeroAndAtMostAYear) {
  EXPECT_EQ(ParseBudget("500ms"), absl::Milliseconds(500));
  EXPECT_EQ(ParseBudget("1h30m"), absl::Minutes(90));
  EXPECT_EQ(ParseBudget("8760h"), kMaxPeriod);
  for (const char* text : {"", "0", "0s", "-1s", "1", "inf", "-inf", "9000h", "s"}) {
    EXPECT_EQ(ParseBudget(text), std::nullopt) << text;
  }
}

TEST(Parameters, AreANameAndANumber) {
  EXPECT_THAT(ParseParameter("rounds=50"), Optional(std::pair<std::string, double>("rounds", 50)));
  for (const char* text : {"", "rounds", "rounds=", "=5", "rounds=x", "a=1=2"}) {
    EXPECT_EQ(ParseParameter(text), std::nullopt) << text;
  }
}

TEST(Objectives, AreNamesAndWeights) {
  struct Words {
    const char* text;
    double congestion, dilation, qap;
  };
  for (const Words& words : {
           Words{"congestion", 1, 0, 0}, Words{"dilation", 0, 1, 0}, Words{"qap", 0, 0, 1},
           Words{"congestion,dilation", 1, 1, 0}, Words{"congestion=2,qap", 2, 0, 1},
           Words{"congestion=1,dilation=0.5", 1, 0.5, 0}, Words{"qap=2e1", 0, 0, 20},
           Words{"congestion=0", 0, 0, 0},
           Words{"qap=-1", 0, 0, -1},  // refused by who knows what weights mean
       }) {
    const std::optional<MappingWeights> weights = ParseObjective(words.text);
    ASSERT_TRUE(weights.has_value()) << words.text;
    EXPECT_EQ(weights->congestion, words.congestion) << words.text;
    EXPECT_EQ(weights->dilation, words.dilation) << words.text;
    EXPECT_EQ(weights->qap, words.qap) << words.text;
  }
  for (const char* text : {"", "speed", "qap,", "congestion=", "=1", "qap=1=2", "Qap", "qap=x"}) {
    EXPECT_FALSE(ParseObjective(text).has_value()) << text;
  }
}

TEST(Names, AreThoseOfTheEnumerators) {
  enum class Operation { kBarrier, kBcast, kReduce, kAllreduce };
  EXPECT_EQ(EnumNamed<Operation>(kOperationNames, "reduce"), Operation::kReduce);
  EXPECT_EQ(EnumNamed<Operation>(kOperationNames, "kary"), std::nullopt);
  EXPECT_EQ(EnumNamed<Operation>(kOperationNames, ""), std::nullopt);
  EXPECT_THAT(ListOf(kTrafficNames), ElementsAre("routes", "even", "approximate"));
  EXPECT_THAT(BuildersToAskFor(), ElementsAre("auto", "kary", "knomial", "hierarchical", "postal"));
}

TEST(Understood, SaysWhatWasMeant) {
  const auto check = Understood(ParseByteSizes, kByteSizesMeant);
  EXPECT_EQ(check("8,4K"), "");
  EXPECT_EQ(check("8x"),
            "\"8x\" is not a list of sizes in bytes, such as 8,4K,1M; the most is 1024T");
}

TEST(OptionWords, PartitionsAsTextAndBack) {
  EXPECT_EQ(PartitionText(1), "0x0001");
  EXPECT_EQ(PartitionText(0x7fff), "0x7fff");
  for (const char* text : {"0x0001", "0x8001", "1", "32769", "0X1"}) {
    EXPECT_EQ(ParsePartition(text), 1U) << text;
  }
  EXPECT_EQ(ParsePartition("0xffff"), 0x7fffU);
  for (const char* text : {"", "0", "0x8000", "0x10001", "65536", "-1", "+1", "0x", "p1", "1 "}) {
    EXPECT_EQ(ParsePartition(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace coppice::option_words_test
