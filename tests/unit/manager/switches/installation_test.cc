// The installer step by step, with switches that the test plays and a clock that is turned by hand.
#include "daemon/manager/switches/installation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"
#include "tests/unit/manager/switches/played_switch.h"

namespace coppice::installation_test {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

// One rank below each of `leaves`, and these below `root`.
TreeRecord Star(int64_t id, std::vector<uint64_t> leaves, uint64_t root, uint32_t revision = 1) {
  TreeRecord record;
  record.id = TreeId(id);
  record.revision = revision;
  record.type = 2;
  const auto count = static_cast<int32_t>(leaves.size());
  for (int32_t i = 0; i < count; ++i) {
    record.ranks.push_back(static_cast<uint32_t>(i));
    record.parents.push_back(count + i);
  }
  for (int32_t i = 0; i < count; ++i) record.parents.push_back(2 * count);
  record.parents.push_back(-1);
  for (const uint64_t leaf : leaves) record.switches.push_back({Guid(leaf), 1});
  record.switches.push_back({Guid(root), static_cast<uint32_t>(count)});
  record.carriage = {*NewInstallKey(), 1024, 4};
  return record;
}

class InstallationTest : public ::testing::Test {
 protected:
  InstallationTest() {
    for (uint64_t guid = 1; guid <= 3; ++guid) {
      switches_.push_back(std::make_unique<PlayedSwitch>(Guid(guid)));
      sessions_.push_back(0);
    }
  }
  PlayedSwitch& Played(uint64_t guid) { return *switches_[guid - 1]; }
  std::vector<SwitchGroup> Connect(uint64_t guid) {
    PlayedSwitch& played = Played(guid);
    SwitchInstaller::Connected connected =
        installer_.Connect(played.Hello(), played.NewLink(), "tls:switch");
    sessions_[guid - 1] = connected.session;
    played.TakeWelcome(connected.keep);
    return connected.keep;
  }
  void ConnectAll() {
    for (uint64_t guid = 1; guid <= 3; ++guid) Connect(guid);
  }
  void Disconnect(uint64_t guid) { installer_.Disconnect(sessions_[guid - 1]); }
  // All that the switch was told; what it says to that.
  void ReadAll(uint64_t guid) {
    while (const auto answer = Played(guid).ReadOne()) {
      if (answer->id == 0) continue;
      EXPECT_TRUE(installer_.TakeResult(sessions_[guid - 1], answer->id, answer->error).ok());
    }
  }
  void ReadAll() {
    for (uint64_t guid = 1; guid <= 3; ++guid) ReadAll(guid);
  }
  std::shared_ptr<std::optional<InstallOutcome>> Install(std::vector<TreeRecord> records) {
    std::vector<CarriedTree> trees;
    for (const TreeRecord& record : records) trees.push_back(*CarriedTreeOf(record));
    auto given = std::make_shared<std::optional<InstallOutcome>>();
    installer_.Install(std::move(trees), [given](InstallOutcome outcome) {
      EXPECT_FALSE(given->has_value());
      *given = std::move(outcome);
    });
    return given;
  }
  static SwitchGroup GroupOf(const TreeRecord& record) { return {record.id, record.revision}; }

