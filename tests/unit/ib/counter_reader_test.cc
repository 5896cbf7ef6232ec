#include <gtest/gtest.h>
#include <infiniband/mad.h>

#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/tier.h"
#include "tests/unit/ib/scripted_port.h"

namespace coppice::counter_reader_test {
namespace {

constexpr uint8_t kHost = 1, kSwitch = 2;
constexpr uint32_t kExtended = 0x200, kWait = 0x1000;

//   n0 (0) ---1 S0 (1) 2===2 S1 (2) 1--- n1 (3)
//                      3===3
class CounterReaderTest : public testing::Test {
 protected:
  CounterReaderTest() : port_(subnet_) {
    subnet_.Add(kHost, 1, "n0 mlx5_0", 1);
    subnet_.Add(kSwitch, 8, "S0", 10);
    subnet_.Add(kSwitch, 8, "S1", 11);
    subnet_.Add(kHost, 1, "n1 mlx5_0", 2);
    subnet_.Cable(0, 1, 1, 1);
    subnet_.Cable(1, 2, 2, 2);
    subnet_.Cable(1, 3, 2, 3);
    subnet_.Cable(2, 1, 3, 1);
    for (const int s : {1, 2}) {
      Offer(s, kExtended | kWait, 0);
      for (uint32_t p = 1; p <= 8; ++p) {
        const uint32_t base = 1000 * s + 10 * p;
        Set(s, p, IB_PC_XMT_BYTES_F, base);
        Set(s, p, IB_PC_RCV_PKTS_F, base + 1);
        Set(s, p, IB_PC_ERR_SYM_F, base + 2);
        Set(s, p, IB_PC_XMT_WAIT_F, base + 3);
        SetExtended(s, p, IB_PC_EXT_XMT_BYTES_F, (1ull << 40) + base);
        SetExtended(s, p, IB_PC_EXT_RCV_PKTS_F, (1ull << 41) + base);
        SetExtended(s, p, IB_PC_EXT_ERR_SYM_F, (1ull << 42) + base);
      }
    }
  }

  void Offer(int node, uint32_t mask, uint32_t mask2) {
    mad_set_field(subnet_.node(node).class_port_info.data(), 0, IB_CPI_CAPMASK_F, mask);
    mad_set_field(subnet_.node(node).class_port_info.data(), 0, IB_CPI_CAPMASK2_F, mask2);
  }
  void Set(int node, int port, MAD_FIELDS field, uint32_t value) {
    mad_set_field(subnet_.node(node).ports[port].counters.data(), 0, field, value);
  }
  void SetExtended(int node, int port, MAD_FIELDS field, uint64_t value) {
    mad_set_field64(subnet_.node(node).ports[port].extended_counters.data(), 0, field, value);
  }
  // Says where performance management is served; Redirecting() makes it say that it must be.
  void Redirect(int node, uint32_t lid, uint32_t queue_pair = 1) {
    uint8_t* const info = subnet_.node(node).class_port_info.data();
    mad_set_field(info, 0, IB_CPI_REDIRECT_LID_F, lid);
    mad_set_field(info, 0, IB_CPI_REDIRECT_QP_F, queue_pair);
    mad_set_field(info, 0, IB_CPI_REDIRECT_QKEY_F, 0x80010000);
  }
  void Redirecting(std::set<int> nodes) {
    subnet_.on_reply = [nodes](int node, int, Mad& reply) {
      if (nodes.count(node) != 0 && Asks(reply, 0x01)) reply[5] = 0x02;
      return 1;
    };
  }
  static bool Asks(const Mad& reply, int attribute) {
    return reply[1] == 0x04 && reply[17] == attribute;
  }

  void Read() {
    const absl::StatusOr<CounterSweep> sweep = port_.ReadCounters();
    ASSERT_TRUE(sweep.ok()) << sweep.status();
    readings_.clear();
    what_.clear();
    for (const CounterReading& reading : sweep->readings) {
      const int node = static_cast<int>(reading.node.value() / 0x1000) - 1;
      EXPECT_TRUE(readings_.emplace(std::pair(node, reading.port.value()), reading).second);
    }
    for (const UnansweredNode& node : sweep->unanswered) {
      absl::StrAppend(&what_, node.path, " ", node.what, "\n");
    }
  }

