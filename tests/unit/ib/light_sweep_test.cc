#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/tier.h"
#include "tests/unit/ib/scripted_port.h"

namespace coppice::light_sweep_test {
namespace {

constexpr uint8_t kHost = 1, kSwitch = 2;

//   n0 (0) ---1 S0 (1) 2---1 S1 (2) 2---1 S2 (3) 5--- n1 (4)
//                  3---2 S3 (5)
class LightSweepTest : public testing::Test {
 protected:
  LightSweepTest() : port_(subnet_) {
    subnet_.Add(kHost, 1, "n0 mlx5_0", 1);
    subnet_.Add(kSwitch, 8, "S0", 10);
    subnet_.Add(kSwitch, 8, "S1", 11);
    subnet_.Add(kSwitch, 8, "S2", 12);
    subnet_.Add(kHost, 1, "n1 mlx5_0", 2);
    subnet_.Add(kSwitch, 8, "S3", 13);
    subnet_.Cable(0, 1, 1, 1);
    subnet_.Cable(1, 2, 2, 1);
    subnet_.Cable(2, 2, 3, 1);
    subnet_.Cable(3, 5, 4, 1);
    subnet_.Cable(1, 3, 5, 2);
  }

  void Silence(std::set<int> nodes) {
    subnet_.on_reply = [nodes](int node, int, Mad&) { return nodes.count(node) != 0 ? 0 : 1; };
  }
  void Uncable(int node, int port) {
    ScriptedSubnet::Port& end = subnet_.node(node).ports[port];
    subnet_.node(end.peer).ports[end.peer_port].peer = -1;
    end.peer = -1;
  }
  void Uncable(int node) {
    for (size_t port = 1; port < subnet_.node(node).ports.size(); ++port) {
      if (subnet_.node(node).ports[port].peer >= 0) Uncable(node, static_cast<int>(port));
    }
  }
  // Sweeps light and expects the change; empty: none.
  void ExpectChange(const std::string& what) {
    const absl::StatusOr<LightSweepResult> result = port_.LightSweep();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->has_changed, !what.empty());
    EXPECT_EQ(result->what, what);
    unanswered_ = result->unanswered;
  }

  // Sweeps light and expects these ends, node, port and whether it is up, in any order.
  void ExpectLinks(const std::vector<std::tuple<int, uint8_t, bool>>& ends) {
    const absl::StatusOr<LightSweepResult> result = port_.LightSweep();
    ASSERT_TRUE(result.ok()) << result.status();
    std::vector<LinkChange> expected;
    for (const auto& [node, port, is_up] : ends) {
      expected.push_back({Guid(subnet_.node(node).guid), PortNum(port), is_up});
    }
    EXPECT_THAT(result->links, testing::UnorderedElementsAreArray(expected));
    EXPECT_EQ(result->has_changed, !ends.empty());
    EXPECT_TRUE(result->has_only_links);
  }

