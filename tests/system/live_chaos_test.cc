// A subnet that is torn at from all sides while the daemon runs. Cables are cut and put back,
// packets are lost and counters set at random, some at a time; whenever it has settled, the
// daemon's fabric is what ibnetdiscover sees, granted trees stand on what is there, entries are
// exact, loads are the rates of the counters, and a watcher has been told every change of trees,
// and every event, once and in order.
// Seed printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "daemon/manager/event_log.h"
#include "tests/support/tier.h"
#include "tests/system/living_daemon.h"
#include "tests/unit/manager/standing_trees.h"

namespace coppice::live_chaos_test {
namespace {

class LiveChaos : public LivingDaemon {
 protected:
  ~LiveChaos() override { events_.reset(); }  // before the manager

  uint32_t Below(size_t bound) { return static_cast<uint32_t>(random_() % bound); }

  // All cables but those that the daemon hangs on, and OpenSM.
  void NoteCables() {
    const Fabric& fabric = *manager_->fabric()->snapshot->fabric;
    for (uint32_t l = 0; l < fabric.link_count(); ++l) {
      const LinkInfo& link = fabric.link(LinkIndex(l));
      const std::string end = EndOf(fabric, LinkIndex(l));
      bool is_own = false;
      for (const VertexIndex v : {link.a, link.b}) {
        if (fabric.IsSwitch(v)) continue;
        const absl::string_view host = fabric.host_name(fabric.host(fabric.AsEndpoint(v)));
        is_own |= host == "n0000" || host == reference_host_;
      }
      if (!is_own) whole_.push_back(end);
    }
    for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
      switches_.push_back(fabric.switch_info(SwitchIndex(s)).description);
    }
    ASSERT_GT(whole_.size(), 90u);
  }

  std::string TakeAny(std::vector<std::string>& from) {
    std::swap(from[Below(from.size())], from.back());
    std::string taken = std::move(from.back());
    from.pop_back();
    return taken;
  }

  void OneCommand() {
    const uint32_t dice = Below(100);
    if (dice < 45 && cut_.size() < kMaxCut) {
      cut_.push_back(TakeAny(whole_));
      Console("Unlink " + cut_.back());
    } else if (dice < 75 && !cut_.empty()) {
      whole_.push_back(TakeAny(cut_));
      Console("ReLink " + whole_.back());
    } else if (dice < 90) {
      const std::string lossy = absl::StrCat("Error \"", switches_[Below(switches_.size())], "\" ");
      Console(absl::StrCat(lossy, 1 + Below(20), " ", kAttributes[Below(4)]));
      lossy_.insert(lossy);
    } else {
      Console(absl::StrCat("PerformanceSet ", whole_[Below(whole_.size())],
                           " PortCountersExtended.PortXmitData=", Below(1u << 30)));
    }
  }

  void StopLosses() {
    for (const std::string& lossy : lossy_) {
      for (const char* attribute : kAttributes) Console(absl::StrCat(lossy, "0 ", attribute));
    }
    lossy_.clear();
  }

  // As many trees as are wanted, where the jobs are whole.
  void AskForTrees() {
    for (const JobView& job : manager_->ListJobs(JobId(), 1000)) {
      if (!job.lost_ranks.empty()) continue;
      for (uint32_t have = job.tree_count; have < 2; ++have) {
        // One that is refused, because switches are full or no links join its members, is asked for
        // again after the next settling.
        Grant(job.record->id, have == 0 ? TreeType::kTypeII : TreeType::kTypeI).IgnoreError();
      }
    }
  }

  void RegisterJobs() {
    for (const uint32_t ranks : {4, 6, 8, 12, 16, 16, 24, 32}) {
      std::set<uint32_t> hosts;
      while (hosts.size() < ranks) hosts.insert(Below(64));
      std::vector<std::string> names;
      for (const uint32_t host : hosts) {
        names.push_back(absl::StrCat("n", absl::Dec(host, absl::kZeroPad4)));
      }
      const auto job = Register(std::move(names));
      ASSERT_TRUE(job.ok()) << job.status();
    }
    AskForTrees();
    ASSERT_GE(manager_->Counts().granted_trees, 10u);
  }

