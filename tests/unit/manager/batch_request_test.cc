// The names of a batch's trees, and the fingerprint that tells a retry from a misuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "daemon/manager/requests.h"

namespace coppice::batch_request_test {
namespace {

TEST(BatchRequestTest, NamesOfTreesLeadBackToTheirBatch) {
  EXPECT_EQ("", BatchTreeName("", 3));
  EXPECT_EQ("a#17", BatchTreeName("a", 17));
  EXPECT_EQ("a", ParseBatchTreeName("a#17")->batch);
  EXPECT_EQ(17u, ParseBatchTreeName("a#17")->communicator);
  EXPECT_EQ("a#b", ParseBatchTreeName("a#b#0")->batch);
  for (const char* other : {"", "#1", "a", "a#", "a#x", "a#01", "a#1x", "a#-1", "a#4294967296"}) {
    EXPECT_FALSE(ParseBatchTreeName(other).has_value()) << other;
  }
}

TEST(BatchRequestTest, EveryPartOfTheContentCounts) {
  CreateBatchArgs base;
  base.job = JobId(1), base.request_id = "x";
  base.grid = ProcessGrid{{4, 4}, GridOrder::kLastAxisFastest, {}};
  std::vector<uint64_t> prints = {FingerprintOf(base)};
  const auto with = [&](auto change) {
    CreateBatchArgs args = base;
    change(args);
    prints.push_back(FingerprintOf(args));
  };
  with([](auto& args) { args.grid->sizes = {16}; });
  with([](auto& args) { args.grid->axes = {0}; });
  with([](auto& args) { args.grid->order = GridOrder::kFirstAxisFastest; });
  with([](auto& args) { args.rank_order = {1}; });
  with([](auto& args) { args.operation = Operation::kBcast; });
  with([](auto& args) { args.sizes = {{8, 1}}; });
  with([](auto& args) { args.largest_part = true; });
  with([](auto& args) { args.accept_type1 = true; });
  with([](auto& args) { args.goal = BatchGoal::kEntries; });
  with([](auto& args) { args.goal = BatchGoal::kLinks; });
  with([](auto& args) { args.grid.reset(), args.communicators = {{0, 1}, {2}}; });
  with([](auto& args) { args.grid.reset(), args.communicators = {{0}, {1, 2}}; });
  CreateBatchArgs same = base;
  same.job = JobId(2), same.request_id = "y";
  EXPECT_EQ(prints[0], FingerprintOf(same));
  std::sort(prints.begin(), prints.end());
  EXPECT_EQ(prints.end(), std::adjacent_find(prints.begin(), prints.end()));
}

}  // namespace
}  // namespace coppice::batch_request_test
