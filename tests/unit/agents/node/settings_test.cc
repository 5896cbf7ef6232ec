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
  EXPECT_TRUE(CheckSettings(read).ok());
}

TEST(SettingsTest, EveryKeyIsRead) {
  Settings settings;
  ASSERT_TRUE(ReadSettings(R"(
server = "h:1"
tls_ca = "ca"
tls_certificate = "cert"
tls_key = "key"
munge = "default"
munge_realm = "lab"
socket = "/s"
socket_mode = "0600"
state_dir = "/d"
host = "n1"
port_guids = ["0002c90300a1b2c3", "0002c90300a1b2c4"]
measure_listen = ""
measure_address = "n1:5"
log_level = "debug"
)",
                           "a.toml", settings)
                  .ok());
  EXPECT_EQ(settings.server, "h:1");
  EXPECT_EQ(settings.tls.ca + settings.tls.cert + settings.tls.key, "cacertkey");
  EXPECT_EQ(settings.tls.munge + settings.tls.munge_realm, "defaultlab");
  EXPECT_EQ(settings.socket, "/s");
  EXPECT_EQ(settings.socket_mode, 0600u);
  EXPECT_EQ(settings.state_dir, "/d");
  EXPECT_EQ(settings.host, "n1");
  EXPECT_THAT(settings.port_guids, ElementsAre("0002c90300a1b2c3", "0002c90300a1b2c4"));
  EXPECT_EQ(settings.measure_listen, "");
  EXPECT_EQ(settings.measure_address, "n1:5");
  EXPECT_EQ(settings.log_level, "debug");
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
}

TEST(SettingsTest, AnythingMayBeInTheFile) {
  std::mt19937_64 random(TestSeed());
  const std::string whole = "socket = \"/s\"\nport_guids = [\"a\", 'b']\n[table]\nx = 1979-05-27\n";
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
