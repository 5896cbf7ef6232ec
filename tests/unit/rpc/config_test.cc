#include "daemon/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/fabric/fabric_builder.h"
#include "daemon/placement/placement_terms.h"
#include "tests/support/tier.h"

namespace coppice::config_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string SampleText() {
  std::ifstream file(COPPICE_SOURCE_DIR "/deploy/coppiced.toml");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The error of a text; fails the test if it has none.
std::string ErrorOf(const std::string& text) {
  const auto config = ParseConfig(text, "c.toml", ".");
  EXPECT_FALSE(config.ok()) << text;
  return config.ok() ? "" : std::string(config.status().message());
}

void ExpectDefaults(const Config& config) {
  const ConfigChange change = Compare(DefaultConfig(), config);
  EXPECT_THAT(change.changed, testing::IsEmpty());
  EXPECT_THAT(change.needs_restart, testing::IsEmpty());
}

TEST(Config, MetricsAreOffUnlessAnAddressIsGiven) {
  EXPECT_EQ("", ParseConfig("", "c.toml", ".")->metrics_listen);
  EXPECT_EQ("", ParseConfig("[metrics]\nlisten = \"\"", "c.toml", ".")->metrics_listen);
  const Config config = *ParseConfig("\n[metrics]\nlisten = \"[::1]:9709\"", "c.toml", ".");
  EXPECT_EQ("[::1]:9709", config.metrics_listen);
  EXPECT_EQ("c.toml:3: metrics.listen: ", config.PlaceOf("metrics.listen"));
  EXPECT_THAT(ErrorOf("[metrics]\nlisten = 9709"), StartsWith("c.toml:2: metrics.listen: "));
  EXPECT_THAT(ErrorOf("[metrics]\nport = 9709"), HasSubstr("metrics.port: no such key"));
}

// Copy the lines from here when the table has changed.
TEST(Config, SampleHasTheTermsOfAPlacement) {
  std::string lines = "Terms, and what they weigh then:\n";
  for (const PlacementTerm& term : kPlacementTerms) {
    absl::StrAppendFormat(&lines, "#   %-14s %-5g %s\n", term.name, term.preset, term.help);
  }
  EXPECT_THAT(SampleText(), HasSubstr(absl::StrCat(lines, "#weights")));
}

TEST(Config, SampleGivesTheDefaults) {
  const auto sample = LoadConfig(COPPICE_SOURCE_DIR "/deploy/coppiced.toml");
  ASSERT_TRUE(sample.ok()) << sample.status();
  ExpectDefaults(*sample);
  const auto empty = ParseConfig("", "c.toml", ".");
  ASSERT_TRUE(empty.ok()) << empty.status();
  ExpectDefaults(*empty);
}

// Every key that an error offers as known is in the sample.
TEST(Config, SampleDocumentsEveryKey) {
  const std::string sample = SampleText();
  for (const char* section : {"", "[lease]\n", "[sweep]\n", "[limits]\n", "[[switches]]\n"}) {
    std::string rest = "x = 1\n";
    if (std::string(section) == "[[switches]]\n")
      rest = "guid = \"0000000000000001\"\nentries = 0\n" + rest;
    const std::string error = ErrorOf(section + rest);
    const size_t list = error.find("there are: ");
    ASSERT_NE(list, std::string::npos) << error;
    std::istringstream keys(error.substr(list + 11));
    for (std::string key; std::getline(keys, key, ',');) {
      key.erase(0, key.find_first_not_of(' '));
      EXPECT_THAT(sample, HasSubstr(key));
    }
  }
}

TEST(Config, ReadsRulesInOrder) {
  const auto config = ParseConfig(R"(
[[switches]]
guid = "0x0002c9020040b0e0"
entries = 0
[[switches]]
description = "Quantum*"
vendor_id = 0x2c9
device_id = 54000
entries = 64
reserved = 8
degree_limit = 32
)",
                                  "c.toml", ".");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto& rules = config->manager.capability_rules;
  ASSERT_EQ(rules.size(), 2);
  EXPECT_EQ(rules[0].guid, Guid(0x0002c9020040b0e0));
  EXPECT_EQ(rules[0].entries, 0);
  EXPECT_EQ(rules[1].description, "Quantum*");
  EXPECT_EQ(rules[1].vendor_id, 0x2c9u);
  EXPECT_EQ(rules[1].device_id, 54000);
  EXPECT_EQ(rules[1].reserved, 8);
  EXPECT_EQ(rules[1].degree_limit, 32);
}

