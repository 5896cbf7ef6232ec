// Operations, payloads and cost profiles, read from text that may be anything.
#include "daemon/tree/cost_profile.h"

#include <random>
#include <string>

#include "daemon/tree/planner.h"
#include "daemon/tree/tree_spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"

namespace coppice::cost_profile_test {
namespace {

using ::testing::HasSubstr;

TEST(Collective, NamesGoBothWays) {
  for (const Operation operation :
       {Operation::kBarrier, Operation::kBcast, Operation::kReduce, Operation::kAllreduce}) {
    EXPECT_EQ(ParseOperation(ToString(operation)), operation);
  }
  EXPECT_EQ(ParseOperation("scatter"), std::nullopt);
  EXPECT_EQ(ParseOperation(""), std::nullopt);
}

TEST(Collective, MovesWhatTableOneSays) {
  const auto bytes = [](Operation operation, bool at_root) {
    const Payload payload = PayloadOf(operation, 8, at_root);
    return std::vector<uint64_t>{payload.up_bytes, payload.down_bytes, payload.reduced_bytes};
  };
  using Bytes = std::vector<uint64_t>;
  EXPECT_EQ(bytes(Operation::kBarrier, true), (Bytes{0, 0, 0}));
  EXPECT_EQ(bytes(Operation::kBcast, true), (Bytes{0, 8, 0}));
  EXPECT_EQ(bytes(Operation::kReduce, true), (Bytes{8, 0, 8}));
  EXPECT_EQ(bytes(Operation::kAllreduce, true), (Bytes{8, 8, 8}));
  EXPECT_EQ(bytes(Operation::kBcast, false), (Bytes{8, 8, 0}));
  EXPECT_EQ(bytes(Operation::kReduce, false), (Bytes{8, 8, 8}));
}

TEST(CostProfile, ListsItsBuiltInNames) {
  for (const std::string& name : BuiltInProfileNames()) EXPECT_EQ(BuiltInProfile(name)->name, name);
  const absl::Status status = BuiltInProfile("edr").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("\"edr\""));
  EXPECT_THAT(status.message(), HasSubstr("paper, hdr"));
}

// 32 leaf and 16 spine switches, 512 ports: switches win while packets are few and short, many NICs
// together where each byte is reduced.
TEST(CostProfile, ShortMessagesTakeSwitchesAndLongOnesNics) {
  const FabricPtr fabric = TwoLevelFatTree(32, 16, 16);
  const auto snapshot = MakeSnapshot(fabric, nullptr);
  ASSERT_TRUE(snapshot.ok());
  for (const char* name : {"paper", "hdr"}) {
    for (const uint32_t degree : {32U, 40U, 64U, 128U, 256U}) {
      const std::vector<SwitchCapacity> capacity(
          fabric->switch_count(),
          {.entries_total = 16, .entries_free = 16, .degree_limit = degree});
      for (const uint64_t bytes : {8U, 1U << 20}) {
        TreeRequest request;
        request.members = AllEndpoints(*fabric);
        request.sizes = {{bytes, 1}};
        const auto plan = PlanTree(**snapshot, *BuiltInProfile(name), capacity, request);
        ASSERT_TRUE(plan.ok()) << plan.status();
        EXPECT_EQ(plan->tree.type, bytes == 8 ? TreeType::kTypeII : TreeType::kTypeI)
            << name << " K=" << degree << ": " << plan->reason;
      }
    }
  }
}

constexpr char kText[] = R"(base = "paper"
name = "ours"
link_us = 0.2
mtu_bytes = 4096
is_estimate = true
switch_is_measured = true
forward_includes_serialisation = true
[nic]
match_us = 0.03
reduce_us_per_byte = 1
[switch]
forward_us = 0.25
)";

TEST(CostProfile, ReadsEveryKindOfKeyOverItsBase) {
  const auto profile = ParseProfile(kText, "x.toml");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->name, "ours");
  EXPECT_EQ(profile->link_us, 0.2);
  EXPECT_EQ(profile->mtu_bytes, 4096U);
  EXPECT_TRUE(profile->is_estimate);
  EXPECT_TRUE(profile->switch_is_measured);
  EXPECT_TRUE(profile->forward_includes_serialisation);
  EXPECT_EQ(profile->nic.match_us, 0.03);
  EXPECT_EQ(profile->nic.reduce_us_per_byte, 1);
  EXPECT_EQ(profile->switch_.forward_us, 0.25);
  EXPECT_EQ(profile->nic.forward_us, BuiltInProfile("paper")->nic.forward_us);
  EXPECT_EQ(ParseProfile("", "empty.toml")->link_us, BuiltInProfile("hdr")->link_us);
  EXPECT_TRUE(ParseProfile("link_us = 0.1  # in \xc2\xb5s", "comment.toml").ok());
  EXPECT_EQ(ParseProfile("", "empty.toml")->name, "empty.toml");
  EXPECT_FALSE(ParseProfile("", "empty.toml")->switch_is_measured);
}

TEST(CostProfile, NamesOriginLineAndKeyOfAnError) {
  const std::pair<const char*, const char*> cases[] = {
      {"link_us = ", "p.toml:1: not TOML"},
      {"\nlink_us = -1", "p.toml:2: link_us: must be a number"},
      {"link_us = nan", "p.toml:1: link_us"},
      {"link_us = inf", "p.toml:1: link_us"},
      {"link_us = \"0.1\"", "p.toml:1: link_us"},
      {"link_us = true", "p.toml:1: link_us"},
      {"\n\nlinc_us = 0.1", "p.toml:3: linc_us: no constant"},
      {"[nic]\nmatch = 1", "p.toml:2: nic.match: no constant"},
      {"nic = 3", "p.toml:1: nic: must be a table"},
      {"mtu_bytes = 0", "p.toml:1: mtu_bytes: must be a whole number"},
      {"mtu_bytes = 5000000000", "p.toml:1: mtu_bytes"},
      {"nic_degree = 1.5", "p.toml:1: nic_degree"},
      {"is_estimate = 1", "p.toml:1: is_estimate: must be true or false"},
      {"switch_is_measured = 1", "p.toml:1: switch_is_measured: must be true or false"},
      {"base = \"edr\"", "p.toml:1: base: no built-in cost profile"},
      {"base = 4", "p.toml:1: base"},
      {"name = \"\"", "p.toml:1: name"},
      {"link_us = 1\nlink_us = 2", "p.toml:2: not TOML"},
      {"# \xc2\xb5s\n\xc2\xb5s = 1", "p.toml:2: a character beyond ASCII"},
      {"name = \"\"\"a\n# \xc2\xb5\"\"\"", "p.toml:2: a character beyond ASCII"},
      {"name = '''a\n# \xc2\xb5'''", "p.toml:2: a character beyond ASCII"},
  };
  for (const auto& [text, message] : cases) {
    const absl::Status status = ParseProfile(text, "p.toml").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr(message));
  }
}

TEST(CostProfile, SurvivesMutatedText) {
  std::mt19937_64 random(TestSeed());
  const uint32_t rounds = FullTier() ? 200'000 : 4'000;
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
          text.insert(at, text.substr(random() % text.size(), random() % 16));
      }
      if (text.empty()) text = "x";
    }
    const auto profile = ParseProfile(text, "m.toml");
    if (profile.ok()) {
      EXPECT_GE(profile->link_us, 0);
    } else {
      EXPECT_EQ(profile.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(profile.status().message(), HasSubstr("m.toml:"));
    }
  }
}

}  // namespace
}  // namespace coppice::cost_profile_test
