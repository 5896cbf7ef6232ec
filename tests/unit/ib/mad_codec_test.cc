#include "daemon/ib/mad_codec.h"

#include <gtest/gtest.h>
#include <infiniband/mad.h>

#include <random>
#include <string>

#include "tests/support/tier.h"

namespace coppice::mad_codec_test {
namespace {

MadData RandomData(std::mt19937_64& random) {
  MadData data;
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(random());
  return data;
}

uint32_t Field(const MadData& data, MAD_FIELDS field) {
  MadData copy = data;  // libibmad takes no const
  return mad_get_field(copy.data(), 0, field);
}

TEST(EncodeSubnGet, IsWhatLibibmadReads) {
  DirectedRoute route = DirectedRoute().Then(PortNum(1)).Then(PortNum(17)).Then(PortNum(254));
  Mad mad;
  EncodeSubnGet(route, MadAttribute::kPortInfo, 0x01020304, 0xA1B2C3D4, mad);
  EXPECT_EQ(mad_get_field(mad.data(), 0, IB_MAD_BASEVER_F), 1u);
  EXPECT_EQ(mad_get_field(mad.data(), 0, IB_MAD_CLASSVER_F), 1u);
  EXPECT_EQ(mad_get_field(mad.data(), 0, IB_MAD_MGMTCLASS_F), unsigned{IB_SMI_DIRECT_CLASS});
  EXPECT_EQ(mad_get_field(mad.data(), 0, IB_MAD_METHOD_F), unsigned{IB_MAD_METHOD_GET});
  EXPECT_EQ(mad_get_field(mad.data(), 0, IB_MAD_ATTRID_F), unsigned{IB_ATTR_PORT_INFO});
  EXPECT_EQ(mad_get_field(mad.data(), 0, IB_MAD_ATTRMOD_F), 0x01020304u);
  EXPECT_EQ(mad_get_field64(mad.data(), 0, IB_MAD_TRID_F), 0xA1B2C3D4u);
  EXPECT_EQ(mad_get_field(mad.data(), 0, IB_DRSMP_HOPCNT_F), 3u);
  EXPECT_EQ(mad_get_field(mad.data(), 0, IB_DRSMP_HOPPTR_F), 0u);
  EXPECT_EQ(mad_get_field(mad.data(), 0, IB_DRSMP_DRDLID_F), 0xFFFFu);
  EXPECT_EQ(mad_get_field(mad.data(), 0, IB_DRSMP_DRSLID_F), 0xFFFFu);
  uint8_t path[64];
  mad_get_array(mad.data(), 0, IB_DRSMP_PATH_F, path);
  EXPECT_EQ(path[1], 1);
  EXPECT_EQ(path[2], 17);
  EXPECT_EQ(path[3], 254);
  EXPECT_EQ(path[4], 0);
  EXPECT_EQ(TransactionOf(mad), 0xA1B2C3D4u);
  EXPECT_EQ(ToString(route), "0,1,17,254");
}

TEST(DecodeNodeInfo, AgreesWithLibibmadOnRandomData) {
  std::mt19937_64 random(TestSeed());
  int good = 0;
  for (int i = 0; i < 20000; ++i) {
    MadData data = RandomData(random);
    data[2] = data[2] % 5;
    const absl::StatusOr<NodeInfoRecord> info = DecodeNodeInfo(data);
    const uint32_t type = Field(data, IB_NODE_TYPE_F), ports = Field(data, IB_NODE_NPORTS_F);
    const uint32_t local = Field(data, IB_NODE_LOCAL_PORT_F);
    const bool sound = type >= 1 && type <= 3 && ports > 0 && ports < 255 && local <= ports &&
                       (local > 0 || type == 2);
    ASSERT_EQ(info.ok(), sound) << info.status();
    if (!sound) continue;
    ++good;
    EXPECT_EQ(static_cast<uint32_t>(info->type), type);
    EXPECT_EQ(info->port_count, ports);
    EXPECT_EQ(info->local_port.value(), local);
    EXPECT_EQ(info->node_guid.value(), mad_get_field64(data.data(), 0, IB_NODE_GUID_F));
    EXPECT_EQ(info->port_guid.value(), mad_get_field64(data.data(), 0, IB_NODE_PORT_GUID_F));
    EXPECT_EQ(info->device_id, Field(data, IB_NODE_DEVID_F));
    EXPECT_EQ(info->vendor_id, Field(data, IB_NODE_VENDORID_F));
  }
  EXPECT_GT(good, 1000);
}

TEST(DecodeNodeInfo, SaysWhatIsWrong) {
  MadData data{};
  data[2] = 7;
  EXPECT_EQ(DecodeNodeInfo(data).status().message(), "unknown node type 7");
  data[2] = 2;
  EXPECT_EQ(DecodeNodeInfo(data).status().message(), "node GUID 0");
  data[19] = 1;
  EXPECT_EQ(DecodeNodeInfo(data).status().message(), "port count 0");
  data[3] = 36;
  data[36] = 40;
  EXPECT_EQ(DecodeNodeInfo(data).status().message(), "local port 40 of 36");
}

TEST(DecodePortInfo, AgreesWithLibibmadOnRandomData) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 20000; ++i) {
    MadData data = RandomData(random);
    data[33] = static_cast<uint8_t>(5 << 4);
    const PortInfoRecord port = DecodePortInfo(data);
    EXPECT_EQ(port.lid.value(), Field(data, IB_PORT_LID_F));
    EXPECT_EQ(port.subnet_manager_lid.value(), Field(data, IB_PORT_SMLID_F));
    EXPECT_EQ(port.lmc, Field(data, IB_PORT_LMC_F));
    EXPECT_EQ(port.link_up, Field(data, IB_PORT_STATE_F) > 1);
    if (!port.link_up) continue;
    const uint32_t width = Field(data, IB_PORT_LINK_WIDTH_ACTIVE_F);
    EXPECT_EQ(port.rate.lanes, width == 1    ? 1
                               : width == 2  ? 4
                               : width == 4  ? 8
                               : width == 8  ? 12
                               : width == 16 ? 2
                                             : 0);
    const uint32_t extended = (Field(data, IB_PORT_CAPMASK_F) & 1 << 14) != 0
                                  ? Field(data, IB_PORT_LINK_SPEED_EXT_ACTIVE_F)
                                  : 0;
    const uint32_t plain = Field(data, IB_PORT_LINK_SPEED_ACTIVE_F);
    const LaneSpeed expected = extended == 1   ? LaneSpeed::kFdr
                               : extended == 2 ? LaneSpeed::kEdr
                               : extended == 4 ? LaneSpeed::kHdr
                               : extended == 8 ? LaneSpeed::kNdr
                               : plain == 1    ? LaneSpeed::kSdr
                               : plain == 2    ? LaneSpeed::kDdr
                               : plain == 4    ? LaneSpeed::kQdr
                                               : LaneSpeed::kUnknown;
    EXPECT_EQ(port.rate.speed, expected);
  }
}