// A rule in escapes names the switch whose description is in UTF-8.
TEST(Config, RulesMatchDescriptionsOfAnyCharacters) {
  FabricBuilder builder;
  for (const auto& [guid, description] : {std::pair(Guid(1),
                                                    "schrank-\xc3\xbc"
                                                    "7"),
                                          std::pair(Guid(2), "schrank-u7")}) {
    SwitchInfo info;
    info.guid = guid;
    info.port_count = 2;
    info.description = description;
    ASSERT_TRUE(builder.AddSwitch(info).ok());
  }
  const auto fabric = *builder.Build();
  for (const char* const rule : {R"(schrank-\u00fc*)", R"(schrank-\U000000fc?)"}) {
    const auto config = ParseConfig(
        absl::StrCat("[[switches]]\ndescription = \"", rule, "\"\nentries = 5\ndegree_limit = 8\n"),
        "c.toml", ".");
    ASSERT_TRUE(config.ok()) << config.status();
    const auto records = ApplyRules(*fabric, config->manager.capability_rules);
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records[0].entries_total, 5u) << rule;
    EXPECT_EQ(records[1].entries_total, 0u) << rule;
  }
}

TEST(Config, ReadsPlacement) {
  const auto config = ParseConfig(
      "[placement]\nterm = \"90s\"\nheld = 7\nweights = { pods = 3, leaf_switches = 0.5 }",
      "c.toml", ".");
  ASSERT_TRUE(config.ok()) << config.status();
  const PlacementOptions& placement = config->manager.placement;
  EXPECT_EQ(placement.default_term, absl::Seconds(90));
  EXPECT_EQ(placement.most_held, 7u);
  EXPECT_EQ(placement.weights.pods, 3);
  EXPECT_EQ(placement.weights.leaf_switches, 0.5);
  EXPECT_THAT(ErrorOf("[placement]\nterm = \"0s\""), StartsWith("c.toml:2: placement.term: "));
  EXPECT_THAT(ErrorOf("[placement]\nweights = { pods = -1 }"),
              StartsWith("c.toml:2: placement.weights.pods: "));
  EXPECT_THAT(ErrorOf("[placement]\nweights = { pots = 1 }"), HasSubstr("pots: no such key"));
}

TEST(Config, NamesFileLineAndKey) {
  EXPECT_THAT(ErrorOf("\nfabrik = \"umad\"\n"), StartsWith("c.toml:2: fabrik: no such key"));
  EXPECT_THAT(ErrorOf("fabric = 3"), StartsWith("c.toml:1: fabric: must be a text"));
  EXPECT_THAT(ErrorOf("fabric = \"tape:x\""), StartsWith("c.toml:1: fabric: \"tape:x\""));
  EXPECT_THAT(ErrorOf("database = \"\""), StartsWith("c.toml:1: database: must not be empty"));
  EXPECT_THAT(ErrorOf("listen = []"), StartsWith("c.toml:1: listen: must be a list"));
  EXPECT_THAT(ErrorOf("listen = [\"a:1\", 2]"), StartsWith("c.toml:1: listen: must be a list"));
  EXPECT_THAT(ErrorOf("log_level = \"loud\""), StartsWith("c.toml:1: log_level: \"loud\""));
  EXPECT_THAT(ErrorOf("[limits]\n\njob_ranks = 0"),
              StartsWith("c.toml:3: limits.job_ranks: 0 is out of range: 1 to"));
  EXPECT_THAT(ErrorOf("[limits]\njob_ranks = 1.5"),
              StartsWith("c.toml:2: limits.job_ranks: must be a whole number"));
  EXPECT_THAT(ErrorOf("[planning]\npromised_duty = 1.5\n"),
              StartsWith("c.toml:2: planning.promised_duty: 1.5 is out of range: 0 to 1"));
  EXPECT_THAT(ErrorOf("[planning]\npromised_duty = \"half\"\n"),
              StartsWith("c.toml:2: planning.promised_duty: must be a number"));
  EXPECT_THAT(ErrorOf("[lease]\ndefault = \"0.5s\""),
              StartsWith("c.toml:2: lease.default: 500ms is out of range"));
  EXPECT_THAT(ErrorOf("[lease]\ndefault = 60"),
              StartsWith("c.toml:2: lease.default: must be a duration"));
  EXPECT_THAT(ErrorOf("[lease]\nmin = \"2m\"\ndefault = \"1m\""),
              StartsWith("c.toml:3: lease.default: must lie between"));
  EXPECT_THAT(ErrorOf("[sweep]\nperiod = \"10ms\""), StartsWith("c.toml:2: sweep.period: must be"));
  EXPECT_THAT(ErrorOf("sweep = 3"), StartsWith("c.toml:1: sweep: must be a table"));
  EXPECT_THAT(ErrorOf("a = \n"), StartsWith("c.toml:1: not TOML"));
  EXPECT_THAT(ErrorOf("[$"), StartsWith("c.toml:1: not TOML"));  // aborted in checked builds
  EXPECT_THAT(ErrorOf("[[switches]]\nentries = 3"), HasSubstr("matches by nothing"));
  EXPECT_THAT(ErrorOf("[[switches]]\ndescription = \"*\""), HasSubstr("entries: is missing"));
  EXPECT_THAT(ErrorOf("[[switches]]\ndescription = \"*\"\nentries = 1"),
              HasSubstr("degree_limit: is missing"));
  EXPECT_THAT(ErrorOf("[[switches]]\ndescription = \"*\"\nentries = 1\ndegree_limit = 1"),
              StartsWith("c.toml:4: switches.degree_limit: 1 is out of range"));
  EXPECT_THAT(ErrorOf("[[switches]]\nguid = \"12\"\nentries = 0"),
              StartsWith("c.toml:2: switches.guid: must be a node GUID"));
  EXPECT_THAT(
      ErrorOf("[[switches]]\ndescription = \"*\"\nentries = 1\nreserved = 2\ndegree_limit = 2"),
      StartsWith("c.toml:4: switches.reserved: is more"));
  EXPECT_THAT(ErrorOf("[switches]\nentries = 1"), StartsWith("c.toml:1: switches: must be tables"));
}

