#include "agents/mpi/tree/tree_news.h"

#include <cstddef>

namespace coppice::mpi {
namespace {

// News of trees that nobody follows; more than come between a grant and its being followed.
constexpr size_t kMaxEntries = 8192;

void Raise(std::atomic<uint32_t>* revision, uint32_t to) {
  uint32_t present = revision->load();
  while (present < to && !revision->compare_exchange_weak(present, to)) {
  }
}

}  // namespace

TreeFollower& TreeFollower::Get() {
  static TreeFollower* const follower = new TreeFollower;
  return *follower;
}

std::shared_ptr<const TreeNews> TreeFollower::Follow(coppice_client* client, uint64_t job,
                                                     uint64_t tree, uint32_t revision,
                                                     coppice_status* asked) {
  NewsPointer news;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    news = Entry(tree);
  }
  Raise(&news->revision, revision);
  if (!IsWatching(client, job, asked)) {
    Note(COPPICE_CHANGE_LOST, 0, 0);
  } else if (!news->is_known) {
    LookOnce(client, tree, news.get(), asked);
  }
  return news;
}

bool TreeFollower::IsWatching(coppice_client* client, uint64_t job, coppice_status* asked) {
  const std::lock_guard<std::mutex> opening(opening_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_watching_) return true;
    is_watching_ = true;  // before news can say that it is over
  }
  if (client == nullptr) return false;
  const auto heard = [](void* follower, coppice_change change, uint64_t tree, uint32_t revision,
                        const char*) {
    static_cast<TreeFollower*>(follower)->Note(change, tree, revision);
  };
  *asked = coppice_watch_trees(client, job, heard, this);
  return *asked == COPPICE_OK;
}

void TreeFollower::Unfollow(uint64_t tree) {
  const std::lock_guard<std::mutex> lock(mutex_);
  news_.erase(tree);
}

void TreeFollower::Note(coppice_change change, uint64_t tree, uint32_t revision) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (change == COPPICE_CHANGE_LOST || change == COPPICE_CHANGE_OVER) {
    is_watching_ = false;
    for (auto& [id, news] : news_) news->is_gone = true;
    return;
  }
  TreeNews* const news = Entry(tree).get();
  if (change == COPPICE_CHANGE_REVOKED || change == COPPICE_CHANGE_RELEASED) {
    news->is_gone = true;
  } else {
    Raise(&news->revision, revision);
  }
  news->is_known = true;
}

TreeFollower::NewsPointer& TreeFollower::Entry(uint64_t tree) {
  if (news_.size() >= kMaxEntries) Prune();
  NewsPointer& news = news_[tree];
  if (news == nullptr) news = std::make_shared<TreeNews>();
  return news;
}

// The oldest half of those that nobody follows.
void TreeFollower::Prune() {
  size_t looks = kMaxEntries / 2;
  for (auto entry = news_.begin(); entry != news_.end() && looks > 0; --looks) {
    entry = entry->second.use_count() == 1 ? news_.erase(entry) : std::next(entry);
  }
}

void TreeFollower::LookOnce(coppice_client* client, uint64_t tree, TreeNews* news,
                            coppice_status* asked) {
  // Nobody may be asked: then the watch alone tells.
  if (client == nullptr) return;
  coppice_tree* present = nullptr;
  *asked = coppice_tree_get(client, tree, &present);
  if (*asked == COPPICE_OK) Raise(&news->revision, coppice_tree_revision(present));
  if (*asked == COPPICE_NOT_FOUND) news->is_gone = true;
  coppice_tree_free(present);
}

}  // namespace coppice::mpi
