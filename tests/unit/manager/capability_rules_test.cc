#include <gtest/gtest.h>

#include "daemon/fabric/fabric_builder.h"
#include "daemon/manager/inventory.h"

namespace coppice::capability_rules_test {
namespace {

std::shared_ptr<const Fabric> SwitchNamed(const std::string& description) {
  FabricBuilder builder;
  SwitchInfo info;
  info.guid = Guid(0x77);
  info.port_count = 4;
  info.vendor_id = 0x2c9;
  info.device_id = 53000;
  info.description = description;
  EXPECT_TRUE(builder.AddSwitch(info).ok());
  return *builder.Build();
}

uint32_t EntriesUnder(const CapabilityRule& rule, const std::string& description = "") {
  return ApplyRules(*SwitchNamed(description), {rule})[0].entries_total;
}

bool PatternMatches(const std::string& pattern, const std::string& text) {
  CapabilityRule rule;
  rule.description = pattern;
  rule.entries = 1;
  return EntriesUnder(rule, text) == 1;
}

// Recursive and slow, straight from the meaning of the pattern.
bool SlowMatch(absl::string_view pattern, absl::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return SlowMatch(pattern.substr(1), text) ||
           (!text.empty() && SlowMatch(pattern, text.substr(1)));
  }
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
         SlowMatch(pattern.substr(1), text.substr(1));
}

TEST(CapabilityRulesTest, NoRuleMeansItCannotAggregate) {
  const auto records = ApplyRules(*SwitchNamed("leaf"), {});
  ASSERT_EQ(1u, records.size());
  EXPECT_EQ((CapabilityRecord{Guid(0x77), 0, 0, 0}), records[0]);
}

TEST(CapabilityRulesTest, AllConditionsMustHoldAndTheFirstRuleWins) {
  CapabilityRule by_guid, by_vendor, rest;
  by_guid.guid = Guid(0x77);
  by_guid.device_id = 1;  // does not hold
  by_guid.entries = 1;
  by_vendor.vendor_id = 0x2c9;
  by_vendor.device_id = 53000;
  by_vendor.entries = 2;
  by_vendor.reserved = 1;
  by_vendor.degree_limit = 9;
  rest.entries = 3;
  const auto records = ApplyRules(*SwitchNamed("leaf"), {by_guid, by_vendor, rest});
  EXPECT_EQ((CapabilityRecord{Guid(0x77), 2, 1, 9}), records[0]);
}

TEST(CapabilityRulesTest, PatternsAreThoseOfTheShell) {
  EXPECT_TRUE(PatternMatches("leaf*", "leaf12"));
  EXPECT_TRUE(PatternMatches("*QM8700*", "MF0;leaf:QM8700/U1"));
  EXPECT_FALSE(PatternMatches("leaf?", "leaf12"));
  EXPECT_FALSE(PatternMatches("leaf", "leaf1"));
}

TEST(CapabilityRulesTest, PatternsAgreeWithASlowMatcherOnAllSmallCases) {
  // Every pattern of up to 4 characters over {a, b, ?, *} on every text of up to 4 over {a, b}.
  std::vector<std::string> patterns = {""}, texts = {""};
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (patterns[i].size() == 4) break;
    for (const char c : {'a', 'b', '?', '*'}) patterns.push_back(patterns[i] + c);
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == 4) break;
    for (const char c : {'a', 'b'}) texts.push_back(texts[i] + c);
  }
  for (const std::string& text : texts) {
    const auto fabric = SwitchNamed(text);
    for (const std::string& pattern : patterns) {
      CapabilityRule rule;
      rule.description = pattern;
      rule.entries = 1;
      EXPECT_EQ(SlowMatch(pattern, text), ApplyRules(*fabric, {rule})[0].entries_total == 1)
          << '"' << pattern << "\" on \"" << text << '"';
    }
  }
}

TEST(CapabilityRulesTest, AQuestionMarkIsOneCharacterInUtf8) {
  EXPECT_TRUE(
      PatternMatches("L\xC3\xBC"
                     "beck",
                     "L\xC3\xBC"
                     "beck"));
  EXPECT_TRUE(PatternMatches("L?beck",
                             "L\xC3\xBC"
                             "beck"));
  EXPECT_TRUE(PatternMatches("*\xC3\xBC*",
                             "L\xC3\xBC"
                             "beck"));
  EXPECT_FALSE(PatternMatches("L??beck",
                              "L\xC3\xBC"
                              "beck"));
}

}  // namespace
}  // namespace coppice::capability_rules_test
