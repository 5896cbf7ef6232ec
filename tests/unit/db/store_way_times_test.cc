// How soon collectives went, in the store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/unit/db/raw_database.h"
#include "tests/unit/db/store_records.h"

namespace coppice::store_way_times_test {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::IsEmpty;

WayTimesRecord Record(std::string application, double us = 12.5, uint8_t tree_type = 1) {
  return {{"ada", std::move(application), "4 ranks: 4 hosts, 1 leaf switch", tree_type},
          {{Operation::kAllreduce, 7, CollectiveWay::kNative, us, 0.125, 3, JobId(7)},
           {Operation::kAllreduce, 7, CollectiveWay::kTree, 2 * us, 0, 1, JobId(8)}},
          At(5)};
}

class StoreWayTimesTest : public StoreTest {
 protected:
  std::vector<WayTimesRecord> Kept() { return store_->Load()->way_times; }
};

TEST_F(StoreWayTimesTest, AreThereAfterARestart) {
  EXPECT_THAT(Kept(), IsEmpty());
  const WayTimesRecord two = Record("waves", 3, 2);
  WayTimesRecord all = Record("heat");
  all.times.clear();
  for (int operation = 0; operation < 4; ++operation) {
    for (int way = 0; way < kCollectiveWays; ++way) {
      all.times.push_back({static_cast<Operation>(operation), 64, static_cast<CollectiveWay>(way),
                           1.0 + way, 0, 1, JobId(1)});
    }
  }
  for (const WayTimesRecord& record : {two, Record("waves"), all}) {
    ASSERT_APPLIED(store_->Apply(PutWayTimes{record, {}}));
  }
  Load();
  const std::vector<WayTimesRecord> kept = Kept();
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_EQ(kept[0].of, all.of);
  EXPECT_THAT(kept[0].times, testing::UnorderedElementsAreArray(all.times));
  EXPECT_EQ(kept[1], Record("waves"));
  EXPECT_EQ(kept[2], two);
}

TEST_F(StoreWayTimesTest, TakeThePlaceOfTheirWaysAndAreDropped) {
  for (const WayTimesRecord& record : {Record("a"), Record("b"), Record("c")}) {
    ASSERT_APPLIED(store_->Apply(PutWayTimes{record, {}}));
  }
  WayTimesRecord some = Record("a", 9);
  some.times.resize(1);
  some.measured = At(6);
  ASSERT_APPLIED(store_->Apply(PutWayTimes{some, {Record("b").of, Record("never there").of}}));
  WayTimesRecord joined = Record("a");
  joined.times[0] = some.times[0];
  joined.measured = At(6);
  EXPECT_THAT(Kept(), ElementsAre(joined, Record("c")));
  ASSERT_APPLIED(store_->Apply(PutWayTimes{some, {some.of}}));
  EXPECT_THAT(Kept(), ElementsAre(some, Record("c")));
  ASSERT_APPLIED(store_->Apply(PutWayTimes{{}, {some.of}}));
  EXPECT_THAT(Kept(), ElementsAre(Record("c")));
}

TEST_F(StoreWayTimesTest, RowsThatAreNoneAreRefusedByTheTable) {
  ASSERT_APPLIED(store_->Apply(PutWayTimes{Record("a"), {}}));
  RawDatabase raw(path_);
  for (const char* damage : {"way = 'teleport'", "operation = 'alltoall'", "us = -1", "runs = 0"}) {
    EXPECT_THAT(raw.Run(std::string("UPDATE way_time SET ") + damage), testing::HasSubstr("CHECK"));
  }
  EXPECT_THAT(Kept(), ElementsAre(Record("a")));
}

TEST_F(StoreWayTimesTest, RefuseWhatIsNoMeasurement) {
  const auto refuse = [&](auto spoil, const char* words) {
    WayTimesRecord record = Record("waves");
    spoil(record);
    EXPECT_STATUS(store_->Apply(PutWayTimes{record, {}}), StatusCode::kInvalidArgument, words);
  };
  refuse([](WayTimesRecord& record) { record.of.owner = ""; }, "name owner");
  refuse([](WayTimesRecord& record) { record.of.application = ""; }, "name owner");
  refuse([](WayTimesRecord& record) { record.of.layout = ""; }, "name owner");
  refuse([](WayTimesRecord& record) { record.of.tree_type = 3; }, "neither 1 nor 2");
  refuse([](WayTimesRecord& record) { record.times.clear(); }, "there are none");
  refuse([](WayTimesRecord& record) { record.times[1].way = record.times[0].way; }, "twice");
  refuse([](WayTimesRecord& record) { record.times[1].runs = 0; }, "no runs");
  refuse([](WayTimesRecord& record) { record.times[1].length_bits = 65; }, "64 bits");
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
    refuse([bad](WayTimesRecord& record) { record.times[1].us = bad; }, "above 0");
    if (bad == 0) continue;
    refuse([bad](WayTimesRecord& record) { record.times[1].spread = bad; }, "spread");
  }
  EXPECT_THAT(Kept(), IsEmpty());
}

}  // namespace
}  // namespace coppice::store_way_times_test
