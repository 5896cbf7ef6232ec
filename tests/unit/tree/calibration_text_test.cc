// Measured latencies from text of any kind, and profiles as text that reads back.
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "daemon/tree/calibration/calibration.h"
#include "daemon/tree/calibration/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"

namespace coppice::calibration_text_test {
namespace {

using ::testing::HasSubstr;

constexpr char kText[] =
    "# measured on Monday\n\n"
    "Operation, bytes, members, tree type, width, microseconds\r\n"
    "barrier,0,64,I,8,5.25\n"
    "  allreduce , 4096 ,128,II, 16 ,1.5e1\r\n"
    "# end\n";

TEST(ParseLatencySamples, ReadsWhatPeopleWrite) {
  const auto samples = ParseLatencySamples(kText, "m.csv");
  ASSERT_TRUE(samples.ok()) << samples.status();
  ASSERT_EQ(samples->size(), 2U);
  EXPECT_EQ((*samples)[0].operation, Operation::kBarrier);
  EXPECT_EQ((*samples)[0].line, 4U);
  const LatencySample& second = (*samples)[1];
  EXPECT_EQ(second.operation, Operation::kAllreduce);
  EXPECT_EQ(second.bytes, 4096U);
  EXPECT_EQ(second.members, 128U);
  EXPECT_EQ(second.type, TreeType::kTypeII);
  EXPECT_EQ(second.width, 16U);
  EXPECT_EQ(second.us, 15);
  EXPECT_EQ(second.line, 5U);
}

TEST(ParseLatencySamples, TakesColumnsInAnyOrderAndLeavesOthers) {
  const auto samples = ParseLatencySamples(
      "\xef\xbb\xbfus,\"site, row\",WIDTH,tree_type,members,bytes,operation\n"
      "3,\"a \"\"b\"\", c\",2,2,4,9,\"Bcast\"",
      "m.csv");
  ASSERT_TRUE(samples.ok()) << samples.status();
  ASSERT_EQ(samples->size(), 1U);
  EXPECT_EQ(samples->front().operation, Operation::kBcast);
  EXPECT_EQ(samples->front().bytes, 9U);
  EXPECT_EQ(samples->front().type, TreeType::kTypeII);
  EXPECT_EQ(samples->front().us, 3);
}

TEST(ParseLatencySamples, NamesFileLineAndColumnOfAnError) {
  const std::string header = "operation,bytes,members,type,width,microseconds\n";
  const std::pair<std::string, const char*> cases[] = {
      {"", "m.csv: no samples"},
      {"\n# nothing\n", "m.csv: no samples"},
      {header, "m.csv: no samples"},
      {"operation,bytes,members\n",
       "m.csv, line 1: the header \"operation,bytes,members\" has no "
       "column type, width, microseconds"},
      {"bytes,operation,bytes,members,type,width,us\n",
       "m.csv, line 1: column bytes: stands twice"},
      {"us,microseconds,operation,bytes,members,type,width\n", "column microseconds: stands twice"},
      {header + "scatter,8,64,I,8,5", "m.csv, line 2: column operation: \"scatter\" is none of"},
      {header + ",8,64,I,8,5", "column operation: \"\""},
      {header + "bcast,-8,64,I,8,5", "column bytes: \"-8\" is not a whole number"},
      {header + "bcast,8.0,64,I,8,5", "column bytes"},
      {header + "bcast,,64,I,8,5", "column bytes: \"\""},
      {header + "bcast,99999999999999999999,64,I,8,5", "column bytes"},
      {header + "bcast,1099511627777,64,I,8,5", "column bytes: 1099511627777 is more than"},
      {header + "barrier,8,64,I,8,5", "column bytes: 8, but a barrier moves none"},
      {header + "bcast,8,1,I,8,5", "column members: 1 is not between 2 and"},
      {header + "bcast,8,0,I,8,5", "column members: 0"},
      {header + "bcast,8,4294967296,I,8,5", "column members"},
      {header + "bcast,8,64,III,8,5", "column type: \"III\" is neither I nor II"},
      {header + "bcast,8,64,0,8,5", "column type"},
      {header + "bcast,8,64,I,0,5", "column width: 0 is not between 2 and the 64 members"},
      {header + "bcast,8,64,I,1,5", "column width: 1"},
      {header + "bcast,8,64,I,65,5", "column width: 65"},
      {header + "bcast,8,64,I,8,nan", "column microseconds: nan is not above 0"},
      {header + "bcast,8,64,I,8,inf", "column microseconds: inf"},
      {header + "bcast,8,64,I,8,-1", "column microseconds: -1"},
      {header + "bcast,8,64,I,8,0", "column microseconds: 0"},
      {header + "bcast,8,64,I,8,1e10", "column microseconds: 1e+10"},
      {header + "bcast,8,64,I,8,5us", "column microseconds: \"5us\" is not a number"},
      {header + "\n\nbcast,8,64,I,8", "m.csv, line 4: 5 fields where the header has 6"},
      {header + "bcast,8,64,I,8,5,6", "7 fields"},
      {header + "\"bcast,8,64,I,8,5", "m.csv, line 2: a quote is never closed"},
      {header + "\"bcast\"x,8,64,I,8,5", "text after a closing quote"},
      {header + std::string("bc\0st,8,64,I,8,5", 16), "m.csv, line 2: a control character"},
      {"\x7f"
       "ELF\x02\x01",
       "m.csv, line 1: a control character"},
      {std::string(300, ','), "m.csv, line 1: more than 256 fields"},
  };
  for (const auto& [text, message] : cases) {
    const absl::Status status = ParseLatencySamples(text, "m.csv").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_LT(status.message().size(), 400U);
  }
}

TEST(ParseLatencySamples, HoldsItsCaps) {
  std::string text = "operation,bytes,members,type,width,us\n";
  for (int i = 0; i < 20'001; ++i) text += "bcast,8,64,I,8,5\n";
  EXPECT_THAT(std::string(ParseLatencySamples(text, "m").status().message()),
              HasSubstr("m, line 20002: more than 20000 samples"));
  text.resize(text.size() - 17);
  const auto samples = ParseLatencySamples(text, "m");
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ(samples->size(), 20'000U);
  EXPECT_THAT(
      std::string(ParseLatencySamples(std::string((16 << 20) + 1, '\n'), "m").status().message()),
      HasSubstr("m: larger than 16777216 bytes"));
}

TEST(ParseLatencySamples, SurvivesMutatedText) {
  std::mt19937_64 random(TestSeed());
  const uint32_t rounds = FullTier() ? 200'000 : 4'000;
  CalibrationOptions options;
  options.base = *BuiltInProfile("hdr");
  options.fixed = {"link_us", "nic", "switch.send_us"};
  for (uint32_t round = 0; round < rounds; ++round) {
    std::string text = kText;
    for (uint64_t edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 8);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 32));
      }
      if (text.empty()) text = "x";
    }
    const auto samples = ParseLatencySamples(text, "m.csv");
    if (!samples.ok()) {
      EXPECT_EQ(samples.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(samples.status().message()), HasSubstr("m.csv"));
      continue;
    }
    for (const LatencySample& sample : *samples) EXPECT_TRUE(CheckLatencySample(sample).ok());
    if (round % 16 == 0) {
      EXPECT_NE(FitProfile(*samples, options).status().code(), absl::StatusCode::kInternal);
    }
  }
}

