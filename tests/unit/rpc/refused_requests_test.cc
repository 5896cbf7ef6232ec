// What a caller reads whose request holds a text that cannot be shown, over real sockets: the wire
// forms are written here, as a client of ours would not send them.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "proto/message_log.h"
#include "proto/request_check.h"
#include "proto/status_conversion.h"
#include "tests/unit/rpc/loopback.h"

namespace coppice::refused_requests_test {
namespace {

using ::testing::HasSubstr;

class RefusedRequestsTest : public ::testing::Test {
 protected:
  absl::Status Call(const std::string& method, const std::string& wire) {
    grpc::GenericStub stub(loopback_.Connect());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    grpc::CompletionQueue queue;
    const grpc::Slice slice(wire);
    const auto call = stub.PrepareUnaryCall(&context, "/coppice.v1." + method,
                                            grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return FromGrpcStatus(status);
  }

  static std::string Text(char field, const std::string& text) {
    return absl::StrCat(std::string(1, static_cast<char>(field << 3 | 2)),
                        std::string(1, static_cast<char>(text.size())), text);
  }

  Loopback loopback_;
};

TEST_F(RefusedRequestsTest, AreInvalidByNameOfTheField) {
  const std::string endpoint = Text(3, "n1");
  for (const char* bad : {"a\xff", "a\x1b[2J", "a\r", "a\n", "a\xC2\x9Bm", "a\xE2\x80\xAE"}) {
    const absl::Status status = Call("Jobs/RegisterJob", Text(2, bad) + endpoint);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("display_name: "));
    const absl::Status nested = Call("Placements/CreatePlacement", Text(2, bad));
    EXPECT_THAT(std::string(nested.message()), HasSubstr("display_name: "));
    EXPECT_TRUE(absl::IsInvalidArgument(Call("Trees/CreateTree", Text(2, bad)))) << bad;
  }
  EXPECT_TRUE(loopback_.manager().ListJobs(JobId(0), 10).empty());
}

TEST_F(RefusedRequestsTest, AMalformedOneIsInvalidToo) {
  const absl::Status status = Call("Jobs/GetJob", "\x0a\x7f");
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("GetJobRequest"));
}

// protobuf says it on stderr for every field that it reads.
TEST_F(RefusedRequestsTest, NothingIsLogged) {
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(Call("Jobs/RegisterJob", Text(2, "a\xff")).ok());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// A message of a stream that cannot be read would end it as if its client had.
TEST_F(RefusedRequestsTest, OfAStreamEndItWithTheReason) {
  SilenceMessageLog();  // this client's own words
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto stream = loopback_.jobs().KeepAlive(&context);
  v1::KeepAliveRequest request;
  request.set_id("7\xff");
  EXPECT_TRUE(stream->Write(request));
  v1::KeepAliveResponse response;
  while (stream->Read(&response)) {
  }
  const absl::Status status = FromGrpcStatus(stream->Finish());
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("id: is no UTF-8"));
}

}  // namespace
}  // namespace coppice::refused_requests_test
