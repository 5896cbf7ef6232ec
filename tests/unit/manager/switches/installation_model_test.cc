// The installer against a model: trees come and go in random order while switches refuse, are
// silent, go away, come back and forget. Whatever happens, each installation is answered once; one
// that is done was in all of its switches at that instant; and when all has come to rest each
// switch holds what it shall, and nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/manual_clock.h"
#include "tests/support/tier.h"
#include "tests/unit/manager/switches/played_switch.h"

namespace coppice::installation_model_test {
namespace {

constexpr uint64_t kPlayed = 6;

class InstallationModel {
 public:
  explicit InstallationModel(uint64_t seed) : random_(seed) {
    for (uint64_t guid = 1; guid <= kPlayed; ++guid) {
      switches_.push_back(std::make_unique<PlayedSwitch>(Guid(guid), Able(12)));
      switches_.back()->Say([this](const SwitchEntry&) -> std::optional<std::string> {
        const uint64_t die = is_calm_ ? 99 : Below(30);
        if (die == 0) return std::nullopt;
        return die == 1 ? "not today" : "";
      });
      sessions_.push_back(0);
    }
  }

  void Step() {
    const uint64_t die = Below(100);
    const uint64_t which = Below(kPlayed);
    if (die < 20) {
      Install(which);
    } else if (die < 28) {
      RemoveOne();
    } else if (die < 88) {
      ReadOne(which);
    } else if (die < 96) {
      if (sessions_[which] == 0) Connect(which);
    } else if (die < 97) {
      if (sessions_[which] != 0) Disconnect(which);
      if (Below(3) == 0) switches_[which]->Forget();
    } else if (die < 98 && sessions_[which] != 0) {
      Connect(which);  // another stream before the last one was seen to end
    } else {
      clock_.Advance(absl::Milliseconds(static_cast<int64_t>(Below(3000))));
      installer_.Expire();
    }
  }

  // All connected, all read, nothing late.
  void ComeToRest() {
    is_calm_ = true;
    for (uint64_t i = 0; i < kPlayed; ++i) {
      if (sessions_[i] == 0) Connect(i);
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (uint64_t i = 0; i < kPlayed; ++i) {
        while (ReadOne(i)) moved = true;
      }
    }
    // Those whose silence is older than the calm.
    clock_.Advance(SwitchInstaller::kAnswerWithin);
    installer_.Expire();
    for (uint64_t i = 0; i < kPlayed; ++i) {
      while (ReadOne(i)) {
      }
    }
    ASSERT_EQ(under_way_, 0);
    for (uint64_t i = 0; i < kPlayed; ++i) {
      std::vector<SwitchGroup> wanted;
      for (const auto& [group, tree] : granted_) {
        // What is lost may be in some of its switches; the daemon revises it.
        if (Serves(tree, i) && !installer_.WhyLost(tree)) wanted.push_back(group);
      }
      std::vector<SwitchGroup> held = switches_[i]->groups();
      for (const SwitchGroup& group : held) {
        ASSERT_TRUE(granted_.contains(group)) << ToString(group) << " is left over";
      }
      for (const SwitchGroup& group : wanted) {
        ASSERT_TRUE(std::binary_search(held.begin(), held.end(), group))
            << ToString(group) << " is missing in switch " << i + 1;
      }
    }
  }
  // They go, and nothing is left.
  void End() {
    while (!granted_.empty()) RemoveOne();
    for (uint64_t i = 0; i < kPlayed; ++i) {
      while (ReadOne(i)) {
      }
      ASSERT_TRUE(switches_[i]->groups().empty());
    }
  }
  uint64_t done() const { return done_; }
  uint64_t failed() const { return failed_; }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  static bool Serves(const TreeRecord& tree, uint64_t i) {
    return std::any_of(tree.switches.begin(), tree.switches.end(),
                       [&](const TreeSwitchRecord& s) { return s.guid == Guid(i + 1); });
  }

  void Connect(uint64_t i) {
    PlayedSwitch& played = *switches_[i];
    const SwitchInstaller::Connected connected =
        installer_.Connect(played.Hello(), played.NewLink(), "tls:switch");
    // Of a link whose stream the installer has ended what was queued is lost, as on a wire; what
    // this connection was told waits behind the welcome.
    sessions_[i] = connected.session;
    played.TakeWelcome(connected.keep);
  }
  void Disconnect(uint64_t i) {
    installer_.Disconnect(sessions_[i]);
    sessions_[i] = 0;
  }
  bool ReadOne(uint64_t i) {
    if (sessions_[i] == 0) return false;
    const auto answer = switches_[i]->ReadOne();
    if (!answer) return false;
    if (answer->id != 0) {
      EXPECT_TRUE(installer_.TakeResult(sessions_[i], answer->id, answer->error).ok());
    }
    return true;
  }

