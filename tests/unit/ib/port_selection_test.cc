#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "daemon/ib/umad_subnet_port.h"

namespace coppice::port_selection_test {
namespace {

TEST(ParsePortSelection, TakesBothForms) {
  EXPECT_EQ(*ParsePortSelection("umad"), PortSelection());
  EXPECT_EQ(*ParsePortSelection("umad:mlx5_0:2"), (PortSelection{"mlx5_0", 2}));
  for (const char* spec : {"umad", "umad:mlx5_0:1", "umad:ibsim0:254"}) {
    EXPECT_EQ(ToString(*ParsePortSelection(spec)), spec);
  }
}

TEST(ParsePortSelection, RefusesTheRestAndQuotesIt) {
  for (const char* spec :
       {"", "umad:", "umad:mlx5_0", "umad:mlx5_0:", "umad:mlx5_0:0", "umad:mlx5_0:255",
        "umad:mlx5_0:-1", "umad:mlx5_0:1:2", "umad::1", "umad:mlx5_0:one", "UMAD", "file:net",
        "umad:../../etc:1", "umad:a-name-longer-than-the-kernel-allows:1"}) {
    const absl::Status status = ParsePortSelection(spec).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << spec;
    EXPECT_TRUE(absl::StrContains(status.message(), spec)) << status;
  }
}

TEST(UmadSubnetPort, NamesThePortThatDoesNotExist) {
  absl::StatusOr<std::unique_ptr<UmadSubnetPort>> port = UmadSubnetPort::Create("umad:no_such:1");
  ASSERT_TRUE(port.ok()) << port.status();
  EXPECT_EQ((*port)->Describe(), "umad:no_such:1");
  const absl::Status status = (*port)->Sweep({}).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_TRUE(absl::IsInvalidArgument(UmadSubnetPort::Create("umad:x").status()));
}

}  // namespace
}  // namespace coppice::port_selection_test