  void WatchEvents() {
    const std::vector<EventRecord> stored = EventsOf("");
    if (!stored.empty()) first_event_ = stored.back().id;
    auto watch = manager_->WatchEvents({}, first_event_, [] {});
    ASSERT_TRUE(watch.ok()) << watch.status();
    events_ = *std::move(watch);
  }

  // What is stored has been told, once and in order. The feed reads the store on its own thread.
  void CheckEvents() {
    std::vector<int64_t> stored;
    for (const EventRecord& event : EventsOf("")) {
      if (event.id > first_event_) stored.push_back(event.id);
    }
    ASSERT_NO_FATAL_FAILURE(Await("all events", [&] {
      for (;;) {
        const auto events = events_->Next(100);
        if (!events.ok()) ADD_FAILURE() << events.status();
        if (!events.ok() || events->empty()) break;
        for (const auto& event : *events) told_.push_back(event->id);
      }
      return told_.size() >= stored.size();
    }));
    EXPECT_EQ(stored, told_);
  }

  bool IsSeen(const std::string& switch_name) const {
    const Fabric& fabric = *manager_->fabric()->snapshot->fabric;
    for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
      if (fabric.switch_info(SwitchIndex(s)).description == switch_name) return true;
    }
    return false;
  }

  // A switch of which all packets are lost until the daemon has seen it; not the daemon's own.
  void SilenceOne() {
    std::string name = "L0";
    while (name == "L0" || !IsSeen(name)) name = switches_[Below(switches_.size())];
    ASSERT_NO_FATAL_FAILURE(Console(absl::StrCat("Error \"", name, "\" 100")));
    ASSERT_NO_FATAL_FAILURE(Await("the silence of " + name, [&] { return !IsSeen(name); }));
    ASSERT_NO_FATAL_FAILURE(Console(absl::StrCat("Error \"", name, "\" 0")));
  }

  void CheckAll(Picture& picture) {
    ASSERT_NO_FATAL_FAILURE(AwaitSettled(reference_host_));
    // Where answers are lost all the time, so is a reading now and then.
    EXPECT_GE(CheckLoads(kLinksWithTraffic, &random_),
              reference_host_.empty() ? kLinksWithTraffic : kLinksWithTraffic / 2);
    ASSERT_NO_FATAL_FAILURE(StopSettled());
    ASSERT_NO_FATAL_FAILURE(ExpectAllRight());
    ASSERT_NO_FATAL_FAILURE(StopSettled());
    ASSERT_TRUE(store_->Apply(AppendEvents{}).ok());
    ASSERT_NO_FATAL_FAILURE(CheckEvents());
    picture.Read();
    picture.ExpectEquals(*manager_);
    CheckLostRanks();
    manager_->Start();
  }

  // Of a hundred thousand questions one loses all its answers, where one in ten is lost: the sweep
  // that asked it has not seen some links, which is no time to compare.
  void StopSettled() {
    const auto is_settled = [this] {
      const std::shared_ptr<const FabricView> view = manager_->fabric();
      return view->routes_settled && view->unanswered.empty();
    };
    ASSERT_NO_FATAL_FAILURE(Await("a sweep that saw everything", [&] {
      if (!is_settled()) return false;
      manager_->Stop();
      if (is_settled()) return true;
      manager_->Start();
      return false;
    }));
  }

  void CheckLostRanks() {
    const Fabric& fabric = *manager_->fabric()->snapshot->fabric;
    for (const JobView& job : manager_->ListJobs(JobId(), 1000)) {
      std::vector<uint32_t> lost;
      for (uint32_t rank = 0; rank < job.record->endpoints.size(); ++rank) {
        if (!fabric.FindEndpoint(job.record->endpoints[rank])) lost.push_back(rank);
      }
      EXPECT_EQ(lost, job.lost_ranks) << "job " << job.record->id.value();
    }
  }

