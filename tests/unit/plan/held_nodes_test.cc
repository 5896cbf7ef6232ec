// The texts behind coppice-plan place: lists of hosts and who holds them, and that no text at all
// does worse than an error that names file and line.
#include "daemon/tools/place_inputs.h"

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"

namespace coppice::place_inputs_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

//     S2           S0 and S1 have hosts n0, n1 and n2, n3
//    /  \.
//  S0    S1
FabricPtr Net() { return TwoLevelFatTree(2, 1, 2); }

std::string Refusal(const absl::Status& status) { return std::string(status.message()); }

TEST(PlaceInputs, HostListsAreLinesOfLists) {
  const auto hosts = ReadHostList(*Net(), "# mine\nn[2-3]\r\n\n n0 \n", "f");
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_THAT(*hosts, ElementsAre(HostIndex(2), HostIndex(3), HostIndex(0)));
  EXPECT_TRUE(ReadHostList(*Net(), "", "f")->empty());
  EXPECT_THAT(Refusal(ReadHostList(*Net(), "n0\nn[5-9]\n", "f").status()),
              HasSubstr("f, line 2: the fabric has no host n5, n6, n7, ..."));
  EXPECT_THAT(Refusal(ReadHostList(*Net(), "n[0", "f").status()), HasSubstr("f, line 1: "));
}

TEST(PlaceInputs, HoldersAreNumberedInOrder) {
  const auto holders = ReadHolders(*Net(), "n3 zoe\n# idle\nn0\tadam\nn[1] zoe\n", "h");
  ASSERT_TRUE(holders.ok()) << holders.status();
  EXPECT_THAT(*holders, ElementsAre(2, 1, 0, 1));
  EXPECT_THAT(Refusal(ReadHolders(*Net(), "n0\n", "h").status()),
              HasSubstr("h, line 1: not NODES HOLDER"));
  EXPECT_THAT(Refusal(ReadHolders(*Net(), "n0 a\nn[0-1] b\n", "h").status()),
              HasSubstr("h, line 2: host n0 is held twice"));
}

TEST(PlaceInputs, WeightsAreTermsByName) {
  const auto weights = ParseWeights("pods=4,leaf_switches=0.5");
  ASSERT_TRUE(weights.has_value());
  EXPECT_EQ(weights->pods, 4);
  EXPECT_EQ(weights->leaf_switches, 0.5);
  EXPECT_EQ(weights->distance, 0);
  for (const char* const text : {"", "pods", "pods=-1", "pods=nan", "pods=inf", "cost=1",
                                 "pods=1,pods=2", "pods=0", "pods=1,"}) {
    EXPECT_FALSE(ParseWeights(text).has_value()) << text;
  }
}

TEST(PlaceInputs, AnyTextIsReadOrRefusedWithItsLine) {
  std::mt19937_64 rng(TestSeed());
  const FabricPtr net = Net();
  const uint32_t rounds = FullTier() ? 200'000 : 5'000;
  const std::string seed = "n[0-1,3] job1\nn2 b # c\n# x\n";
  for (uint32_t round = 0; round < rounds; ++round) {
    std::string text = seed;
    for (uint64_t edits = 1 + rng() % 6; edits > 0; --edits) {
      constexpr char kLetters[] = "n[]0123-, \n\t#jb\xff";
      text[rng() % text.size()] = kLetters[rng() % (sizeof kLetters - 1)];
    }
    const auto holders = ReadHolders(*net, text, "h");
    if (!holders.ok()) {
      EXPECT_THAT(Refusal(holders.status()), HasSubstr("h, line ")) << text;
    }
    const auto hosts = ReadHostList(*net, text, "f");
    if (!hosts.ok()) {
      EXPECT_THAT(Refusal(hosts.status()), HasSubstr("f, line ")) << text;
    }
  }
}

}  // namespace
}  // namespace coppice::place_inputs_test
