// The watches of one client. Those that are over give their thread and descriptor back when another
// begins, so that a program may watch one job after the other for as long as it likes.
//
// Their functions may begin further watches at any time, also while all of them are ended: nothing
// here holds its lock while it waits for one of them.
#ifndef COPPICE_CLIENT_LIBRARY_TREE_WATCHES_H_
#define COPPICE_CLIENT_LIBRARY_TREE_WATCHES_H_

#include <memory>
#include <mutex>
#include <vector>

#include "client/library/outcome.h"
#include "client/library/tree_watch.h"

namespace coppice {

// Thread-safe, but for the destructor.
class TreeWatches final {
 public:
  TreeWatches() = default;
  ~TreeWatches() { End(); }

  // Forgets those that are over. FAILED_PRECONDITION: End() was called.
  Outcome Reap();
  // Keeps it, or ends it: FAILED_PRECONDITION as above.
  Outcome Add(std::unique_ptr<TreeWatch> watch);
  // Ends all, waits for functions that are under way, and takes no more.
  void End();

 private:
  using List = std::vector<std::unique_ptr<TreeWatch>>;

  Outcome CheckOpen() const;

  std::mutex mu_;
  bool is_ended_ = false;  // guarded by mu_, as the list
  List watches_;
};

}  // namespace coppice

#endif  // COPPICE_CLIENT_LIBRARY_TREE_WATCHES_H_
