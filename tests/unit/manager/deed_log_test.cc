// What of the account of deeds comes without a change, and what the log says of all of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/manager/store_calls.h"
#include "tests/support/manual_clock.h"
#include "tests/support/scratch_store.h"

namespace coppice::deed_log_test {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

Actor ActorNamed(std::string user, std::string method) {
  Actor actor;
  actor.caller = actor.user = std::move(user);
  actor.origin = "uid:1000";
  actor.method = std::move(method);
  return actor;
}

class DeedLogTest : public ::testing::Test {
 protected:
  DeedLogTest() : before_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>(
        "deeds", std::make_shared<spdlog::sinks::ostream_sink_mt>(said_));
    logger->set_pattern("%l %v");
    spdlog::set_default_logger(std::move(logger));
  }
  ~DeedLogTest() override { spdlog::set_default_logger(before_); }

  std::vector<std::string> Lines() const {
    return absl::StrSplit(said_.str(), '\n', absl::SkipEmpty());
  }
  std::vector<DeedRecord> Deeds() { return *store_.Deeds({.limit = 10'000}); }
  std::vector<uint32_t> Counts() {
    std::vector<uint32_t> counts;
    for (const DeedRecord& deed : Deeds()) counts.push_back(deed.count);
    return counts;
  }
  void Deny(const std::string& user, int times = 1) {
    for (int i = 0; i < times; ++i) {
      log_.Note(ActorNamed(user, "Jobs.EndJob"), absl::StrCat("job:", i),
                StatusCode::kPermissionDenied);
    }
  }

  std::ostringstream said_;
  const std::shared_ptr<spdlog::logger> before_;
  ScratchStore store_;
  ManualClock clock_;
  StoreCalls calls_{&store_, [this](const DeedRecord& deed) { log_.Told(deed); }};
  DeedLog log_{&calls_, &clock_};
};

TEST_F(DeedLogTest, RepeatedDenialsAreToldAsOneThoughNobodyIsDeniedAgain) {
  Deny("eve", 5);
  calls_.AwaitAll();
  EXPECT_THAT(Counts(), ElementsAre(1));
  clock_.Advance(absl::Seconds(59));
  log_.FlushDue();
  calls_.AwaitAll();
  EXPECT_THAT(Counts(), ElementsAre(1));
  clock_.Advance(absl::Seconds(2));
  log_.FlushDue();
  calls_.AwaitAll();
  EXPECT_THAT(Counts(), ElementsAre(1, 4));
  EXPECT_EQ(Deeds().at(1).object, "job:4");
  Deny("eve");
  calls_.AwaitAll();
  EXPECT_THAT(Counts(), ElementsAre(1, 4, 1));
}

TEST_F(DeedLogTest, WhoAsksFindsAllThatWasDeniedBefore) {
  Deny("eve", 3);
  Deny("ada");
  log_.Flush();
  EXPECT_THAT(Counts(), ElementsAre(1, 1, 2));
}

// Somebody may invent users: the others are told apart all the same.
TEST_F(DeedLogTest, ManyKindsDoNotMakeTheOthersTellMore) {
  Deny("eve", 2);
  for (size_t i = 0; i < 2 * FoldedDeeds::kMaxKinds; ++i) Deny(absl::StrCat("invented", i));
  Deny("eve", 2);
  log_.Flush();
  uint32_t of_eve = 0, of_several = 0;
  for (const DeedRecord& deed : Deeds()) {
    if (deed.user == "eve") of_eve += deed.count;
    if (deed.user == "*") of_several += deed.count;
  }
  EXPECT_EQ(of_eve, 4u);
  EXPECT_EQ(of_several, FoldedDeeds::kMaxKinds + 1);
  EXPECT_LE(Counts().size(), FoldedDeeds::kMaxKinds + 4);
}

TEST_F(DeedLogTest, ALineForEachDeedOfAChangeAndEachDenial) {
  PutQuota put{{QuotaHolder::kUser, "ada", "jobs", 7}, false, nullptr};
  put.deed = DeedOf(ActorNamed("root", "Admin.SetQuota"), "user:ada jobs", clock_.Now());
  calls_.Submit(put, [](const absl::Status&) {});
  Deny("eve");
  log_.Note(ActorNamed("root", "Fabric.Sweep"), "fabric", StatusCode::kOk);
  calls_.AwaitAll();
  EXPECT_THAT(Lines(), UnorderedElementsAre(
                           "info deed user=root caller=root origin=uid:1000 method=Admin.SetQuota "
                           "object=\"user:ada jobs\" outcome=OK count=1",
                           "warning deed user=eve caller=eve origin=uid:1000 method=Jobs.EndJob "
                           "object=job:0 outcome=PERMISSION_DENIED count=1",
                           "info deed user=root caller=root origin=uid:1000 method=Fabric.Sweep "
                           "object=fabric outcome=OK count=1"));
}

TEST_F(DeedLogTest, FloodsAreFewLinesWithTheirNumber) {
  DeedRecord deed;
  deed.time = clock_.Now();
  deed.user = deed.caller = "eve";
  deed.method = "Trees.CreateTree";
  deed.outcome = "OK";
  for (int i = 0; i < 1000; ++i) log_.Told(deed);
  ASSERT_THAT(Lines(), SizeIs(10));
  clock_.Advance(absl::Minutes(2));
  log_.FlushDue();
  ASSERT_THAT(Lines(), SizeIs(11));
  EXPECT_THAT(Lines()[10], HasSubstr("method=Trees.CreateTree object=\"\" outcome=OK count=990"));
}

TEST(LineOfTest, CannotBeMistakenForMore) {
  DeedRecord deed;
  deed.user = "eve outcome=OK";
  deed.object = "pattern:a\"b\n";
  const std::string line = LineOf(deed);
  EXPECT_THAT(line, HasSubstr("user=\"eve outcome=OK\" caller=\"\""));
  EXPECT_THAT(line, HasSubstr("object=\"pattern:a\\\"b\\n\""));
}

}  // namespace
}  // namespace coppice::deed_log_test
