#include "proto/text/byte_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace coppice::byte_sizes_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;

TEST(ByteSizes, NumbersAndPowersOf1024) {
  EXPECT_THAT(ParseByteSizes("0"), Optional(ElementsAre(0u)));
  EXPECT_THAT(ParseByteSizes("8,4K,1m"), Optional(ElementsAre(8u, 4096u, 1048576u)));
  EXPECT_THAT(ParseByteSizes("2G,1T"), Optional(ElementsAre(2ull << 30, 1ull << 40)));
  EXPECT_THAT(ParseByteSizes("1024T"), Optional(ElementsAre(kMaxByteSize)));
  EXPECT_EQ(FaultOfByteSizes("8,4K"), "");
}

TEST(ByteSizes, WhatIsNoSize) {
  for (const char* text : {"", ",", "8,", "K", "-5", "+5", "8,x", "1KK", "1KB", "4 K", " 8", "8 ",
                           "8\n", "2.5K", "1025T", "1125899906842625", "99999999999999999999",
                           "18014398509481985K", "99999999999999999999T"}) {
    EXPECT_EQ(ParseByteSizes(text), std::nullopt) << text;
    EXPECT_THAT(FaultOfByteSizes(text), HasSubstr("such as 8,4K,1M")) << text;
  }
}

}  // namespace
}  // namespace coppice::byte_sizes_test
