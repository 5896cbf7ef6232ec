#include <set>
#include <string>
#include <vector>

#include "daemon/tree/batch/grid.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coppice::batch_grid_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<EndpointIndex> Endpoints(uint32_t count) {
  std::vector<EndpointIndex> members;
  for (uint32_t e = 0; e < count; ++e) members.emplace_back(e);
  return members;
}

std::vector<std::vector<uint32_t>> Ranks(const std::vector<BatchCommunicator>& lines) {
  std::vector<std::vector<uint32_t>> ranks;
  for (const BatchCommunicator& line : lines) {
    std::vector<uint32_t>& row = ranks.emplace_back();
    for (const EndpointIndex e : line.members) row.push_back(e.value());
  }
  return ranks;
}

TEST(BatchGridTest, ReadsSizes) {
  EXPECT_THAT(*ParseGridSizes("256x160"), ElementsAre(256, 160));
  EXPECT_THAT(*ParseGridSizes("7"), ElementsAre(7));
  for (const char* const text :
       {"", "x", "3x", "x3", "3x0", "-3x2", "3 x2", "3y2", "65536x65536"}) {
    EXPECT_FALSE(ParseGridSizes(text).ok()) << text;
  }
}

TEST(BatchGridTest, MakesEveryLineAlongEveryAxis) {
  const auto lines = GridLines({{2, 3}, GridOrder::kLastAxisFastest, {}}, Endpoints(6));
  ASSERT_TRUE(lines.ok());
  EXPECT_THAT(Ranks(*lines), ElementsAre(ElementsAre(0, 3), ElementsAre(1, 4), ElementsAre(2, 5),
                                         ElementsAre(0, 1, 2), ElementsAre(3, 4, 5)));
  const auto columns = GridLines({{2, 3}, GridOrder::kFirstAxisFastest, {}}, Endpoints(6));
  EXPECT_THAT(Ranks(*columns), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5),
                                           ElementsAre(0, 2, 4), ElementsAre(1, 3, 5)));
}

TEST(BatchGridTest, TakesAxesAndAnOrder) {
  const auto lines = GridLines({{2, 2, 2}, GridOrder::kLastAxisFastest, {1}}, Endpoints(8));
  EXPECT_THAT(Ranks(*lines), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4, 6),
                                         ElementsAre(5, 7)));
  const std::vector<uint32_t> order = {3, 2, 1, 0};
  const auto turned = GridLines({{2, 2}, GridOrder::kLastAxisFastest, {1}}, Endpoints(9), order);
  EXPECT_THAT(Ranks(*turned), ElementsAre(ElementsAre(3, 2), ElementsAre(1, 0)));
}

TEST(BatchGridTest, SaysWhatIsWrong) {
  const auto message = [](const auto& result) { return std::string(result.status().message()); };
  EXPECT_THAT(message(GridLines({{3, 3}, {}, {}}, Endpoints(8))), HasSubstr("9 processes"));
  EXPECT_THAT(message(GridLines({{3, 3}, {}, {2}}, Endpoints(9))), HasSubstr("axis 2"));
  EXPECT_THAT(message(GridLines({{3, 3}, {}, {1, 1}}, Endpoints(9))), HasSubstr("twice"));
  EXPECT_FALSE(GridLines({{}, {}, {}}, Endpoints(9)).ok());
  EXPECT_FALSE(GridLines({{0}, {}, {}}, Endpoints(9)).ok());
  EXPECT_THAT(message(GridLines({{2}, {}, {}}, Endpoints(2), {0, 0})), HasSubstr("rank 0 twice"));
  EXPECT_FALSE(GridLines({{2}, {}, {}}, Endpoints(2), {0, 2}).ok());
  EXPECT_FALSE(GridLines({{2}, {}, {}}, Endpoints(2), {0}).ok());
  EXPECT_FALSE(RandomGroups(1, 3, 1, Endpoints(2)).ok());
  EXPECT_FALSE(RandomGroups(1, 0, 1, Endpoints(2)).ok());
}

TEST(BatchGridTest, DrawsDistinctMembersBySeed) {
  const auto groups = RandomGroups(5, 10, 42, Endpoints(30));
  ASSERT_TRUE(groups.ok());
  ASSERT_EQ(groups->size(), 5U);
  for (const BatchCommunicator& group : *groups) {
    EXPECT_EQ(std::set<EndpointIndex>(group.members.begin(), group.members.end()).size(), 10U);
  }
  EXPECT_EQ(Ranks(*groups), Ranks(*RandomGroups(5, 10, 42, Endpoints(30))));
  EXPECT_NE(Ranks(*groups), Ranks(*RandomGroups(5, 10, 43, Endpoints(30))));
}

}  // namespace
}  // namespace coppice::batch_grid_test