// --- profile text

void ExpectEqual(const CostProfile& a, const CostProfile& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.is_estimate, b.is_estimate);
  EXPECT_EQ(a.switch_is_measured, b.switch_is_measured);
  for (size_t c = 0; c < kConstantCount; ++c) EXPECT_EQ(ConstantIn(a, c), ConstantIn(b, c));
  EXPECT_EQ(a.same_host_us, b.same_host_us);
  EXPECT_EQ(a.mean_route_links, b.mean_route_links);
  EXPECT_EQ(a.port_gbps, b.port_gbps);
  EXPECT_EQ(a.mtu_bytes, b.mtu_bytes);
  EXPECT_EQ(a.forward_includes_serialisation, b.forward_includes_serialisation);
  EXPECT_EQ(a.nic_degree, b.nic_degree);
  EXPECT_EQ(a.width_tolerance_us, b.width_tolerance_us);
}

TEST(ProfileToToml, ReadsBackToAnEqualProfile) {
  std::mt19937_64 random(TestSeed());
  std::uniform_real_distribution<double> exponent(-300, 300);
  const auto number = [&] {
    switch (random() % 6) {
      case 0:
        return 0.0;
      case 1:
        return static_cast<double>(random() % 1000);
      case 2:
        return static_cast<double>(random());  // whole, beyond an integer of TOML
      case 3:
        return std::pow(10, exponent(random));
      default:
        return static_cast<double>(random() % 1'000'000) / 1e7;
    }
  };
  for (const std::string& name : BuiltInProfileNames()) {
    ExpectEqual(*ParseProfile(ProfileToToml(*BuiltInProfile(name)), "p"), *BuiltInProfile(name));
  }
  for (int round = 0; round < 500; ++round) {
    CostProfile profile;
    profile.name = "a \"b\" \\ c\n\t\x01\x7f # \xc2\xb5s \xf0\x9f\x8c\xb3";
    for (size_t c = 0; c < kConstantCount; ++c) ConstantIn(profile, c) = number();
    profile.same_host_us = number();
    profile.mean_route_links = number();
    profile.port_gbps = number();
    profile.width_tolerance_us = number();
    profile.mtu_bytes = 1 + static_cast<uint32_t>(random() % UINT32_MAX);
    profile.nic_degree = 1 + static_cast<uint32_t>(random() % UINT32_MAX);
    profile.is_estimate = random() % 2 == 0;
    profile.switch_is_measured = random() % 2 == 0;
    profile.forward_includes_serialisation = random() % 2 == 0;
    const auto back = ParseProfile(ProfileToToml(profile), "p");
    ASSERT_TRUE(back.ok()) << back.status() << ProfileToToml(profile);
    ExpectEqual(*back, profile);
  }
}

TEST(ProfileToToml, AnyNameGivesTextThatCanBeRead) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 2000; ++round) {
    CostProfile profile = *BuiltInProfile("hdr");
    profile.name.clear();
    for (uint64_t i = random() % 12; i > 0; --i) profile.name += static_cast<char>(random());
    const auto back = ParseProfile(ProfileToToml(profile), "p");
    ASSERT_TRUE(back.ok()) << back.status() << ProfileToToml(profile);
    EXPECT_EQ(back->nic.match_us, profile.nic.match_us);
  }
}

}  // namespace
}  // namespace coppice::calibration_text_test
