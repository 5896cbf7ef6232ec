// The text behind coppice-plan --held: who holds which nodes, and that no text at all does worse
// than an error that names file and line.
#include "daemon/tools/held_nodes.h"

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"

namespace coppice::held_nodes_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

//     S2           S0 and S1 have hosts n0, n1 and n2, n3
//    /  \.
//  S0    S1
FabricPtr Net() { return TwoLevelFatTree(2, 1, 2); }

std::string Refusal(const absl::Status& status) { return std::string(status.message()); }

TEST(HeldNodes, HostsAreThoseOfAList) {
  EXPECT_THAT(*ResolveHosts(*Net(), "n[2-3],n0"),
              ElementsAre(HostIndex(2), HostIndex(3), HostIndex(0)));
  EXPECT_EQ(Refusal(ResolveHosts(*Net(), "n[1,5-9]").status()),
            "the fabric has no host n5, n6, n7, ...");
  EXPECT_THAT(Refusal(ResolveHosts(*Net(), "n[0").status()), HasSubstr("a bracket is not closed"));
}

TEST(HeldNodes, HoldersAreInTheOrderInWhichTheyAreNamed) {
  const auto held = ReadHeldNodes(*Net(), "n3 zoe\n# idle\n\nn0\tadam\r\n n[1] zoe\n", "h");
  ASSERT_TRUE(held.ok()) << held.status();
  ASSERT_EQ(held->size(), 2);
  EXPECT_EQ((*held)[0].holder, "zoe");
  EXPECT_THAT((*held)[0].hosts, ElementsAre(HostIndex(3), HostIndex(1)));
  EXPECT_EQ((*held)[1].holder, "adam");
  EXPECT_THAT((*held)[1].hosts, ElementsAre(HostIndex(0)));
  EXPECT_TRUE(ReadHeldNodes(*Net(), "", "h")->empty());
}

TEST(HeldNodes, RefusalsNameFileAndLine) {
  EXPECT_THAT(Refusal(ReadHeldNodes(*Net(), "n0\n", "h").status()),
              HasSubstr("h, line 1: not NODES HOLDER"));
  EXPECT_THAT(Refusal(ReadHeldNodes(*Net(), "n0 a\nn[0-1] b\n", "h").status()),
              HasSubstr("h, line 2: host n0 is held twice"));
  EXPECT_THAT(Refusal(ReadHeldNodes(*Net(), "n0 a\nn7 b\n", "h").status()),
              HasSubstr("h, line 2: the fabric has no host n7"));
}

TEST(HeldNodes, AnyTextIsReadOrRefusedWithItsLine) {
  std::mt19937_64 rng(TestSeed());
  const FabricPtr net = Net();
  const uint32_t rounds = FullTier() ? 200'000 : 5'000;
  const std::string seed = "n[0-1,3] job1\nn2 b # c\n# x\n";
  uint32_t read = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    std::string text = seed;
    for (uint64_t edits = 1 + rng() % 6; edits > 0; --edits) {
      constexpr char kLetters[] = "n[]0123-, \n\t#jb\xff";
      text[rng() % text.size()] = kLetters[rng() % (sizeof kLetters - 1)];
    }
    const auto held = ReadHeldNodes(*net, text, "h");
    if (!held.ok()) {
      EXPECT_THAT(Refusal(held.status()), HasSubstr("h, line ")) << text;
      continue;
    }
    ++read;
    std::vector<bool> is_held(net->host_count());
    for (const HeldNodes& one : *held) {
      EXPECT_FALSE(one.holder.empty()) << text;
      for (const HostIndex host : one.hosts) {
        EXPECT_FALSE(is_held[host.value()]) << text;
        is_held[host.value()] = true;
      }
    }
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace coppice::held_nodes_test
