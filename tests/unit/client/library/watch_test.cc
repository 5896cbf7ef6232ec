// Watches through restarts of the agent and of the daemon behind it.
#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/library/coppice.h"
#include "client/library/retry_pause.h"
#include "coppice/v1/trees.pb.h"
#include "tests/unit/client/library/scripted_agent.h"

namespace coppice::watch_test {
namespace {

std::string ChangeText(v1::TreeChangeKind kind, int tree, int revision, const std::string& token) {
  v1::TreeChange change;
  change.set_kind(kind);
  change.set_resume_token(token);
  if (tree > 0) {
    change.mutable_tree()->set_id(std::to_string(tree));
    change.mutable_tree()->set_revision(static_cast<uint32_t>(revision));
  }
  return change.SerializeAsString();
}

std::string Present(int tree, int revision) {
  return ChangeText(v1::TREE_CHANGE_KIND_PRESENT, tree, revision, "");
}
std::string Synced(const std::string& token) {
  return ChangeText(v1::TREE_CHANGE_KIND_SYNCED, 0, 0, token);
}

// What was told, as "KIND TREE/REVISION".
class Told {
 public:
  static void Take(void* context, coppice_change change, uint64_t tree, uint32_t revision,
                   const char* reason) {
    auto* const told = static_cast<Told*>(context);
    const std::lock_guard<std::mutex> lock(told->mu_);
    told->all_.push_back(std::to_string(change) + " " + std::to_string(tree) + "/" +
                         std::to_string(revision));
    told->reason_ = reason;
    told->changed_.notify_all();
  }