  ScriptedSubnet subnet_;
  ScriptedPort port_;
  std::map<std::pair<int, int>, CounterReading> readings_;  // by node and port
  std::string what_;
};

TEST_F(CounterReaderTest, ReadsEachCabledSwitchPortFromBothAttributes) {
  ASSERT_TRUE(port_.Sweep().ok());
  const uint64_t before = port_.counts().sent;
  Read();
  EXPECT_EQ(what_, "");
  ASSERT_EQ(readings_.size(), 6u);
  EXPECT_EQ(port_.counts().sent - before, 2u + 2 * 6);
  const CounterReading& reading = readings_.at({2, 3});
  EXPECT_TRUE(reading.is_extended);
  EXPECT_EQ(reading.values.sent_bytes, 4 * ((1ull << 40) + 2030));
  EXPECT_EQ(reading.values.received_packets, (1ull << 41) + 2030);
  EXPECT_EQ(reading.values.symbol_errors, 2032u);
  EXPECT_EQ(reading.values.sent_wait_ticks, 2033u);
  EXPECT_EQ(reading.when, subnet_.Monotonic());
  Read();
  EXPECT_EQ(readings_.size(), 6u);
  EXPECT_EQ(port_.counts().sent - before, 2u + 2 * 2 * 6);  // abilities are known
}

TEST_F(CounterReaderTest, AClassicNodeIsReadByOneAttributeAndKeepsWhatStopped) {
  Offer(1, 0, 0);
  Set(1, 2, IB_PC_XMT_BYTES_F, 0xFFFFFFFF);
  ASSERT_TRUE(port_.Sweep().ok());
  Read();
  EXPECT_EQ(what_, "");
  const CounterReading& reading = readings_.at({1, 2});
  EXPECT_FALSE(reading.is_extended);
  EXPECT_EQ(reading.values.sent_bytes, 4 * 0xFFFFFFFFull);
  EXPECT_EQ(reading.values.received_packets, 1021u);
  EXPECT_EQ(reading.values.symbol_errors, 1022u);
  EXPECT_EQ(reading.values.sent_wait_ticks, 0u);  // not offered: means nothing
  EXPECT_TRUE(readings_.at({2, 2}).is_extended);
}

TEST_F(CounterReaderTest, ANodeWithExtendedErrorsIsReadByOneAttribute) {
  Offer(1, kExtended, 2);
  ASSERT_TRUE(port_.Sweep().ok());
  const uint64_t before = port_.counts().sent;
  Read();
  EXPECT_EQ(port_.counts().sent - before, 2u + 3 + 2 * 3);
  EXPECT_EQ(readings_.at({1, 2}).values.symbol_errors, (1ull << 42) + 1020);
  EXPECT_TRUE(readings_.at({1, 2}).has_extended_errors);
  EXPECT_FALSE(readings_.at({2, 2}).has_extended_errors);
}

TEST_F(CounterReaderTest, ANodeThatOffersWhatItDoesNotHaveIsReadWithoutIt) {
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.on_reply = [](int node, int, Mad& reply) {
    if (node == 1 && Asks(reply, 0x1D)) reply[5] = 0x0C;
    return 1;
  };
  Read();
  EXPECT_EQ(what_, "");
  EXPECT_FALSE(readings_.at({1, 1}).is_extended);
  EXPECT_EQ(readings_.size(), 6u);
  const uint64_t before = port_.counts().sent;
  Read();
  EXPECT_EQ(port_.counts().sent - before, 3u + 2 * 3);
}

TEST_F(CounterReaderTest, OnlyThePortThatRefusesIsReadWithoutAndAfterASweepItIsAskedAgain) {
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.on_reply = [](int node, int, Mad& reply) {
    if (node == 1 && Asks(reply, 0x1D) && reply[65] == 2) reply[5] = 0x0C;
    return 1;
  };
  Read();
  subnet_.on_reply = nullptr;
  Read();
  EXPECT_EQ(what_, "");
  EXPECT_FALSE(readings_.at({1, 2}).is_extended);
  EXPECT_TRUE(readings_.at({1, 3}).is_extended);
  ASSERT_TRUE(port_.Sweep().ok());
  Read();
  EXPECT_TRUE(readings_.at({1, 2}).is_extended);
}

TEST_F(CounterReaderTest, AnOddRefusalOfAbilitiesHoldsForOneReading) {
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.on_reply = [](int node, int, Mad& reply) {
    if (node == 2 && Asks(reply, 0x01)) reply[5] = 0x1C;
    return 1;
  };
  Read();
  EXPECT_EQ(readings_.size(), 6u);
  EXPECT_FALSE(readings_.at({2, 1}).is_extended);
  subnet_.on_reply = nullptr;
  Read();
  EXPECT_TRUE(readings_.at({2, 1}).is_extended);
}

TEST_F(CounterReaderTest, ANodeWithoutClassPortInfoIsClassic) {
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.on_reply = [](int node, int, Mad& reply) {
    if (node == 2 && Asks(reply, 0x01)) reply[5] = 0x0C;
    return 1;
  };
  Read();
  EXPECT_EQ(what_, "");
  EXPECT_FALSE(readings_.at({2, 1}).is_extended);
}

TEST_F(CounterReaderTest, ASwitchWithoutALidIsNamed) {
  for (ScriptedSubnet::Port& port : subnet_.node(2).ports) port.lid = 0;
  ASSERT_TRUE(port_.Sweep().ok());
  Read();
  EXPECT_EQ(readings_.size(), 3u);
  EXPECT_EQ(what_, "0,1,2 switch S1: no LID of its own; is there a subnet manager?\n");
}

// What would answer there may be either of the two.
TEST_F(CounterReaderTest, ALidThatTwoClaimIsReadFromNeither) {
  for (ScriptedSubnet::Port& port : subnet_.node(2).ports) port.lid = 10;
  ASSERT_TRUE(port_.Sweep().ok());
  Read();
  EXPECT_TRUE(readings_.empty());
  EXPECT_TRUE(absl::StrContains(what_, "switch S0: LID 10 is no unicast LID or also another"));
  EXPECT_TRUE(absl::StrContains(what_, "switch S1: LID 10 is no unicast LID or also another"));
  for (ScriptedSubnet::Port& port : subnet_.node(2).ports) port.lid = 11;
  subnet_.node(3).ports[1].lid = 8;
  subnet_.node(3).ports[1].lmc = 2;  // 8 to 11
  ASSERT_TRUE(port_.Sweep().ok());
  Read();
  EXPECT_TRUE(readings_.empty());
}

TEST_F(CounterReaderTest, ASwitchWhoseLidIsUnknownIsNamed) {
  subnet_.on_reply = [](int node, int, Mad& reply) {
    return node == 2 && reply[1] == 0x81 && reply[17] == 0x15 && reply[23] == 0 ? 0 : 1;
  };
  ASSERT_TRUE(port_.Sweep().ok());
  Read();
  EXPECT_EQ(readings_.size(), 3u);
  EXPECT_TRUE(absl::StrContains(what_, "its LID is not known")) << what_;
}

TEST_F(CounterReaderTest, ASilentSwitchIsAskedWithLessPatienceTheNextTime) {
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.on_reply = [](int node, int, Mad& reply) { return node == 1 && reply[1] == 4 ? 0 : 1; };
  for (const uint64_t resends : {2 + 2, 1, 1}) {  // at first there is a second chance
    const uint64_t before = port_.counts().resent;
    Read();
    EXPECT_EQ(readings_.size(), 3u);
    EXPECT_EQ(what_,
              "0,1 switch S0: ClassPortInfo of performance management; the node was asked no "
              "more\n");
    EXPECT_EQ(port_.counts().resent - before, resends);
  }
  subnet_.on_reply = nullptr;
  Read();
  EXPECT_EQ(what_, "");
  EXPECT_EQ(readings_.size(), 6u);
}

TEST_F(CounterReaderTest, AReadingIsWholeOrThereIsNone) {
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.on_reply = [](int node, int, Mad& reply) {
    return node == 1 && Asks(reply, 0x12) && reply[65] == 2 ? 0 : 1;
  };
  Read();
  EXPECT_EQ(readings_.count({1, 2}), 0u);
  EXPECT_EQ(readings_.size(), 5u);
  EXPECT_EQ(what_, "0,1 switch S0: PortCounters of port 2\n");
}

// S1 serves S0's counters, too: as many of each as it has.
TEST_F(CounterReaderTest, ARedirectionToALidIsFollowed) {
  Redirect(1, 11);
  Redirecting({1});
  ASSERT_TRUE(port_.Sweep().ok());
  for (int reading = 0; reading < 2; ++reading) {
    const uint64_t before = port_.counts().sent;
    Read();
    EXPECT_EQ(what_, "");
    ASSERT_EQ(readings_.size(), 6u);
    EXPECT_EQ(readings_.at({1, 2}).values.symbol_errors, 2022u);
    EXPECT_EQ(port_.counts().sent - before, (reading == 0 ? 3u : 0u) + 2 * 6);
  }
  // After a full sweep it is asked itself again.
  Redirecting({});
  ASSERT_TRUE(port_.Sweep().ok());
  Read();
  EXPECT_EQ(readings_.at({1, 2}).values.symbol_errors, 1022u);
}

TEST_F(CounterReaderTest, OtherRedirectionsAreNotedAndTheRestIsRead) {
  const std::pair<uint32_t, uint32_t> places[] = {{11, 5}, {0, 1}, {0xC000, 1}, {11, 0}};
  Redirecting({1});
  for (const auto& [lid, queue_pair] : places) {
    Redirect(1, lid, queue_pair);
    ASSERT_TRUE(port_.Sweep().ok());
    Read();
    EXPECT_EQ(readings_.size(), 3u);
    EXPECT_TRUE(absl::StrContains(
        what_, absl::StrCat("switch S0: its performance management is redirected to LID ", lid,
                            ", queue pair ", queue_pair, ", which is not followed")))
        << what_;
  }
}

TEST_F(CounterReaderTest, RedirectionsInACircleEnd) {
  Redirect(1, 11);
  Redirect(2, 10);
  Redirecting({1, 2});
  ASSERT_TRUE(port_.Sweep().ok());
  Read();
  EXPECT_TRUE(readings_.empty());
  EXPECT_TRUE(absl::StrContains(what_, "S0: its performance management is redirected")) << what_;
  EXPECT_TRUE(absl::StrContains(what_, "S1: its performance management is redirected")) << what_;
}

TEST_F(CounterReaderTest, AnAnswerAboutAnotherPortAndARefusalAreNoted) {
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.on_reply = [](int node, int, Mad& reply) {
    if (node == 1 && Asks(reply, 0x12) && reply[65] == 2) reply[65] = 9;
    if (node == 1 && Asks(reply, 0x12) && reply[65] == 3) reply[5] = 0x1C;
    return 1;
  };
  Read();
  EXPECT_EQ(readings_.size(), 4u);
  EXPECT_TRUE(absl::StrContains(what_, "PortCounters of port 2: the answer is about port 9"));
  EXPECT_TRUE(absl::StrContains(what_, "PortCounters of port 3: refused with status 0x1c"));
}

TEST_F(CounterReaderTest, ANewLidAsksForAbilitiesAgain) {
  ASSERT_TRUE(port_.Sweep().ok());
  Read();
  for (ScriptedSubnet::Port& port : subnet_.node(2).ports) port.lid = 60;
  Offer(2, 0, 0);
  ASSERT_TRUE(port_.Sweep().ok());
  Read();
  EXPECT_EQ(readings_.size(), 6u);
  EXPECT_FALSE(readings_.at({2, 1}).is_extended);
}

TEST_F(CounterReaderTest, ALostLocalPortIsUnavailable) {
  ASSERT_TRUE(port_.Sweep().ok());
  subnet_.on_reply = [](int, int, Mad&) { return 0; };
  EXPECT_TRUE(absl::IsUnavailable(port_.ReadCounters().status()));
}

TEST_F(CounterReaderTest, LossIsMadeGood) {
  ASSERT_TRUE(port_.Sweep().ok());
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < (FullTier() ? 2000 : 200); ++round) {
    subnet_.reorder = round % 2 == 1;
    subnet_.gives_back = round % 4 > 1;
    std::map<std::vector<uint8_t>, int> lost;  // by node and question: twice at most
    subnet_.on_reply = [&](int node, int, Mad& reply) {
      int& losses = lost[{static_cast<uint8_t>(node), reply[17], reply[65]}];
      if (losses < 2 && random() % 10 == 0) return losses++, 0;
      return 1 + static_cast<int>(random() % 20 == 0);
    };
    Read();
    ASSERT_EQ(what_, "");
    ASSERT_EQ(readings_.size(), 6u);
    EXPECT_EQ(readings_.at({2, 3}).values.sent_bytes, 4 * ((1ull << 40) + 2030));
  }
}

TEST_F(CounterReaderTest, SurvivesNonsense) {
  ASSERT_TRUE(port_.Sweep().ok());
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < (FullTier() ? 5000 : 500); ++round) {
    const uint64_t rate = 2 + random() % 30;
    subnet_.on_reply = [&](int, int, Mad& reply) {
      if (random() % rate == 0) reply[random() % 256] = static_cast<uint8_t>(random());
      return 1;
    };
    const absl::StatusOr<CounterSweep> sweep = port_.ReadCounters();
    ASSERT_TRUE(sweep.ok() || absl::IsUnavailable(sweep.status())) << sweep.status();
    EXPECT_TRUE(!sweep.ok() || sweep->readings.size() <= 6u);
  }
}