  void BeginChaos() {
    ForgetAtOnce();
    ASSERT_NO_FATAL_FAILURE(
        Begin({absl::Minutes(5), absl::Milliseconds(200), absl::Milliseconds(200)}));
  }

  // So many of a hundred answers to the daemon are lost from now on, and none of OpenSM's, which
  // moves to another host: the preload tells it of no lost packet, and it would wait for ever.
  void LoseAnswers(int percent) {
    reference_host_ = "n0001";
    ASSERT_NO_FATAL_FAILURE(ManageSubnet({"ftree", reference_host_}));
    ASSERT_NO_FATAL_FAILURE(Console(absl::StrCat("Error \"n0000\" ", percent)));
  }

  void TearAtIt(int commands, int at_once, bool with_silence) {
    ASSERT_NO_FATAL_FAILURE(NoteCables());
    ASSERT_NO_FATAL_FAILURE(RegisterJobs());
    Picture picture(*manager_);
    ASSERT_NO_FATAL_FAILURE(WatchEvents());
    for (int done = 0; done < commands && !HasFailure();) {
      SCOPED_TRACE(absl::StrCat("after ", done, " commands"));
      for (const int end = done + at_once; done < end; ++done) {
        ASSERT_NO_FATAL_FAILURE(OneCommand());
      }
      ASSERT_NO_FATAL_FAILURE(StopLosses());
      if (with_silence) {
        ASSERT_NO_FATAL_FAILURE(SilenceOne());
      }
      ASSERT_NO_FATAL_FAILURE(CheckAll(picture));
      AskForTrees();
    }
    while (!cut_.empty() && !HasFailure()) {
      ASSERT_NO_FATAL_FAILURE(Console("ReLink " + TakeAny(cut_)));
    }
    ASSERT_NO_FATAL_FAILURE(CheckAll(picture));
    AskForTrees();
    ASSERT_NO_FATAL_FAILURE(CheckAll(picture));
    EXPECT_GE(manager_->Counts().granted_trees, 10u);
  }

  static constexpr size_t kMaxCut = 10;
  static constexpr size_t kLinksWithTraffic = 12;
  static constexpr const char* kAttributes[] = {"16", "17", "18", "21"};
  std::mt19937_64 random_{TestSeed()};
  std::vector<std::string> whole_, cut_;  // ends of cables
  std::vector<std::string> switches_;
  std::string reference_host_;  // of OpenSM and the reference tools; empty: the daemon's
  std::set<std::string> lossy_;
  int64_t first_event_ = 0;  // the watch begins after it
  std::unique_ptr<EventWatch> events_;
  std::vector<int64_t> told_;
};

TEST_F(LiveChaos, WhateverHappensItSettles) {
  ASSERT_NO_FATAL_FAILURE(BeginChaos());
  ASSERT_NO_FATAL_FAILURE(TearAtIt(FullTier() ? 1000 : 50, FullTier() ? 20 : 10, false));
}

TEST_F(LiveChaos, OneAnswerInAHundredIsLostAllTheTime) {
  ASSERT_NO_FATAL_FAILURE(BeginChaos());
  ASSERT_NO_FATAL_FAILURE(LoseAnswers(1));
  ASSERT_NO_FATAL_FAILURE(TearAtIt(FullTier() ? 100 : 5, FullTier() ? 20 : 5, true));
}

TEST_F(LiveChaos, OneAnswerInTenIsLostAllTheTime) {
  ASSERT_NO_FATAL_FAILURE(BeginChaos());
  ASSERT_NO_FATAL_FAILURE(LoseAnswers(10));
  ASSERT_NO_FATAL_FAILURE(TearAtIt(FullTier() ? 200 : 5, FullTier() ? 20 : 5, true));
  EXPECT_GT(manager_->Sweeps().mads_resent, 1000u);
}

}  // namespace
}  // namespace coppice::live_chaos_test