  // A new tree below switch `root`, or the next revision of one.
  void Install(uint64_t root) {
    TreeRecord tree;
    tree.id = TreeId(++last_tree_);
    std::optional<SwitchGroup> before;
    if (!granted_.empty() && Below(3) == 0) {
      auto it = granted_.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(Below(granted_.size())));
      before = it->first;
      if (revising_.contains(before->tree)) return;
      tree.id = before->tree;
      tree.revision = before->revision + 1;
    }
    tree.type = 2;
    std::vector<uint64_t> leaves;
    for (uint64_t i = 0; i < kPlayed; ++i) {
      if (i != root && Below(3) == 0 && (sessions_[i] != 0 || Below(10) == 0)) leaves.push_back(i);
    }
    const auto count = static_cast<int32_t>(leaves.size());
    if (count == 0) return;
    for (int32_t i = 0; i < count; ++i) {
      tree.ranks.push_back(static_cast<uint32_t>(i));
      tree.parents.push_back(count + i);
    }
    for (int32_t i = 0; i < count; ++i) {
      tree.parents.push_back(2 * count);
      tree.switches.push_back({Guid(leaves[static_cast<size_t>(i)] + 1), 1});
    }
    tree.parents.push_back(-1);
    tree.switches.push_back({Guid(root + 1), static_cast<uint32_t>(count)});
    tree.carriage = {std::string(16, static_cast<char>('a' + Below(26))), 64, 1};
    ++under_way_;
    if (before) revising_.insert(tree.id);
    installer_.Install({*CarriedTreeOf(tree)}, [this, tree, before](InstallOutcome outcome) {
      --under_way_;
      revising_.erase(tree.id);
      if (!outcome.status.ok()) {
        ++failed_;
        EXPECT_FALSE(outcome.refusing.empty());
        for (const RefusingSwitch& one : outcome.refusing) {
          EXPECT_TRUE(Serves(tree, one.guid.value() - 1));
        }
        return;
      }
      ++done_;
      const SwitchGroup group{tree.id, tree.revision};
      for (const TreeSwitchRecord& serving : tree.switches) {
        const auto held = switches_[serving.guid.value() - 1]->held();
        const auto entry = held.find(tree.id);
        ASSERT_TRUE(entry != held.end() && entry->second.group == group)
            << ToString(group) << " is done and not in switch " << serving.guid.value();
        EXPECT_EQ(entry->second.key, tree.carriage.key);
        EXPECT_EQ(entry->second.children, serving.children);
      }
      granted_[group] = tree;
      if (before && granted_.erase(*before) > 0) installer_.Remove(*before);
    });
  }
  void RemoveOne() {
    if (granted_.empty()) return;
    auto it = granted_.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(Below(granted_.size())));
    if (revising_.contains(it->first.tree)) return;
    const SwitchGroup group = it->first;
    granted_.erase(it);
    installer_.Remove(group);
  }

  std::mt19937_64 random_;
  ManualClock clock_;
  SwitchInstaller installer_{nullptr, &clock_, nullptr};
  std::vector<std::unique_ptr<PlayedSwitch>> switches_;
  std::vector<SwitchSession> sessions_;  // 0: not connected
  std::map<SwitchGroup, TreeRecord> granted_;
  std::set<TreeId> revising_;
  int64_t last_tree_ = 0;
  int under_way_ = 0;
  bool is_calm_ = false;
  uint64_t done_ = 0, failed_ = 0;
};

TEST(InstallationModelTest, SwitchesHoldWhatTheyShall) {
  const int rounds = FullTier() ? 1000 : 60;
  uint64_t done = 0, failed = 0;
  for (int round = 0; round < rounds; ++round) {
    InstallationModel model(TestSeed() + static_cast<uint64_t>(round));
    for (int step = 0; step < 600; ++step) model.Step();
    model.ComeToRest();
    if (HasFatalFailure()) FAIL() << "round " << round;
    model.End();
    if (HasFatalFailure()) FAIL() << "round " << round;
    done += model.done();
    failed += model.failed();
  }
  // Both happen often, or nothing was tried.
  EXPECT_GT(done, static_cast<uint64_t>(rounds) * 10);
  EXPECT_GT(failed, static_cast<uint64_t>(rounds) * 10);
}

}  // namespace
}  // namespace coppice::installation_model_test
