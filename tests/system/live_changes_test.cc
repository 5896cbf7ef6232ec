// What the daemon makes of single changes of a live subnet: lost cables, lost hosts, a silent
// switch, a frozen subnet, other routing, a cable that flaps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/manager/change_feed.h"
#include "tests/system/living_daemon.h"
#include "tests/unit/manager/standing_trees.h"

namespace coppice::live_changes_test {
namespace {

using testing::HasSubstr;

constexpr SweepPeriods kQuick{absl::Minutes(5), absl::Milliseconds(100), absl::InfiniteDuration()};

std::string Host(uint32_t host) { return absl::StrCat("n", absl::Dec(host, absl::kZeroPad4)); }

class LiveChanges : public LivingDaemon {
 protected:
  // A tree of type II over the hosts of the second and the third leaf.
  void GrantOne() {
    std::vector<std::string> hosts;
    for (uint32_t host = 8; host < 24; ++host) hosts.push_back(Host(host));
    const auto job = Register(std::move(hosts));
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = *job;
    const auto tree = Grant(job_, TreeType::kTypeII);
    ASSERT_TRUE(tree.ok()) << tree.status();
    tree_ = *tree;
  }
  TreeView Now() const {
    const auto tree = manager_->GetTree(tree_.record->id);
    EXPECT_TRUE(tree.ok()) << tree.status();
    return tree.ok() ? *tree : tree_;
  }

