// Measured distances in the store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/unit/db/store_records.h"

namespace coppice::store_distances_test {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::IsEmpty;

DistanceRecord Record(std::string a, std::string b, double latency_us = 1.5) {
  return {std::move(a), std::move(b), latency_us, 0.25, 97.5, 3.5, 90, At(17)};
}

class StoreDistancesTest : public StoreTest {};

TEST_F(StoreDistancesTest, AreThereByTheirHosts) {
  EXPECT_THAT(*store_->Distances(), IsEmpty());
  ASSERT_APPLIED(store_->Apply(PutDistances{{Record("b", "c"), Record("a", "z")}, {}}));
  ASSERT_APPLIED(store_->Apply(PutDistances{{Record("a", "b")}, {}}));
  Load();  // and after a restart
  EXPECT_THAT(*store_->Distances(),
              ElementsAre(Record("a", "b"), Record("a", "z"), Record("b", "c")));
}

TEST_F(StoreDistancesTest, TellWhatTheyWereMeasuredOver) {
  DistanceRecord verbs = Record("a", "b");
  verbs.transport = Transport::kVerbs;
  ASSERT_APPLIED(store_->Apply(PutDistances{{verbs, Record("a", "c")}, {}}));
  Load();
  EXPECT_THAT(*store_->Distances(), ElementsAre(verbs, Record("a", "c")));
  // The newest of a pair is the pair's, whatever it was measured over.
  ASSERT_APPLIED(store_->Apply(PutDistances{{Record("a", "b")}, {}}));
  EXPECT_THAT(*store_->Distances(), ElementsAre(Record("a", "b"), Record("a", "c")));
}

TEST_F(StoreDistancesTest, TakeThePlaceOfTheirPairAndAreDropped) {
  ASSERT_APPLIED(store_->Apply(PutDistances{{Record("a", "b"), Record("a", "c")}, {}}));
  ASSERT_APPLIED(store_->Apply(
      PutDistances{{Record("a", "b", 9)}, {{"a", "b"}, {"a", "c"}, {"never", "there"}}}));
  EXPECT_THAT(*store_->Distances(), ElementsAre(Record("a", "b", 9)));
}

TEST_F(StoreDistancesTest, RefuseWhatIsNoMeasurement) {
  const auto refuse = [&](const DistanceRecord& bad, const char* words) {
    EXPECT_STATUS(store_->Apply(PutDistances{{Record("x", "y"), bad}, {}}),
                  StatusCode::kInvalidArgument, words);
  };
  refuse(Record("", "b"), "no names");
  refuse(Record("b", "b"), "not in order");
  refuse(Record("c", "b"), "from c to b");
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
    refuse(Record("a", "b", bad), "above 0");
    DistanceRecord record = Record("a", "b");
    record.bandwidth_gbps = bad;
    refuse(record, "above 0");
    if (bad == 0) continue;
    record = Record("a", "b");
    record.latency_spread_us = bad;
    refuse(record, "spread");
    record = Record("a", "b");
    record.bandwidth_spread_gbps = bad;
    refuse(record, "spread");
  }
  DistanceRecord none = Record("a", "b");
  none.samples = 0;
  refuse(none, "no samples");
  EXPECT_THAT(*store_->Distances(), IsEmpty());
}

}  // namespace
}  // namespace coppice::store_distances_test
