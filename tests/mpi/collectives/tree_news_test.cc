// What the root of a tree hears of it, whenever it goes: before the watch, while that opens, later.
// The libcoppice below is one whose daemon a test plays.
#include "agents/mpi/tree/tree_news.h"

#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <set>
#include <thread>

namespace {

struct Daemon {
  std::mutex mutex;
  std::set<uint64_t> gone;
  int questions = 0;
  coppice_watch_function tell = nullptr;
  void* context = nullptr;
  std::function<coppice_status()> open;  // while a watch opens
};

Daemon* played = nullptr;  // of the test that runs

}  // namespace

struct coppice_tree {
  uint32_t revision;
};

extern "C" {

coppice_status coppice_tree_get(coppice_client*, uint64_t id, coppice_tree** tree) {
  const std::lock_guard<std::mutex> lock(played->mutex);
  ++played->questions;
  if (played->gone.contains(id)) return COPPICE_NOT_FOUND;
  *tree = new coppice_tree{3};
  return COPPICE_OK;
}
void coppice_tree_free(coppice_tree* tree) { delete tree; }
uint32_t coppice_tree_revision(const coppice_tree* tree) { return tree->revision; }
coppice_status coppice_watch_trees(coppice_client*, uint64_t, coppice_watch_function function,
                                   void* context) {
  played->tell = function;
  played->context = context;
  return played->open ? played->open() : COPPICE_OK;
}

}  // extern "C"

namespace coppice::mpi {
namespace {

class TreeNewsTest : public ::testing::Test {
 protected:
  TreeNewsTest() { played = &daemon_; }
  // The follower is the process's: for the next test its watch is over.
  ~TreeNewsTest() override {
    if (daemon_.tell != nullptr) Tell(COPPICE_CHANGE_LOST, 0);
  }

  static std::shared_ptr<const TreeNews> Follow(uint64_t tree) {
    int client = 0;  // nobody looks into it
    coppice_status asked = COPPICE_OK;
    return TreeFollower::Get().Follow(reinterpret_cast<coppice_client*>(&client), 1, tree, 1,
                                      &asked);
  }
  void Tell(coppice_change change, uint64_t tree, uint32_t revision = 1) {
    daemon_.tell(daemon_.context, change, tree, revision, "");
  }
  void Take(uint64_t tree) {
    const std::lock_guard<std::mutex> lock(daemon_.mutex);
    daemon_.gone.insert(tree);
  }

  Daemon daemon_;
};

TEST_F(TreeNewsTest, GoneBeforeTheWatchAndFollowedAfterwards) {
  daemon_.open = [this] {
    Tell(COPPICE_CHANGE_PRESENT, 11);
    return COPPICE_OK;
  };
  Take(12);
  EXPECT_FALSE(Follow(11)->is_gone);
  EXPECT_TRUE(Follow(12)->is_gone);
}

TEST_F(TreeNewsTest, GoneWhileAnotherThreadOpensTheWatch) {
  std::thread other;
  std::shared_ptr<const TreeNews> news;
  daemon_.open = [&] {
    other = std::thread([&] { news = Follow(22); });
    Take(22);  // and the watch lists what is there now
    return COPPICE_OK;
  };
  Follow(21);
  other.join();
  EXPECT_TRUE(news->is_gone);
}

TEST_F(TreeNewsTest, NobodyIsAskedAboutWhatWasTold) {
  daemon_.open = [this] {
    Tell(COPPICE_CHANGE_PRESENT, 31);
    return COPPICE_OK;
  };
  const auto first = Follow(31);
  Tell(COPPICE_CHANGE_GRANTED, 32);
  const auto second = Follow(32);
  EXPECT_EQ(daemon_.questions, 0);
  Tell(COPPICE_CHANGE_REVISED, 31, 5);
  Tell(COPPICE_CHANGE_REVOKED, 32);
  EXPECT_EQ(first->revision, 5U);
  EXPECT_FALSE(first->is_gone);
  EXPECT_TRUE(second->is_gone);
}

TEST_F(TreeNewsTest, RevisedBeforeItWasTold) { EXPECT_EQ(Follow(41)->revision, 3U); }

TEST_F(TreeNewsTest, NoWatchIsNoTree) {
  daemon_.open = [] { return COPPICE_UNAVAILABLE; };
  EXPECT_TRUE(Follow(51)->is_gone);
  coppice_status asked = COPPICE_OK;
  EXPECT_TRUE(TreeFollower::Get().Follow(nullptr, 1, 52, 1, &asked)->is_gone);
  daemon_.open = nullptr;
  EXPECT_FALSE(Follow(53)->is_gone);
}

TEST_F(TreeNewsTest, AllAreGoneWithTheWatch) {
  const auto news = Follow(61);
  Tell(COPPICE_CHANGE_OVER, 0);
  EXPECT_TRUE(news->is_gone);
}

}  // namespace
}  // namespace coppice::mpi
