// The text files behind coppice-plan tree: what counts as a line, what a line may say, and that no
// text at all does worse than an error that names file and line.
#include "daemon/tools/tree_inputs.h"

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"

namespace coppice::tree_inputs_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

//     S2           S0 and S1 have hosts n0, n1 and n2, n3; n0's port has GUID 200001,
//    /  \          n1's 200101
//  S0    S1
FabricPtr Net() { return TwoLevelFatTree(2, 1, 2); }

std::vector<uint32_t> Members(absl::string_view text) {
  const auto members = ReadMembers(*Net(), text, "m");
  EXPECT_TRUE(members.ok()) << members.status();
  std::vector<uint32_t> numbers;
  if (!members.ok()) return numbers;
  for (const EndpointIndex e : *members) numbers.push_back(e.value());
  return numbers;
}

std::string MembersError(absl::string_view text) {
  return std::string(ReadMembers(*Net(), text, "m").status().message());
}

TEST(ReadMembers, TakesHostHostPortAndGuidInRankOrder) {
  EXPECT_THAT(Members("n3\nn1/1\n0000000000200001\n0x0000000000200101\n"), ElementsAre(3, 1, 0, 1));
}

TEST(ReadMembers, RepeatedLinesAreSeveralRanks) {
  EXPECT_THAT(Members("n2\nn2\nn0\nn2"), ElementsAre(2, 2, 0, 2));
}

TEST(ReadMembers, SkipsBlankLinesCommentsAndWindowsLineEnds) {
  EXPECT_THAT(Members("\xef\xbb\xbfn0\r\n\r\n  # all\r\n\t n1 \t# the second\r\n\n#\nn2 #\n"),
              ElementsAre(0, 1, 2));
}

TEST(ReadMembers, HashWithoutABlankIsPartOfAName) {
  EXPECT_THAT(MembersError("n0\nn1#x\n"), HasSubstr("m, line 2: no host is named \"n1#x\""));
}

TEST(ReadMembers, TakesListsOfNodes) {
  EXPECT_THAT(Members("n[0-2]/1 # three\nn3,n3\n"), ElementsAre(0, 1, 2, 3, 3));
  EXPECT_THAT(MembersError("n0\nn[0-\n"), HasSubstr("m, line 2: node list, letter 2"));
  EXPECT_THAT(*ReadHostNames("a[08-10],b # four\nc\n", "h"),
              ElementsAre("a08", "a09", "a10", "b", "c"));
}

TEST(ReadHostNames, TakesLinesAsTheyAre) {
  EXPECT_THAT(*ReadHostNames("a\r\n# none\n\n b.c # the second\na\n", "h"),
              ElementsAre("a", "b.c", "a"));
  const absl::Status none = ReadHostNames("# none\n", "h").status();
  EXPECT_EQ(none.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(none.message()), HasSubstr("h: no hosts"));
}

TEST(ReadNodesText, IsAFileOfThatNameOrTheListItself) {
  EXPECT_EQ(ReadNodesText("n[0000-0003],login1").value(), "n[0000-0003],login1");
  const std::string path = testing::TempDir() + "nodes";
  std::ofstream(path) << "n1\nn2\n";
  EXPECT_EQ(ReadNodesText(path).value(), "n1\nn2\n");
  EXPECT_EQ(ReadNodesText("n1/1").value(), "n1/1") << "an endpoint";
  EXPECT_EQ(ReadNodesText(path + ".absent").status().code(), absl::StatusCode::kNotFound);
}

TEST(ReadMembers, NamesTheLineOfAMemberThatIsNotThere) {
  EXPECT_THAT(MembersError("# two\n\nn0\nn9\n"), HasSubstr("m, line 4: no host is named \"n9\""));
  EXPECT_THAT(MembersError("n0/7"), HasSubstr("m, line 1: "));
  EXPECT_THAT(MembersError("00000000002000ff"), HasSubstr("00000000002000ff"));
}

TEST(ReadMembers, NoneIsAnError) {
  for (const char* text : {"", "\n\n", "# n0\n", "\r\n", "\xef\xbb\xbf"}) {
    const auto members = ReadMembers(*Net(), text, "m");
    EXPECT_EQ(members.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(members.status().message()), HasSubstr("m: no members"));
  }
}

TEST(ReadMembers, TakesFortyThousandRanks) {
  std::string text;
  for (int rank = 0; rank < 40960; ++rank) text += "n" + std::to_string(rank % 4) + "\n";
  const std::vector<uint32_t> members = Members(text);
  ASSERT_EQ(members.size(), 40960U);
  EXPECT_EQ(members[40959], 3U);
}

TEST(ReadSwitches, TakesGuidIdAndDescription) {
  FabricPlan plan = TwoLevelFatTreePlan(2, 1, 1);
  plan.descriptions = {"leaf", "Voltaire 4036 # 4036-8C9E", "spine"};
  const auto switches = ReadSwitches(*MakeFabric(plan),
                                     "spine\n0000000000001000\n0x1001\nswitch:0000000000001002\n"
                                     "Voltaire 4036 # 4036-8C9E\nleaf\n",
                                     "s");
  ASSERT_TRUE(switches.ok()) << switches.status();
  EXPECT_THAT(*switches, ElementsAre(SwitchIndex(2), SwitchIndex(0), SwitchIndex(1), SwitchIndex(2),
                                     SwitchIndex(1), SwitchIndex(0)));
}

TEST(ReadSwitches, NoneIsFine) { EXPECT_TRUE(ReadSwitches(*Net(), "# none\n", "s")->empty()); }