// A chain of silent switches, and many: the time for all is that of a few.
TEST(CounterReader, ManySilentSwitchesCostLittle) {
  ScriptedSubnet subnet;
  subnet.Add(kHost, 1, "n0", 1);
  subnet.Add(kSwitch, 250, "top", 2);
  subnet.Cable(0, 1, 1, 250);
  for (int i = 0; i < 200; ++i) {
    const int leaf = subnet.Add(kSwitch, 4, absl::StrCat("L", i), static_cast<uint16_t>(10 + i));
    subnet.Cable(1, i + 1, leaf, 1);
  }
  ScriptedPort port(subnet);
  ASSERT_TRUE(port.Sweep().ok());
  subnet.on_reply = [](int, int, Mad& reply) { return reply[1] == 4 ? 0 : 1; };
  absl::Duration start = subnet.Monotonic();
  absl::StatusOr<CounterSweep> sweep = port.ReadCounters();
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_TRUE(sweep->readings.empty());
  EXPECT_EQ(sweep->unanswered.size(), 201u);
  EXPECT_LT(subnet.Monotonic() - start, absl::Seconds(3));
  subnet.on_reply = [](int node, int, Mad& reply) { return reply[1] == 4 && node > 1 ? 0 : 1; };
  start = subnet.Monotonic();
  sweep = port.ReadCounters();
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_EQ(sweep->readings.size(), 201u);  // of the top's ports
  EXPECT_EQ(sweep->unanswered.size(), 200u);
  EXPECT_LT(subnet.Monotonic() - start, absl::Seconds(3));
}

TEST(CounterReader, ASlowSwitchCostsABoundedTime) {
  ScriptedSubnet subnet;
  subnet.Add(kHost, 1, "n0", 1);
  subnet.Add(kSwitch, 254, "S", 2);
  subnet.Cable(0, 1, 1, 254);
  for (int i = 1; i < 254; ++i) subnet.Cable(1, i, subnet.Add(kHost, 1, absl::StrCat("h", i)), 1);
  ScriptedPort port(subnet);
  ASSERT_TRUE(port.Sweep().ok());
  for (const int late_ms : {200, 700, 2000}) {
    subnet.on_reply = [&](int, int, Mad& reply) {
      if (reply[1] != 4) return 1;
      subnet.Inject(reply, absl::Milliseconds(late_ms));
      return 0;
    };
    const absl::Duration start = subnet.Monotonic();
    const absl::StatusOr<CounterSweep> sweep = port.ReadCounters();
    ASSERT_TRUE(sweep.ok()) << sweep.status();
    EXPECT_FALSE(sweep->unanswered.empty());
    EXPECT_LT(subnet.Monotonic() - start, absl::Seconds(4));
  }
}

}  // namespace
}  // namespace coppice::counter_reader_test
