// Weights of a placement's cost as they are typed.
#include <string>

#include "client/cli/words.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coppice::placement_options_test {
namespace {

using ::testing::HasSubstr;

TEST(ParseWeights, NamesTheTermsOfTheProto) {
  const auto weights = ParseWeights("leaf-switches=1,distance=2.5,shared_links=0,load=1e-3");
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->leaf_switches(), 1);
  EXPECT_EQ(weights->distance(), 2.5);
  EXPECT_EQ(weights->shared_links(), 0);
  EXPECT_EQ(weights->load(), 1e-3);
  EXPECT_EQ(weights->pods(), 0);
  for (const char* const name :
       {"pods", "shared-links", "entries", "fragmentation", "traffic", "load"}) {
    EXPECT_TRUE(ParseWeights(std::string(name) + "=3").ok()) << name;
  }
}

TEST(ParseWeights, SaysWhatIsWrong) {
  const auto refused = [](const std::string& text, const std::string& words) {
    const auto weights = ParseWeights(text);
    EXPECT_EQ(weights.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(weights.status().message()), HasSubstr("--weights " + text)) << text;
    EXPECT_THAT(std::string(weights.status().message()), HasSubstr(words)) << text;
  };
  refused("hops=1", "no term \"hops\"; there are leaf-switches, pods, distance, shared-links");
  refused("pods", "\"pods\" is no weight");
  refused("pods=1=2", "\"pods=1=2\" is no weight");
  refused("", "\"\" is no weight");
  refused("pods=1,", "\"\" is no weight");
  refused("=1", "no term \"\"");
  refused("pods=many", "the weight \"many\" of pods is not a number from 0 up");
  refused("pods=", "not a number");
  refused("pods=-1", "not a number from 0 up");
  refused("pods=nan", "not a number from 0 up");
  refused("pods=inf", "not a number from 0 up");
  refused("pods=1e999", "not a number from 0 up");
  refused("shared-links=1,shared_links=2", "named twice");
  refused("pods=0,load=0", "give one above 0");
}

}  // namespace
}  // namespace coppice::placement_options_test
