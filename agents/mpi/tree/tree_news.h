// What becomes of the trees that this process is the root of: one watch for all of them, opened
// when the first one is followed. News come on a thread of libcoppice's, which never calls MPI;
// whoever runs collectives looks at them when it suits all ranks.
#ifndef COPPICE_AGENTS_MPI_TREE_TREE_NEWS_H_
#define COPPICE_AGENTS_MPI_TREE_TREE_NEWS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "client/library/coppice.h"

namespace coppice::mpi {

struct TreeNews {
  std::atomic<uint32_t> revision{0};  // the latest heard of
  std::atomic<bool> is_gone{false};   // revoked, released, or no longer watched
  std::atomic<bool> is_known{false};  // the watch has told of it, and will tell of what comes
};

class TreeFollower final {
 public:
  // The process's own, which is never destroyed: news may come until the client is closed.
  static TreeFollower& Get();

  // A tree that cannot be watched is gone. `client` may be null: so it is. *asked: what became of
  // the last question, if there was one. Thread-safe.
  std::shared_ptr<const TreeNews> Follow(coppice_client* client, uint64_t job, uint64_t tree,
                                         uint32_t revision, coppice_status* asked);
  void Unfollow(uint64_t tree);

 private:
  using NewsPointer = std::shared_ptr<TreeNews>;

  TreeFollower() = default;

  void Note(coppice_change change, uint64_t tree, uint32_t revision);
  NewsPointer& Entry(uint64_t tree);  // mutex_ is held
  void Prune();                       // mutex_ is held
  // True if there is a watch, opened now if need be.
  bool IsWatching(coppice_client* client, uint64_t job, coppice_status* asked);
  // Asks the daemon about a tree that the watch has not told of: it went before the watch began, or
  // word of it is on its way.
  void LookOnce(coppice_client* client, uint64_t tree, TreeNews* news, coppice_status* asked);

  std::mutex opening_;  // whoever holds it opens the watch; the others wait until it is open
  std::mutex mutex_;    // taken after opening_
  bool is_watching_ = false;
  // Also of trees nobody follows yet: news may overtake the answer that grants a tree.
  std::map<uint64_t, NewsPointer> news_;
};

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_TREE_NEWS_H_
