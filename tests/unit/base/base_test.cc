#include <gtest/gtest.h>

#include <type_traits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/cord.h"
#include "daemon/base/clock.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strong_id.h"

namespace coppice::base_test {
namespace {

TEST(StrongId, KeepsKindsApart) {
  static_assert(!std::is_convertible_v<Lid, PortNum>);
  static_assert(!std::is_convertible_v<uint16_t, Lid>);
  static_assert(!std::is_convertible_v<Lid, uint16_t>);
  static_assert(sizeof(Lid) == 2 && sizeof(Guid) == 8);
  EXPECT_LT(Lid(3), Lid(4));
  EXPECT_EQ(Lid(), Lid(0));
  EXPECT_EQ((absl::flat_hash_set<Guid>{Guid(1), Guid(2), Guid(1)}).size(), 2);
  EXPECT_EQ(ToString(Guid(0x2c9020040b0e0)), "0002c9020040b0e0");
}

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError("odd");
  return n / 2;
}

absl::StatusOr<int> Quarter(int n) {
  ASSIGN_OR_RETURN(const int half, Half(n));
  ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

absl::Status Check(int n) {
  RETURN_IF_ERROR(Quarter(n).status());
  return absl::OkStatus();
}

TEST(StatusMacros, PassErrorsOn) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_EQ(Quarter(6).status(), absl::InvalidArgumentError("odd"));
  EXPECT_TRUE(Check(4).ok());
  EXPECT_EQ(Check(3), absl::InvalidArgumentError("odd"));
}

TEST(Annotate, PutsContextBeforeTheMessageAndKeepsPayloads) {
  absl::Status status = absl::NotFoundError("no such port");
  status.SetPayload("url", absl::Cord("payload"));
  const absl::Status annotated = Annotate(status, "node 7");
  EXPECT_EQ(annotated.message(), "node 7: no such port");
  EXPECT_EQ(annotated.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(annotated.GetPayload("url"), absl::Cord("payload"));
  EXPECT_TRUE(Annotate(absl::OkStatus(), "node 7").ok());
}

TEST(SystemClock, NeverStepsBack) {
  const absl::Duration before = SystemClock().Monotonic();
  EXPECT_LE(before, SystemClock().Monotonic());
  EXPECT_GT(SystemClock().Now(), absl::FromUnixSeconds(1'700'000'000));
}

}  // namespace
}  // namespace coppice::base_test
