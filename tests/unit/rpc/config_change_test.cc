// Who may connect, as the file states it, and what a file that was edited changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "daemon/config/config.h"

namespace coppice::config_change_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::StartsWith;

absl::StatusOr<Config> Parse(const std::string& text) {
  return ParseConfig(text, "c.toml", "/etc/c");
}
std::string ErrorIn(const std::string& text) { return std::string(Parse(text).status().message()); }

TEST(Access, IsRead) {
  const auto plain = Parse("socket_mode = \"0660\"\nadmin_group = \"ops\"\ninsecure_tcp = true\n");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->access.socket_mode, 0660u);
  EXPECT_EQ(plain->access.admin_group, "ops");
  EXPECT_EQ(plain->PlaceOf("admin_group"), "c.toml:2: admin_group: ");
  EXPECT_TRUE(plain->access.insecure_tcp);
  const auto tls = Parse(
      "[tls]\ncertificate = \"s.pem\"\nkey = \"/k.pem\"\nclient_ca = \"ca.pem\"\n"
      "administrators = [\"a\", \"b\"]\n[agents]\ncertificates = [\"agent-{host}\"]\n"
      "users = [\"coppice-agent\"]\ntrust_root = true\n");
  ASSERT_TRUE(tls.ok()) << tls.status();
  EXPECT_EQ(tls->access.tls.certificate, "/etc/c/s.pem");
  EXPECT_EQ(tls->access.tls.key, "/k.pem");
  EXPECT_EQ(tls->access.tls.client_ca, "/etc/c/ca.pem");
  EXPECT_THAT(tls->access.tls_administrators, ElementsAre("a", "b"));
  EXPECT_EQ(tls->PlaceOf("tls.certificate"), "c.toml:2: tls.certificate: ");
  EXPECT_FALSE(tls->access.tls.open_reading);
  EXPECT_THAT(tls->access.agents.certificates, ElementsAre("agent-{host}"));
  EXPECT_THAT(tls->access.agents.users, ElementsAre("coppice-agent"));
  EXPECT_TRUE(tls->access.agents.trust_root);
  const auto open = Parse("[tls]\ncertificate = \"s\"\nkey = \"k\"\nopen_reading = true\n");
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_TRUE(open->access.tls.open_reading);
  const auto none = Parse("");
  EXPECT_EQ(none->access.socket_mode, 0660u);
  EXPECT_EQ(none->access.socket_group, "coppice");
  EXPECT_EQ(none->PlaceOf("socket_group"), "");
  EXPECT_EQ(Parse("socket_group = \"ops\"")->PlaceOf("socket_group"), "c.toml:1: socket_group: ");
  EXPECT_THAT(none->access.agents.certificates, IsEmpty());
  EXPECT_FALSE(none->access.agents.trust_root);
  EXPECT_EQ(none->access.admin_group, "coppice-admin");
  EXPECT_EQ(none->PlaceOf("admin_group"), "");
  EXPECT_EQ(none->access.tls.certificate, "");
}

