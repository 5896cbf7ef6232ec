// A cable that flaps every second, whatever the daemon makes of it, for longer than it takes to
// see a pattern: the subnet is read ever more rarely, a few events tell of it, a tree moves away
// once, and all is right when the cable rests.
//
// OpenSM takes seconds to bring a link up. Here the test does, as real ports under a subnet manager
// that is quick: both ends armed, then active, asked by ways around the cable.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <future>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/manager/change_feed.h"
#include "daemon/manager/inventory.h"
#include "tests/support/tier.h"
#include "tests/system/living_daemon.h"
#include "tests/unit/manager/standing_trees.h"

namespace coppice::live_flapping_test {
namespace {

class LiveFlapping : public LivingDaemon {
 protected:
  void GrantOverLeaves() {
    std::vector<std::string> hosts;
    for (uint32_t host = 8; host < 24; ++host) {
      hosts.push_back(absl::StrCat("n", absl::Dec(host, absl::kZeroPad4)));
    }
    const auto job = Register(std::move(hosts));
    ASSERT_TRUE(job.ok()) << job.status();
    const auto tree = Grant(*job, TreeType::kTypeII);
    ASSERT_TRUE(tree.ok()) << tree.status();
    tree_ = *tree;
    ASSERT_NO_FATAL_FAILURE(AwaitSettled());
    NoteCable();
  }

  void NoteCable() {
    cable_ = CableOf(*tree_.record);
    const Fabric& fabric = *manager_->fabric()->snapshot->fabric;
    for (uint32_t l = 0; l < fabric.link_count(); ++l) {
      if (EndOf(fabric, LinkIndex(l)) != cable_) continue;
      const LinkInfo& link = fabric.link(LinkIndex(l));
      ends_ = {absl::StrCat(ToString(NodeGuid(fabric, link.a)), "/", link.a_port.value()),
               absl::StrCat(ToString(NodeGuid(fabric, link.b)), "/", link.b_port.value())};
      for (const char* state : {"arm", "active"}) {
        for (const auto& [end, port] : {std::pair(link.a, link.a_port), {link.b, link.b_port}}) {
          absl::StrAppend(&activation_, "ibportstate -D ", WayTo(fabric, end, LinkIndex(l)), " ",
                          port.value(), " ", state, " && ");
        }
      }
    }
    activation_ += "true";
  }

  // A directed route from the daemon's port that does not cross that link: "0,1,9". Breadth first.
  static std::string WayTo(const Fabric& fabric, VertexIndex to, LinkIndex around) {
    const VertexIndex from = fabric.Vertex(fabric.endpoints_of_host(*fabric.FindHost("n0000"))[0]);
    std::vector<std::string> ways(fabric.vertex_count());
    ways[from.value()] = "0";
    std::vector<VertexIndex> next = {from};
    for (size_t i = 0; i < next.size(); ++i) {
      for (uint32_t c = 0; c < fabric.channel_count(); ++c) {
        const ChannelIndex channel(c);
        if (fabric.channel_from(channel) != next[i] || Fabric::link_of(channel) == around) continue;
        std::string& way = ways[fabric.channel_to(channel).value()];
        if (!way.empty()) continue;
        way = absl::StrCat(ways[next[i].value()], ",", fabric.channel_from_port(channel).value());
        next.push_back(fabric.channel_to(channel));
      }
    }
    return ways[to.value()];
  }

  // Down for three tenths of a second in each, at another time of it.
  void Flap(int seconds) {
    const absl::Duration began = clock_.Monotonic();
    const auto until = [&](absl::Duration time) {
      Await("its time", [&] { return clock_.Monotonic() - began >= time; });
    };
    for (int second = 0; second < seconds && !HasFailure(); ++second) {
      const absl::Duration cut = absl::Seconds(second) + absl::Milliseconds(random_() % 400);
      until(cut);
      ASSERT_NO_FATAL_FAILURE(Console("Unlink " + cable_));
      until(cut + absl::Milliseconds(300));
      ASSERT_NO_FATAL_FAILURE(Console("ReLink " + cable_));
      // Some of it may be refused where OpenSM has been at it, too.
      subnet_->Run({"sh", "-c", activation_}).IgnoreError();
    }
  }

