#include <gtest/gtest.h>
#include <infiniband/mad.h>

#include <random>

#include "daemon/ib/mad_codec.h"
#include "tests/support/tier.h"

namespace coppice::pma_codec_test {
namespace {

MadData RandomData(std::mt19937_64& random) {
  MadData data;
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(random());
  return data;
}

uint64_t Field(MadData data, MAD_FIELDS field) { return mad_get_field(data.data(), 0, field); }
uint64_t Field64(MadData data, MAD_FIELDS field) { return mad_get_field64(data.data(), 0, field); }

TEST(EncodePerformanceGet, IsWhatLibibmadReads) {
  Mad mad;
  EncodePerformanceGet(MadAttribute::kPortCountersExtended, PortNum(36), 0xA1B2C3D4, mad);
  EXPECT_EQ(mad_get_field(mad.data(), 0, IB_MAD_BASEVER_F), 1u);
  EXPECT_EQ(mad_get_field(mad.data(), 0, IB_MAD_CLASSVER_F), 1u);
  EXPECT_EQ(mad_get_field(mad.data(), 0, IB_MAD_MGMTCLASS_F), unsigned{IB_PERFORMANCE_CLASS});
  EXPECT_EQ(mad_get_field(mad.data(), 0, IB_MAD_METHOD_F), unsigned{IB_MAD_METHOD_GET});
  EXPECT_EQ(mad_get_field(mad.data(), 0, IB_MAD_ATTRID_F), unsigned{IB_GSI_PORT_COUNTERS_EXT});
  EXPECT_EQ(mad_get_field(mad.data(), 0, IB_MAD_ATTRMOD_F), 0u);
  EXPECT_EQ(mad_get_field64(mad.data(), 0, IB_MAD_TRID_F), 0xA1B2C3D4u);
  EXPECT_EQ(mad_get_field(mad.data() + IB_PC_DATA_OFFS, 0, IB_PC_PORT_SELECT_F), 36u);
  EXPECT_TRUE(IsPerformance(mad));
}

TEST(DecodeReply, TellsTheClassesApart) {
  Mad mad;
  EncodePerformanceGet(MadAttribute::kPortCounters, PortNum(7), 9, mad);
  EXPECT_FALSE(DecodeReply(mad).has_value());  // a request
  mad[3] = 0x81;
  mad[5] = 0x0C;
  mad[255] = 42;
  const std::optional<MadReply> reply = DecodeReply(mad);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->attribute, MadAttribute::kPortCounters);
  EXPECT_NE(reply->attribute, MadAttribute::kSwitchInfo);  // the same number in the other class
  EXPECT_EQ(reply->status, 0x0C);
  EXPECT_EQ(reply->data.back(), 42);
  EXPECT_EQ(DecodePortSelect(reply->data), PortNum(7));
  mad[1] = 0x03;  // subnet administration
  EXPECT_FALSE(DecodeReply(mad).has_value());
}

TEST(DecodeCounterAbilities, AgreesWithLibibmadOnRandomData) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 5000; ++i) {
    const MadData data = RandomData(random);
    const uint64_t mask = Field(data, IB_CPI_CAPMASK_F), mask2 = Field(data, IB_CPI_CAPMASK2_F);
    const CounterAbilities abilities = DecodeCounterAbilities(data);
    EXPECT_EQ(abilities.extended_data, (mask & 0x600) != 0);
    EXPECT_EQ(abilities.extended_errors, (mask & 0x600) != 0 && (mask2 & 2) != 0);
    EXPECT_EQ(abilities.wait, (mask & 0x1000) != 0);
  }
}

TEST(DecodeRedirection, AgreesWithLibibmadOnRandomData) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 1000; ++round) {
    const MadData data = RandomData(random);
    const Redirection to = DecodeRedirection(data);
    EXPECT_EQ(to.lid.value(), Field(data, IB_CPI_REDIRECT_LID_F));
    EXPECT_EQ(to.queue_pair, Field(data, IB_CPI_REDIRECT_QP_F));
    EXPECT_EQ(to.queue_key, Field(data, IB_CPI_REDIRECT_QKEY_F));
  }
}

