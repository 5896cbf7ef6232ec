// The check of wire forms, beside the parser and the messages themselves.
#include "proto/request_check.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "coppice/v1/agents.pb.h"
#include "coppice/v1/fabric.pb.h"
#include "coppice/v1/jobs.pb.h"
#include "coppice/v1/mapping.pb.h"
#include "coppice/v1/placements.pb.h"
#include "proto/text/plain_text.h"
#include "tests/support/tier.h"

namespace coppice::request_check_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// In blocks of so many bytes, since gRPC hands over slices.
absl::Status Check(const google::protobuf::Descriptor& type, const std::string& wire,
                   int block_bytes = -1) {
  google::protobuf::io::ArrayInputStream stream(wire.data(), static_cast<int>(wire.size()),
                                                block_bytes);
  return CheckRequest(type, stream);
}

absl::Status Check(const google::protobuf::Message& message) {
  return Check(*message.GetDescriptor(), message.SerializePartialAsString(), 3);
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
  EXPECT_FALSE(IsStreamed(*v1::RegisterJobRequest::descriptor()));
  EXPECT_TRUE(IsStreamed(*v1::AgentMessage::descriptor()));  // of a stream
  EXPECT_FALSE(IsStreamed(*v1::Job::descriptor()));
}

// Whatever comes: what passes and is a message holds plain texts only, and what is refused does
// not.
TEST_F(RequestCheckTest, AgreesWithTheParserOnMutations) {
  v1::RegisterJobRequest good;
  good.set_request_id("r\xC3\xBC");
  good.set_display_name("solver");
  for (const char* endpoint : {"n1", "n2/1", "n3/1@mlx5_0"}) good.add_endpoints(endpoint);
  good.mutable_lease()->set_seconds(30);
  const std::string wire = good.SerializeAsString();
  std::mt19937_64 random(TestSeed());
  int refused = 0, parsed = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string mutation = wire;
    for (uint64_t m = random() % 3 + 1; m > 0; --m) {
      mutation[random() % mutation.size()] = static_cast<char>(random());
    }
    const absl::Status status =
        Check(*v1::RegisterJobRequest::descriptor(), mutation, static_cast<int>(random() % 5 + 1));
    v1::RegisterJobRequest message;
    if (!message.ParseFromString(mutation)) continue;
    ++parsed;
    std::string fault = TextFault(message.request_id()) + TextFault(message.display_name());
    for (const std::string& endpoint : message.endpoints()) fault += TextFault(endpoint);
    // A text that another one replaces is checked, and gone from the message.
    ASSERT_TRUE(status.ok() ? fault.empty() : true) << status << " " << fault;
    refused += !status.ok();
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(parsed, refused);
}

}  // namespace
}  // namespace coppice::request_check_test
