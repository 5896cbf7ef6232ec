// Which port of a node is measured over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents/node/node_facts.h"
#include "agents/node/settings.h"
#include "tests/unit/agents/node/device_folder.h"

namespace coppice::perftest_port_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kDown[] = "1: DOWN", kInit[] = "2: INIT";

class PerftestPortTest : public ::testing::Test {
 protected:
  PortChoice Choice(const std::string& text) {
    const auto choice = ParsePortChoice(text);
    EXPECT_TRUE(choice.ok()) << choice.status();
    PortChoice found = choice.value_or(PortChoice());
    found.devices = devices_.path();
    return found;
  }
  static std::string Found(const PortChoice& choice) {
    const auto port = FindPort(choice);
    return port.ok() ? NameOf(*port) : std::string(port.status().message());
  }
  absl::StatusCode CodeOf(const std::string& text) {
    return FindPort(Choice(text)).status().code();
  }

  DeviceFolder devices_;
};

TEST_F(PerftestPortTest, TakesTheFirstActiveInfiniBandPort) {
  devices_.Put({.device = "a_roce", .layer = "Ethernet"});
  devices_.Put({.device = "mlx5_0", .number = 1, .state = kDown});
  devices_.Put({.device = "mlx5_0", .number = 2, .guid = "0000:0000:0000:0002"});
  devices_.Put({.device = "mlx5_1", .guid = "0000:0000:0000:0003"});
  EXPECT_EQ(Found(Choice("")), "mlx5_0 port 2");
  EXPECT_EQ(Found(Choice("mlx5_1")), "mlx5_1 port 1");
  EXPECT_EQ(Found(Choice("mlx5_0/2")), "mlx5_0 port 2");
  const auto port = FindPort(Choice(""));
  EXPECT_EQ(port->device, "mlx5_0");
  EXPECT_EQ(port->number, 2);
  EXPECT_EQ(port->subnet_prefix, "fe80000000000000");
}

TEST_F(PerftestPortTest, NumbersAreNotWords) {
  devices_.Put({.number = 10});
  devices_.Put({.number = 9, .guid = "0000:0000:0000:0002"});
  EXPECT_EQ(Found(Choice("")), "mlx5_0 port 9");
}

// The node's announcement may name ports: those of another one do not count.
TEST_F(PerftestPortTest, TakesAPortThatTheNodeAnnounces) {
  devices_.Put({});
  devices_.Put({.number = 2, .guid = "0000:0000:0000:00ab"});
  PortChoice choice = Choice("");
  choice.port_guids = {"0000000000000007", "00000000000000AB"};
  EXPECT_EQ(Found(choice), "mlx5_0 port 2");
  choice.port_guids.pop_back();
  EXPECT_THAT(Found(choice), HasSubstr("port_guids"));
  EXPECT_TRUE(absl::IsNotFound(FindPort(choice).status()));
}

TEST_F(PerftestPortTest, SaysWhyThereIsNone) {
  EXPECT_EQ(CodeOf(""), absl::StatusCode::kNotFound);
  devices_.Put({.number = 1, .state = kDown});
  devices_.Put({.number = 2, .guid = "0000:0000:0000:0002", .state = kInit});
  EXPECT_EQ(CodeOf(""), absl::StatusCode::kFailedPrecondition);  // it may become active
  EXPECT_EQ(Found(Choice("")), "mlx5_0 port 1: the port is not active (1: DOWN)");
  EXPECT_THAT(Found(Choice("mlx5_0/2")), AllOf(HasSubstr("mlx5_0 port 2"), HasSubstr("INIT")));
  EXPECT_THAT(Found(Choice("mlx5_0/3")), HasSubstr("no InfiniBand port 3 of a verbs device mlx5"));
  EXPECT_THAT(Found(Choice("mlx4_0")), HasSubstr("mlx4_0"));
  EXPECT_EQ(CodeOf("mlx4_0"), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf("none"), absl::StatusCode::kNotFound);
  devices_.Clear();
  devices_.Put({.guid = "0000:0000:0000:0000"});  // one that has no address yet
  EXPECT_EQ(CodeOf(""), absl::StatusCode::kNotFound);
}

TEST_F(PerftestPortTest, RefusesTextThatNamesNoPort) {
  EXPECT_TRUE(Choice("none").is_none);
  for (const char* text :
       {"/1", "mlx5_0/", "mlx5_0/0", "mlx5_0/256", "mlx5_0/x", "a b", "a/1/1", "-a", "--all/1"}) {
    Settings settings;
    settings.measure_device = text;
    const absl::Status status = CheckSettings(settings);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("measure_device")) << text;
  }
}

}  // namespace
}  // namespace coppice::perftest_port_test