  std::vector<std::string> Await(size_t count) {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return all_.size() >= count; });
    return all_;
  }
  std::string reason() {
    const std::lock_guard<std::mutex> lock(mu_);
    return reason_;
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<std::string> all_;
  std::string reason_;
};

struct CloseClient {
  void operator()(coppice_client* client) const { coppice_close(client); }
};
using Client = std::unique_ptr<coppice_client, CloseClient>;

Client Open(const std::string& path) {
  coppice_client* client = nullptr;
  EXPECT_EQ(coppice_open(path.c_str(), 0, &client), COPPICE_OK);
  return Client(client);
}

std::string TokenOf(const v1::LocalRequest& request) {
  EXPECT_EQ(request.method(), "/coppice.v1.Trees/WatchTrees");
  EXPECT_EQ(request.timeout_ms(), 0u);
  v1::WatchTreesRequest watch;
  EXPECT_TRUE(watch.ParseFromString(request.message()));
  EXPECT_EQ(watch.job_id(), "7");
  return watch.resume_token();
}

TEST(WatchTest, GoesOnBehindTheLastChangeAfterARestart) {
  std::mutex mu;
  std::vector<std::string> tokens;
  ScriptedAgent agent([&](ScriptedConnection& connection, int index) {
    const auto request = connection.Read();
    if (!request) return;
    {
      const std::lock_guard<std::mutex> lock(mu);
      tokens.push_back(TokenOf(*request));
    }
    if (index == 0) {
      connection.Message(request->call(), Present(1, 1));
      connection.Message(request->call(), Synced("a"));
      connection.Message(request->call(), ChangeText(v1::TREE_CHANGE_KIND_GRANTED, 2, 1, "b"));
      return;  // cut off
    }
    connection.Message(request->call(), ChangeText(v1::TREE_CHANGE_KIND_REVISED, 1, 2, "c"));
    connection.Message(request->call(), ChangeText(v1::TREE_CHANGE_KIND_RELEASED, 2, 1, "d"));
    connection.End(request->call());
  });
  Told told;
  const Client client = Open(agent.path());
  ASSERT_EQ(coppice_watch_trees(client.get(), 7, Told::Take, &told), COPPICE_OK);
  EXPECT_EQ(told.Await(5), (std::vector<std::string>{"1 1/1", "3 2/1", "4 1/2", "6 2/1", "8 0/0"}));
  EXPECT_NE(told.reason().find("job 7"), std::string::npos);
  const std::lock_guard<std::mutex> lock(mu);
  EXPECT_EQ(tokens, (std::vector<std::string>{"", "b"}));
}

// OUT_OF_RANGE: a daemon started anew. Listing again tells the difference.
TEST(WatchTest, ListsAgainWhereTheTokenIsTooOld) {
  std::mutex mu;
  std::vector<std::string> tokens;
  ScriptedAgent agent([&](ScriptedConnection& connection, int index) {
    const auto request = connection.Read();
    if (!request) return;
    {
      const std::lock_guard<std::mutex> lock(mu);
      tokens.push_back(TokenOf(*request));
    }
    if (index == 0) {
      for (const int tree : {1, 2, 3}) connection.Message(request->call(), Present(tree, 1));
      connection.Message(request->call(), Synced("a"));
      connection.End(request->call(), COPPICE_UNAVAILABLE, "the daemon stops");
    } else if (index == 1) {
      connection.End(request->call(), COPPICE_OUT_OF_RANGE, "too old");
    } else if (index == 2) {
      connection.Message(request->call(), Present(1, 1));  // cut off while it lists
    } else {
      connection.Message(request->call(), Present(1, 1));
      connection.Message(request->call(), Present(2, 5));
      connection.Message(request->call(), Present(4, 1));
      connection.Message(request->call(), Synced("z"));
      connection.End(request->call());
    }
    connection.Read();
  });
  Told told;
  const Client client = Open(agent.path());
  ASSERT_EQ(coppice_watch_trees(client.get(), 7, Told::Take, &told), COPPICE_OK);
  // Index 2 waits for its process to go; only a restart cuts it.
  const auto asked = [&] {
    const std::lock_guard<std::mutex> lock(mu);
    return tokens.size();
  };
  while (asked() < 3) std::this_thread::yield();
  agent.Stop();
  agent.Start();
  EXPECT_EQ(told.Await(7), (std::vector<std::string>{"1 1/1", "1 2/1", "1 3/1", "4 2/5", "1 4/1",
                                                     "5 3/1", "8 0/0"}));
  const std::lock_guard<std::mutex> lock(mu);
  EXPECT_EQ(tokens, (std::vector<std::string>{"", "a", "", ""}));
}

TEST(WatchTest, EndsForGoodWhereTryingAgainCannotHelp) {
  ScriptedAgent agent([&](ScriptedConnection& connection, int) {
    if (const auto request = connection.Read()) {
      connection.Message(request->call(), Synced("a"));
      connection.End(request->call(), COPPICE_NOT_FOUND, "job 7: is forgotten");
      connection.Read();
    }
  });
  Told told;
  const Client client = Open(agent.path());
  ASSERT_EQ(coppice_watch_trees(client.get(), 7, Told::Take, &told), COPPICE_OK);
  EXPECT_EQ(told.Await(1), std::vector<std::string>{"7 0/0"});
  EXPECT_EQ(told.reason(), "job 7: is forgotten");
  EXPECT_EQ(agent.connections(), 1);
}

// A watch that never stood is an error of the call, and tells nothing.
TEST(WatchTest, WhatFailsFromTheBeginningIsReturned) {
  for (const coppice_status code : {COPPICE_NOT_FOUND, COPPICE_UNAVAILABLE}) {
    ScriptedAgent agent([&](ScriptedConnection& connection, int) {
      if (const auto request = connection.Read()) connection.End(request->call(), code, "why");
      connection.Read();
    });
    Told told;
    const Client client = Open(agent.path());
    EXPECT_EQ(coppice_watch_trees(client.get(), 7, Told::Take, &told), code);
    EXPECT_STREQ(coppice_last_error(), "why");
    EXPECT_TRUE(told.Await(0).empty());
    EXPECT_EQ(agent.connections(), 1);
  }
  ScriptedAgent silent([](ScriptedConnection& connection, int) {
    while (connection.Read()) {
    }
  });
  Told told;
  coppice_client* client = nullptr;
  ASSERT_EQ(coppice_open(silent.path().c_str(), 50, &client), COPPICE_OK);
  EXPECT_EQ(coppice_watch_trees(client, 7, Told::Take, &told), COPPICE_DEADLINE_EXCEEDED);
  coppice_close(client);
}

TEST(WatchTest, AJobThatIsOverIsToldAtOnce) {
  ScriptedAgent agent([](ScriptedConnection& connection, int) {
    if (const auto request = connection.Read()) connection.End(request->call());
    connection.Read();
  });
  Told told;
  const Client client = Open(agent.path());
  EXPECT_EQ(coppice_watch_trees(client.get(), 7, Told::Take, &told), COPPICE_OK);
  EXPECT_EQ(told.Await(0), std::vector<std::string>{"8 0/0"});
}

TEST(WatchTest, NeedsAnAgentToBegin) {
  Told told;
  const Client client = Open("/nonexistent/agent.sock");
  EXPECT_EQ(coppice_watch_trees(client.get(), 7, Told::Take, &told), COPPICE_UNAVAILABLE);
}

TEST(WatchTest, AClosedClientTellsNothingMore) {
  ScriptedAgent agent([&](ScriptedConnection& connection, int) {
    const auto request = connection.Read();
    if (request) connection.Message(request->call(), Synced("a"));
    for (int tree = 1; request && tree < 100'000; ++tree) {
      connection.Message(request->call(), ChangeText(v1::TREE_CHANGE_KIND_GRANTED, tree, 1, "a"));
    }
  });
  auto told = std::make_unique<Told>();
  Client client = Open(agent.path());
  ASSERT_EQ(coppice_watch_trees(client.get(), 7, Told::Take, told.get()), COPPICE_OK);
  told->Await(3);
  client.reset();
  told.reset();  // a call after this would be seen by AddressSanitizer
}

struct Getter {
  coppice_client* client = nullptr;
  Told told;
  static void Take(void* context, coppice_change change, uint64_t tree, uint32_t revision,
                   const char* reason) {
    auto* const getter = static_cast<Getter*>(context);
    coppice_tree* handle = nullptr;
    if (change == COPPICE_CHANGE_PRESENT) {
      EXPECT_EQ(coppice_tree_get(getter->client, tree, &handle), COPPICE_OK);
      coppice_tree_free(handle);
    }
    Told::Take(&getter->told, change, tree, revision, reason);
  }
};

TEST(WatchTest, ItsFunctionMayCallTheLibrary) {
  ScriptedAgent agent([&](ScriptedConnection& connection, int) {
    while (const auto request = connection.Read()) {
      if (request->method() == "/coppice.v1.Trees/GetTree") {
        v1::Tree tree;
        tree.set_id("1");
        tree.set_rank_count(1);
        tree.mutable_nodes()->add_parents(-1);
        connection.Answer(request->call(), tree.SerializeAsString());
      } else {
        connection.Message(request->call(), Present(1, 1));
        connection.Message(request->call(), Present(2, 1));
        connection.Message(request->call(), Synced("a"));
      }
    }
  });
  Getter getter;
  const Client client = Open(agent.path());
  getter.client = client.get();
  ASSERT_EQ(coppice_watch_trees(client.get(), 7, Getter::Take, &getter), COPPICE_OK);
  EXPECT_EQ(getter.told.Await(0).size(), 2u);  // before the watch stood
}

int OpenEvents() {
  int count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (const dirent* const entry = readdir(folder)) {
    char target[64] = {};
    const ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
    count += length > 0 && std::string(target) == "anon_inode:[eventfd]" ? 1 : 0;
  }
  closedir(folder);
  return count;
}

void EndAtOnce(ScriptedConnection& connection, int) {
  if (const auto request = connection.Read()) connection.End(request->call());
  connection.Read();
}

TEST(WatchTest, WhatIsOverIsGivenBack) {
  constexpr int kWatches = 200;
  ScriptedAgent agent(EndAtOnce);
  const Client client = Open(agent.path());
  const int before = OpenEvents();
  Told told;
  for (int watch = 0; watch < kWatches; ++watch) {
    ASSERT_EQ(coppice_watch_trees(client.get(), 7, Told::Take, &told), COPPICE_OK);
  }
  EXPECT_EQ(told.Await(0).size(), size_t{kWatches});
  EXPECT_LT(OpenEvents(), before + kWatches / 2);  // but for some whose thread has not ended yet
}

// Begins watches until it is told that it is too late for that.
struct Beginner {
  coppice_client* client = nullptr;
  std::mutex mu;
  std::condition_variable changed;
  bool is_called = false;
  coppice_status last = COPPICE_OK;
  static void Ignore(void*, coppice_change, uint64_t, uint32_t, const char*) {}
  static void Take(void* context, coppice_change, uint64_t, uint32_t, const char*) {
    auto* const beginner = static_cast<Beginner*>(context);
    {
      const std::lock_guard<std::mutex> lock(beginner->mu);
      beginner->is_called = true;
      beginner->changed.notify_all();
    }
    for (int i = 0; beginner->last == COPPICE_OK && i < 100'000; ++i) {
      beginner->last = coppice_watch_trees(beginner->client, 7, Ignore, nullptr);
    }
  }
};

TEST(WatchTest, ItsFunctionMayWatchWhileTheClientIsClosed) {
  ScriptedAgent agent([](ScriptedConnection& connection, int index) {
    if (index > 0) return EndAtOnce(connection, index);
    const auto request = connection.Read();
    if (!request) return;
    connection.Message(request->call(), Synced("a"));
    connection.Message(request->call(), ChangeText(v1::TREE_CHANGE_KIND_GRANTED, 1, 1, "a"));
    connection.Read();
  });
  Beginner beginner;
  Client client = Open(agent.path());
  beginner.client = client.get();
  ASSERT_EQ(coppice_watch_trees(client.get(), 7, Beginner::Take, &beginner), COPPICE_OK);
  {
    std::unique_lock<std::mutex> lock(beginner.mu);
    beginner.changed.wait(lock, [&] { return beginner.is_called; });
  }
  client.reset();
  EXPECT_EQ(beginner.last, COPPICE_FAILED_PRECONDITION);
}

TEST(RetryPauseTest, GrowsToItsBoundAndVaries) {
  using std::chrono::milliseconds;
  RetryPause pause(milliseconds(100), milliseconds(1000), 1),
      other(milliseconds(100), milliseconds(1000), 2);
  bool differs = false;
  int64_t whole = 100;
  for (int i = 0; i < 12; ++i) {
    const auto next = pause.Next();
    EXPECT_GE(next.count(), whole / 2);
    EXPECT_LE(next.count(), whole);
    differs |= next != other.Next();
    whole = std::min<int64_t>(whole * 2, 1000);
  }
  EXPECT_TRUE(differs);
  pause.Reset();
  EXPECT_LE(pause.Next().count(), 100);
}

}  // namespace
}  // namespace coppice::watch_test
