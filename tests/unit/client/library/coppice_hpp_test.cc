// coppice.hpp: what it keeps for watches lives as long as they do.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/library/coppice.hpp"
#include "coppice/v1/trees.pb.h"
#include "tests/unit/client/library/scripted_agent.h"

namespace coppice::coppice_hpp_test {
namespace {

using client::Change;
using client::Client;

constexpr std::chrono::seconds kPatience{30};

std::string ChangeText(v1::TreeChangeKind kind) {
  v1::TreeChange change;
  change.set_kind(kind);
  change.mutable_tree()->set_id("1");
  return change.SerializeAsString();
}

// What happens to a listener, as seen by the last copy of what it holds.
class Witness {
 public:
  void Call() {
    const std::lock_guard<std::mutex> lock(mu_);
    ++calls_;
    changed_.notify_all();
  }
  void EndStream() {
    const std::lock_guard<std::mutex> lock(mu_);
    is_stream_over_ = true;
    changed_.notify_all();
  }
  // While changes come without end: is the listener called yet, or has its watch been ended?
  void Free() {
    std::unique_lock<std::mutex> lock(mu_);
    const int before = calls_;
    EXPECT_TRUE(
        changed_.wait_for(lock, kPatience, [&] { return is_stream_over_ || calls_ > before; }));
    EXPECT_EQ(calls_, before) << "it is called after it was freed";
    is_freed_ = true;
  }
  bool is_freed() {
    const std::lock_guard<std::mutex> lock(mu_);
    return is_freed_;
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  int calls_ = 0;
  bool is_stream_over_ = false, is_freed_ = false;
};

struct Held {
  explicit Held(Witness* one) : witness(one) {}
  ~Held() { witness->Free(); }
  Witness* const witness;
};

TEST(CoppiceHppTest, AssignmentEndsWatchesBeforeTheirListeners) {
  Witness witness;
  ScriptedAgent agent([&](ScriptedConnection& connection, int) {
    const auto request = connection.Read();
    if (!request) return;
    connection.Message(request->call(), ChangeText(v1::TREE_CHANGE_KIND_SYNCED));
    while (connection.Message(request->call(), ChangeText(v1::TREE_CHANGE_KIND_GRANTED))) {
    }
    witness.EndStream();
  });
  auto watching = Client::Open(agent.path());
  auto other = Client::Open(agent.path());
  ASSERT_TRUE(watching.ok() && other.ok());
  auto held = std::make_shared<Held>(&witness);
  ASSERT_TRUE(watching->WatchTrees(1, [held](const Change&) { held->witness->Call(); }).ok());
  held.reset();
  *watching = *std::move(other);
  EXPECT_TRUE(witness.is_freed());
}

// Many threads begin watches of one client, which are over at once.
TEST(CoppiceHppTest, ThreadsBeginWatchesTogether) {
  constexpr int kThreads = 4, kWatches = 40;
  ScriptedAgent agent([](ScriptedConnection& connection, int) {
    if (const auto request = connection.Read()) connection.End(request->call());
    connection.Read();
  });
  std::atomic<int> told{0}, failures{0};
  auto one = Client::Open(agent.path());
  ASSERT_TRUE(one.ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int watch = 0; watch < kWatches; ++watch) {
        if (!one->WatchTrees(1, [&](const Change&) { ++told; }).ok()) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(told, kThreads * kWatches);
}

TEST(CoppiceHppTest, TimesComeWithATreeAndAreHandedOn) {
  std::mutex mu;
  std::vector<std::string> asked;
  ScriptedAgent agent([&](ScriptedConnection& connection, int) {
    while (const auto request = connection.Read()) {
      const std::lock_guard<std::mutex> lock(mu);
      asked.push_back(request->message());
      v1::Tree tree;
      tree.set_id("7");
      tree.set_rank_count(1);
      tree.mutable_nodes()->add_parents(-1);
      v1::WayTime& time = *tree.add_known();
      time.set_operation(v1::OPERATION_REDUCE);
      time.set_way(v1::COLLECTIVE_WAY_CHAIN);
      time.set_length_bits(9);
      time.set_us(2.5);
      connection.Answer(request->call(), tree.SerializeAsString());
    }
  });
  auto one = Client::Open(agent.path());
  ASSERT_TRUE(one.ok());
  client::TreeOptions options;
  options.job = 1;
  options.max_trees = 5;
  options.application = "waves";
  const auto tree = one->CreateTree(options);
  ASSERT_TRUE(tree.ok());
  ASSERT_EQ(tree->known().size(), 1U);
  EXPECT_EQ(tree->known()[0].operation, COPPICE_OPERATION_REDUCE);
  EXPECT_EQ(tree->known()[0].us, 2.5);
  EXPECT_TRUE(one->ReleaseTree(7, "waves", tree->known()).ok());
  const std::lock_guard<std::mutex> lock(mu);
  ASSERT_EQ(asked.size(), 2U);
  v1::CreateTreeRequest created;
  ASSERT_TRUE(created.ParseFromString(asked[0]));
  EXPECT_EQ(created.application(), "waves");
  EXPECT_EQ(created.max_trees(), 5U);
  v1::ReleaseTreeRequest released;
  ASSERT_TRUE(released.ParseFromString(asked[1]));
  EXPECT_EQ(released.id(), "7");
  EXPECT_EQ(released.application(), "waves");
  ASSERT_EQ(released.times_size(), 1);
  EXPECT_EQ(released.times(0).way(), v1::COLLECTIVE_WAY_CHAIN);
}

TEST(CoppiceHppTest, AListenerOfAWatchThatIsOverIsFreed) {
  ScriptedAgent agent([](ScriptedConnection& connection, int) {
    if (const auto request = connection.Read()) connection.End(request->call());
    connection.Read();
  });
  auto one = Client::Open(agent.path());
  ASSERT_TRUE(one.ok());
  auto first = std::make_shared<int>(0);
  const std::weak_ptr<int> seen = first;
  ASSERT_TRUE(one->WatchTrees(1, [first](const Change&) {}).ok());
  first.reset();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!seen.expired() && std::chrono::steady_clock::now() < end) {
    ASSERT_TRUE(one->WatchTrees(1, [](const Change&) {}).ok());
  }
  EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace coppice::coppice_hpp_test
