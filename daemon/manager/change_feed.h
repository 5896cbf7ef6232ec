// What became of granted trees, in the order in which it became durable: a bounded ring of changes
// that any number of watchers read, each at its own pace.
//
//      oldest kept                            next
//        |---|---|---|---|---|---|---|---|---|         Push writes here, and wakes who sleeps
//              ^ watcher A       ^ B             C sleeps: it has seen all that is for it
//
// Watchers pull; one that falls out of the ring is told so. One that has seen everything does not
// fall behind by what is for others. Changes share the records they speak of. Thread-safe; a lock
// of its own, taken inside the manager's by those who push.
#ifndef COPPICE_DAEMON_MANAGER_CHANGE_FEED_H_
#define COPPICE_DAEMON_MANAGER_CHANGE_FEED_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/manager/requests.h"

namespace coppice {

class TreeWatch;

// Trees of one moment, which all share who began to watch then.
using PresentTrees = std::shared_ptr<const std::vector<TreeView>>;

class ChangeFeed final {
 public:
  // Its tokens are good for this feed only.
  ChangeFeed();

  // Keeps as many changes, at least 1, and fewer if their records are large. Before the first.
  void KeepAtMost(size_t changes) { most_changes_ = std::max<size_t>(changes, 1); }

  // `kind` is none of kPresent and kSynced. O(watchers that sleep for this).
  void Push(TreeChangeKind kind, TreeView tree, std::string reason = "");
  // To be called now and then: of what has been there for kAge or longer, records that nobody else
  // has any more are kept up to about kMaxAgedBytes, oldest dropped first. `now`:
  // Clock::Monotonic(). O(changes) where the ring has more than that.
  void Age(absl::Duration now);
  static constexpr absl::Duration kAge = absl::Seconds(15);  // dropped by twice that
  static constexpr size_t kMaxAgedBytes = size_t{2} << 20;
  // Nothing will come for this job any more: its own watchers end here.
  void PushEndOf(JobId job);

  // The number that the next change will have.
  uint64_t next() const;
  // What is granted now, as `list` tells, which is asked once for all watchers who come before the
  // next change. Under the lock of those who push.
  PresentTrees Present(absl::FunctionRef<std::vector<TreeView>()> list);
  // What resumes before change `number`.
  std::string TokenOf(uint64_t number) const;
  // INVALID_ARGUMENT: not a token. OUT_OF_RANGE: of another run.
  absl::StatusOr<uint64_t> ParseToken(absl::string_view token) const;

 private:
  struct Entry {
    TreeChangeKind kind = TreeChangeKind::kSynced;
    bool is_end = false;  // of `job`; no tree
    JobId job;
    TreeView tree;
    std::string reason;
    size_t bytes = 0;
  };
  void PushEntry(Entry entry);
  void TrimAged(std::vector<Entry>& dropped);
  // Out of the ring, into `dropped`, whose records go after the lock.
  void DropOldest(std::vector<Entry>& dropped);
  void CountJob(const JobRecord* job, bool enters);
  void WakeSleepers(JobId job, uint64_t number);
  friend class TreeWatch;
  void Unlist(TreeWatch* watcher);

  size_t most_changes_ = 65'536;
  // Guarded by the lock of those who push.
  std::weak_ptr<const std::vector<TreeView>> present_;
  uint64_t present_before_ = 0;  // that change
  const uint64_t run_;           // tells this daemon's numbers from those of another run
  mutable std::mutex mu_;
  // Guarded by mu_.
  std::deque<Entry> entries_;
  uint64_t first_ = 1;  // number of the oldest that is kept
  size_t bytes_ = 0;    // of the entries, and of each of their jobs once
  uint64_t mark_ = 0;   // that the next change had
  absl::Duration marked_ = -absl::InfiniteDuration();       // when
  absl::flat_hash_map<const JobRecord*, size_t> job_uses_;  // entries of each
  std::vector<TreeWatch*> sleepers_;                        // of all jobs
  absl::flat_hash_map<JobId, std::vector<TreeWatch*>> job_sleepers_;
};

// One watcher's place. Methods by one thread at a time; must not outlive the feed.
class TreeWatch final {
 public:
  // Tells `present` and then, unless `resumes`, that it is all; then the changes from number `from`
  // on, of one job unless `job` is 0. `until` ends it before that number: of a job that is over.
  // `wake` is called under locks, on the thread that pushes: it must be quick and call nothing of
  // the manager.
  TreeWatch(ChangeFeed* feed, JobId job, uint64_t from, uint64_t until, bool resumes,
            PresentTrees present, std::function<void()> wake)
      : feed_(feed),
        job_(job),
        until_(until),
        wake_(std::move(wake)),
        present_(std::move(present)),
        is_synced_(resumes),
        at_(from) {}
  // From here on `wake` is not called.
  ~TreeWatch();
  TreeWatch(const TreeWatch&) = delete;
  TreeWatch& operator=(const TreeWatch&) = delete;

  // The next changes, at most `limit`. None: there are none yet, and `wake` will be called once
  // when there are; or it is over. OUT_OF_RANGE: it was too slow, and changes are lost to it.
  absl::StatusOr<std::vector<TreeChange>> Next(size_t limit);
  // The job is over and all has been told.
  bool over() const { return over_; }

 private:
  friend class ChangeFeed;
  void TakePresent(size_t limit, std::vector<TreeChange>& changes);
  // False: there is more to look at.
  bool TakeChanges(size_t limit, std::vector<TreeChange>& changes);
  absl::Status FellBehind() const;

  ChangeFeed* const feed_;
  const JobId job_;
  const uint64_t until_;
  const std::function<void()> wake_;
  PresentTrees present_;  // null: none
  size_t told_ = 0;       // of present_
  bool is_synced_;
  bool over_ = false;
  // Guarded by feed_->mu_.
  uint64_t at_;  // number of the next change to look at
  bool sleeps_ = false;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_CHANGE_FEED_H_