  ScriptedSubnet subnet_;
  ScriptedPort port_;
  std::vector<UnansweredNode> unanswered_;
};

TEST_F(LightSweepTest, WithoutChangeItAsksEachSwitchAndPortOnceAndSaysSo) {
  ASSERT_TRUE(port_.Sweep().ok());
  const uint64_t before = port_.counts().sent;
  ExpectChange("");
  EXPECT_TRUE(unanswered_.empty());
  EXPECT_EQ(port_.counts().sent - before, 1u + 4 * (9 + 1));
  ExpectChange("");
}

TEST_F(LightSweepTest, ALinkThatGoesDownOrComesUpIsNamed) {
  ASSERT_TRUE(port_.Sweep().ok());
  Uncable(3, 5);
  ExpectChange("switch S2 port 5: the link is down");
  ASSERT_TRUE(port_.Sweep().ok());
  ExpectChange("");
  subnet_.Cable(3, 5, 4, 1);
  ExpectChange("switch S2 port 5: the link is up");
}

// One must not hide another: whoever mends wants both, whichever end says so first.
TEST_F(LightSweepTest, AllLinksThatAreLostAreSeenAtOnce) {
  subnet_.Cable(5, 3, 3, 6);  // S3 to S2: another way around
  ASSERT_TRUE(port_.Sweep().ok());
  ExpectLinks({});
  Uncable(1, 2);  // S0 to S1, over which the sweep went to S1
  Uncable(3, 5);  // S2 to n1, behind it
  ExpectLinks({{1, 2, false}, {2, 1, false}, {3, 5, false}});
  EXPECT_EQ(port_.counts().timed_out, 0u);
  ASSERT_TRUE(port_.Sweep().ok());
  ExpectLinks({});
  subnet_.Cable(1, 2, 2, 1);
  Uncable(5, 3);
  ExpectLinks({{1, 2, true}, {5, 3, false}});  // no way to S2 but by the cable that is new
}

// By those before it: who is behind is not waited for.
TEST_F(LightSweepTest, ACutCableOnTheWayAndALostSwitchAreSeenWithoutWaiting) {
  ASSERT_TRUE(port_.Sweep().ok());
  const absl::Duration start = subnet_.Monotonic();
  Uncable(2, 2);
  ExpectChange("switch S1 port 2: the link is down");
  EXPECT_FALSE(port_.lids_are_doubtful());
  subnet_.Cable(2, 2, 3, 1);
  ExpectChange("");
  Uncable(2);
  ExpectChange("switch S0 port 2: the link is down");
  EXPECT_TRUE(unanswered_.empty());
  EXPECT_EQ(port_.counts().timed_out, 0u);
  EXPECT_EQ(subnet_.Monotonic(), start);
}

TEST_F(LightSweepTest, WhoIsBehindAPortThatIsSilentIsAskedWithLessPatience) {
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.on_reply = [](int node, int, Mad& reply) {
    return node == 2 && reply[17] == 0x15 && reply[23] == 2 ? 0 : 1;
  };
  ExpectChange("");
  subnet_.on_reply = [](int node, int, Mad& reply) {
    return node == 3 || (node == 2 && reply[17] == 0x15 && reply[23] == 2) ? 0 : 1;
  };
  const uint64_t before = port_.counts().resent;
  ExpectChange("");  // that is for the next sweep to say, which is told of the port again
  ASSERT_EQ(unanswered_.size(), 2u);
  EXPECT_EQ(unanswered_[1].what, "switch S2: PortInfo of port 0; the node was asked no more");
  EXPECT_EQ(port_.counts().resent - before, 4u + 1);
}

TEST_F(LightSweepTest, ARateThatChangesIsNamed) {
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.node(5).ports[2].width = 1;
  ExpectChange("switch S3 port 2: the link runs at 1xQDR, it ran at 4xQDR");
}

TEST_F(LightSweepTest, AddressesAndManagersAreCompared) {
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.node(3).ports[0].lid = 40;
  ExpectChange("switch S2: it has LID 40, it had 12");
  EXPECT_TRUE(port_.lids_are_doubtful());
  subnet_.node(3).ports[0].lid = 12;
  subnet_.node(3).ports[0].lmc = 2;
  ExpectChange("switch S2: it has LMC 2, it had 0");
  subnet_.node(3).ports[0].lmc = 0;
  ExpectChange("");
  subnet_.manager_lid = 2;
  ExpectChange("the local port's subnet manager has LID 2, it had 1");
  subnet_.manager_lid = 1;
  subnet_.node(0).ports[1].lid = 77;
  ExpectChange("the local port has LID 77, it had 1");
}

// Same cables, same LID, same rates: it tells itself apart by its GUID only.
TEST_F(LightSweepTest, ASwitchThatWasExchangedIsNamed) {
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.node(3).guid = 0xabc000;
  ExpectChange("switch S2: node 0000000000abc000 is in its place, it was 0000000000004000");
  EXPECT_TRUE(port_.lids_are_doubtful());
  ASSERT_TRUE(port_.Sweep().ok());
  ExpectChange("");
}

// S2 and S3 change places: each is where the other was.
TEST_F(LightSweepTest, SwitchesThatChangedPlacesAreNamed) {
  subnet_.node(5).description = "S2";
  ASSERT_TRUE(port_.Sweep().ok());
  std::swap(subnet_.node(3).guid, subnet_.node(5).guid);
  const absl::StatusOr<LightSweepResult> result = port_.LightSweep();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(absl::StrContains(result->what, "is in its place")) << result->what;
}

// That one packet is lost for ever says nothing.
TEST_F(LightSweepTest, ASwitchThatDoesNotSayWhoItIsIsNoChange) {
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.on_reply = [](int node, int, Mad& reply) {
    if (reply[17] != 0x11 || node == 0) return 1;
    reply[5] = 0x0C;
    return node == 2 ? 0 : 1;
  };
  ExpectChange("");
  EXPECT_TRUE(unanswered_.empty());
}

TEST_F(LightSweepTest, AManagerThatOnlyOneSwitchKnowsIsNamed) {
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.on_reply = [](int node, int, Mad& reply) {
    if (node == 5 && reply[17] == 0x15) reply[64 + 19] = 9;
    return 1;
  };
  ExpectChange("switch S3: its subnet manager has LID 9, it had 1");
}

TEST_F(LightSweepTest, ASwitchThatFallsSilentIsAChangeAndWhatIsBehindIsNotAsked) {
  ASSERT_TRUE(port_.Sweep().ok());
  Silence({2});
  const uint64_t before = port_.counts().sent;
  ExpectChange("switch S1 does not answer any more");
  ASSERT_EQ(unanswered_.size(), 1u);
  EXPECT_EQ(unanswered_[0].path, "0,1,2");
  EXPECT_EQ(unanswered_[0].neighbour, Guid(subnet_.node(1).guid));
  EXPECT_EQ(unanswered_[0].neighbour_port, PortNum(2));
  EXPECT_TRUE(absl::StrContains(unanswered_[0].what, "asked no more")) << unanswered_[0].what;
  // Two looks at S1, and one at the local port: it may have been that.
  EXPECT_EQ(port_.counts().sent - before, 1u + 2 * (9 + 1) + 2 + 2 * 5 + 1);
}

// Whatever the first look at S1 was lost to: at the second one of two answers is enough, and all is
// looked at that would have been.
TEST_F(LightSweepTest, ASwitchThatIsHeardAtTheSecondLookIsNoChange) {
  ASSERT_TRUE(port_.Sweep().ok());
  const absl::Duration start = subnet_.Monotonic();
  for (const int lost_ports : {2, 6, 1000}) {
    for (const int lost_names : {0, 4, 1000}) {
      int ports = 0, names = 0;
      subnet_.on_reply = [&](int node, int, Mad& reply) {
        if (node != 2) return 1;
        if (reply[17] == 0x11) return ++names > lost_names ? 1 : 0;
        return reply[23] != 0 || ++ports > lost_ports ? 1 : 0;
      };
      const uint64_t before = port_.counts().sent - port_.counts().resent;
      const bool is_gone = lost_ports == 1000 && lost_names == 1000;
      ExpectChange(is_gone ? "switch S1 does not answer any more" : "");
      EXPECT_EQ(unanswered_.empty(), lost_ports < 1000);
      if (is_gone) continue;
      EXPECT_EQ(port_.counts().sent - port_.counts().resent - before, 1u + 4 * (9 + 1) + 1);
    }
  }
  EXPECT_LT(subnet_.Monotonic() - start, 9 * absl::Seconds(4));
  subnet_.node(2).guid = 0xabc000;  // is told at the second look as well
  subnet_.on_reply = [](int node, int, Mad& reply) {
    return node == 2 && reply[17] == 0x15 && reply[23] == 0 ? 0 : 1;
  };
  ExpectChange("switch S1: node 0000000000abc000 is in its place, it was 0000000000003000");
}

TEST_F(LightSweepTest, ASwitchThatFallsSilentInTheMidstIsLookedAtAgain) {
  ASSERT_TRUE(port_.Sweep().ok());
  int answers = 0;
  subnet_.on_reply = [&](int node, int, Mad&) { return node != 2 || ++answers <= 3 ? 1 : 0; };
  const absl::Duration start = subnet_.Monotonic();
  ExpectChange("switch S1 does not answer any more");
  EXPECT_LT(subnet_.Monotonic() - start, absl::Seconds(8));
  // Some ports' answers are lost again and again, but it lives.
  subnet_.on_reply = [](int node, int, Mad& reply) {
    const bool is_lost = reply[17] == 0x15 && reply[23] >= 3 && reply[23] <= 5;
    return node == 2 && is_lost ? 0 : 1;
  };
  ExpectChange("");
  ASSERT_FALSE(unanswered_.empty());
  EXPECT_TRUE(absl::StrContains(unanswered_.back().what, "asked no more"));
}

TEST_F(LightSweepTest, WhoWasSilentThenIsNotMissedButHeardWhenHeSpeaks) {
  Silence({2});  // not even NodeInfo: a link into the dark
  ASSERT_TRUE(port_.Sweep().ok());
  ExpectChange("");
  ASSERT_EQ(unanswered_.size(), 1u);
  EXPECT_EQ(unanswered_[0].what, "NodeInfo behind switch S0 port 2");
  Silence({});
  ExpectChange("switch S0 port 2: the node at the other end answers now");

  subnet_.on_reply = [](int node, int, Mad& reply) {
    return node == 2 && reply[17] == 0x15 ? 0 : 1;  // says who he is, nothing of his ports
  };
  ASSERT_TRUE(port_.Sweep().ok());
  ExpectChange("");
  ASSERT_EQ(unanswered_.size(), 1u);
  Silence({});
  ExpectChange("switch S1 answers again");
}

TEST_F(LightSweepTest, OneSilentPortIsNoChangeAndAPortThatSpeaksAgainIs) {
  ASSERT_TRUE(port_.Sweep().ok());
  const auto silent_port = [](int node, int, Mad& reply) {
    return node == 3 && reply[17] == 0x15 && reply[23] == 7 ? 0 : 1;
  };
  subnet_.on_reply = silent_port;
  ExpectChange("");
  ASSERT_EQ(unanswered_.size(), 1u);
  EXPECT_EQ(unanswered_[0].what, "switch S2: PortInfo of port 7");
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.on_reply = nullptr;
  ExpectChange("switch S2 port 7: the port answers again");
}

TEST_F(LightSweepTest, ASwitchThatLiesAboutItsPortsDoesSoEachTime) {
  subnet_.node(3).told_ports = 254;
  ASSERT_TRUE(port_.Sweep().ok());
  ExpectChange("");
  subnet_.node(3).ports.resize(6);  // exchanged for a smaller one
  ExpectChange("switch S2 port 6: the switch says that it has no such port");
}

// Silence that the full sweep has met as well is no change, or it would be one for ever.
TEST_F(LightSweepTest, ASwitchThatClaimsPortsAndIsSilentAboutThemIsNoChange) {
  subnet_.node(3).told_ports = 64;
  const auto drop = [](int node, int, Mad& reply) {
    return node == 3 && reply[17] == 0x15 && reply[23] > 8 ? 0 : 1;
  };
  subnet_.on_reply = drop;
  ASSERT_TRUE(port_.Sweep().ok());
  for (int round = 0; round < 3; ++round) {
    const absl::Duration start = subnet_.Monotonic();
    const uint64_t before = port_.counts().resent;
    ExpectChange("");
    EXPECT_FALSE(unanswered_.empty());
    EXPECT_LE(port_.counts().resent - before, 8u);
    EXPECT_LT(subnet_.Monotonic() - start, absl::Seconds(1));
  }
  Silence({3});
  ExpectChange("switch S2 does not answer any more");
}

// Each answer comes with the last attempt: a bounded time is enough to know that the links hold.
TEST_F(LightSweepTest, ASlowSwitchIsNoChangeAndCostsABoundedTime) {
  ASSERT_TRUE(port_.Sweep().ok());
  for (const int late_ms : {250, 1600}) {
    subnet_.on_reply = [&](int node, int, Mad& reply) {
      if (node != 2) return 1;
      subnet_.Inject(reply, absl::Milliseconds(late_ms));
      return 0;
    };
    const absl::Duration start = subnet_.Monotonic();
    ExpectChange("");
    EXPECT_LT(subnet_.Monotonic() - start, absl::Seconds(8));
  }
  ASSERT_FALSE(unanswered_.empty());
}

TEST(LightSweep, ASlowSwitchOfManyPortsIsGivenUp) {
  ScriptedSubnet subnet;
  subnet.Add(kHost, 1, "n0", 1);
  subnet.Add(kSwitch, 254, "S", 2);
  subnet.Add(kSwitch, 4, "T", 3);
  subnet.Cable(0, 1, 1, 1);
  subnet.Cable(1, 254, 2, 1);
  ScriptedPort port(subnet);
  ASSERT_TRUE(port.Sweep().ok());
  subnet.on_reply = [&](int node, int, Mad& reply) {
    if (node != 1) return 1;
    subnet.Inject(reply, absl::Milliseconds(250));
    return 0;
  };
  const absl::Duration start = subnet.Monotonic();
  const absl::StatusOr<LightSweepResult> result = port.LightSweep();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->has_changed) << result->what;
  EXPECT_LT(subnet.Monotonic() - start, absl::Seconds(8));
  ASSERT_EQ(result->unanswered.size(), 1u);
  EXPECT_EQ(result->unanswered[0].what,
            "switch S: it answers too slowly; the node was asked no more");
}

