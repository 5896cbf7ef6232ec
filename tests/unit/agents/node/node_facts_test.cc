#include "agents/node/node_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace coppice::node_facts_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NodeFactsTest, APortGuidIsTheLowerHalfOfAGid) {
  EXPECT_EQ(GuidOfGid("fe80:0000:0000:0000:0002:c903:00A1:b2c3"), "0002c90300a1b2c3");
  EXPECT_EQ(GuidOfGid("fe80:0000:0000:0000:0000:0000:0000:0000"), "");
  EXPECT_EQ(GuidOfGid(""), "");
  EXPECT_EQ(GuidOfGid("fe80::1"), "");
  EXPECT_EQ(GuidOfGid("fe80:0000:0000:0000:0002:c903:00a1:b2cg"), "");
  EXPECT_EQ(GuidOfGid("fe80:0000:0000:0000:0002:c903:0a1:b2c30"), "");
}

TEST(NodeFactsTest, PortsAreThoseOfInfiniBand) {
  char folder[] = "/tmp/coppice-sysfs-XXXXXX";
  const std::filesystem::path root = mkdtemp(folder);
  const auto add = [&](const char* device, const char* port, const char* layer, const char* gid) {
    const auto path = root / device / "ports" / port;
    std::filesystem::create_directories(path / "gids");
    std::ofstream(path / "link_layer") << layer << "\n";
    if (gid != nullptr) std::ofstream(path / "gids" / "0") << gid << "\n";
  };
  add("mlx5_0", "1", "InfiniBand", "fe80:0000:0000:0000:0002:c903:00a1:b2c3");
  add("mlx5_1", "1", "Ethernet", "fe80:0000:0000:0000:0002:c903:00a1:b2c4");
  add("mlx5_2", "1", "InfiniBand", nullptr);
  add("mlx5_2", "2", "InfiniBand", "fe80:0000:0000:0000:0001:c903:00a1:b2c3");
  std::filesystem::create_directories(root / "empty");
  EXPECT_THAT(ReadPortGuids(root), ElementsAre("0001c90300a1b2c3", "0002c90300a1b2c3"));
  std::filesystem::remove_all(root);
  EXPECT_THAT(ReadPortGuids(root), IsEmpty());
}

TEST(NodeFactsTest, ThisNodeHasANameAndCores) {
  const NodeFacts facts = ReadNodeFacts();
  EXPECT_FALSE(facts.host.empty());
  EXPECT_EQ(facts.host.find('.'), std::string::npos);
  EXPECT_GT(facts.cores, 0u);
}

}  // namespace
}  // namespace coppice::node_facts_test
