#include "agents/node/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/tier.h"

namespace coppice::settings_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  Settings settings;
  const absl::Status status = ReadSettings(text, "a.toml", settings);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}

TEST(SettingsTest, TheSampleSaysTheDefaults) {
  Settings read;
  read.host = "changed";
  read.socket_mode = 0;
  read.server = read.socket = read.state_dir = read.measure_listen = read.log_level = "";
  read.search = {{"x"}, {"y"}, std::chrono::milliseconds(0), std::chrono::milliseconds(0), 0};
  const Settings preset;
  ASSERT_TRUE(ReadSettingsFile(COPPICE_SOURCE_DIR "/deploy/agent.toml", read).ok());
  EXPECT_EQ(read.server, preset.server);
  EXPECT_EQ(read.socket, preset.socket);
  EXPECT_EQ(read.socket_mode, preset.socket_mode);
  EXPECT_EQ(read.state_dir, preset.state_dir);
  EXPECT_EQ(read.host, preset.host);
  EXPECT_EQ(read.port_guids, preset.port_guids);
  EXPECT_EQ(read.measure_listen, preset.measure_listen);
  EXPECT_EQ(read.measure_address, preset.measure_address);
  EXPECT_EQ(read.log_level, preset.log_level);
  EXPECT_EQ(read.search.command, preset.search.command);
  EXPECT_EQ(read.search.as_user, preset.search.as_user);
  EXPECT_EQ(read.search.max_budget, preset.search.max_budget);
  EXPECT_EQ(read.search.grace, preset.search.grace);
  EXPECT_EQ(read.search.at_once, preset.search.at_once);
  EXPECT_TRUE(CheckSettings(read).ok());
}

TEST(SettingsTest, EveryKeyIsRead) {
  Settings settings;
  ASSERT_TRUE(ReadSettings(R"(
server = "h:1"
tls_ca = "ca"
tls_certificate = "cert"
tls_key = "key"
socket = "/s"
socket_mode = "0600"
state_dir = "/d"
host = "n1"
port_guids = ["0002c90300a1b2c3", "0002c90300a1b2c4"]
measure_listen = ""
measure_address = "n1:5"
log_level = "debug"
[search]
command = ["run", "{job}"]
as_user = ["sudo", "#{uid}"]
max_budget = "1.5s"
grace = "250ms"
at_once = 7
)",
                           "a.toml", settings)
                  .ok());
  EXPECT_EQ(settings.server, "h:1");
  EXPECT_EQ(settings.tls.ca + settings.tls.cert + settings.tls.key, "cacertkey");
  EXPECT_EQ(settings.socket, "/s");
  EXPECT_EQ(settings.socket_mode, 0600u);
  EXPECT_EQ(settings.state_dir, "/d");
  EXPECT_EQ(settings.host, "n1");
  EXPECT_THAT(settings.port_guids, ElementsAre("0002c90300a1b2c3", "0002c90300a1b2c4"));
  EXPECT_EQ(settings.measure_listen, "");
  EXPECT_EQ(settings.measure_address, "n1:5");
  EXPECT_EQ(settings.log_level, "debug");
  EXPECT_THAT(settings.search.command, ElementsAre("run", "{job}"));
  EXPECT_THAT(settings.search.as_user, ElementsAre("sudo", "#{uid}"));
  EXPECT_EQ(settings.search.max_budget.count(), 1500);
  EXPECT_EQ(settings.search.grace.count(), 250);
  EXPECT_EQ(settings.search.at_once, 7u);
  EXPECT_TRUE(CheckSettings(settings).ok());
}

TEST(SettingsTest, AMistakeIsNamedWithItsLine) {
  EXPECT_THAT(ErrorOf("\nsocket = 7\n"), HasSubstr("a.toml:2: socket"));
  EXPECT_THAT(ErrorOf("\n\nsokket = \"x\"\n"), HasSubstr("a.toml:3: sokket: no such key"));
  EXPECT_THAT(ErrorOf("socket = \"x\n"), HasSubstr("a.toml:1"));
  EXPECT_THAT(ErrorOf("port_guids = [1]"), HasSubstr("port_guids"));
  EXPECT_THAT(ErrorOf("port_guids = \"x\""), HasSubstr("port_guids"));
  for (const char* mode : {"socket_mode = 666", "socket_mode = \"\"", "socket_mode = \"888\"",
                           "socket_mode = \"1777\"", "socket_mode = \"66x\""}) {
    EXPECT_THAT(ErrorOf(mode), HasSubstr("socket_mode"));
  }
  EXPECT_THAT(ErrorOf("search = 1"), HasSubstr("a.toml:1: search: is a table"));
  EXPECT_THAT(ErrorOf("[search]\n\nhost = 1"), HasSubstr("a.toml:3: search.host: no such key"));
  EXPECT_THAT(ErrorOf("[search]\ncommand = \"run {job}\""), HasSubstr("search.command"));
  for (const char* time : {"grace = 60", "grace = \"60\"", "grace = \"-1s\"", "grace = \"inf\"",
                           "max_budget = \"x\""}) {
    EXPECT_THAT(ErrorOf(std::string("search.") + time), HasSubstr("give a time")) << time;
  }
  for (const char* number : {"-1", "\"2\"", "1.5"}) {
    EXPECT_THAT(ErrorOf(std::string("search.at_once = ") + number), HasSubstr("at_once")) << number;
  }
  EXPECT_THAT(ErrorOf("# gr\xc3\xb6\xc3\x9f\x65r\n"), HasSubstr("ASCII"));
  Settings settings;
  const absl::Status missing = ReadSettingsFile("/nonexistent/a.toml", settings);
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("/nonexistent/a.toml"));
}

TEST(SettingsTest, WhatCannotWorkIsSaidBeforeTheStart) {
  Settings settings;
  EXPECT_TRUE(CheckSettings(settings).ok());
  settings.server = "nowhere";
  EXPECT_THAT(std::string(CheckSettings(settings).message()), HasSubstr("nowhere"));
  settings = Settings();
  for (const char* guid : {"", "1", "0000000000000000", "0002c90300a1b2cg", "0x02c90300a1b2c3f"}) {
    settings.port_guids = {guid};
    EXPECT_THAT(std::string(CheckSettings(settings).message()), HasSubstr("port GUID")) << guid;
  }
  settings = Settings();
  settings.socket = "";
  EXPECT_THAT(std::string(CheckSettings(settings).message()), HasSubstr("socket"));
  settings = Settings();
  settings.state_dir = "";
  EXPECT_THAT(std::string(CheckSettings(settings).message()), HasSubstr("state_dir"));
  settings = Settings();
  settings.search.command = {"run"};
  EXPECT_THAT(std::string(CheckSettings(settings).message()), HasSubstr("search.command"));
}

TEST(SettingsTest, AnythingMayBeInTheFile) {
  std::mt19937_64 random(TestSeed());
  const std::string whole =
      "socket = \"/s\"\nport_guids = [\"a\", 'b']\n[search]\ncommand = [\"a\", '{job}']\ngrace = "
      "\"1s\"\n"
      "at_once = 3\n[table]\nx = 1979-05-27\n";
  for (int round = 0; round < 5'000; ++round) {
    std::string text = whole;
    for (uint64_t i = 1 + random() % 4; i > 0; --i) {
      text[random() % text.size()] = static_cast<char>(random() % 160);
    }
    Settings settings;
    if (const absl::Status status = ReadSettings(text, "a.toml", settings); !status.ok()) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("a.toml:")) << text;
    }
  }
}

}  // namespace
}  // namespace coppice::settings_test