TEST(ReadSwitches, RefusesUnknownAndAmbiguousNames) {
  FabricPlan plan = TwoLevelFatTreePlan(2, 1, 1);
  plan.descriptions = {"x", "x", "spine"};
  const FabricPtr fabric = MakeFabric(plan);
  const absl::Status twice = ReadSwitches(*fabric, "spine\nx\n", "s").status();
  EXPECT_EQ(twice.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(twice.message()), HasSubstr("s, line 2: switch \"x\" is ambiguous: "
                                                      "0000000000001000 and 0000000000001001"));
  for (const char* name : {"leaf", "1000", "0x", "0x00000000000001000", "0x0x00000000001000",
                           "-000000000001000", "0000000000200000"}) {
    const absl::Status absent = ReadSwitches(*fabric, name, "s").status();
    EXPECT_EQ(absent.code(), absl::StatusCode::kNotFound) << name;
    EXPECT_THAT(std::string(absent.message()), HasSubstr(name));
  }
}

TEST(ReadLinkLoad, SetsTheDirectionThatLeavesThePort) {
  const FabricPtr fabric = Net();
  const auto load = ReadLinkLoad(
      *fabric, "0000000000001000 1 0.25 # to n0\n0x1000\t3  1\n\n0000000000200000 1 5e-1\n", "l");
  ASSERT_TRUE(load.ok()) << load.status();
  ASSERT_EQ(load->size(), fabric->channel_count());
  float sum = 0;
  for (const float u : *load) sum += u;
  EXPECT_EQ(sum, 1.75F);
  const ChannelIndex down = fabric->channel_at(SwitchIndex(0), PortNum(1));
  const ChannelIndex across = fabric->channel_at(SwitchIndex(0), PortNum(3));
  EXPECT_EQ((*load)[down.value()], 0.25F);
  EXPECT_EQ((*load)[across.value()], 1.0F);
  const ChannelIndex up = fabric->channels(fabric->Vertex(EndpointIndex(0))).front().index;
  EXPECT_EQ((*load)[up.value()], 0.5F);
}

TEST(ReadLinkLoad, NamesWhatIsWrong) {
  const struct {
    const char *line, *message;
  } kCases[] = {
      {"0000000000001000 1", "is not NODE-GUID PORT UTILISATION"},
      {"0000000000001000 1 0.5 0.5", "is not NODE-GUID PORT UTILISATION"},
      {"1000 1 0.5", "is not NODE-GUID PORT UTILISATION"},
      {"0000000000001000 -1 0.5", "is not NODE-GUID PORT UTILISATION"},
      {"0000000000001000 4294967296 0.5", "is not NODE-GUID PORT UTILISATION"},
      {"0000000000001000 1 -0.1", "utilisation -0.1 of port 1 of node 0000000000001000"},
      {"0000000000001000 1 1.01", "is not between 0 and 1"},
      {"0000000000001000 1 nan", "is not between 0 and 1"},
      {"0000000000001000 0 0.5", "nothing is cabled to port 0 of switch 0000000000001000"},
      {"0000000000001000 257 0.5", "nothing is cabled to port 257 of switch"},
      {"0000000000200000 2 0.5", "no adapter of that GUID with a cable in port 2"},
      {"0000000000200000 257 0.5", "no adapter of that GUID with a cable in port 257"},
      {"0000000000009999 1 0.5", "no switch 0000000000009999"},
      {"0000000000001000 2 0.5\n0x1000 2 0", "port 2 of node 0000000000001000 is named twice"},
  };
  for (const auto& [line, message] : kCases) {
    const absl::Status status = ReadLinkLoad(*Net(), line, "l").status();
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << line;
    EXPECT_THAT(std::string(status.message()), HasSubstr("l, line ")) << line;
  }
}

void ExpectNamedError(const absl::Status& status, const std::string& text) {
  if (status.ok()) return;
  EXPECT_TRUE(absl::IsInvalidArgument(status) || absl::IsNotFound(status)) << status << text;
  EXPECT_EQ(status.message().substr(0, 4), "file") << status << text;
}

std::string Mutate(std::mt19937_64& rng, std::string text) {
  for (uint64_t k = rng() % 6; k > 0 && !text.empty(); --k) {
    const size_t at = rng() % text.size();
    switch (rng() % 3) {
      case 0:
        text[at] = static_cast<char>(rng());
        break;
      case 1:
        text.erase(at, rng() % 20);
        break;
      default:
        text.insert(at, text.substr(rng() % text.size(), rng() % 20));
    }
  }
  return text;
}

TEST(TreeInputs, SurviveMutatedText) {
  std::mt19937_64 rng(TestSeed());
  const FabricPtr fabric = Net();
  const std::string seeds[] = {
      "# ranks\nn0\n n1/1 \r\n0x0000000000200101 # third\n\nn3\n",
      "S0\n0x1001\r\nswitch:0000000000001002\n# none\n",
      "0000000000001000 1 0.25\n0x1000 3 1 # up\n0000000000200000 1 5e-1\n",
  };
  const int rounds = FullTier() ? 200000 : 3000;
  for (int round = 0; round < rounds; ++round) {
    const std::string text = Mutate(rng, seeds[round % 3]);
    ExpectNamedError(ReadMembers(*fabric, text, "file").status(), text);
    ExpectNamedError(ReadHostNames(text, "file").status(), text);
    ExpectNamedError(ReadSwitches(*fabric, text, "file").status(), text);
    ExpectNamedError(ReadLinkLoad(*fabric, text, "file").status(), text);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace coppice::tree_inputs_test
