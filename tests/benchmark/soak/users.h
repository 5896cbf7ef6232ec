// The users of the soak: jobs that come and go, each with trees of all kinds, alone and in batches,
// and watchers of trees and events, which check that nothing is told twice or out of order.
#ifndef COPPICE_TESTS_BENCHMARK_SOAK_USERS_H_
#define COPPICE_TESTS_BENCHMARK_SOAK_USERS_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/fabric/fabric.h"
#include "daemon/manager/change_feed.h"
#include "daemon/manager/event_log.h"
#include "daemon/manager/manager.h"

namespace coppice {

// One thread calls it. Waits for the answers of each call.
class Launcher {
 public:
  Launcher(Manager* manager, const Fabric* fabric, uint64_t seed)
      : manager_(manager), fabric_(fabric), random_(seed) {}
  ~Launcher() { Await(0); }

  // Ends the oldest job when there are enough, then begins one.
  void TurnOverJob();
  void KeepJobsAlive();
  // Asks for `trees` trees, a ninth of them in batches, and releases the oldest beyond kLive.
  void CreateAndRelease(uint64_t trees);
  // Ends all jobs.
  void EndAll();

  uint64_t created() const { return Read(created_); }
  uint64_t refused() const { return Read(refused_); }
  // The first that is not a refusal of what the fabric or the switches do not have just then.
  absl::Status failure() const;

 private:
  static constexpr size_t kJobs = 8, kInFlight = 64, kLive = 200;
  static constexpr uint32_t kRanks = 64, kBatch = 8;

  uint64_t Read(const uint64_t& number) const {
    std::lock_guard lock(mu_);
    return number;
  }
  void CreateOne();
  void CreateBatch();
  void ReleaseOldest();
  std::vector<uint32_t> RandomRanks();
  // A call begins; waits while too many are under way.
  void Begin() {
    Await(kInFlight - 1);
    std::lock_guard lock(mu_);
    ++in_flight_;
  }
  void Await(size_t most);
  // With mu_ held.
  void Land(const absl::Status& status);

  Manager* const manager_;
  const Fabric* const fabric_;
  std::mt19937_64 random_;
  std::deque<JobId> jobs_;
  uint64_t requests_ = 0;

  mutable std::mutex mu_;
  std::condition_variable landed_;
  // Guarded by mu_.
  size_t in_flight_ = 0;
  std::deque<TreeId> live_;
  uint64_t created_ = 0, refused_ = 0;
  absl::Status failure_;
};

// Follows all trees and all events; looks whenever it is told to.
class Watcher {
 public:
  explicit Watcher(Manager* manager) : manager_(manager) {}

  // Takes all that came since the last call; begins anew where too much did.
  absl::Status Look();

  size_t trees() const { return trees_.size(); }
  int64_t last_event() const { return last_event_; }
  uint64_t changes() const { return changes_; }
  uint64_t restarts() const { return restarts_; }

 private:
  absl::Status LookAtTrees();
  absl::Status LookAtEvents();
  absl::Status Take(const TreeChange& change);

  Manager* const manager_;
  std::unique_ptr<TreeWatch> tree_watch_;
  std::unique_ptr<EventWatch> event_watch_;
  std::set<TreeId> trees_;
  int64_t last_event_ = 0;
  uint64_t changes_ = 0, restarts_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_BENCHMARK_SOAK_USERS_H_
