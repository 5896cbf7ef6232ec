// coppice.h against an agent that answers late, wrongly, or not at all, and that is started anew.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <memory>
#include <thread>
#include <vector>

#include "client/library/coppice.h"
#include "coppice/v1/jobs.pb.h"
#include "coppice/v1/mapping.pb.h"
#include "coppice/v1/trees.pb.h"
#include "tests/unit/client/library/scripted_agent.h"

namespace coppice::calls_test {
namespace {

struct CloseClient {
  void operator()(coppice_client* client) const { coppice_close(client); }
};
using Client = std::unique_ptr<coppice_client, CloseClient>;

Client Open(const std::string& path, uint32_t timeout_ms = 30'000) {
  coppice_client* client = nullptr;
  EXPECT_EQ(coppice_open(path.c_str(), timeout_ms, &client), COPPICE_OK);
  return Client(client);
}

std::string TreeText(uint64_t id) {
  v1::Tree tree;
  tree.set_id(std::to_string(id));
  tree.set_type(v1::TREE_TYPE_I);
  tree.set_rank_count(2);
  tree.mutable_nodes()->add_parents(-1);
  tree.mutable_nodes()->add_parents(0);
  return tree.SerializeAsString();
}

uint64_t IdAskedFor(const v1::LocalRequest& request) {
  v1::GetTreeRequest get;
  EXPECT_TRUE(get.ParseFromString(request.message()));
  return std::stoull(get.id());
}

// Answers GetTree with the tree of that id, and anything else with OK.
void AnswerTrees(ScriptedConnection& connection, int) {
  while (const auto request = connection.Read()) {
    if (request->method() == "/coppice.v1.Trees/GetTree") {
      connection.Answer(request->call(), TreeText(IdAskedFor(*request)));
    } else {
      connection.Answer(request->call(), "");
    }
  }
}

coppice_status GetTree(coppice_client* client, uint64_t id) {
  coppice_tree* tree = nullptr;
  const coppice_status status = coppice_tree_get(client, id, &tree);
  EXPECT_TRUE(status != COPPICE_OK || coppice_tree_id(tree) == id);
  coppice_tree_free(tree);
  return status;
}

TEST(CallsTest, ThreadsGetTheirOwnAnswersWhateverTheOrder) {
  constexpr size_t kThreads = 8, kRounds = 50;
  // Holds a round's calls until all are there, and answers the last of them first.
  ScriptedAgent agent([](ScriptedConnection& connection, int) {
    std::vector<v1::LocalRequest> held;
    while (const auto request = connection.Read()) {
      held.push_back(*request);
      for (; held.size() == kThreads; held.clear()) {
        for (auto call = held.rbegin(); call != held.rend(); ++call) {
          connection.Answer(call->call(), TreeText(IdAskedFor(*call)));
        }
      }
    }
  });
  const Client client = Open(agent.path());
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  std::barrier round_begins(kThreads);
  for (size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (size_t round = 0; round < kRounds; ++round) {
        round_begins.arrive_and_wait();
        if (GetTree(client.get(), thread * 1000 + round + 1) != COPPICE_OK) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(agent.connections(), 1);
}

TEST(CallsTest, ALateAnswerIsNobodys) {
  std::mutex mu;
  std::condition_variable changed;
  bool may_answer = false;
  ScriptedAgent agent([&](ScriptedConnection& connection, int) {
    const auto first = connection.Read();
    if (!first) return;
    std::unique_lock<std::mutex> lock(mu);
    changed.wait(lock, [&] { return may_answer; });
    lock.unlock();
    connection.Answer(first->call(), TreeText(1));
    AnswerTrees(connection, 0);
  });
  const Client client = Open(agent.path(), 50);
  EXPECT_EQ(GetTree(client.get(), 1), COPPICE_DEADLINE_EXCEEDED);
  EXPECT_NE(std::string(coppice_last_error()).find(agent.path()), std::string::npos);
  {
    const std::lock_guard<std::mutex> lock(mu);
    may_answer = true;
  }
  changed.notify_all();
  coppice_status status = COPPICE_DEADLINE_EXCEEDED;
  while (status == COPPICE_DEADLINE_EXCEEDED) status = GetTree(client.get(), 2);
  EXPECT_EQ(status, COPPICE_OK) << coppice_last_error();
  EXPECT_STREQ(coppice_last_error(), "");
  EXPECT_EQ(agent.connections(), 1);
}

TEST(CallsTest, GarbageBreaksTheConnectionAndTheNextOneIsGood) {
  for (const std::string& garbage : {std::string("\xff\xff\xff\xff", 4),    // a length
                                     std::string("\x02\0\0\0\x0a\x7f", 6),  // a message cut short
                                     std::string("\x01\0\0\0\x07", 5)}) {   // no field
    ScriptedAgent agent([&](ScriptedConnection& connection, int index) {
      if (index > 1) return AnswerTrees(connection, index);
      if (connection.Read()) connection.SendBytes(garbage);
      connection.Read();  // until it is dropped
    });
    const Client client = Open(agent.path());
    EXPECT_EQ(GetTree(client.get(), 1), COPPICE_UNAVAILABLE);
    EXPECT_EQ(agent.connections(), 2);  // it was asked once more
    EXPECT_EQ(GetTree(client.get(), 2), COPPICE_OK) << coppice_last_error();
  }
}

TEST(CallsTest, ARestartOfTheAgentIsNotNoticed) {
  ScriptedAgent agent(AnswerTrees);
  const Client client = Open(agent.path());
  for (uint64_t id = 1; id < 5; ++id) {
    EXPECT_EQ(GetTree(client.get(), id), COPPICE_OK) << coppice_last_error();
    agent.Stop();
    EXPECT_EQ(GetTree(client.get(), id), COPPICE_UNAVAILABLE);
    EXPECT_NE(std::string(coppice_last_error()).find("coppice-agent"), std::string::npos);
    agent.Start();
  }
  EXPECT_EQ(GetTree(client.get(), 9), COPPICE_OK) << coppice_last_error();
}

// What is cut off by a restart is sent once more if it may be carried out twice.
TEST(CallsTest, WhatIsCutOffIsRepeatedIfThatIsSafe) {
  std::mutex mu;
  std::vector<std::string> asked;
  ScriptedAgent agent([&](ScriptedConnection& connection, int index) {
    while (const auto request = connection.Read()) {
      {
        const std::lock_guard<std::mutex> lock(mu);
        asked.push_back(request->method() + request->message());
      }
      if (index == 0 || request->method() == "/coppice.v1.Trees/ReleaseTree") return;  // cut off
      if (request->method() == "/coppice.v1.Jobs/RegisterJob") {
        v1::Job job;
        job.set_id("5");
        connection.Answer(request->call(), job.SerializeAsString());
      } else {
        connection.Answer(request->call(), "");
      }
    }
  });
  const Client client = Open(agent.path());
  const char* const endpoints[] = {"n0"};
  coppice_job_request request = COPPICE_INIT(request);
  request.endpoints = endpoints;
  request.endpoint_count = 1;
  uint64_t job = 0;
  EXPECT_EQ(coppice_job_register(client.get(), &request, &job), COPPICE_OK) << coppice_last_error();
  EXPECT_EQ(job, 5u);
  EXPECT_EQ(coppice_tree_release(client.get(), 3), COPPICE_UNAVAILABLE);
  const std::lock_guard<std::mutex> lock(mu);
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[0], asked[1]);  // with one request id
  EXPECT_NE(asked[0].find("libcoppice:"), std::string::npos);
}

TEST(CallsTest, AnAgentThatDoesNotReadIsNotWaitedForLonger) {
  std::mutex mu;
  std::condition_variable changed;
  bool is_over = false;
  ScriptedAgent agent([&](ScriptedConnection&, int) {
    std::unique_lock<std::mutex> lock(mu);
    changed.wait(lock, [&] { return is_over; });
  });
  const Client client = Open(agent.path(), 100);
  const std::vector<uint32_t> ranks(2'000'000, 70'000);
  coppice_tree_request request = COPPICE_INIT(request);
  request.job = 1;
  request.ranks = ranks.data();
  request.rank_count = static_cast<uint32_t>(ranks.size());
  coppice_tree* tree = nullptr;
  EXPECT_EQ(coppice_tree_create(client.get(), &request, &tree), COPPICE_DEADLINE_EXCEEDED);
  {
    const std::lock_guard<std::mutex> lock(mu);
    is_over = true;
  }
  changed.notify_all();
}

TEST(CallsTest, WhatIsNoTreeIsNotHandedOut) {
  ScriptedAgent agent([](ScriptedConnection& connection, int) {
    while (const auto request = connection.Read()) {
      v1::Tree ring;
      ring.set_id("1");
      ring.set_rank_count(2);
      ring.mutable_nodes()->add_parents(1);
      ring.mutable_nodes()->add_parents(0);
      connection.Answer(request->call(), ring.SerializeAsString());
    }
  });
  const Client client = Open(agent.path());
  EXPECT_EQ(GetTree(client.get(), 1), COPPICE_INTERNAL);
  uint32_t pair[] = {0, 1};
  double bytes[] = {1, 1};
  coppice_map_request map = COPPICE_INIT(map);
  map.job = 1;
  map.rank_count = 2;
  map.pair_count = 2;
  map.from = map.to = pair;
  map.bytes = bytes;
  coppice_order* order = nullptr;
  EXPECT_EQ(coppice_map(client.get(), &map, &order), COPPICE_INTERNAL);
}

TEST(CallsTest, AHeldJobThatCannotBeHeldIsEnded) {
  std::mutex mu;
  std::vector<std::string> asked;
  ScriptedAgent agent([&](ScriptedConnection& connection, int) {
    while (const auto request = connection.Read()) {
      const std::lock_guard<std::mutex> lock(mu);
      asked.push_back(request->method());
      v1::Job job;
      job.set_id("5");
      if (request->method() == "/coppice.v1.Local/HoldJob") {
        connection.End(request->call(), 8, "held: too many");
      } else {
        connection.Answer(request->call(), job.SerializeAsString());
      }
    }
  });
  const Client client = Open(agent.path());
  const char* const endpoints[] = {"n0"};
  coppice_job_request request = COPPICE_INIT(request);
  request.endpoints = endpoints;
  request.endpoint_count = 1;
  request.hold = 1;
  uint64_t job = 0;
  EXPECT_EQ(coppice_job_register(client.get(), &request, &job), COPPICE_RESOURCE_EXHAUSTED);
  EXPECT_STREQ(coppice_last_error(), "held: too many");
  const std::lock_guard<std::mutex> lock(mu);
  EXPECT_EQ(asked,
            (std::vector<std::string>{"/coppice.v1.Jobs/RegisterJob", "/coppice.v1.Local/HoldJob",
                                      "/coppice.v1.Jobs/EndJob"}));
}

// A job that was given a name may be that of other processes, which are asked for first.
TEST(CallsTest, AHeldJobOfOthersIsNotEnded) {
  std::mutex mu;
  std::vector<v1::LocalRequest> asked;
  ScriptedAgent agent([&](ScriptedConnection& connection, int) {
    while (const auto request = connection.Read()) {
      const std::lock_guard<std::mutex> lock(mu);
      asked.push_back(*request);
      v1::Job job;
      job.set_id("5");
      if (request->method() == "/coppice.v1.Local/HoldJob") {
        connection.End(request->call(), 8, "held: too many");
      } else {
        connection.Answer(request->call(), job.SerializeAsString());
      }
    }
  });
  const Client client = Open(agent.path(), 20'000);
  const char* const endpoints[] = {"n0"};
  coppice_job_request request = COPPICE_INIT(request);
  request.request_id = "ours";
  request.endpoints = endpoints;
  request.endpoint_count = 1;
  request.hold = 1;
  uint64_t job = 77;
  EXPECT_EQ(coppice_job_register(client.get(), &request, &job), COPPICE_RESOURCE_EXHAUSTED);
  EXPECT_EQ(job, 77u);
  EXPECT_NE(std::string(coppice_last_error()).find("job 5"), std::string::npos);
  // Its own: there is time left for ending it, all within one deadline.
  request.request_id = nullptr;
  EXPECT_EQ(coppice_job_register(client.get(), &request, &job), COPPICE_RESOURCE_EXHAUSTED);
  EXPECT_EQ(job, 77u);
  const std::lock_guard<std::mutex> lock(mu);
  ASSERT_EQ(asked.size(), 5u);
  EXPECT_EQ(asked[1].method(), "/coppice.v1.Local/HoldJob");
  EXPECT_EQ(asked[2].method(), "/coppice.v1.Jobs/RegisterJob");
  EXPECT_LE(asked[3].timeout_ms(), 15'000u);
  EXPECT_EQ(asked[4].method(), "/coppice.v1.Jobs/EndJob");
}

TEST(CallsTest, AChildOfForkIsTold) {
  ScriptedAgent agent(AnswerTrees);
  Client client = Open(agent.path());
  EXPECT_EQ(GetTree(client.get(), 1), COPPICE_OK);
  const pid_t child = fork();
  if (child == 0) {
    coppice_tree* tree = nullptr;
    const coppice_status status = coppice_tree_get(client.get(), 2, &tree);
    const bool is_said = std::string(coppice_last_error()).find("fork") != std::string::npos;
    coppice_close(client.release());
    _exit(status == COPPICE_FAILED_PRECONDITION && is_said ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(GetTree(client.get(), 3), COPPICE_OK) << coppice_last_error();
  EXPECT_EQ(agent.connections(), 1);
}

TEST(CallsTest, WrongArgumentsAreNamed) {
  ScriptedAgent agent(AnswerTrees);
  const Client client = Open(agent.path());
  const auto expect = [](coppice_status status, coppice_status wanted, const char* word) {
    EXPECT_EQ(status, wanted);
    EXPECT_NE(std::string(coppice_last_error()).find(word), std::string::npos)
        << coppice_last_error();
  };
  expect(coppice_open(nullptr, 0, nullptr), COPPICE_INVALID_ARGUMENT, "client");
  expect(coppice_job_end(nullptr, 1), COPPICE_INVALID_ARGUMENT, "coppice_open");
  expect(coppice_tree_release_measured(client.get(), 1, nullptr, nullptr, 0),
         COPPICE_INVALID_ARGUMENT, "application");
  expect(coppice_tree_release_measured(client.get(), 1, "waves", nullptr, 1),
         COPPICE_INVALID_ARGUMENT, "times");
  expect(coppice_job_end(Open("").get(), 1), COPPICE_UNAVAILABLE, "agent");
  expect(coppice_job_end(Open(std::string(200, 'x')).get(), 1), COPPICE_INVALID_ARGUMENT, "107");
  uint64_t job = 0;
  expect(coppice_job_register(client.get(), nullptr, &job), COPPICE_INVALID_ARGUMENT,
         "coppice_job_request");
  coppice_job_request request{};
  expect(coppice_job_register(client.get(), &request, &job), COPPICE_INVALID_ARGUMENT,
         "COPPICE_INIT");
  request = COPPICE_INIT(request);
  expect(coppice_job_register(client.get(), &request, &job), COPPICE_INVALID_ARGUMENT, "endpoints");
  const char* const endpoints[] = {"n0", nullptr};
  request.endpoints = endpoints;
  request.endpoint_count = 2;
  expect(coppice_job_register(client.get(), &request, &job), COPPICE_INVALID_ARGUMENT, "[1]");
  coppice_tree_request tree_request = COPPICE_INIT(tree_request);
  coppice_tree* tree = nullptr;
  expect(coppice_tree_create(client.get(), &tree_request, nullptr), COPPICE_INVALID_ARGUMENT,
         "tree");
  tree_request.rank_count = 3;
  expect(coppice_tree_create(client.get(), &tree_request, &tree), COPPICE_INVALID_ARGUMENT,
         "ranks");
  tree_request.rank_count = 0;
  tree_request.type = static_cast<coppice_tree_type>(3);
  expect(coppice_tree_create(client.get(), &tree_request, &tree), COPPICE_INVALID_ARGUMENT, "type");
  expect(coppice_watch_trees(client.get(), 1, nullptr, nullptr), COPPICE_INVALID_ARGUMENT,
         "function");
  coppice_map_request map = COPPICE_INIT(map);
  coppice_order* order = nullptr;
  expect(coppice_map(client.get(), &map, &order), COPPICE_INVALID_ARGUMENT, "rank_count");
  coppice_pattern pattern = COPPICE_INIT(pattern);
  expect(coppice_pattern_put(client.get(), &pattern), COPPICE_INVALID_ARGUMENT, "name");
  EXPECT_EQ(agent.connections(), 0);
}

// A structure that ends in padding has no room for a field that an older program would zero.
template <class Structure, class... Fields>
constexpr bool IsFilled(Fields Structure::*...) {
  return sizeof(Structure) == (sizeof(Fields) + ...);
}

TEST(CallsTest, StructuresHaveNoPadding) {
  using Job = coppice_job_request;
  EXPECT_TRUE(IsFilled<Job>(&Job::size, &Job::request_id, &Job::display_name, &Job::endpoints,
                            &Job::endpoint_count, &Job::lease_ms, &Job::hold, &Job::partition));
  using Tree = coppice_tree_request;
  EXPECT_TRUE(IsFilled<Tree>(&Tree::size, &Tree::job, &Tree::request_id, &Tree::ranks,
                             &Tree::rank_count, &Tree::operation, &Tree::bytes, &Tree::type,
                             &Tree::width, &Tree::advise, &Tree::carried, &Tree::max_trees,
                             &Tree::reserved, &Tree::application));
  using Map = coppice_map_request;
  EXPECT_TRUE(IsFilled<Map>(&Map::size, &Map::job, &Map::hosts, &Map::host_count,
                            &Map::ranks_per_host, &Map::budget_ms, &Map::rank_count,
                            &Map::pair_count, &Map::from, &Map::to, &Map::bytes, &Map::messages,
                            &Map::pattern_name, &Map::algorithm, &Map::seed));
  using Pattern = coppice_pattern;
  EXPECT_TRUE(IsFilled<Pattern>(&Pattern::size, &Pattern::name, &Pattern::rank_count,
                                &Pattern::reserved, &Pattern::pair_count, &Pattern::from,
                                &Pattern::to, &Pattern::bytes, &Pattern::messages));
}

// Programs that were compiled with another release of coppice.h.
TEST(CallsTest, StructuresOfOtherReleasesAreUnderstood) {
  std::mutex mu;
  std::string asked;
  ScriptedAgent agent([&](ScriptedConnection& connection, int) {
    while (const auto request = connection.Read()) {
      const std::lock_guard<std::mutex> lock(mu);
      asked = request->message();
      connection.Answer(request->call(), TreeText(1));
    }
  });
  const Client client = Open(agent.path());
  coppice_tree* tree = nullptr;
  // An earlier one: without width and advise, which hold what is not meant.
  coppice_tree_request early = COPPICE_INIT(early);
  early.job = 1;
  early.width = 77;
  early.size = offsetof(coppice_tree_request, width);
  ASSERT_EQ(coppice_tree_create(client.get(), &early, &tree), COPPICE_OK);
  coppice_tree_free(tree);
  v1::CreateTreeRequest request;
  {
    const std::lock_guard<std::mutex> lock(mu);
    ASSERT_TRUE(request.ParseFromString(asked));
  }
  EXPECT_EQ(request.width(), 0u);
  struct Late {
    coppice_tree_request known;
    uint64_t unknown;
  } late{};
  late.known.size = sizeof late;
  late.known.job = 1;
  ASSERT_EQ(coppice_tree_create(client.get(), &late.known, &tree), COPPICE_OK);
  coppice_tree_free(tree);
  late.unknown = 1;
  EXPECT_EQ(coppice_tree_create(client.get(), &late.known, &tree), COPPICE_UNIMPLEMENTED);
  // One whose field is where this release has nothing.
  late.known.reserved = 1;
  late.unknown = 0;
  EXPECT_EQ(coppice_tree_create(client.get(), &late.known, &tree), COPPICE_UNIMPLEMENTED);
}

TEST(CallsTest, NamesAndNumbers) {
  EXPECT_EQ(coppice_abi_version(), uint32_t{COPPICE_ABI_VERSION});
  EXPECT_STRNE(coppice_version(), "");
  EXPECT_STREQ(coppice_status_name(COPPICE_OK), "OK");
  EXPECT_STREQ(coppice_status_name(COPPICE_OUT_OF_RANGE), "OUT_OF_RANGE");
  EXPECT_STREQ(coppice_status_name(COPPICE_UNAVAILABLE), "UNAVAILABLE");
  EXPECT_STREQ(coppice_status_name(static_cast<coppice_status>(15)), "UNKNOWN");
  coppice_close(nullptr);
  coppice_tree_free(nullptr);
  coppice_order_free(nullptr);
}

}  // namespace
}  // namespace coppice::calls_test
