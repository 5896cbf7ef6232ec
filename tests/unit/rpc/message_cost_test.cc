#include "daemon/rpc/message_cost.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "coppice/v1/jobs.pb.h"
#include "coppice/v1/placements.pb.h"
#include "coppice/v1/trees.pb.h"
#include "tests/unit/rpc/message_cost_properties.h"

namespace coppice::message_cost_test {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<size_t> CostOf(const google::protobuf::Message& type, const std::string& wire,
                              size_t most = size_t{1} << 40) {
  const MessageCost cost(type.GetDescriptor());
  google::protobuf::io::ArrayInputStream stream(wire.data(), static_cast<int>(wire.size()), 100);
  return cost.Of(&stream, most);
}

std::string Repeated(const std::string& piece, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += piece;
  return all;
}

TEST(MessageCost, TwoBytesMayBeAWholeMessage) {
  const std::string wire = Repeated(std::string("\x0a\x00", 2), 100'000);
  const auto cost = CostOf(v1::AdvisePlacementRequest(), wire);
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_GT(*cost, 30 * wire.size());
  const auto little = CostOf(v1::AdvisePlacementRequest(), wire, 5000);
  ASSERT_TRUE(little.ok());
  EXPECT_LT(*little, 6000u);  // it stopped there
}

TEST(MessageCost, HoldsForRequestsAsTheyAre) {
  v1::RegisterJobRequest job;
  v1::CreateTreeRequest tree;
  v1::AdvisePlacementRequest placements;
  for (uint32_t i = 0; i < 1000; ++i) {
    job.add_endpoints(absl::StrCat("node", i, ".of.a.rather.long.name/1"));
    tree.add_ranks(i * 1000);
    placements.add_requests()->set_seed(i);
  }
  for (const int piece : {1, 7, 1000, 1 << 20}) {
    EXPECT_EQ(BrokenByCost(job.SerializeAsString(), piece), "");
    EXPECT_EQ(BrokenByCost(tree.SerializeAsString(), piece), "");
    EXPECT_EQ(BrokenByCost(placements.SerializeAsString(), piece), "");
  }
}

TEST(MessageCost, HoldsForMutations) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  v1::BatchCreateTreesRequest batch;
  batch.set_job_id("1");
  for (int i = 0; i < 5; ++i) batch.add_communicators()->add_ranks(static_cast<uint32_t>(i) << 20);
  const std::string whole = batch.SerializeAsString();
  for (int round = 0; round < 2000; ++round) {
    std::string wire = whole;
    for (int i = 0; i < 3; ++i) wire[random() % wire.size()] = static_cast<char>(random());
    if (random() % 3 == 0) wire.resize(random() % wire.size());
    ASSERT_EQ(BrokenByCost(wire, 1 + static_cast<int>(random() % 20)), "");
  }
}

TEST(MessageCost, NamesTheFieldThatIsMalformed) {
  EXPECT_THAT(std::string(CostOf(v1::RegisterJobRequest(), "\x1a\x05nod").status().message()),
              HasSubstr("RegisterJobRequest.endpoints"));
  const absl::Status status = CostOf(v1::RegisterJobRequest(), "\x12\x02\xff\xfe").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("display_name: it is not UTF-8"));
  EXPECT_FALSE(CostOf(v1::CreateTreeRequest(), "\x22\x02\x80\x80").ok());   // ranks, cut off
  EXPECT_FALSE(CostOf(v1::AdvisePlacementRequest(), "\x0a\x7f\x0a").ok());  // longer than all
}

}  // namespace
}  // namespace coppice::message_cost_test
