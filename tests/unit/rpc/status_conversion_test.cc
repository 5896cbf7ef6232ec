#include "proto/status_conversion.h"

#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"

namespace coppice::status_conversion_test {
namespace {

TEST(StatusConversion, KeepsCodesAndMessages) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "tree 7: gone");
    const grpc::Status wire = ToGrpcStatus(status);
    EXPECT_EQ(wire.error_code(), code);
    EXPECT_EQ(wire.error_details(), "");
    EXPECT_EQ(FromGrpcStatus(wire), status);
  }
  EXPECT_EQ(FromGrpcStatus(grpc::Status(static_cast<grpc::StatusCode>(31), "?")).code(),
            absl::StatusCode::kUnknown);
}

TEST(StatusConversion, KeepsDetailsBothWays) {
  absl::Status status = absl::ResourceExhaustedError("switch 5: full");
  google::rpc::QuotaFailure quota;
  quota.add_violations()->set_subject("switch:5");
  SetDetail(status, quota);
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(3);
  SetDetail(status, retry);
  status.SetPayload("private", absl::Cord("stays here"));
  const absl::Status back = FromGrpcStatus(ToGrpcStatus(status));
  EXPECT_EQ(back.message(), "switch 5: full");
  ASSERT_TRUE(GetDetail<google::rpc::QuotaFailure>(back).has_value());
  EXPECT_EQ(GetDetail<google::rpc::QuotaFailure>(back)->violations(0).subject(), "switch:5");
  EXPECT_EQ(GetDetail<google::rpc::RetryInfo>(back)->retry_delay().seconds(), 3);
  EXPECT_FALSE(GetDetail<google::rpc::ErrorInfo>(back).has_value());
  EXPECT_FALSE(back.GetPayload("private").has_value());
}

TEST(StatusConversion, DropsDetailsThatCannotBeRead) {
  const grpc::Status wire(grpc::StatusCode::ABORTED, "moved", "\xff\xff\xff");
  EXPECT_EQ(FromGrpcStatus(wire), absl::AbortedError("moved"));
}

}  // namespace
}  // namespace coppice::status_conversion_test
