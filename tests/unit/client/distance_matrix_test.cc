// Measured distances as a matrix of text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/output.h"
#include "coppice/v1/agents.pb.h"

namespace coppice::distance_matrix_test {
namespace {

using ::testing::HasSubstr;

void Add(v1::ListDistancesResponse& list, const char* from, const char* to, double latency_us,
         double gbps) {
  v1::MeasuredDistance& distance = *list.add_distances();
  distance.set_from(from);
  distance.set_to(to);
  distance.set_latency_us(latency_us);
  distance.set_bandwidth_gbps(gbps);
}

v1::ListDistancesResponse ThreeHosts() {
  v1::ListDistancesResponse list;
  Add(list, "a", "b", 1, 80);
  Add(list, "a", "c", 19, 40);
  Add(list, "b", "c", 19, 20);
  return list;
}

TEST(DistanceMatrixText, IsInTheOrderOfTheHostsAndUnitsOfTheLeast) {
  EXPECT_EQ(*DistanceMatrixText({"c", "a", "b", "a"}, ThreeHosts(), 0),
            "# places in this order: c a b\n3\n0 2 4\n2 0 1\n4 1 0\n");
}

TEST(DistanceMatrixText, CountsLatencyOnceAMessage) {
  // Of 10,000 bytes: 1 + 1 us, 2 + 19 us, 4 + 19 us.
  EXPECT_EQ(*DistanceMatrixText({"a", "b", "c"}, ThreeHosts(), 10'000),
            "# places in this order: a b c\n3\n0 1 10.5\n1 0 11.5\n10.5 11.5 0\n");
}

TEST(DistanceMatrixText, PortsOfAHostAreInOnePlace) {
  EXPECT_EQ(*DistanceMatrixText({"a/1", "b/1", "a/2"}, ThreeHosts(), 0),
            "# places in this order: a/1 b/1 a/2\n3\n0 1 0\n1 0 1\n0 1 0\n");
  EXPECT_EQ(*DistanceMatrixText({"a"}, {}, 0), "# places in this order: a\n1\n0\n");
}

TEST(DistanceMatrixText, NamesWhatIsMissing) {
  const absl::Status missing = DistanceMatrixText({"a", "d"}, ThreeHosts(), 0).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("a and d"));
  EXPECT_EQ(DistanceMatrixText({}, ThreeHosts(), 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace coppice::distance_matrix_test
