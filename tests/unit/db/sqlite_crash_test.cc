// kill -9 at any instant: what was answered is there, what was released is gone, and the entries
// are those of the trees that are there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "tests/support/tier.h"
#include "tests/unit/db/store_records.h"

namespace coppice::sqlite_crash_test {
namespace {

constexpr int kThreads = 4;
constexpr uint64_t kSwitches = 6;

enum Step : int64_t { kGranted, kReleasing, kReleased, kRevised };  // kRevised: tree is a revision
struct Note {
  int64_t step, tree;
};

// Trees 1 and 2 hold the one entry of switches A and B, and change places with each revision.
constexpr uint64_t kPlaceA = kSwitches, kPlaceB = kSwitches + 1;

ChangeTrees ChangePlaces(uint32_t revision) {
  ChangeTrees change;
  for (int64_t id : {1, 2}) {
    TreeRecord tree = Tree(id, 1, {(revision + id) % 2 == 0 ? kPlaceA : kPlaceB}, 300);
    tree.revision = revision;
    change.revised.push_back(std::make_shared<const TreeRecord>(std::move(tree)));
  }
  return change;
}

// In the child: grants and releases for ever, with a note down the pipe after each answer.
[[noreturn]] void GrantForEver(const std::string& path, int pipe, int64_t first_id,
                               uint32_t revision, uint64_t seed) {
  auto store = SqliteStore::Open(path);
  if (!store.ok()) _exit(1);
  std::atomic<int64_t> next_id = first_id;
  const auto note = [pipe](Step step, int64_t tree) {
    const Note written{step, tree};  // shorter than PIPE_BUF: whole or not at all
    if (write(pipe, &written, sizeof(written)) != sizeof(written)) _exit(2);
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + static_cast<uint64_t>(t));
      for (;;) {
        const int64_t id = next_id++;
        const TreeRecord tree = Tree(id, 1, {random() % kSwitches}, 8 + random() % 200);
        if (!(*store)->Apply(GrantTree{tree}).ok()) _exit(3);
        note(kGranted, id);
        if (random() % 4 == 0) continue;
        note(kReleasing, id);
        if (!(*store)->Apply(ReleaseTree{TreeId(id), JobId(1)}).ok()) _exit(4);
        note(kReleased, id);
      }
    });
  }
  threads.emplace_back([&] {
    for (uint32_t next = revision + 1;; ++next) {
      if (!(*store)->Apply(ChangePlaces(next)).ok()) _exit(6);
      note(kRevised, next);
    }
  });
  for (std::thread& thread : threads) thread.join();
  _exit(5);
}

// Runs a child, kills it after `notes` notes, and adds all that it wrote to `last_step`.
void RunAndKill(const std::string& path, int64_t first_id, uint64_t seed, uint64_t notes,
                std::map<int64_t, int64_t>& last_step, uint32_t& revision) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close(ends[0]);
    GrantForEver(path, ends[1], first_id, revision, seed);
  }
  close(ends[1]);
  Note note;
  for (uint64_t count = 0; read(ends[0], &note, sizeof(note)) == sizeof(note); ++count) {
    if (note.step == kRevised) {
      revision = static_cast<uint32_t>(note.tree);
    } else {
      last_step[note.tree] = note.step;
    }
    if (count == notes) kill(child, SIGKILL);
  }
  close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "exit " << WEXITSTATUS(status);
}

TEST(SqliteCrashTest, AnsweredIsStoredAndEntriesAreExact) {
  StoreDirectory directory;
  const std::string path = directory.File("coppice.db");
  {
    auto store = SqliteStore::Open(path);
    ASSERT_TRUE(store.ok()) << store.status();
    PutCapabilities put = Capabilities(kSwitches, 1'000'000);
    for (uint64_t place : {kPlaceA, kPlaceB}) put.capabilities.push_back(Capability(place, 1));
    ASSERT_APPLIED((*store)->Apply(put));
    ASSERT_APPLIED((*store)->Apply(PutJob{Job(1)}));
    for (const auto& tree : ChangePlaces(1).revised) {
      ASSERT_APPLIED((*store)->Apply(GrantTree{tree}));
    }
  }
  std::mt19937_64 random(TestSeed());
  std::map<int64_t, int64_t> last_step;
  int64_t first_id = 3;
  uint32_t revision = 1;
  const int rounds = FullTier() ? 200 : 8;
  for (int round = 0; round < rounds; ++round) {
    RunAndKill(path, first_id, random(), random() % 400, last_step, revision);
    if (testing::Test::HasFatalFailure()) return;
    auto store = SqliteStore::Open(path);
    ASSERT_TRUE(store.ok()) << store.status();
    absl::StatusOr<StoredState> state = (*store)->Load();
    ASSERT_TRUE(state.ok()) << state.status();
    std::set<int64_t> stored;
    std::map<Guid, uint32_t> taken;
    for (const TreeRecord& tree : state->trees) {
      stored.insert(tree.id.value());
      for (const TreeSwitchRecord& serving : tree.switches) ++taken[serving.guid];
    }
    for (const auto& [tree, step] : last_step) {
      // A tree whose release was under way may be there or not.
      if (step == kReleasing) continue;
      ASSERT_EQ(stored.contains(tree), step == kGranted) << "round " << round << " tree " << tree;
    }
    for (const EntryUse& use : state->entries) {
      ASSERT_EQ(use.entries_taken, taken[use.capability.guid]) << "round " << round;
    }
    // The revision answered last or, if the kill came before the answer, the next: of both trees.
    const uint32_t stored_revision = state->trees.at(0).revision;
    ASSERT_TRUE(stored_revision == revision || stored_revision == revision + 1) << stored_revision;
    const ChangeTrees expected = ChangePlaces(stored_revision);
    ASSERT_TRUE(state->trees[0] == *expected.revised[0]) << "round " << round;
    ASSERT_TRUE(state->trees[1] == *expected.revised[1]) << "round " << round;
    revision = stored_revision;
    first_id = state->last_tree.value() + 1;
  }
}

}  // namespace
}  // namespace coppice::sqlite_crash_test
