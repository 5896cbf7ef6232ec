// Memory that is out at any point of a call: the call says so, and the next one is as good as new.
// Replaces the allocation of the whole program, whose failures are asked for thread by thread.
#include <dirent.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>

#include "client/library/coppice.h"
#include "coppice/v1/trees.pb.h"
#include "tests/unit/client/library/scripted_agent.h"

namespace {

thread_local int allowed = -1;  // allocations until one fails; -1: none does

void* Allocate(std::size_t size) {
  if (allowed == 0) return nullptr;
  if (allowed > 0) --allowed;
  return std::malloc(size == 0 ? 1 : size);
}

}  // namespace

// Not inline: a compiler that sees one through the other takes them for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* const memory = Allocate(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace coppice::memory_test {
namespace {

struct CloseClient {
  void operator()(coppice_client* client) const { coppice_close(client); }
};
using Client = std::unique_ptr<coppice_client, CloseClient>;

Client Open(const std::string& path, uint32_t timeout_ms = 10'000) {
  coppice_client* client = nullptr;
  EXPECT_EQ(coppice_open(path.c_str(), timeout_ms, &client), COPPICE_OK);
  return Client(client);
}

// Arrives in several parts. Whoever loses one takes what follows for a length of 16 MB.
std::string TreeText() {
  v1::Tree tree;
  tree.set_id("1");
  tree.set_rank_count(1000);
  tree.set_reason(std::string(200'000, '\x01'));
  for (int rank = 0; rank < 1000; ++rank) tree.mutable_nodes()->add_parents(rank - 1);
  return tree.SerializeAsString();
}

std::string ChangeText(v1::TreeChangeKind kind) {
  v1::TreeChange change;
  change.set_kind(kind);
  change.mutable_tree()->set_id("1");
  change.set_reason("a text that is too long to be kept within the string itself");
  return change.SerializeAsString();
}

// Trees for all who ask; a watch begins with one.
void Answer(ScriptedConnection& connection, int) {
  while (const auto request = connection.Read()) {
    if (request->method() == "/coppice.v1.Trees/GetTree") {
      connection.Answer(request->call(), TreeText());
    } else {
      connection.Message(request->call(), ChangeText(v1::TREE_CHANGE_KIND_PRESENT));
      connection.Message(request->call(), ChangeText(v1::TREE_CHANGE_KIND_SYNCED));
      connection.Message(request->call(), ChangeText(v1::TREE_CHANGE_KIND_REVISED));
    }
  }
}

coppice_status GetTree(coppice_client* client, int allocations = -1) {
  coppice_tree* tree = nullptr;
  allowed = allocations;
  const coppice_status status = coppice_tree_get(client, 1, &tree);
  allowed = -1;
  EXPECT_EQ(status == COPPICE_OK, tree != nullptr);
  coppice_tree_free(tree);
  return status;
}

// Descriptors of this process that are not the agent's side of a connection.
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

TEST(MemoryTest, ACallWithoutMemorySaysSoAndTheNextIsGood) {
  ScriptedAgent agent(Answer);
  const Client warm = Open(agent.path());
  int allocations = 0;
  for (coppice_status status = COPPICE_UNKNOWN; status != COPPICE_OK; ++allocations) {
    const Client fresh = Open(agent.path());
    status = GetTree(fresh.get(), allocations);
    ASSERT_TRUE(status == COPPICE_OK || status == COPPICE_RESOURCE_EXHAUSTED)
        << allocations << ": " << coppice_last_error();
    GetTree(warm.get(), allocations);
    ASSERT_EQ(GetTree(fresh.get()), COPPICE_OK) << allocations << ": " << coppice_last_error();
    ASSERT_EQ(GetTree(warm.get()), COPPICE_OK) << allocations << ": " << coppice_last_error();
  }
  EXPECT_GT(allocations, 10);  // of socket, frame, slot, answer ...
}

// Where the frames of functions were that have returned.
[[gnu::noinline]] void Scribble() {
  volatile char stack[16 << 10];
  for (volatile char& byte : stack) byte = 0x5a;
}

// A call that was given up without memory leaves nothing that a late answer is written to.
TEST(MemoryTest, ALateAnswerIsNobodysAfterACallWithoutMemory) {
  constexpr int kMaxAllocations = 20;
  for (int allocations = 0; allocations < kMaxAllocations; ++allocations) {
    std::promise<void> may_answer;
    ScriptedAgent agent([&](ScriptedConnection& connection, int index) {
      const auto first = index == 0 ? connection.Read() : std::nullopt;
      if (first) {
        may_answer.get_future().wait();
        connection.Answer(first->call(), TreeText());
      }
      Answer(connection, index);
    });
    const Client client = Open(agent.path(), 20);
    EXPECT_NE(GetTree(client.get(), allocations), COPPICE_OK);
    Scribble();
    may_answer.set_value();
    coppice_status status = COPPICE_DEADLINE_EXCEEDED;
    // Not on this stack, where a slot would be at the same place again.
    std::thread later([&] {
      while (status == COPPICE_DEADLINE_EXCEEDED) status = GetTree(client.get());
    });
    later.join();
    EXPECT_EQ(status, COPPICE_OK) << allocations;
  }
}

class Listener {
 public:
  // Lets the thread of the watch have no more memory once a tree is told.
  static void Take(void* context, coppice_change change, uint64_t, uint32_t, const char* reason) {
    auto* const listener = static_cast<Listener*>(context);
    allowed = change == COPPICE_CHANGE_PRESENT && listener->is_starved_ ? 0 : -1;
    const std::lock_guard<std::mutex> lock(listener->mu_);
    listener->last_ = change;
    listener->is_out_of_memory_ = std::string_view(reason) == "out of memory";
    listener->changed_.notify_all();
  }
  explicit Listener(bool is_starved) : is_starved_(is_starved) {}
  void AwaitLoss() {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock, [&] { return last_ == COPPICE_CHANGE_LOST; });
    EXPECT_TRUE(is_out_of_memory_);
  }
  coppice_change last() {
    const std::lock_guard<std::mutex> lock(mu_);
    return last_;
  }

 private:
  const bool is_starved_;
  std::mutex mu_;
  std::condition_variable changed_;
  coppice_change last_ = COPPICE_CHANGE_PRESENT;
  bool is_out_of_memory_ = false;
};

TEST(MemoryTest, AWatchThatCannotBeginLeavesNothing) {
  ScriptedAgent agent(Answer);
  const int before = OpenEvents();
  int allocations = 0;
  for (coppice_status status = COPPICE_UNKNOWN; status != COPPICE_OK; ++allocations) {
    Listener listener(false);
    const Client client = Open(agent.path());
    allowed = allocations;
    status = coppice_watch_trees(client.get(), 1, Listener::Take, &listener);
    allowed = -1;
    ASSERT_TRUE(status == COPPICE_OK || status == COPPICE_RESOURCE_EXHAUSTED)
        << allocations << ": " << coppice_last_error();
    if (status == COPPICE_OK) break;
    EXPECT_EQ(OpenEvents(), before);
  }
  EXPECT_GT(allocations, 3);
}

TEST(MemoryTest, AWatchWithoutMemoryIsNotSilent) {
  ScriptedAgent agent(Answer);
  // It stands, and loses its memory at the first change after that, or it never stood.
  Listener starved(true), well(false);
  const Client client = Open(agent.path());
  const coppice_status status = coppice_watch_trees(client.get(), 1, Listener::Take, &starved);
  if (status == COPPICE_OK) {
    starved.AwaitLoss();
  } else {
    EXPECT_EQ(status, COPPICE_RESOURCE_EXHAUSTED);
    EXPECT_EQ(starved.last(), COPPICE_CHANGE_PRESENT);
  }
  EXPECT_EQ(coppice_watch_trees(client.get(), 1, Listener::Take, &well), COPPICE_OK)
      << coppice_last_error();
}

}  // namespace
}  // namespace coppice::memory_test