TEST(Config, TakesAProfileByNameOrTable) {
  EXPECT_EQ(ParseConfig("profile = \"paper\"", "c.toml", ".")->manager.profile.name, "paper");
  EXPECT_THAT(ErrorOf("\nprofile = \"none\""), StartsWith("c.toml:2: profile: "));
  EXPECT_THAT(ErrorOf("profile = \"/nonexistent/p.toml\""), HasSubstr("/nonexistent/p.toml"));
  const auto table = ParseConfig("[profile]\nbase = \"paper\"\nlink_us = 0.25\n", "c.toml", ".");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_DOUBLE_EQ(table->manager.profile.link_us, 0.25);
  EXPECT_THAT(ErrorOf("\n[profile]\nlink_us = 0.25\nwings = 2\n"), HasSubstr(":4"));
  EXPECT_THAT(ErrorOf("profile = 3"), StartsWith("c.toml:1: profile: must be"));
}

TEST(Config, TakesCharactersBeyondAsciiInCommentsOnly) {
  for (const char* text : {
           "# \xc2\xb5s\nlog_level = \"info\"\n",
           "log_level = \"info\"  # \xd0\xb0\n",
           "database = 'a#b\"'  # \xc2\xb5\n",
           "database = \"a\\\"#\\\\\"  # it's \xc2\xb5\n",
           "database = \"/\\u00b5\"\n",
       }) {
    const auto config = ParseConfig(text, "c.toml", ".");
    EXPECT_TRUE(config.ok()) << text << config.status();
  }
  for (const char* text : {
           "# \xc2\xb5\n\xc2\xb5s = 1",
           "\nlog_level = \xc2\xa1",
           "\ndatabase = \"/\xc3\xa9\"",
           "\ndatabase = '#\xc3\xa9'",
           "\ndatabase = \"\\\"#\xc3\xa9\"",
           "database = \"\"\"\n#\"\"\"\xc2\xb5",
           "database = '''\n# \xc2\xb5'''",
           "\n\xff = 1",
       }) {
    EXPECT_THAT(ErrorOf(text), StartsWith("c.toml:2: a character beyond ASCII")) << text;
  }
}

TEST(Config, TellsFilesThatCannotBeRead) {
  EXPECT_EQ(LoadConfig("/nonexistent/c.toml").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(LoadConfig("/tmp").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(LoadConfig("/dev/null").status().code() == absl::StatusCode::kFailedPrecondition);
}

TEST(Config, SurvivesMutatedText) {
  const std::string sample = SampleText();
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < (FullTier() ? 20'000 : 2'000); ++round) {
    std::string text = sample;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 20);
          break;
        default:
          text.insert(at, sample.substr(random() % sample.size(), random() % 30));
      }
    }
    const auto config = ParseConfig(text, "c.toml", ".");
    if (!config.ok()) {
      EXPECT_FALSE(config.status().message().empty());
    }
  }
}

}  // namespace
}  // namespace coppice::config_test
