// A switch that aggregates as a test plays it, behind a SwitchLink: it enforces itself what it can
// hold, and answers step by step, or on a thread of its own.
#ifndef COPPICE_TESTS_UNIT_MANAGER_SWITCHES_PLAYED_SWITCH_H_
#define COPPICE_TESTS_UNIT_MANAGER_SWITCHES_PLAYED_SWITCH_H_

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/manager/switches/switches.h"

namespace coppice {

inline SwitchAbilities Able(uint32_t entries = 8, uint32_t children = 32) {
  SwitchAbilities abilities;
  abilities.entries = entries;
  abilities.children = children;
  abilities.operations = 2;
  abilities.types = 2;
  abilities.segment_bytes = 4096;
  abilities.window = 8;
  abilities.memory_bytes = uint64_t{entries} * children * 8 * 4096;
  return abilities;
}

class PlayedSwitch final {
 public:
  // What it says to an entry that it has room for: empty, it is installed; nullopt: nothing.
  using Policy = std::function<std::optional<std::string>(const SwitchEntry&)>;
  struct Answer {
    uint64_t id = 0;  // 0: nothing is to be said
    std::string error = {};
  };

  explicit PlayedSwitch(Guid guid, SwitchAbilities abilities = Able())
      : guid_(guid), abilities_(abilities) {}
  ~PlayedSwitch() { Leave(); }

  Guid guid() const { return guid_; }
  void Say(Policy policy) {
    std::lock_guard lock(state_->mu);
    policy_ = std::move(policy);
  }
  std::string address() const { return absl::StrCat("10.0.0.", guid_.value() % 256, ":18516"); }
  SwitchHello Hello() const {
    SwitchHello hello{guid_, address(), "test", abilities_, {}};
    for (const auto& [tree, entry] : held()) hello.groups.push_back(entry.group);
    return hello;
  }
  // Of a new connection: what was not read of the last one is lost.
  SwitchLink NewLink() {
    std::lock_guard lock(state_->mu);
    state_->unread.clear();
    state_->ended.reset();
    const uint64_t connection = ++state_->connection;
    SwitchLink link;
    link.install = [state = state_, connection](uint64_t id, const SwitchEntry& entry) {
      state->Push(connection, {id, entry});
    };
    link.remove = [state = state_, connection](const SwitchGroup& group) {
      SwitchEntry entry;
      entry.group = group;
      state->Push(connection, {0, entry});
    };
    link.end = [state = state_, connection](const absl::Status& status) {
      std::lock_guard inner(state->mu);
      if (connection == state->connection) state->ended = status;
    };
    return link;
  }
  void TakeWelcome(const std::vector<SwitchGroup>& keep) {
    std::lock_guard lock(state_->mu);
    const std::set<SwitchGroup> kept(keep.begin(), keep.end());
    std::erase_if(held_, [&](const auto& one) { return !kept.contains(one.second.group); });
  }
  // It starts anew, empty.
  void Forget() {
    std::lock_guard lock(state_->mu);
    held_.clear();
  }
  // Nullopt: nothing waits.
  std::optional<Answer> ReadOne() {
    std::unique_lock lock(state_->mu);
    return Read(lock);
  }
  size_t unread() const {
    std::lock_guard lock(state_->mu);
    return state_->unread.size();
  }
  std::map<TreeId, SwitchEntry> held() const {
    std::lock_guard lock(state_->mu);
    return held_;
  }
  std::vector<SwitchGroup> groups() const { return Hello().groups; }
  std::optional<absl::Status> ended() const {
    std::lock_guard lock(state_->mu);
    return state_->ended;
  }

  // Connects to `switches`, and answers on a thread until Leave.
  void Join(Switches& switches) {
    Leave();
    switches_ = &switches;
    const auto connected = switches.Connect(Hello(), NewLink(), "tls:switch");
    ASSERT_TRUE(connected.ok()) << connected.status();
    session_ = connected->session;
    TakeWelcome(connected->keep);
    thread_ = std::thread([this] { AnswerAll(); });
  }
  void Leave() {
    if (!thread_.joinable()) return;
    {
      std::lock_guard lock(state_->mu);
      is_leaving_ = true;
      state_->changed.notify_all();
    }
    thread_.join();
    is_leaving_ = false;
    switches_->Disconnect(session_);
  }
  // Until it has read all that it was told.
  void AwaitRead() {
    std::unique_lock lock(state_->mu);
    state_->changed.wait(lock, [this] { return state_->unread.empty() && !is_busy_; });
  }
  SwitchSession session() const { return session_; }
  // The thread that told it the last.
  std::thread::id told_by() const {
    std::lock_guard lock(state_->mu);
    return state_->told_by;
  }

 private:
  struct Told {
    uint64_t id = 0;  // 0: a removal
    SwitchEntry entry;
  };
  struct State {
    void Push(uint64_t of, Told told) {
      std::lock_guard lock(mu);
      if (of != connection) return;
      unread.push_back(std::move(told));
      told_by = std::this_thread::get_id();
      changed.notify_all();
    }
    mutable std::mutex mu;
    std::condition_variable changed;
    uint64_t connection = 0;
    std::deque<Told> unread;
    std::optional<absl::Status> ended;
    std::thread::id told_by;
  };

  // What it is told first. A policy is asked without the lock, as it may ask the daemon for things.
  std::optional<Answer> Read(std::unique_lock<std::mutex>& lock) {
    if (state_->unread.empty()) return std::nullopt;
    const Told told = std::move(state_->unread.front());
    state_->unread.pop_front();
    const SwitchEntry& entry = told.entry;
    const auto held = held_.find(entry.group.tree);
    if (told.id == 0) {
      if (held != held_.end() && held->second.group == entry.group) held_.erase(held);
      return Answer();
    }
    if (entry.children > abilities_.children) return Answer{told.id, "too many children"};
    if (held != held_.end() && held->second.group.revision >= entry.group.revision) {
      return Answer{told.id, "stale revision"};
    }
    if (held == held_.end() && held_.size() >= abilities_.entries) {
      return Answer{told.id, absl::StrCat("all ", abilities_.entries, " entries are taken")};
    }
    if (const auto policy = policy_) {
      lock.unlock();
      const std::optional<std::string> words = policy(entry);
      lock.lock();
      if (!words) return Answer();
      if (!words->empty()) return Answer{told.id, *words};
    }
    held_[entry.group.tree] = entry;
    return Answer{told.id, ""};
  }
  void AnswerAll() {
    for (;;) {
      std::optional<Answer> answer;
      {
        std::unique_lock lock(state_->mu);
        is_busy_ = false;
        state_->changed.notify_all();
        state_->changed.wait(lock, [this] { return is_leaving_ || !state_->unread.empty(); });
        if (is_leaving_) return;
        is_busy_ = true;
        answer = Read(lock);
      }
      if (answer->id != 0) {
        EXPECT_TRUE(switches_->TakeResult(session_, answer->id, answer->error).ok());
      }
    }
  }

  const Guid guid_;
  const SwitchAbilities abilities_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();  // its lock guards the next
  std::map<TreeId, SwitchEntry> held_;
  Policy policy_;
  bool is_leaving_ = false, is_busy_ = false;
  Switches* switches_ = nullptr;
  SwitchSession session_ = 0;
  std::thread thread_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_MANAGER_SWITCHES_PLAYED_SWITCH_H_