//   n0 ---250 top 1..200 --- 200 leaves
class WideSubnetTest : public testing::Test {
 protected:
  WideSubnetTest() : port_(subnet_) {
    subnet_.Add(kHost, 1, "n0", 1);
    subnet_.Add(kSwitch, 250, "top", 2);
    subnet_.Cable(0, 1, 1, 250);
    for (int i = 0; i < 200; ++i) {
      const int leaf = subnet_.Add(kSwitch, 4, absl::StrCat("L", i), static_cast<uint16_t>(10 + i));
      subnet_.Cable(1, i + 1, leaf, 1);
    }
  }
  LightSweepResult LightSweep() {
    const absl::StatusOr<LightSweepResult> result = port_.LightSweep();
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : LightSweepResult();
  }

  ScriptedSubnet subnet_;
  ScriptedPort port_;
};

TEST_F(WideSubnetTest, ManyThatFallSilentCostThePatienceForOne) {
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.on_reply = [](int node, int, Mad&) { return node > 1 ? 0 : 1; };
  const absl::Duration start = subnet_.Monotonic();
  EXPECT_TRUE(absl::StrContains(LightSweep().what, "does not answer any more"));
  EXPECT_LT(subnet_.Monotonic() - start, absl::Seconds(4));
}

TEST_F(WideSubnetTest, OfManySilentEndsEachIsAskedInItsTurn) {
  std::set<int> heard_in;
  subnet_.on_reply = [](int node, int, Mad&) { return node > 1 ? 0 : 1; };
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.on_reply = [&](int node, int, Mad&) {
    if (node > 1) heard_in.insert(node);
    return node > 1 ? 0 : 1;
  };
  for (int round = 0; round < 7; ++round) {
    const absl::Duration start = subnet_.Monotonic();
    const LightSweepResult result = LightSweep();
    EXPECT_FALSE(result.has_changed) << result.what;
    EXPECT_EQ(result.unanswered.size(), 32u);
    EXPECT_LT(subnet_.Monotonic() - start, absl::Seconds(1));
  }
  EXPECT_EQ(heard_in.size(), 200u);
}

