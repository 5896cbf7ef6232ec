// What earlier runs measured: joined, bounded, kept, and found again by who runs alike.
#include "daemon/manager/known_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "tests/unit/manager/manager_fixture.h"

namespace coppice::known_times_test {
namespace {

using absl::StatusCode;
using testing::HasSubstr;
using testing::IsEmpty;

WayTime Time(CollectiveWay way, double us, uint8_t bits = 7) {
  return {Operation::kAllreduce, bits, way, us, 0, 0, JobId()};
}

std::vector<Guid> Ports(const std::vector<uint32_t>& hosts) {
  std::vector<Guid> ports;
  for (const uint32_t host : hosts) ports.push_back(PortGuid(host));
  return ports;
}

TEST(LayoutTest, CountsGroupsOfEachLevel) {
  const auto snapshot = MakeSnapshot(SmallFabric(), nullptr);
  ASSERT_TRUE(snapshot.ok());
  const auto layout = [&](const std::vector<uint32_t>& hosts) {
    return LayoutOf(**snapshot, Ports(hosts));
  };
  EXPECT_EQ(layout({2}), "1 rank: 1 host");
  EXPECT_EQ(layout({2, 2, 2}), "3 ranks: 1 host");
  EXPECT_EQ(layout({0, 1, 2}), "3 ranks: 3 hosts, 1 leaf switch");
  EXPECT_EQ(layout({4, 7, 5}), layout({0, 1, 2}));
  EXPECT_EQ(layout({0, 4, 4}), "3 ranks: 2 hosts, 2 leaf switches, 1 component");
  EXPECT_EQ(layout({0, 77}), "");
}

class KnownTimesTest : public ManagerTest {
 protected:
  void SetUp() override { Boot(); }
  // A tree of type I over these hosts, one rank a host.
  TreeView TreeOver(const std::vector<uint32_t>& hosts, const std::string& owner = "ada") {
    RegisterJobArgs job = AllHosts("");
    job.all_endpoints = false;
    for (const uint32_t host : hosts) job.endpoints.push_back("n" + std::to_string(host));
    job.owner = job.actor.user = owner;
    CreateTreeArgs args = TreeOf(Register(job)->record->id);
    args.type = TreeType::kTypeI;
    return *Create(args);
  }
  absl::Status Measure(const TreeView& tree, std::vector<WayTime> times) {
    return manager_->AddTimes(tree.record->id, "waves", times);
  }
};

TEST_F(KnownTimesTest, AreFoundByWhoRunsAlikeAndByNobodyElse) {
  const TreeView tree = TreeOver({0, 1, 4});
  EXPECT_THAT(manager_->FindTimes(tree, "waves"), IsEmpty());
  ASSERT_TRUE(Measure(tree, {Time(CollectiveWay::kTree, 10)}).ok());
  const std::vector<WayTime> known = {
      {Operation::kAllreduce, 7, CollectiveWay::kTree, 10, 0, 1, tree.record->job}};
  EXPECT_EQ(manager_->FindTimes(tree, "waves"), known);
  EXPECT_EQ(manager_->FindTimes(TreeOver({8, 12, 13}), "waves"), known);
  EXPECT_THAT(manager_->FindTimes(tree, "heat"), IsEmpty());
  EXPECT_THAT(manager_->FindTimes(TreeOver({0, 1, 2}), "waves"), IsEmpty());
  EXPECT_THAT(manager_->FindTimes(TreeOver({0, 1, 4}, "bob"), "waves"), IsEmpty());
  Boot();
  EXPECT_EQ(manager_->FindTimes(tree, "waves"), known);
  EXPECT_EQ(manager_->AddTimes(TreeId(99), "waves", {}).code(), StatusCode::kNotFound);
}

TEST_F(KnownTimesTest, AreMeansOfTheLastRuns) {
  const auto measure = [&](double us) {
    const TreeView tree = TreeOver({0, 4});
    ASSERT_TRUE(
        Measure(tree, {Time(CollectiveWay::kTree, us), Time(CollectiveWay::kChain, 7)}).ok());
  };
  measure(10);
  measure(20);
  const TreeView tree = TreeOver({0, 4});
  std::vector<WayTime> known = manager_->FindTimes(tree, "waves");
  ASSERT_EQ(known.size(), 2U);
  EXPECT_EQ(known[0].us, 15);
  EXPECT_EQ(known[0].spread, 0.5);  // 20 was twice 10; the first run deviated from nothing
  EXPECT_EQ(known[0].runs, 2U);
  EXPECT_EQ(known[1].us, 7);
  EXPECT_EQ(known[1].spread, 0);
  // What has changed for good is what is known after some runs.
  for (int run = 0; run < 20; ++run) measure(40);
  known = manager_->FindTimes(tree, "waves");
  EXPECT_NEAR(known[0].us, 40, 0.2);
  EXPECT_LT(known[0].spread, 0.02);
  // Of a job the first one counts, whichever of its communicators brings it.
  for (const double us : {100.0, 1000.0}) {
    ASSERT_TRUE(
        Measure(tree, {Time(CollectiveWay::kChain, us), Time(CollectiveWay::kNative, us)}).ok());
  }
  known = manager_->FindTimes(tree, "waves");
  ASSERT_EQ(known.size(), 3U);
  EXPECT_EQ(known[0].us, 100);  // native
  EXPECT_EQ(known[0].runs, 1U);
  EXPECT_EQ(known[2].us, 7 + 0.25 * 93);
}

TEST_F(KnownTimesTest, AreNotToldForEver) {
  const TreeView tree = TreeOver({0, 4});
  ASSERT_TRUE(Measure(tree, {Time(CollectiveWay::kTree, 10), Time(CollectiveWay::kChain, 7)}).ok());
  clock_.Advance(KnownTimes::kAge);
  EXPECT_EQ(manager_->FindTimes(tree, "waves").size(), 2U);
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(manager_->FindTimes(tree, "waves"), IsEmpty());
  // And go with what is measured next.
  ASSERT_TRUE(Measure(tree, {Time(CollectiveWay::kTree, 30)}).ok());
  ASSERT_EQ(manager_->FindTimes(tree, "waves").size(), 1U);
  EXPECT_EQ(manager_->FindTimes(tree, "waves")[0].us, 30);
  Boot();
  EXPECT_EQ(manager_->FindTimes(tree, "waves").size(), 1U);
}

TEST_F(KnownTimesTest, RefuseWhatIsNoMeasurement) {
  const TreeView tree = TreeOver({0, 4});
  const auto refuse = [&](std::vector<WayTime> times, const char* words) {
    times.push_back(Time(CollectiveWay::kTree, 1));
    const absl::Status status = Measure(tree, std::move(times));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  refuse({Time(CollectiveWay::kChain, 0)}, "us is none");
  refuse({Time(CollectiveWay::kChain, std::numeric_limits<double>::quiet_NaN())}, "us is none");
  refuse({Time(CollectiveWay::kChain, std::numeric_limits<double>::infinity())}, "us is none");
  refuse({Time(CollectiveWay::kChain, 1e-4)}, "give 0.001 to 1e+12");
  refuse({Time(CollectiveWay::kChain, 2e12)}, "give 0.001 to 1e+12");
  refuse({Time(CollectiveWay::kChain, 1, 65)}, "65 bits");
  refuse({Time(CollectiveWay::kTree, 2)}, "named twice");
  refuse(std::vector<WayTime>(KnownTimes::kMaxTimes, Time(CollectiveWay::kTree, 2)), "512 at most");
  EXPECT_THAT(manager_->FindTimes(tree, "waves"), IsEmpty());
  EXPECT_TRUE(Measure(tree, {}).ok());
}

class KnownTimesLimitsTest : public KnownTimesTest {
 protected:
  static std::vector<WayTime> Many() {
    std::vector<WayTime> many;
    for (uint8_t bits = 0; bits <= 64; ++bits) {
      for (const CollectiveWay way : {CollectiveWay::kNative, CollectiveWay::kTree}) {
        many.push_back(Time(way, 5, bits));
      }
    }
    return many;
  }
  static WayTimesOf Of(const std::string& owner, size_t number) {
    return {owner, "waves", std::to_string(number) + " ranks", 1};
  }
  const std::vector<WayTime> many_ = Many();
  const size_t programs_ = KnownTimes::kMaxOfOwner / (many_.size() + KnownTimes::kOfProgram);
  StoreCalls calls_{&store_};
};

TEST_F(KnownTimesLimitsTest, OfTooManyTheOldestGo) {
  KnownTimes times(&calls_, &clock_);
  ASSERT_TRUE(times.Add(Of("bob", 0), JobId(1), many_).ok());
  for (size_t number = 0; number <= programs_ + 1; ++number) {
    clock_.Advance(absl::Seconds(1));
    const JobId job(static_cast<int64_t>(number) + 2);
    ASSERT_TRUE(times.Add(Of("ada", number), job, many_).ok());
    // One that is measured again is young again.
    ASSERT_TRUE(times.Add(Of("ada", 1), JobId(1000 + job.value()), many_).ok());
  }
  EXPECT_THAT(times.Find(Of("ada", 0)), IsEmpty());
  EXPECT_EQ(times.Find(Of("ada", 1)).size(), many_.size());
  EXPECT_THAT(times.Find(Of("ada", 2)), IsEmpty());
  EXPECT_EQ(times.Find(Of("ada", 3)).size(), many_.size());
  EXPECT_EQ(times.Find(Of("bob", 0)).size(), many_.size());
  calls_.AwaitAll();
  EXPECT_EQ(store_.Load()->way_times.size(), programs_ + 1);
}

TEST_F(KnownTimesLimitsTest, WhoHasTheMostGivesWayToOthers) {
  KnownTimes times(&calls_, &clock_);
  std::vector<WayTimesRecord> left;
  // Owners who are full, one more of them than all may have, and one who has little.
  for (size_t owner = 0; owner <= KnownTimes::kMaxOfAll / KnownTimes::kMaxOfOwner; ++owner) {
    for (size_t number = 0; number < programs_; ++number) {
      left.push_back({Of("owner" + std::to_string(owner), number), many_, clock_.Now()});
    }
  }
  left.push_back({Of("poor", 0), many_, clock_.Now() - absl::Hours(1)});
  const size_t all = left.size();
  times.Restore(std::move(left));
  EXPECT_EQ(times.Find(Of("poor", 0)).size(), many_.size());
  size_t kept = 0;
  for (size_t owner = 0; owner <= KnownTimes::kMaxOfAll / KnownTimes::kMaxOfOwner; ++owner) {
    size_t of_owner = 0;
    for (size_t number = 0; number < programs_; ++number) {
      of_owner += times.Find(Of("owner" + std::to_string(owner), number)).empty() ? 0 : 1;
    }
    EXPECT_GE(of_owner, programs_ * 8 / 10);
    kept += of_owner;
  }
  EXPECT_LT(kept, all - 1);
  EXPECT_LE((kept + 1) * (many_.size() + KnownTimes::kOfProgram), KnownTimes::kMaxOfAll);
}

}  // namespace
}  // namespace coppice::known_times_test