  ManualClock clock_;
  std::vector<TreeId> lost_;
  SwitchInstaller installer_{nullptr, &clock_, [this](const std::vector<TreeId>& trees) {
                               lost_.insert(lost_.end(), trees.begin(), trees.end());
                             }};
  std::vector<std::unique_ptr<PlayedSwitch>> switches_;
  std::vector<SwitchSession> sessions_;
};

TEST(InstallKeyTest, KeysAreLongAndDiffer) {
  const auto one = NewInstallKey(), other = NewInstallKey();
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_THAT(*one, SizeIs(16));
  EXPECT_NE(*one, *other);
}

TEST_F(InstallationTest, IsDoneWhenTheLastHasAnswered) {
  ConnectAll();
  const TreeRecord tree = Star(5, {1, 2}, 3);
  const auto outcome = Install({tree});
  ReadAll(1);
  ReadAll(3);
  EXPECT_FALSE(outcome->has_value());
  ReadAll(2);
  ASSERT_TRUE(outcome->has_value());
  EXPECT_TRUE((*outcome)->status.ok());
  const SwitchEntry leaf = Played(2).held().at(TreeId(5));
  EXPECT_EQ(leaf.parent_address, Played(3).address());
  EXPECT_EQ(leaf.number_at_parent, 1u);
  EXPECT_EQ(leaf.key, tree.carriage.key);
  EXPECT_EQ(Played(3).held().at(TreeId(5)).parent_address, "");
  EXPECT_EQ(Played(3).held().at(TreeId(5)).children, 2u);
  EXPECT_EQ(installer_.numbers().installs, 3u);
  EXPECT_EQ(installer_.numbers().connected, 3u);
  installer_.Remove(GroupOf(tree));
  ReadAll();
  for (uint64_t guid = 1; guid <= 3; ++guid) EXPECT_THAT(Played(guid).groups(), IsEmpty());
}

TEST_F(InstallationTest, ARefusalTakesAllBack) {
  ConnectAll();
  Played(2).Say([](const SwitchEntry&) { return "no memory left"; });
  const auto outcome = Install({Star(5, {1, 3}, 2), Star(6, {1}, 3)});
  ReadAll(1);
  EXPECT_THAT(Played(1).groups(), SizeIs(2));
  ReadAll(2);
  ASSERT_TRUE(outcome->has_value());
  EXPECT_EQ((*outcome)->status.code(), StatusCode::kAborted);
  ASSERT_THAT((*outcome)->refusing, SizeIs(1));
  EXPECT_EQ((*outcome)->refusing[0].guid, Guid(2));
  EXPECT_EQ((*outcome)->refusing[0].words, "no memory left");
  EXPECT_EQ(installer_.numbers().refusals, 1u);
  ReadAll();  // 3 reads installs and removals, and its answers are too late
  for (uint64_t guid = 1; guid <= 3; ++guid) EXPECT_THAT(Played(guid).groups(), IsEmpty());
  EXPECT_THAT(Connect(1), IsEmpty());
}

TEST_F(InstallationTest, WhoIsLateIsNamed) {
  ConnectAll();
  const auto outcome = Install({Star(5, {1, 2}, 3)});
  ReadAll(1);
  EXPECT_EQ(installer_.Expire(), SwitchInstaller::kAnswerWithin);
  clock_.Advance(SwitchInstaller::kAnswerWithin - absl::Milliseconds(1));
  EXPECT_EQ(installer_.Expire(), absl::Milliseconds(1));
  EXPECT_FALSE(outcome->has_value());
  clock_.Advance(absl::Milliseconds(1));
  installer_.Expire();
  ASSERT_TRUE(outcome->has_value());
  ASSERT_THAT((*outcome)->refusing, SizeIs(2));
  EXPECT_EQ((*outcome)->refusing[0].guid, Guid(2));
  EXPECT_EQ((*outcome)->refusing[1].guid, Guid(3));
  EXPECT_THAT((*outcome)->refusing[0].words, HasSubstr("within 2s"));
  ReadAll();
  for (uint64_t guid = 1; guid <= 3; ++guid) EXPECT_THAT(Played(guid).groups(), IsEmpty());
}

TEST_F(InstallationTest, WhoGoesAfterItsAnswerHasFailed) {
  ConnectAll();
  const auto outcome = Install({Star(5, {1, 2}, 3)});
  ReadAll(1);
  ReadAll(3);
  Disconnect(1);
  ASSERT_TRUE(outcome->has_value());
  ASSERT_THAT((*outcome)->refusing, SizeIs(1));
  EXPECT_EQ((*outcome)->refusing[0].guid, Guid(1));
  ReadAll();
  EXPECT_THAT(Played(3).groups(), IsEmpty());
  EXPECT_THAT(Played(1).groups(), SizeIs(1));  // nobody could tell it
  EXPECT_THAT(Connect(1), IsEmpty());
  EXPECT_THAT(Played(1).groups(), IsEmpty());
}

TEST_F(InstallationTest, AnotherAgentOfTheSwitchIsAnotherSwitch) {
  ConnectAll();
  const auto outcome = Install({Star(5, {1, 2}, 3)});
  SwitchLink first = Played(2).NewLink();
  EXPECT_TRUE(installer_.CheckPlace(Guid(2), "tls:switch").ok());
  EXPECT_EQ(installer_.CheckPlace(Guid(2), "tls:thief").code(), StatusCode::kAlreadyExists);
  installer_.Connect(Played(2).Hello(), std::move(first), "tls:switch");
  ASSERT_TRUE(outcome->has_value());
  EXPECT_EQ((*outcome)->refusing.at(0).guid, Guid(2));
  EXPECT_EQ(installer_.numbers().connected, 3u);
  EXPECT_EQ(installer_.GuidOf(sessions_[1]), std::nullopt);
  EXPECT_EQ(installer_.Disconnect(sessions_[1]), std::nullopt);
}

TEST_F(InstallationTest, ASwitchThatIsAwayTakesNothing) {
  Connect(1);
  Connect(2);
  const auto outcome = Install({Star(5, {1, 2}, 3)});
  ASSERT_TRUE(outcome->has_value());
  EXPECT_EQ((*outcome)->refusing.at(0).guid, Guid(3));
  ReadAll();
  EXPECT_THAT(Played(1).groups(), IsEmpty());
}

TEST_F(InstallationTest, WhatWasNotSentCostsNoEarlierRevision) {
  ConnectAll();
  const TreeRecord old = Star(5, {1, 2}, 3);
  Install({old});
  ReadAll();
  Disconnect(2);
  const auto outcome = Install({Star(5, {1, 2}, 3, 2)});
  ASSERT_TRUE(outcome->has_value());
  EXPECT_EQ((*outcome)->refusing.at(0).guid, Guid(2));
  EXPECT_EQ(Played(1).unread(), 0u);
  EXPECT_EQ(installer_.WhyLost(old), std::nullopt);
  EXPECT_THAT(Connect(2), ElementsAre(GroupOf(old)));
  EXPECT_THAT(Played(2).groups(), ElementsAre(GroupOf(old)));
}

TEST_F(InstallationTest, AHelloIsAnsweredWithWhatIsToBeHeld) {
  ConnectAll();
  const TreeRecord kept = Star(5, {1, 2}, 3), gone = Star(6, {1, 2}, 3);
  Install({kept, gone});
  ReadAll();
  Disconnect(2);
  installer_.Remove(GroupOf(gone));
  EXPECT_THAT(Played(2).groups(), SizeIs(2));
  EXPECT_THAT(Connect(2), ElementsAre(GroupOf(kept)));
  EXPECT_THAT(Played(2).groups(), ElementsAre(GroupOf(kept)));
  EXPECT_EQ(Played(2).unread(), 0u);
  // One that starts anew is given it again.
  Disconnect(2);
  Played(2).Forget();
  Connect(2);
  EXPECT_EQ(Played(2).unread(), 1u);
  ReadAll(2);
  EXPECT_EQ(Played(2).held().at(TreeId(5)).key, kept.carriage.key);
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(InstallationTest, ARestartedDaemonWaitsForTheParentsAddress) {
  const TreeRecord tree = Star(5, {1, 2}, 3);
  installer_.Restore(*CarriedTreeOf(tree));
  EXPECT_THAT(Connect(1), ElementsAre(GroupOf(tree)));
  EXPECT_EQ(Played(1).unread(), 0u);
  EXPECT_THAT(Connect(3), ElementsAre(GroupOf(tree)));
  EXPECT_EQ(Played(1).unread(), 1u);
  EXPECT_EQ(Played(3).unread(), 1u);
  Connect(2);
  ReadAll();
  for (uint64_t guid = 1; guid <= 3; ++guid) {
    EXPECT_THAT(Played(guid).groups(), ElementsAre(GroupOf(tree)));
  }
  EXPECT_EQ(installer_.WhyLost(tree), std::nullopt);
}

TEST_F(InstallationTest, ARestartedDaemonWaitsForItsSwitches) {
  const TreeRecord tree = Star(5, {1, 2}, 3);
  installer_.Restore(*CarriedTreeOf(tree));
  Connect(1);
  Connect(3);
  ReadAll();
  clock_.Advance(SwitchInstaller::kRestartPatience - absl::Seconds(1));
  installer_.Expire();
  EXPECT_THAT(lost_, IsEmpty());
  clock_.Advance(absl::Seconds(1));
  installer_.Expire();
  EXPECT_THAT(lost_, ElementsAre(TreeId(5)));
}

TEST_F(InstallationTest, AnEntryThatIsRefusedAgainIsLost) {
  ConnectAll();
  const TreeRecord refused = Star(5, {1}, 3), silent = Star(6, {2}, 3);
  Install({refused, silent});
  ReadAll();
  Disconnect(1);
  Played(1).Forget();
  Played(1).Say([](const SwitchEntry&) { return "no"; });
  Connect(1);
  ReadAll(1);
  EXPECT_THAT(lost_, ElementsAre(TreeId(5)));
  EXPECT_THAT(installer_.WhyLost(refused), Optional(HasSubstr("did not take it again: no")));
  Disconnect(2);
  Played(2).Forget();
  Connect(2);
  clock_.Advance(SwitchInstaller::kAnswerWithin);
  installer_.Expire();
  EXPECT_THAT(lost_, ElementsAre(TreeId(5), TreeId(6)));
}

TEST_F(InstallationTest, ANewRevisionTakesThePlaceOfTheOld) {
  ConnectAll();
  const TreeRecord old = Star(5, {1, 2}, 3);
  Install({old});
  ReadAll();
  TreeRecord next = Star(5, {1}, 3, 2);
  const auto outcome = Install({next});
  ReadAll();
  ASSERT_TRUE(outcome->has_value() && (*outcome)->status.ok());
  installer_.Remove(GroupOf(old));
  EXPECT_EQ(Played(1).unread(), 0u);  // it has lost that with the next
  EXPECT_EQ(Played(2).unread(), 1u);
  ReadAll();
  EXPECT_THAT(Played(1).groups(), ElementsAre(GroupOf(next)));
  EXPECT_THAT(Played(2).groups(), IsEmpty());
  EXPECT_THAT(Played(3).groups(), ElementsAre(GroupOf(next)));
}

TEST_F(InstallationTest, WhoHoldsALaterRevisionIsNotGivenTheOldOne) {
  ConnectAll();
  const TreeRecord old = Star(5, {1, 2}, 3), next = Star(5, {1, 2}, 3, 2);
  Install({old});
  ReadAll();
  const auto outcome = Install({next});
  ReadAll();
  ASSERT_TRUE(outcome->has_value() && (*outcome)->status.ok());
  // Before that is durable, and the old one removed.
  Disconnect(1);
  Connect(1);
  EXPECT_EQ(Played(1).unread(), 0u);
  ReadAll();
  EXPECT_THAT(Played(1).groups(), ElementsAre(GroupOf(next)));
  EXPECT_EQ(installer_.WhyLost(old), std::nullopt);
  EXPECT_EQ(installer_.numbers().refusals, 0u);
  // One that nobody knows of, of a daemon that was killed: the switch gives it up.
  SwitchHello hello = Played(2).Hello();
  hello.groups = {{TreeId(5), 3}};
  installer_.Connect(hello, Played(2).NewLink(), "tls:switch");
  EXPECT_EQ(Played(2).unread(), 2u);
}

TEST_F(InstallationTest, ARevisionThatIsRefusedCostsTheOldOne) {
  ConnectAll();
  const TreeRecord old = Star(5, {1, 2}, 3);
  Install({old});
  ReadAll();
  EXPECT_EQ(installer_.WhyLost(old), std::nullopt);
  Played(3).Say([](const SwitchEntry&) { return "no"; });
  const auto outcome = Install({Star(5, {1, 2}, 3, 2)});
  ReadAll();
  ASSERT_TRUE(outcome->has_value() && !(*outcome)->status.ok());
  EXPECT_THAT(installer_.WhyLost(old), Optional(HasSubstr("began revision 2")));
  EXPECT_THAT(lost_, IsEmpty());  // whoever installed it knows
}

TEST_F(InstallationTest, WhatBrokeIsToldOnce) {
  ConnectAll();
  const TreeRecord tree = Star(5, {1, 2}, 3);
  Install({tree});
  ReadAll();
  SwitchReport report;
  report.entries_used = 1;
  report.broken = {GroupOf(tree), {TreeId(99), 1}, {TreeId(5), 7}};
  for (int i = 0; i < 100; ++i) report.refusals[absl::StrCat("reason ", i)] = 1;
  installer_.TakeReport(sessions_[0], report);
  installer_.TakeReport(sessions_[1], report);
  EXPECT_THAT(lost_, ElementsAre(TreeId(5)));
  EXPECT_THAT(installer_.WhyLost(tree), Optional(HasSubstr("broke at switch 0000000000000001")));
  const std::vector<SwitchView> views = installer_.List(Guid(0), 10);
  ASSERT_THAT(views, SizeIs(3));
  EXPECT_EQ(views[0].report.entries_used, 1u);
  EXPECT_THAT(views[0].report.refusals, SizeIs(64));
  EXPECT_EQ(views[2].report.entries_used, 0u);
  installer_.Remove(GroupOf(tree));
  EXPECT_EQ(installer_.WhyLost(tree), std::nullopt);
}

TEST_F(InstallationTest, WhoComesBackInTimeLosesNothing) {
  ConnectAll();
  const TreeRecord tree = Star(5, {1, 2}, 3);
  Install({tree});
  ReadAll();
  Disconnect(1);
  clock_.Advance(SwitchInstaller::kPatience - absl::Milliseconds(1));
  installer_.Expire();
  Connect(1);
  clock_.Advance(absl::Hours(1));
  installer_.Expire();
  EXPECT_THAT(lost_, IsEmpty());
  EXPECT_FALSE(installer_.IsWaitedFor(tree));
  Disconnect(1);
  EXPECT_TRUE(installer_.IsWaitedFor(tree));
  clock_.Advance(SwitchInstaller::kPatience);
  installer_.Expire();
  EXPECT_FALSE(installer_.IsWaitedFor(tree));
  EXPECT_THAT(lost_, ElementsAre(TreeId(5)));
  EXPECT_THAT(installer_.WhyLost(tree), Optional(HasSubstr("does not speak any more")));
}

TEST_F(InstallationTest, AParentAtAnotherAddressIsAnotherParent) {
  ConnectAll();
  const TreeRecord tree = Star(5, {1, 2}, 3);
  Install({tree});
  ReadAll();
  SwitchHello hello = Played(1).Hello();
  hello.address = "10.0.0.1:2";
  installer_.Connect(hello, Played(1).NewLink(), "tls:switch");  // a leaf: members ask for it anew
  EXPECT_THAT(lost_, IsEmpty());
  hello = Played(3).Hello();
  hello.address = "10.0.0.3:2";
  installer_.Connect(hello, Played(3).NewLink(), "tls:switch");
  EXPECT_THAT(lost_, ElementsAre(TreeId(5)));
  EXPECT_EQ(installer_.HelloOf(Guid(3))->address, "10.0.0.3:2");
}

TEST_F(InstallationTest, ResultsOfNoTaskAreRefused) {
  ConnectAll();
  Install({Star(5, {1, 2}, 3)});
  EXPECT_EQ(installer_.TakeResult(sessions_[0], 0, "").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(installer_.TakeResult(sessions_[0], 2, "").code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(installer_.TakeResult(sessions_[0], 1, "").ok());
  EXPECT_TRUE(installer_.TakeResult(sessions_[0], 1, "").ok());  // twice: too late
  EXPECT_EQ(installer_.numbers().installs, 1u);
  EXPECT_TRUE(installer_.TakeResult(12345, 1, "").ok());
}

TEST_F(InstallationTest, WhatASwitchSaysIsCutAndShown) {
  ConnectAll();
  Played(1).Say([](const SwitchEntry&) { return "\x1b[31m" + std::string(1000, 'x'); });
  const auto outcome = Install({Star(5, {1, 2}, 3)});
  ReadAll();
  ASSERT_TRUE(outcome->has_value());
  EXPECT_THAT((*outcome)->refusing.at(0).words, HasSubstr("\\u001b[31mxxx"));
  EXPECT_LT((*outcome)->refusing.at(0).words.size(), 400u);
}

TEST_F(InstallationTest, ReasonsOfRefusalsAreCutAndShown) {
  Connect(1);
  SwitchReport report;
  report.refusals = {{"stale\x1b[31m", 2},
                     {"x" + std::string(5000, 'x') + "1", 3},
                     {"x" + std::string(5000, 'x') + "2", 4}};
  installer_.TakeReport(sessions_[0], report);
  const std::vector<SwitchView> views = installer_.List(Guid(0), 10);
  ASSERT_THAT(views, SizeIs(1));
  EXPECT_THAT(views[0].report.refusals, ElementsAre(testing::Pair("stale\\u001b[31m", 2u),
                                                    testing::Pair(std::string(100, 'x'), 7u)));
}

TEST_F(InstallationTest, OffersWhatAllOfThemCan) {
  TreeRecord tree = Star(5, {1, 2}, 3);
  EXPECT_EQ(installer_.OfferFor(tree).speak, CarriageOffer::Speak::kNone);
  Connect(1);
  Connect(3);
  const CarriageOffer some = installer_.OfferFor(tree);
  EXPECT_EQ(some.speak, CarriageOffer::Speak::kSome);
  EXPECT_EQ(some.silent, "switch 0000000000000002");
  Connect(2);
  const CarriageOffer all = installer_.OfferFor(tree);
  EXPECT_EQ(all.speak, CarriageOffer::Speak::kAll);
  EXPECT_EQ(all.terms.segment_bytes, 4096u);
  EXPECT_EQ(all.terms.window, 8u);
  tree.switches.clear();
  EXPECT_EQ(installer_.OfferFor(tree).speak, CarriageOffer::Speak::kNone);
}

TEST_F(InstallationTest, AShutdownEndsWhatIsUnderWay) {
  installer_.Start();
  ConnectAll();
  const auto outcome = Install({Star(5, {1, 2}, 3)});
  installer_.Stop();
  ASSERT_TRUE(outcome->has_value());
  EXPECT_EQ((*outcome)->status.code(), StatusCode::kUnavailable);
  EXPECT_THAT((*outcome)->refusing, IsEmpty());
  EXPECT_EQ(installer_.InstallAndWait({*CarriedTreeOf(Star(6, {1}, 3))}).status.code(),
            StatusCode::kUnavailable);
  EXPECT_TRUE(installer_.InstallAndWait({}).status.ok());
  ReadAll();
  EXPECT_THAT(Played(1).groups(), IsEmpty());
}

}  // namespace
}  // namespace coppice::installation_test