TEST_F(WideSubnetTest, OfManyThatToldNothingEachIsAskedInItsTurn) {
  const auto silent = [](int node, int, Mad& reply) {
    return node > 1 && reply[17] == 0x15 ? 0 : 1;
  };
  subnet_.on_reply = silent;
  ASSERT_TRUE(port_.Sweep().ok());
  for (int round = 0; round < 3; ++round) {
    const LightSweepResult result = LightSweep();
    EXPECT_FALSE(result.has_changed) << result.what;
    EXPECT_EQ(result.unanswered.size(), 32u);
  }
  subnet_.on_reply = [&](int node, int port, Mad& reply) {
    return node == 150 ? 1 : silent(node, port, reply);
  };
  std::string what;
  for (int round = 0; round < 7 && what.empty(); ++round) what = LightSweep().what;
  EXPECT_EQ(what, "switch L148 answers again");
}

TEST_F(LightSweepTest, WithoutItsLinkOrAnySwitchItIsUnavailable) {
  ASSERT_TRUE(port_.Sweep().ok());
  Silence({1, 2, 3, 5});
  const absl::Duration start = subnet_.Monotonic();
  const absl::Status silent = port_.LightSweep().status();
  EXPECT_TRUE(absl::IsUnavailable(silent)) << silent;
  EXPECT_TRUE(absl::StrContains(silent.message(), "S0 does not answer any more")) << silent;
  EXPECT_LT(subnet_.Monotonic() - start, absl::Seconds(8));
  Silence({});
  Uncable(0, 1);
  const absl::Status down = port_.LightSweep().status();
  EXPECT_TRUE(absl::IsUnavailable(down)) << down;
  EXPECT_TRUE(absl::StrContains(down.message(), "cable of port 1")) << down;
  Silence({0});
  EXPECT_TRUE(absl::IsUnavailable(port_.LightSweep().status()));
}