TEST(Access, KnowsMunge) {
  const auto config = Parse(
      "[tls]\ncertificate = \"s\"\nkey = \"k\"\nclient_ca = \"ca\"\nclient_crl = \"crl.pem\"\n"
      "[munge]\nsocket = \"/run/m\"\nrealm = \"lab\"\ntrust_root = true\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->access.tls.client_crl, "/etc/c/crl.pem");
  EXPECT_EQ(config->access.munge.socket, "/run/m");
  EXPECT_EQ(config->access.munge.realm, "lab");
  EXPECT_TRUE(config->access.munge.trust_root);
  EXPECT_FALSE(config->access.takes_certificates_only());
  const auto alone =
      Parse("[tls]\ncertificate = \"s\"\nkey = \"k\"\n[munge]\nsocket = \"default\"\n");
  EXPECT_TRUE(alone.ok()) << alone.status();
  EXPECT_FALSE(Parse("")->access.munge.trust_root);
  EXPECT_TRUE(Parse("")->access.takes_certificates_only());
  EXPECT_THAT(ErrorIn("[munge]\nsocket = \"default\"\n"),
              StartsWith("c.toml:1: munge: takes [tls]"));
  EXPECT_THAT(ErrorIn("[munge]\nsocket = \"munge.socket\"\n"),
              StartsWith("c.toml:2: munge.socket: must be"));
  EXPECT_THAT(ErrorIn("[tls]\ncertificate = \"s\"\nkey = \"k\"\nopen_reading = true\n"
                      "client_crl = \"c\"\n"),
              StartsWith("c.toml:5: tls.client_crl: "));
}

TEST(Access, RefusesWhatDoesNotFit) {
  for (const char* mode : {"\"8\"", "\"0\"", "\"1777\"", "\"066a\"", "\"00660\"", "\"\"", "432"}) {
    EXPECT_THAT(ErrorIn(std::string("socket_mode = ") + mode),
                StartsWith("c.toml:1: socket_mode: "))
        << mode;
  }
  EXPECT_THAT(ErrorIn("insecure_tcp = 1"), StartsWith("c.toml:1: insecure_tcp: must be true or"));
  EXPECT_THAT(ErrorIn("[tls]\ncertificate = \"s\""), StartsWith("c.toml:1: tls.key: is missing"));
  EXPECT_THAT(ErrorIn("[tls]\nkey = \"s\""), StartsWith("c.toml:1: tls.certificate: is missing"));
  EXPECT_THAT(ErrorIn("[tls]\ncertificate = \"s\"\nkey = \"k\"\n"),
              StartsWith("c.toml:1: tls.client_ca: is missing"));
  for (const char* pattern : {"n1", "{host}", "", "{host}-{host}"}) {
    EXPECT_THAT(ErrorIn(std::string("[tls]\ncertificate = \"s\"\nkey = \"k\"\nclient_ca = \"c\"\n"
                                    "[agents]\ncertificates = [\"") +
                        pattern + "\"]\n"),
                StartsWith("c.toml:6: agents.certificates: "))
        << pattern;
  }
  EXPECT_THAT(ErrorIn("[agents]\ncertificates = [\"agent-{host}\"]\n"),
              StartsWith("c.toml:2: agents.certificates: are shown by clients"));
  EXPECT_THAT(ErrorIn("insecure_tcp = true\n[tls]\ncertificate = \"s\"\nkey = \"k\"\n"
                      "open_reading = true\n"),
              StartsWith("c.toml:1: insecure_tcp: contradicts"));
  EXPECT_THAT(ErrorIn("[tls]\ncertificate = \"s\"\nkey = \"k\"\nopen_reading = true\n"
                      "administrators = [\"a\"]\n"),
              StartsWith("c.toml:5: tls.administrators: "));
}

TEST(ConfigChange, TellsWhatHoldsAtOnce) {
  const Config running = *Parse("");
  EXPECT_THAT(Compare(running, *Parse("")).changed, IsEmpty());
  EXPECT_THAT(Compare(running, *Parse("")).needs_restart, IsEmpty());
  const ConfigChange change = Compare(
      running, *Parse("fabric = \"umad:a:1\"\nlog_level = \"debug\"\nprofile = \"paper\"\n"
                      "admin_group = \"ops\"\n[lease]\ndefault = \"2m\"\n[limits]\njob_ranks = 7\n"
                      "trees_per_job = 8\n[[switches]]\ndescription = \"*\"\nentries = 0\n"));
  EXPECT_THAT(change.changed, ElementsAre("admin_group", "log_level", "profile", "lease.default",
                                          "limits.trees_per_job", "switches"));
  EXPECT_THAT(change.needs_restart, ElementsAre("fabric", "limits.job_ranks"));
  EXPECT_EQ(change.next.fabric, running.fabric);
  EXPECT_EQ(change.next.manager.max_job_ranks, running.manager.max_job_ranks);
  EXPECT_EQ(change.next.log_level, "debug");
  EXPECT_EQ(change.next.manager.profile.name, "paper");
  EXPECT_EQ(change.next.manager.max_trees_per_job, 8);
  EXPECT_EQ(change.next.manager.capability_rules.size(), 1);
}

// A key that Compare does not know would be changed in the file and never be told.
TEST(ConfigChange, KnowsEveryKeyOfTheSample) {
  std::ifstream sample(COPPICE_SOURCE_DIR "/deploy/coppiced.toml");
  const std::regex section("\\[([a-z_.]+)\\]"), key("#?([a-z_]+) = .*");
  std::string path;
  std::smatch found;
  int keys = 0;
  for (std::string line; std::getline(sample, line);) {
    if (std::regex_match(line, found, section)) path = found[1].str() + ".";
    if (!std::regex_match(line, found, key)) continue;
    EXPECT_THAT(ConfigKeys(), Contains(Field(&ConfigKey::name, path + found[1].str())));
    ++keys;
  }
  EXPECT_GT(keys, 15);
}

// The sample marks what holds from the next start only. A comment may be about several keys.
TEST(ConfigChange, TheSampleMarksWhatNeedsARestart) {
  std::map<std::string, ConfigKey::Holds> holds;
  for (const ConfigKey& key : ConfigKeys()) holds[key.name] = key.holds;
  std::ifstream sample(COPPICE_SOURCE_DIR "/deploy/coppiced.toml");
  const std::regex section("#? ?\\[(?!restart)([a-z_.]+)\\]"), key("#? ?([a-z_]+) = [^#]*(#.*)?");
  std::string path, comment;
  std::vector<std::string> names;  // of the keys that the comment is about
  int compared = 0;
  const auto compare = [&] {
    bool needs_restart = false;
    for (const std::string& name : names) {
      ASSERT_TRUE(holds.count(name)) << name;
      needs_restart |= holds[name] == ConfigKey::Holds::kFromStart;
      ++compared;
    }
    if (!names.empty()) {
      EXPECT_EQ(needs_restart, comment.find("[restart]") != std::string::npos) << names.front();
    }
    names.clear();
    comment.clear();
  };
  std::smatch found;
  for (std::string line; std::getline(sample, line) && line.find("[[switches]]") != 2;) {
    if (std::regex_match(line, found, key)) {
      names.push_back(path + found[1].str());
      comment += found[2].str();
    } else if (line.empty() || !names.empty() || std::regex_match(line, section)) {
      compare();
    }
    if (names.empty() && !line.empty() && line[0] == '#') comment += line;
    if (std::regex_match(line, found, section)) path = found[1].str() + ".";
  }
  compare();
  EXPECT_EQ(compared, static_cast<int>(ConfigKeys().size()) - 1);  // all but the rules of switches
}

}  // namespace
}  // namespace coppice::config_change_test
