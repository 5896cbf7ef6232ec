// Orders of jobs' ranks that somebody found elsewhere, such as coppice-search on the job's nodes:
// kept until the job ends, for the launcher. One for each job, the latest wins.
//
// In memory: an order is worth keeping for as long as it takes to start the job, and is found again
// when the daemon starts anew. Knows neither gRPC nor SQLite.
#ifndef COPPICE_DAEMON_MANAGER_MAPPING_ORDER_SHELF_H_
#define COPPICE_DAEMON_MANAGER_MAPPING_ORDER_SHELF_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/manager/manager.h"
#include "daemon/mapping/output/launch_file.h"

namespace coppice {

struct JobOrder {
  JobId job;
  std::vector<uint32_t> positions;  // [rank] in the job's present order
  std::string note;                 // who found it and how
  absl::Time created;
};

// Thread-safe. Status codes: proto/coppice/v1/mapping.proto.
class OrderShelf final {
 public:
  static constexpr size_t kMaxNoteBytes = 1024;
  static constexpr size_t kMaxPositions = size_t{1} << 26;  // of all orders: 256 MiB

  // Both outlive it.
  OrderShelf(Manager* manager, const Clock* clock) : manager_(manager), clock_(clock) {}

  // Whether the caller may change the job that the order is for.
  using MayChange = std::function<absl::Status(const JobRecord&)>;
  absl::StatusOr<JobOrder> Put(JobId job, std::vector<uint32_t> positions, std::string note,
                               const MayChange& may_change) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<JobOrder> Get(JobId job) ABSL_LOCKS_EXCLUDED(mutex_);
  // The order as a launcher reads it, by the hosts that the job's ports are on now.
  absl::StatusOr<std::string> LaunchTextOf(const JobOrder& order, LaunchFormat format);

 private:
  absl::StatusOr<JobView> ActiveJob(JobId job);
  // Those of jobs that have ended go.
  void Prune() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Manager* const manager_;
  const Clock* const clock_;
  absl::Mutex mutex_;
  std::map<uint64_t, JobOrder> orders_ ABSL_GUARDED_BY(mutex_);
  size_t position_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_MAPPING_ORDER_SHELF_H_
