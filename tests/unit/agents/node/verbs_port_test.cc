// Which port of a node is measured over.
#include "agents/node/verbs/verbs_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents/node/settings.h"
#include "tests/verbs/device_double.h"

namespace coppice::verbs_port_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

verbs_double::Device Device(const std::string& name, std::vector<verbs_double::Port> ports) {
  verbs_double::Device device;
  device.name = name;
  device.ports = std::move(ports);
  return device;
}

verbs_double::Port Port(uint64_t guid, ibv_port_state state = IBV_PORT_ACTIVE) {
  verbs_double::Port port;
  port.guid = guid;
  port.lid = static_cast<uint16_t>(guid);
  port.state = state;
  return port;
}

VerbsChoice Choice(const std::string& text) {
  const auto choice = ParseVerbsChoice(text);
  EXPECT_TRUE(choice.ok()) << choice.status();
  return choice.value_or(VerbsChoice());
}

class VerbsPortTest : public ::testing::Test {
 protected:
  ~VerbsPortTest() override {
    EXPECT_EQ(verbs_double::LiveObjects(), 0u);
    EXPECT_THAT(verbs_double::TakeMisuses(), IsEmpty());
  }
  void SetDevices(std::vector<verbs_double::Device> devices) {
    verbs_double::SetDevices("", std::move(devices));
  }
  std::string Opened(const VerbsChoice& choice) {
    const auto port = VerbsPort::Open(choice);
    return port.ok() ? port->name() : std::string(port.status().message());
  }
};

TEST_F(VerbsPortTest, TakesTheFirstActiveInfiniBandPort) {
  verbs_double::Port ethernet = Port(9);
  ethernet.link_layer = IBV_LINK_LAYER_ETHERNET;
  SetDevices({Device("roce", {ethernet}), Device("mlx5_0", {Port(1, IBV_PORT_DOWN), Port(2)}),
              Device("mlx5_1", {Port(3)})});
  EXPECT_EQ(Opened(Choice("")), "mlx5_0 port 2");
  EXPECT_TRUE(CheckVerbs(Choice("")).ok());
  EXPECT_EQ(Opened(Choice("mlx5_1")), "mlx5_1 port 1");
  EXPECT_EQ(Opened(Choice("mlx5_0/2")), "mlx5_0 port 2");
  const auto port = VerbsPort::Open(Choice(""));
  EXPECT_EQ(port->place().lid, 2);
  EXPECT_EQ(port->place().gid[0], 0xfe);
  EXPECT_EQ(port->place().gid[15], 2);
}

// The node's announcement may name ports: those of another one do not count.
TEST_F(VerbsPortTest, TakesAPortThatTheNodeAnnounces) {
  SetDevices({Device("mlx5_0", {Port(1), Port(0xab)})});
  VerbsChoice choice;
  choice.port_guids = {"0000000000000007", "00000000000000AB"};
  EXPECT_EQ(Opened(choice), "mlx5_0 port 2");
  choice.port_guids.pop_back();
  EXPECT_THAT(Opened(choice), HasSubstr("port_guids"));
  EXPECT_TRUE(absl::IsNotFound(CheckVerbs(choice)));
}

TEST_F(VerbsPortTest, SaysWhyThereIsNone) {
  SetDevices({});
  EXPECT_EQ(VerbsPort::Open(Choice("")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::IsNotFound(CheckVerbs(Choice(""))));
  SetDevices({Device("mlx5_0", {Port(1, IBV_PORT_DOWN), Port(2, IBV_PORT_INIT)})});
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckVerbs(Choice(""))));  // it may become active
  EXPECT_THAT(Opened(Choice("")), AllOf(HasSubstr("mlx5_0 port 1"), HasSubstr("not active")));
  EXPECT_THAT(Opened(Choice("mlx5_0/2")), HasSubstr("mlx5_0 port 2"));
  EXPECT_THAT(Opened(Choice("mlx5_0/3")), HasSubstr("no InfiniBand port 3 of a verbs device mlx5"));
  EXPECT_THAT(Opened(Choice("mlx4_0")), HasSubstr("mlx4_0"));
  EXPECT_TRUE(absl::IsNotFound(CheckVerbs(Choice("mlx4_0"))));
  EXPECT_TRUE(absl::IsNotFound(CheckVerbs(Choice("none"))));
  verbs_double::Port without_lid = Port(1);
  without_lid.lid = 0;
  SetDevices({Device("mlx5_0", {without_lid})});
  EXPECT_EQ(Opened(Choice("")), "mlx5_0 port 1: has no unicast LID");
  verbs_double::Device locked = Device("mlx5_0", {Port(1)});
  locked.can_be_opened = false;
  SetDevices({locked});
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckVerbs(Choice(""))));
  EXPECT_THAT(Opened(Choice("")), AllOf(HasSubstr("mlx5_0"), HasSubstr("Permission denied")));
}

TEST_F(VerbsPortTest, RefusesTextThatNamesNoPort) {
  EXPECT_TRUE(Choice("none").is_none);
  for (const char* text : {"/1", "mlx5_0/", "mlx5_0/0", "mlx5_0/256", "mlx5_0/x", "a b", "a/1/1"}) {
    Settings settings;
    settings.measure_device = text;
    const absl::Status status = CheckSettings(settings);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("measure_device")) << text;
  }
}

}  // namespace
}  // namespace coppice::verbs_port_test
