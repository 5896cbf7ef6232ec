// The check of wire forms, beside the parser and the messages themselves.
#include "proto/request_check.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "coppice/v1/agents.pb.h"
#include "coppice/v1/fabric.pb.h"
#include "coppice/v1/jobs.pb.h"
#include "coppice/v1/mapping.pb.h"
#include "coppice/v1/placements.pb.h"
#include "coppice/v1/trees.pb.h"
#include "proto/message_log.h"
#include "tests/support/tier.h"
#include "tests/unit/proto/request_check_properties.h"

namespace coppice::request_check_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// What it costs, read in pieces of so many bytes, since gRPC hands over slices.
absl::StatusOr<size_t> CostOf(const google::protobuf::Message& type, const std::string& wire,
                              size_t most = SIZE_MAX, int piece = 100) {
  const RequestCheck check(type.GetDescriptor());
  google::protobuf::io::ArrayInputStream stream(wire.data(), static_cast<int>(wire.size()), piece);
  return check.CostOf(&stream, most);
}

absl::Status Check(const google::protobuf::Message& message) {
  return CostOf(message, message.SerializePartialAsString(), SIZE_MAX, 3).status();
}

std::string Words(const absl::Status& status) { return std::string(status.message()); }

class RequestCheckTest : public ::testing::Test {
 protected:
  void SetUp() override { SilenceMessageLog(); }  // it is told of what these tests write
};

TEST_F(RequestCheckTest, NamesTheFieldAndTheFault) {
  v1::RegisterJobRequest job;
  job.set_display_name("melt\x1b[2J");
  job.add_endpoints("n1");
  EXPECT_EQ(Words(Check(job)),
            "display_name: holds the control character U+001B at byte 4: \"melt\\u001b[2J\"");
  job.set_display_name("m\xC3\xA9lt");
  EXPECT_TRUE(Check(job).ok()) << Check(job);
  job.add_endpoints("n\xff");
  EXPECT_THAT(Words(Check(job)), StartsWith("endpoints[1]: is no UTF-8 at byte 1"));
  EXPECT_TRUE(absl::IsInvalidArgument(Check(job)));

  v1::CreatePlacementRequest placement;
  auto& constraints = *placement.mutable_placement()->mutable_constraints();
  for (const char* node : {"n1", "n2", "n\r3"}) constraints.add_candidates(node);
  EXPECT_THAT(Words(Check(placement)), StartsWith("placement.constraints.candidates[2]: holds"));

  v1::MapRanksRequest map;
  (*map.mutable_options())["seed\xE2\x80\xAE"] = 1;
  EXPECT_THAT(Words(Check(map)), StartsWith("options.key: holds the control character U+202E"));
}

TEST_F(RequestCheckTest, TextsWithLinesMayHaveLines) {
  v1::CalibrateRequest request;
  request.set_samples_csv("operation,bytes\r\nbcast,\t8\n");
  EXPECT_TRUE(Check(request).ok()) << Check(request);
  request.set_origin("lab\n.csv");
  EXPECT_THAT(Words(Check(request)), HasSubstr("origin"));
  request.set_origin("lab.csv");
  request.set_samples_csv("\x1b");
  EXPECT_THAT(Words(Check(request)), HasSubstr("samples_csv"));
}

TEST_F(RequestCheckTest, KnowsWhatIsStreamed) {
  EXPECT_EQ(CheckOfStreamed(*v1::RegisterJobRequest::descriptor()), nullptr);
  EXPECT_NE(CheckOfStreamed(*v1::AgentMessage::descriptor()), nullptr);
  EXPECT_EQ(CheckOfStreamed(*v1::Job::descriptor()), nullptr);
}

