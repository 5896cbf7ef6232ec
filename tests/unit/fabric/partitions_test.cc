#include "daemon/fabric/partitions.h"

#include "gtest/gtest.h"

namespace coppice {
namespace {

TEST(Partitions, KeysAndNumbers) {
  EXPECT_EQ(ToString(PartitionNum(1)), "0x0001");
  EXPECT_EQ(ToString(kDefaultPartition), "0x7fff");
  EXPECT_EQ(PartitionOf(0), std::nullopt);
  EXPECT_EQ(PartitionOf(0x8000), std::nullopt);
  EXPECT_EQ(PartitionOf(0x8005), PartitionNum(5));
}

TEST(Partitions, WhoSpeaksWithWhom) {
  Partitions partitions;
  EXPECT_TRUE(partitions.empty());
  partitions.Set(Guid(1), {0xFFFF, 0x8001});
  partitions.Set(Guid(2), {0x7FFF, 0x0001, 0});
  partitions.Set(Guid(3), {0x7FFF, 0x0002, 0x8002});
  EXPECT_FALSE(partitions.empty());
  EXPECT_EQ(partitions.port_count(), 3U);
  const auto may_speak = [&](uint64_t a, uint64_t b, uint16_t partition) {
    return MaySpeak(partitions.Of(Guid(a), PartitionNum(partition)),
                    partitions.Of(Guid(b), PartitionNum(partition)));
  };
  EXPECT_TRUE(may_speak(1, 2, 1));
  EXPECT_FALSE(may_speak(2, 3, 0x7FFF));  // two limited members (10.9.3)
  EXPECT_TRUE(may_speak(1, 3, 0x7FFF));
  EXPECT_FALSE(may_speak(1, 3, 1));
  EXPECT_FALSE(may_speak(1, 4, 1));                                       // nothing is known of it
  EXPECT_EQ(partitions.Of(Guid(3), PartitionNum(2)), Membership::kFull);  // of both keys
  EXPECT_EQ(partitions.IndexOf(Guid(3), PartitionNum(2)), 2);
  EXPECT_EQ(partitions.IndexOf(Guid(2), PartitionNum(1)), 1);
  EXPECT_EQ(partitions.IndexOf(Guid(2), PartitionNum(2)), std::nullopt);
  EXPECT_EQ(partitions.TableOf(Guid(2)).size(), 2U);
}

TEST(Partitions, WhichOneTwoPortsSpeakIn) {
  Partitions partitions;
  partitions.Set(Guid(1), {0x8003, 0x8002, 0xFFFF});
  partitions.Set(Guid(2), {0x0002, 0x0003});
  partitions.Set(Guid(3), {0x7FFF, 0x0003});
  partitions.Set(Guid(4), {});
  EXPECT_EQ(partitions.Between(Guid(1), Guid(2)), PartitionNum(2));
  EXPECT_EQ(partitions.Between(Guid(2), Guid(1)), PartitionNum(2));
  EXPECT_EQ(partitions.Between(Guid(1), Guid(3)), kDefaultPartition);
  EXPECT_EQ(partitions.Between(Guid(2), Guid(3)), std::nullopt);  // limited members both
  EXPECT_EQ(partitions.Between(Guid(1), Guid(4)), std::nullopt);
  EXPECT_EQ(partitions.Between(Guid(1), Guid(5)), std::nullopt);
  EXPECT_TRUE(partitions.IsKnown(Guid(4)));  // that it has none
  EXPECT_FALSE(partitions.IsKnown(Guid(5)));
}

TEST(Partitions, SwitchesLookWhereTheyAreTold) {
  Partitions partitions;
  EXPECT_TRUE(partitions.Passes(Guid(9), PortNum(1), PartitionNum(1), true));
  partitions.SetEnforced(Guid(9), PortNum(1),
                         {.inbound = true, .outbound = false, .table = {1, 0}});
  EXPECT_TRUE(partitions.Passes(Guid(9), PortNum(1), PartitionNum(1), false));  // limited, too
  EXPECT_FALSE(partitions.Passes(Guid(9), PortNum(1), PartitionNum(2), false));
  EXPECT_TRUE(partitions.Passes(Guid(9), PortNum(1), PartitionNum(2), true));
  EXPECT_TRUE(partitions.Passes(Guid(9), PortNum(2), PartitionNum(2), false));
}

TEST(Partitions, AreEqualByWhatPortsHold) {
  Partitions a, b;
  a.Set(Guid(1), {5});
  a.Set(Guid(1), {0xFFFF});
  a.Set(Guid(2), {0xFFFF, 1});
  b.Set(Guid(2), {0xFFFF, 1, 0, 0});
  EXPECT_NE(a, b);
  b.Set(Guid(1), {0xFFFF});
  EXPECT_EQ(a, b);
  b.SetEnforced(Guid(3), PortNum(1), {.inbound = true, .outbound = true, .table = {}});
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace coppice