  // Cuts a cable of the tree, and mends it again; how long it took until a watcher heard of the
  // next revision, which stands without it.
  absl::Duration CutAndAwait(TreeId tree) {
    auto watch = manager_->WatchTrees(JobId(), "", [] {});
    EXPECT_TRUE(watch.ok()) << watch.status();
    while (!(*watch)->Next(100)->empty()) {
    }
    const std::string cable = CableOf(*manager_->GetTree(tree)->record);
    const absl::Duration began = clock_.Monotonic();
    Console("Unlink " + cable);
    Await("the tree's next revision", [&] {
      const auto changes = (*watch)->Next(100);
      EXPECT_TRUE(changes.ok()) << changes.status();
      if (!changes.ok()) return true;
      for (const TreeChange& change : *changes) {
        if (change.tree.record->id == tree && change.reason.find("gone") != std::string::npos) {
          return true;
        }
      }
      return false;
    });
    const absl::Duration took = clock_.Monotonic() - began;
    EXPECT_NE(cable, CableOf(*manager_->GetTree(tree)->record));
    Console("ReLink " + cable);
    return took;
  }

  // Of the cable that flaps: on a busy machine a node may not answer in time, which makes more.
  size_t EventsOfCable(const std::string& kind) const {
    const std::vector<EventRecord> events = EventsOf(kind);
    return std::count_if(events.begin(), events.end(), [&](const EventRecord& event) {
      return std::all_of(ends_.begin(), ends_.end(), [&](const std::string& end) {
        return absl::StrContains(absl::StrCat(event.object, "-"), absl::StrCat(end, "-"));
      });
    });
  }

  // The whole table of events, a line each.
  std::string AllEvents() const {
    std::string told;
    for (const EventRecord& event : EventsOf("")) {
      absl::StrAppend(&told, absl::FormatTime(event.time), " ", event.kind, " ", event.object, " ",
                      event.message, "\n");
    }
    return told;
  }

  std::mt19937_64 random_{TestSeed()};
  TreeView tree_;
  std::string cable_, activation_;
  std::array<std::string, 2> ends_;  // of the cable, as events name them: node GUID / port
};

TEST_F(LiveFlapping, EverySecondCostsLittle) {
  ASSERT_NO_FATAL_FAILURE(
      Begin({absl::Minutes(5), absl::Milliseconds(100), absl::InfiniteDuration()}));
  ASSERT_NO_FATAL_FAILURE(GrantOverLeaves());
  const uint64_t sweeps_before = manager_->Sweeps().full.count;
  const int seconds = FullTier() ? 90 : 6;
  ASSERT_NO_FATAL_FAILURE(Flap(seconds));
  // In the end one in five seconds, of some 300 changes that light sweeps see.
  EXPECT_LE(manager_->Sweeps().full.count - sweeps_before, 8u + seconds / 4) << AllEvents();
  const auto link_events = [&] { return EventsOfCable("link.down") + EventsOfCable("link.up"); };
  EXPECT_GE(link_events(), 1u) << AllEvents();
  EXPECT_LE(link_events(), 3u + seconds / 10) << AllEvents();
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  EXPECT_EQ(1u, EventsOf("trees.repaired").size());
  EXPECT_TRUE(EventsOf("trees.revoked").empty());
  if (FullTier()) {
    ASSERT_NO_FATAL_FAILURE(Await("half a minute of rest", [&] {
      return EventsOf("link.steady").size() == EventsOf("link.flapping").size();
    }));
  }
  EXPECT_LE(link_events() + EventsOfCable("link.flapping"), 4u + seconds / 10) << AllEvents();
  ASSERT_NO_FATAL_FAILURE(ExpectAllRight());
}

// What one cable does delays the mending of no other; the times are for who reads the output.
TEST_F(LiveFlapping, ACutCableIsMendedBesideOneThatFlaps) {
  const absl::Duration light_period = absl::Milliseconds(FullTier() ? 1000 : 200);
  ASSERT_NO_FATAL_FAILURE(Begin({absl::Minutes(5), light_period, absl::InfiniteDuration()},
                                "minhop", FullTier() ? kLargeFabric : kLivingFabric));
  ASSERT_NO_FATAL_FAILURE(GrantOverLeaves());
  std::vector<std::string> hosts;  // of leaves that the flapping cable does not reach
  for (uint32_t host = 40; host < 56; ++host) {
    hosts.push_back(absl::StrCat("n", absl::Dec(host, absl::kZeroPad4)));
  }
  const auto job = Register(std::move(hosts));
  ASSERT_TRUE(job.ok()) << job.status();
  const auto tree = Grant(*job, TreeType::kTypeII);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const int rounds = FullTier() ? 20 : 3;
  for (const bool flaps : {false, true}) {
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
      std::future<void> flapping;
      if (flaps) flapping = std::async(std::launch::async, [&] { Flap(6); });
      const absl::Duration took = CutAndAwait(tree->record->id);
      if (flaps) flapping.get();
      std::cout << (flaps ? "beside one that flaps: " : "alone: ") << took << ", light period "
                << light_period << "\n";
      ASSERT_NO_FATAL_FAILURE(AwaitSettled());
    }
  }
  ASSERT_NO_FATAL_FAILURE(ExpectAllRight());
}

}  // namespace
}  // namespace coppice::live_flapping_test