  JobId job_;
  TreeView tree_;
};

TEST_F(LiveChanges, ATreeLeavesALostCableByItself) {
  ASSERT_NO_FATAL_FAILURE(Begin(kQuick));
  ASSERT_NO_FATAL_FAILURE(GrantOne());
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  auto watch = manager_->WatchTrees(JobId(), "", [] {});
  ASSERT_TRUE(watch.ok());
  ASSERT_EQ(2u, (*watch)->Next(10)->size());
  const std::string cable = CableOf(*Now().record);
  ASSERT_NO_FATAL_FAILURE(Console("Unlink " + cable));
  std::vector<TreeChange> changes;
  ASSERT_NO_FATAL_FAILURE(Await("a change of the tree", [&] {
    changes = *(*watch)->Next(10);
    return !changes.empty();
  }));
  EXPECT_EQ(TreeChangeKind::kRevised, changes[0].kind);
  EXPECT_THAT(changes[0].reason, HasSubstr("gone"));
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  EXPECT_EQ(RouteKind::kForwardingTables, Now().route_kind);
  EXPECT_EQ(1u, EventsOf("link.down").size());
  ASSERT_NO_FATAL_FAILURE(Console("ReLink " + cable));
  ASSERT_NO_FATAL_FAILURE(Await("the cable", [&] { return EventsOf("link.up").size() == 1; }));
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  ASSERT_NO_FATAL_FAILURE(ExpectAllRight());
}

TEST_F(LiveChanges, ALostHostIsALostMemberUntilItIsBack) {
  ASSERT_NO_FATAL_FAILURE(Begin(kQuick));
  ASSERT_NO_FATAL_FAILURE(GrantOne());
  ASSERT_NO_FATAL_FAILURE(Console("Unlink \"n0010\"[1]"));
  ASSERT_NO_FATAL_FAILURE(
      Await("the revocation", [&] { return manager_->Counts().granted_trees == 0; }));
  EXPECT_EQ(std::vector<uint32_t>{2}, manager_->GetJob(job_)->lost_ranks);
  ASSERT_NO_FATAL_FAILURE(
      Await("the event", [&] { return EventsOf("job.member_lost").size() == 1; }));
  EXPECT_THAT(EventsOf("job.member_lost")[0].message, HasSubstr("rank 2 (host n0010"));
  EXPECT_EQ(1u, EventsOf("node.gone").size());
  ASSERT_NO_FATAL_FAILURE(Console("ReLink \"n0010\"[1]"));
  ASSERT_NO_FATAL_FAILURE(
      Await("the member", [&] { return manager_->GetJob(job_)->lost_ranks.empty(); }));
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  EXPECT_EQ(1u, EventsOf("job.member_back").size());
  EXPECT_TRUE(Grant(job_, TreeType::kTypeII).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectAllRight());
}

TEST_F(LiveChanges, ASilentSwitchIsUnreachableUntilItAnswers) {
  ASSERT_NO_FATAL_FAILURE(Begin(kQuick));
  ASSERT_NO_FATAL_FAILURE(GrantOne());
  const Fabric& fabric = *manager_->fabric()->snapshot->fabric;
  const SwitchIndex root = *fabric.FindSwitch(tree_.record->switches[0].guid);
  const std::string name = fabric.switch_info(root).description;
  const std::string object = "switch:" + ToString(fabric.switch_info(root).guid);
  ASSERT_NO_FATAL_FAILURE(Console(absl::StrCat("Error \"", name, "\" 100")));
  ASSERT_NO_FATAL_FAILURE(
      Await("the silence", [&] { return !EventsOf("switch.unreachable").empty(); }));
  EXPECT_EQ(object, EventsOf("switch.unreachable")[0].object);
  ASSERT_NO_FATAL_FAILURE(Console(absl::StrCat("Error \"", name, "\" 0")));
  ASSERT_NO_FATAL_FAILURE(Await("its end", [&] { return !EventsOf("switch.reachable").empty(); }));
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  EXPECT_TRUE(EventsOf("switch.gone").empty());
  ASSERT_NO_FATAL_FAILURE(ExpectAllRight());
}

TEST_F(LiveChanges, AFrozenSubnetIsToldOnceAndThenWellAgain) {
  ASSERT_NO_FATAL_FAILURE(Begin(kQuick));
  ASSERT_NO_FATAL_FAILURE(GrantOne());
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  const TreeView before = Now();
  subnet_->Freeze();
  ASSERT_NO_FATAL_FAILURE(
      Await("two failures", [&] { return manager_->Sweeps().light.failed >= 2; }));
  EXPECT_EQ(before.record, Now().record);
  subnet_->Thaw();
  ASSERT_NO_FATAL_FAILURE(Await("its end", [&] {
    return EventsOf("sweep.recovered").size() >= EventsOf("sweep.failed").size();
  }));
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  // Light sweeps, and the full ones that looked for another way: each is told once.
  std::set<std::string> failed;
  for (const EventRecord& event : EventsOf("sweep.failed")) {
    EXPECT_TRUE(failed.insert(event.object).second) << event.object;
  }
  EXPECT_TRUE(failed.contains("sweep:light"));
  ASSERT_NO_FATAL_FAILURE(ExpectAllRight());
}

TEST_F(LiveChanges, OtherRoutingMovesRoutesAndNoTree) {
  // Tables show in full sweeps only.
  ASSERT_NO_FATAL_FAILURE(
      Begin({absl::Seconds(1), absl::Milliseconds(100), absl::InfiniteDuration()}));
  ASSERT_NO_FATAL_FAILURE(GrantOne());
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  const TreeView before = Now();
  const auto old = manager_->fabric()->snapshot;
  ASSERT_NO_FATAL_FAILURE(ManageSubnet({"minhop"}));
  ASSERT_NO_FATAL_FAILURE(Await("other tables", [&] {
    return *manager_->fabric()->snapshot->routes->tables() != *old->routes->tables();
  }));
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  EXPECT_EQ(before.record->parents, Now().record->parents);
  EXPECT_EQ(before.record->switches, Now().record->switches);
  EXPECT_TRUE(EventsOf("trees.repaired").empty());
  EXPECT_TRUE(EventsOf("trees.revoked").empty());
  ASSERT_NO_FATAL_FAILURE(ExpectAllRight());
}

// Each time that the daemon has seen what became of the cable it becomes something else.
TEST_F(LiveChanges, ACableThatFlapsIsOneEvent) {
  ASSERT_NO_FATAL_FAILURE(Begin(kQuick));
  ASSERT_NO_FATAL_FAILURE(GrantOne());
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  const uint32_t links = manager_->fabric()->snapshot->fabric->link_count();
  const std::string cable = CableOf(*Now().record);
  for (int round = 0; round < 3; ++round) {
    for (const char* command : {"Unlink ", "ReLink "}) {
      ASSERT_NO_FATAL_FAILURE(Console(command + cable));
      const uint32_t expected = command[0] == 'U' ? links - 1 : links;
      ASSERT_NO_FATAL_FAILURE(Await("the change", [&] {
        return manager_->fabric()->snapshot->fabric->link_count() == expected;
      }));
      // A request is not held up by what flaps.
      EXPECT_TRUE(manager_->Sweep().ok());
    }
  }
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  EXPECT_EQ(3u, EventsOf("link.down").size() + EventsOf("link.up").size());
  EXPECT_EQ(1u, EventsOf("link.flapping").size());
  ASSERT_NO_FATAL_FAILURE(ExpectAllRight());
}

// Two counts are set on the console, each before a reading of its own: the rate is their difference
// over the time between the two readings, the load that over the capacity. The simulator adds its
// management packets, of 288 bytes.
TEST_F(LiveChanges, LoadIsTheRateOfTheCounters) {
  ASSERT_NO_FATAL_FAILURE(Begin({absl::Minutes(5), absl::InfiniteDuration(), absl::Seconds(1)}));
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  gate_->Hold();
  ASSERT_NO_FATAL_FAILURE(Await("what was read last", [&] { return gate_->IsTaken(); }));
  const std::shared_ptr<const Fabric> fabric = manager_->fabric()->snapshot->fabric;
  const ChannelIndex channel = fabric->switch_channels(SwitchIndex(0))[0].index;
  const SwitchInfo& info = fabric->switch_info(SwitchIndex(0));
  const PortNum number = fabric->channel_from_port(channel);
  constexpr uint64_t kFirst = 1u << 30, kSecond = kFirst + 20'000'000, kSlack = 288 * 10'000;
  PortCounterRecord before, now;
  for (const uint64_t count : {kFirst, kSecond}) {
    ASSERT_NO_FATAL_FAILURE(
        Console(absl::StrCat("PerformanceSet \"", info.description, "\"[", number.value(),
                             "] PortCountersExtended.PortXmitData=", count)));
    gate_->Let();
    ASSERT_NO_FATAL_FAILURE(Await("one reading", [&] { return gate_->IsTaken(); }));
    const auto ports = manager_->PortCounts(info.guid);
    ASSERT_TRUE(ports.ok()) << ports.status();
    const auto port = std::find_if(ports->begin(), ports->end(), [&](const PortCounterRecord& p) {
      return p.port == number.value();
    });
    ASSERT_NE(ports->end(), port);
    before = std::exchange(now, *port);
    EXPECT_GE(now.sent_bytes, 4 * count);
    EXPECT_LT(now.sent_bytes, 4 * count + kSlack);
  }
  const double sent = static_cast<double>(now.sent_bytes - before.sent_bytes);
  EXPECT_NEAR(4.0 * (kSecond - kFirst), sent, kSlack);
  const double rate = sent / absl::ToDoubleSeconds(now.read - before.read);
  EXPECT_NEAR(rate, now.sent_bytes_per_second, 0.05 * rate);
  const LinkMeasure measure = manager_->Measure(*fabric, Fabric::link_of(channel));
  const double load = now.sent_bytes_per_second / (fabric->capacity_gbps(channel) * 1e9 / 8);
  EXPECT_GE(std::max(measure.ab.peak, measure.ba.peak), 0.99 * std::min(load, 1.0));
}

}  // namespace
}  // namespace coppice::live_changes_test