TEST(DecodeLinearTableTop, StaysInsideCapacityAndUnicast) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 20000; ++i) {
    MadData data = RandomData(random);
    const uint32_t capacity = Field(data, IB_SW_LINEAR_FDB_CAP_F);
    const uint32_t top = Field(data, IB_SW_LINEAR_FDB_TOP_F);
    EXPECT_EQ(DecodeLinearTableTop(data),
              capacity == 0 ? 0 : std::min({top, capacity - 1, uint32_t{0xBFFF}}));
  }
  EXPECT_EQ(DecodeLinearTableTop(MadData{}), 0);
}

TEST(DecodeFdr10Active, AgreesWithLibibmad) {
  MadData data{};
  EXPECT_FALSE(DecodeFdr10Active(data));
  mad_set_field(data.data(), 0, IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F, 1);
  EXPECT_TRUE(DecodeFdr10Active(data));
}

TEST(DecodeNodeDescription, KeepsTerminalsSafe) {
  MadData data{};
  const std::string text = " n17 mlx5_0\x1b[31m\xff\xC2\x9B ";
  std::copy(text.begin(), text.end(), data.begin());
  EXPECT_EQ(DecodeNodeDescription(data), "n17 mlx5_0 [31m??");
  data.fill('x');
  EXPECT_EQ(DecodeNodeDescription(data), std::string(64, 'x'));
}

// A rule of the configuration names it so, and a file of ibnetdiscover does, too.
TEST(DecodeNodeDescription, KeepsLettersBeyondAscii) {
  MadData data{};
  const std::string text = "L\xC3\xBC\x62\x65\x63k";
  std::copy(text.begin(), text.end(), data.begin());
  EXPECT_EQ(DecodeNodeDescription(data), text);
}

// What the fuzz target does, on a few thousand mutations of a good answer.
TEST(DecodeReply, TakesAnyBytes) {
  std::mt19937_64 random(TestSeed());
  Mad good;
  EncodeSubnGet(DirectedRoute(), MadAttribute::kNodeInfo, 0, 9, good);
  good[3] = 0x81;
  EXPECT_FALSE(DecodeReply(good).has_value());  // travels in the request's direction
  good[4] = 0x80;
  ASSERT_TRUE(DecodeReply(good).has_value());
  EXPECT_FALSE(DecodeReply(absl::MakeSpan(good).subspan(0, 255)).has_value());
  for (int i = 0; i < 5000; ++i) {
    Mad mad = good;
    for (uint64_t n = random() % 8; n > 0; --n) {
      mad[random() % mad.size()] = static_cast<uint8_t>(random());
    }
    const auto reply = DecodeReply(absl::MakeSpan(mad).subspan(0, 256 - random() % 2));
    if (!reply) continue;
    DecodeNodeInfo(reply->data).IgnoreError();
    DecodePortInfo(reply->data);
    DecodeNodeDescription(reply->data);
    DecodeLinearTableTop(reply->data);
  }
}

}  // namespace
}  // namespace coppice::mad_codec_test