TEST_F(RequestCheckTest, TwoBytesMayBeAWholeMessage) {
  std::string wire;
  for (int i = 0; i < 100'000; ++i) wire += std::string("\x0a\x00", 2);
  const auto cost = CostOf(v1::AdvisePlacementRequest(), wire);
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_GT(*cost, 30 * wire.size());
  const auto little = CostOf(v1::AdvisePlacementRequest(), wire, 5000);
  ASSERT_TRUE(little.ok());
  EXPECT_LT(*little, 6000u);  // it stopped there
}

TEST_F(RequestCheckTest, HoldsForRequestsAsTheyAre) {
  v1::RegisterJobRequest job;
  v1::CreateTreeRequest tree;
  v1::AdvisePlacementRequest placements;
  for (uint32_t i = 0; i < 1000; ++i) {
    job.add_endpoints(absl::StrCat("node", i, ".of.a.rather.long.name/1"));
    tree.add_ranks(i * 1000);
    placements.add_requests()->set_seed(i);
  }
  for (const int piece : {1, 7, 1000, 1 << 20}) {
    EXPECT_EQ(BrokenByCheck(job.SerializeAsString(), piece), "");
    EXPECT_EQ(BrokenByCheck(tree.SerializeAsString(), piece), "");
    EXPECT_EQ(BrokenByCheck(placements.SerializeAsString(), piece), "");
  }
}

// Short texts that follow each other in one piece are not looked at one by one.
TEST_F(RequestCheckTest, AListOfTextsIsCountedAndNamedAlikeInAnyPieces) {
  v1::RegisterJobRequest job;
  job.set_display_name("melt");
  for (uint32_t i = 0; i < 300; ++i) {
    job.add_endpoints(i % 50 == 7   ? "n\xC3\xA9"
                      : i % 50 == 9 ? std::string(200, 'n')
                                    : absl::StrCat("n", i));
  }
  const auto one_by_one = CostOf(job, job.SerializeAsString(), SIZE_MAX, 1);
  ASSERT_TRUE(one_by_one.ok()) << one_by_one.status();
  for (const int piece : {2, 7, 100, 1 << 20}) {
    EXPECT_EQ(CostOf(job, job.SerializeAsString(), SIZE_MAX, piece).value_or(0), *one_by_one);
  }
  const auto little = CostOf(job, job.SerializeAsString(), 5000, 1 << 20);
  ASSERT_TRUE(little.ok());
  EXPECT_LT(*little, 6000u);  // it stopped there
  job.set_endpoints(211, "n\x1b");
  for (const int piece : {1, 7, 1 << 20}) {
    EXPECT_THAT(Words(CostOf(job, job.SerializeAsString(), SIZE_MAX, piece).status()),
                StartsWith("endpoints[211]: holds the control character"));
  }
  // A field whose tag has two bytes: the first is no tag, and the second no length.
  v1::Placement placement;
  placement.set_why_not("full");
  std::string twice = placement.SerializeAsString();
  placement.set_why_not(std::string(31, 'n') + "\x1b");
  twice += placement.SerializeAsString();
  EXPECT_THAT(Words(CostOf(placement, twice).status()), StartsWith("why_not: holds"));
  // Numbers in the place of a text are skipped as such.
  EXPECT_EQ(BrokenByCheck(std::string("\x18\x18\x05\x1a\x02n1\x1a\x01\x1b", 10), 100), "");
}

std::string BatchOnTheWire() {
  v1::BatchCreateTreesRequest batch;
  batch.set_job_id("1");
  for (uint32_t i = 0; i < 5; ++i) batch.add_communicators()->add_ranks(i << 20);
  return batch.SerializeAsString();
}

std::string JobOnTheWire() {
  v1::RegisterJobRequest job;
  job.set_request_id("r\xC3\xBC");
  job.set_display_name("solver");
  for (const char* endpoint : {"n1", "n2/1", "n3/1@mlx5_0"}) job.add_endpoints(endpoint);
  job.mutable_lease()->set_seconds(30);
  return job.SerializeAsString();
}

TEST_F(RequestCheckTest, HoldsForMutations) {
  std::mt19937_64 random(TestSeed());
  int refused_texts = 0, parsed = 0;
  for (const std::string& whole : {BatchOnTheWire(), JobOnTheWire()}) {
    for (int round = 0; round < 10'000; ++round) {
      std::string wire = whole;
      for (uint64_t m = random() % 3 + 1; m > 0; --m) {
        wire[random() % wire.size()] = static_cast<char>(random());
      }
      if (random() % 3 == 0) wire.resize(random() % wire.size());
      ASSERT_EQ(BrokenByCheck(wire, 1 + static_cast<int>(random() % 20)), "");
      v1::RegisterJobRequest job;
      if (!job.ParseFromString(wire)) continue;
      ++parsed;
      refused_texts += !CostOf(job, wire).ok();
    }
  }
  // So that neither side of the property goes untried.
  EXPECT_GT(refused_texts, 100);
  EXPECT_GT(parsed, refused_texts);
}

TEST_F(RequestCheckTest, NamesTheFieldThatIsMalformed) {
  EXPECT_THAT(Words(CostOf(v1::RegisterJobRequest(), "\x1a\x05nod").status()),
              StartsWith("endpoints[0]: the request is not the RegisterJobRequest that"));
  EXPECT_TRUE(absl::IsInvalidArgument(CostOf(v1::RegisterJobRequest(), "\x1a\x05nod").status()));
  EXPECT_FALSE(CostOf(v1::CreateTreeRequest(), "\x22\x02\x80\x80").ok());   // ranks, cut off
  EXPECT_FALSE(CostOf(v1::AdvisePlacementRequest(), "\x0a\x7f\x0a").ok());  // longer than all
}

}  // namespace
}  // namespace coppice::request_check_test
