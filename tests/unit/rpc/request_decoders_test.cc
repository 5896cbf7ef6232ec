// Requests that no client of ours would send: good ones, bytes of them changed at random.
#include <random>
#include <string>

#include "coppice/v1/agents.pb.h"
#include "coppice/v1/fabric.pb.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"
#include "tests/unit/rpc/request_properties.h"
#include "tests/unit/rpc/scripted_switch.h"

namespace coppice::request_decoders_test {
namespace {

std::string Mutated(std::string text, std::mt19937_64& random) {
  for (uint64_t i = random() % 4 + 1; i > 0; --i) {
    const size_t at = text.empty() ? 0 : random() % text.size();
    switch (random() % 4) {
      case 0:
        text.insert(at, 1, static_cast<char>(random()));
        break;
      case 1:
        if (!text.empty()) text.erase(at, 1);
        break;
      case 2:
        if (!text.empty()) text[at] = static_cast<char>(random());
        break;
      default:
        if (!text.empty()) text[at] = "0123456789.xX+- "[random() % 16];
    }
  }
  return text;
}

int Rounds() { return FullTier() ? 200'000 : 5'000; }

TEST(RequestDecodersTest, HistoryOfAPort) {
  v1::GetPortHistoryRequest request;
  request.set_node_guid("0002c90300001234");
  request.set_port(17);
  request.set_resolution(v1::HISTORY_RESOLUTION_MINUTE);
  request.mutable_start_time()->set_seconds(1'789'999'000);
  request.mutable_end_time()->set_seconds(1'790'000'000);
  const std::string good = request.SerializeAsString();
  ASSERT_EQ(BrokenByHistoryRequest(good), "");
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < Rounds(); ++i) {
    const std::string data = Mutated(good, random);
    ASSERT_EQ(BrokenByHistoryRequest(data), "") << testing::PrintToString(data);
  }
}

TEST(RequestDecodersTest, PageOfEvents) {
  v1::ListEventsRequest request;
  request.set_page_size(100);
  request.set_page_token("4711");
  request.set_min_severity("warning");
  request.mutable_start_time()->set_seconds(1'789'999'000);
  request.mutable_end_time()->set_seconds(1'790'000'000);
  const std::string good = request.SerializeAsString();
  ASSERT_EQ(BrokenByEventsRequest(good), "");
  std::mt19937_64 random(TestSeed() + 1);
  for (int i = 0; i < Rounds(); ++i) {
    const std::string data = Mutated(good, random);
    ASSERT_EQ(BrokenByEventsRequest(data), "") << testing::PrintToString(data);
  }
}

TEST(RequestDecodersTest, MessagesOfAgents) {
  v1::AgentMessage hello, result;
  hello.mutable_hello()->set_host("node17");
  hello.mutable_hello()->add_port_guids("0002c90300001234");
  hello.mutable_hello()->set_measure_address("10.0.0.7:18515");
  result.mutable_ping_pong()->set_id(7);
  result.mutable_ping_pong()->set_latency_us(1.5);
  result.mutable_ping_pong()->set_bandwidth_gbps(97);
  result.mutable_ping_pong()->set_samples(90);
  std::mt19937_64 random(TestSeed() + 3);
  for (const std::string& good : {hello.SerializeAsString(), result.SerializeAsString()}) {
    ASSERT_EQ(BrokenByAgentMessage(good), "");
    for (int i = 0; i < Rounds(); ++i) {
      const std::string data = Mutated(good, random);
      ASSERT_EQ(BrokenByAgentMessage(data), "") << testing::PrintToString(data);
    }
  }
}

TEST(RequestDecodersTest, MessagesOfSwitches) {
  v1::SwitchMessage hello = SwitchHelloOf("0002c90300001234"), report;
  hello.mutable_hello()->add_groups()->set_tree(7);
  report.mutable_report()->set_entries_used(3);
  report.mutable_report()->add_broken()->set_tree(7);
  (*report.mutable_report()->mutable_counters()->mutable_refusals())["stale revision"] = 2;
  std::mt19937_64 random(TestSeed() + 4);
  for (const v1::SwitchMessage& message : {hello, report, InstalledOf(7, "no memory left")}) {
    const std::string good = message.SerializeAsString();
    ASSERT_EQ(BrokenBySwitchMessage(good), "");
    for (int i = 0; i < Rounds(); ++i) {
      const std::string data = Mutated(good, random);
      ASSERT_EQ(BrokenBySwitchMessage(data), "") << testing::PrintToString(data);
    }
  }
}

TEST(RequestDecodersTest, IdsGuidsAndPageTokens) {
  std::mt19937_64 random(TestSeed() + 2);
  for (const char* const good :
       {"", "42", "9223372036854775807", "0x0002c90300001234", "7.1000", "5:node1node2"}) {
    ASSERT_EQ(BrokenByIdentifier(good), "") << good;
    for (int i = 0; i < Rounds(); ++i) {
      const std::string text = Mutated(good, random);
      ASSERT_EQ(BrokenByIdentifier(text), "") << testing::PrintToString(text);
    }
  }
}

TEST(RequestDecodersTest, AGuidIsSixteenHexDigitsAndNothingElse) {
  EXPECT_EQ(ParseGuid("0x0002C90300001234")->value(), 0x0002c90300001234U);
  for (const char* const bad : {"+002c90300001234", " 002c90300001234", "0x0x02c90300001234",
                                "0x02c90300001234", "0002c9030000123g", "-000000000000001"}) {
    EXPECT_FALSE(ParseGuid(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace coppice::request_decoders_test