TEST(DecodePortErrors, AgreesWithLibibmadOnRandomData) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 5000; ++i) {
    const MadData data = RandomData(random);
    PortCounters read;
    DecodePortErrors(data, {.wait = i % 2 == 0}, read);
    EXPECT_EQ(DecodePortSelect(data).value(), Field(data, IB_PC_PORT_SELECT_F));
    EXPECT_EQ(read.symbol_errors, Field(data, IB_PC_ERR_SYM_F));
    EXPECT_EQ(read.link_recoveries, Field(data, IB_PC_LINK_RECOVERS_F));
    EXPECT_EQ(read.link_downed, Field(data, IB_PC_LINK_DOWNED_F));
    EXPECT_EQ(read.receive_errors, Field(data, IB_PC_ERR_RCV_F));
    EXPECT_EQ(read.remote_physical_errors, Field(data, IB_PC_ERR_PHYSRCV_F));
    EXPECT_EQ(read.relay_errors, Field(data, IB_PC_ERR_SWITCH_REL_F));
    EXPECT_EQ(read.send_discards, Field(data, IB_PC_XMT_DISCARDS_F));
    EXPECT_EQ(read.send_constraint_errors, Field(data, IB_PC_ERR_XMTCONSTR_F));
    EXPECT_EQ(read.receive_constraint_errors, Field(data, IB_PC_ERR_RCVCONSTR_F));
    EXPECT_EQ(read.integrity_errors, Field(data, IB_PC_ERR_LOCALINTEG_F));
    EXPECT_EQ(read.buffer_overruns, Field(data, IB_PC_ERR_EXCESS_OVR_F));
    EXPECT_EQ(read.vl15_dropped, Field(data, IB_PC_VL15_DROPPED_F));
    EXPECT_EQ(read.sent_wait_ticks, i % 2 == 0 ? Field(data, IB_PC_XMT_WAIT_F) : 0);
    EXPECT_EQ(read.sent_bytes, 0u);
  }
}

TEST(DecodePortData, AgreesWithLibibmadInBytes) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 5000; ++i) {
    const MadData data = RandomData(random);
    PortCounters read;
    DecodePortData(data, read);
    EXPECT_EQ(read.sent_bytes, 4 * Field(data, IB_PC_XMT_BYTES_F));
    EXPECT_EQ(read.received_bytes, 4 * Field(data, IB_PC_RCV_BYTES_F));
    EXPECT_EQ(read.sent_packets, Field(data, IB_PC_XMT_PKTS_F));
    EXPECT_EQ(read.received_packets, Field(data, IB_PC_RCV_PKTS_F));
    EXPECT_EQ(read.symbol_errors, 0u);
  }
}

TEST(DecodePortCountersExtended, AgreesWithLibibmadOnRandomData) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 5000; ++i) {
    const MadData data = RandomData(random);
    PortCounters plain, read;
    DecodePortCountersExtended(data, {.extended_data = true}, plain);
    EXPECT_EQ(plain.sent_bytes, 4 * Field64(data, IB_PC_EXT_XMT_BYTES_F));
    EXPECT_EQ(plain.received_bytes, 4 * Field64(data, IB_PC_EXT_RCV_BYTES_F));
    EXPECT_EQ(plain.sent_packets, Field64(data, IB_PC_EXT_XMT_PKTS_F));
    EXPECT_EQ(plain.received_packets, Field64(data, IB_PC_EXT_RCV_PKTS_F));
    EXPECT_EQ(plain.symbol_errors, 0u);
    DecodePortCountersExtended(data, {.extended_data = true, .extended_errors = true}, read);
    EXPECT_EQ(read.sent_bytes, plain.sent_bytes);
    EXPECT_EQ(read.symbol_errors, Field64(data, IB_PC_EXT_ERR_SYM_F));
    EXPECT_EQ(read.link_recoveries, Field64(data, IB_PC_EXT_LINK_RECOVERS_F));
    EXPECT_EQ(read.link_downed, Field64(data, IB_PC_EXT_LINK_DOWNED_F));
    EXPECT_EQ(read.receive_errors, Field64(data, IB_PC_EXT_ERR_RCV_F));
    EXPECT_EQ(read.remote_physical_errors, Field64(data, IB_PC_EXT_ERR_PHYSRCV_F));
    EXPECT_EQ(read.relay_errors, Field64(data, IB_PC_EXT_ERR_SWITCH_REL_F));
    EXPECT_EQ(read.send_discards, Field64(data, IB_PC_EXT_XMT_DISCARDS_F));
    EXPECT_EQ(read.send_constraint_errors, Field64(data, IB_PC_EXT_ERR_XMTCONSTR_F));
    EXPECT_EQ(read.receive_constraint_errors, Field64(data, IB_PC_EXT_ERR_RCVCONSTR_F));
    EXPECT_EQ(read.integrity_errors, Field64(data, IB_PC_EXT_ERR_LOCALINTEG_F));
    EXPECT_EQ(read.buffer_overruns, Field64(data, IB_PC_EXT_ERR_EXCESS_OVR_F));
    EXPECT_EQ(read.vl15_dropped, Field64(data, IB_PC_EXT_VL15_DROPPED_F));
    EXPECT_EQ(read.sent_wait_ticks, Field64(data, IB_PC_EXT_XMT_WAIT_F));
  }
}

}  // namespace
}  // namespace coppice::pma_codec_test