// A switch for each answer that a lossy network drops, doubles or overtakes.
TEST_F(LightSweepTest, LossAloneIsNoChange) {
  ASSERT_TRUE(port_.Sweep().ok());
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < (FullTier() ? 2000 : 200); ++round) {
    subnet_.reorder = round % 2 == 1;
    subnet_.gives_back = round % 4 > 1;
    subnet_.on_reply = [&](int, int, Mad&) {
      return random() % 20 == 0 ? 0 : 1 + static_cast<int>(random() % 20 == 0);
    };
    ExpectChange("");
    EXPECT_TRUE(unanswered_.empty()) << unanswered_[0].what;
  }
}

// One packet in four of the switches', so that now and then one is silent for a whole patience.
TEST_F(LightSweepTest, HeavyLossIsNoChange) {
  ASSERT_TRUE(port_.Sweep().ok());
  std::mt19937_64 random(TestSeed());
  subnet_.on_reply = [&](int node, int, Mad&) { return node > 0 && random() % 4 == 0 ? 0 : 1; };
  for (int round = 0; round < (FullTier() ? 5000 : 500); ++round) ExpectChange("");
}

// What the fuzz target does: answers with any bytes change anything but the end.
TEST_F(LightSweepTest, SurvivesNonsense) {
  ASSERT_TRUE(port_.Sweep().ok());
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < (FullTier() ? 5000 : 500); ++round) {
    const uint64_t rate = 2 + random() % 30;
    subnet_.on_reply = [&](int, int, Mad& reply) {
      if (random() % rate == 0) reply[random() % 256] = static_cast<uint8_t>(random());
      return 1;
    };
    const absl::Status status = port_.LightSweep().status();
    EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
  }
}

TEST(LightSweep, FromASwitchAndWithoutAny) {
  ScriptedSubnet local;
  local.Add(kSwitch, 4, "S", 9);
  local.Add(kHost, 1, "a", 1);
  local.Cable(0, 3, 1, 1);
  ScriptedPort port(local);
  ASSERT_TRUE(port.Sweep().ok());
  EXPECT_FALSE(port.LightSweep()->has_changed);
  local.node(0).ports[3].peer = -1;
  EXPECT_EQ(port.LightSweep()->what, "switch S port 3: the link is down");

  ScriptedSubnet pair;
  pair.Add(kHost, 1, "a", 1);
  pair.Add(kHost, 1, "b", 2);
  pair.Cable(0, 1, 1, 1);
  ScriptedPort two(pair);
  ASSERT_TRUE(two.Sweep().ok());
  EXPECT_FALSE(two.LightSweep()->has_changed);
}

}  // namespace
}  // namespace coppice::light_sweep_test
