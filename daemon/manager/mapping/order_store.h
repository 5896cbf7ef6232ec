// Orders of jobs' ranks that somebody found elsewhere, such as coppice-search on the job's nodes:
// kept in the store until the job ends, for the launcher. One for each job, the latest wins.
//
// Remembers nothing itself: what a killed daemon had answered, the next one has. Knows neither gRPC
// nor SQLite.
#ifndef COPPICE_DAEMON_MANAGER_MAPPING_ORDER_STORE_H_
#define COPPICE_DAEMON_MANAGER_MAPPING_ORDER_STORE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/clock.h"
#include "daemon/manager/manager.h"
#include "daemon/mapping/output/mapping_answer.h"
#include "db/store.h"

namespace coppice {

// Thread-safe. Put and Get may block for the store: not for gRPC's threads. Status codes:
// proto/coppice/v1/mapping.proto.
class OrderStore final {
 public:
  static constexpr size_t kMaxNoteBytes = 1024;
  // Of all orders: 64 jobs of 2^20 ranks, some 512 MiB of text in the database.
  static constexpr int64_t kMaxPositions = int64_t{1} << 26;

  // All outlive it.
  OrderStore(Store* store, Manager* manager, const Clock* clock)
      : store_(store), manager_(manager), clock_(clock) {}

  // Whether the caller may change the job that the order is for.
  using MayChange = std::function<absl::Status(const JobRecord&)>;
  // Durable when it returns.
  absl::StatusOr<OrderRecord> Put(JobId job, std::vector<uint32_t> positions, std::string note,
                                  const MayChange& may_change);
  // DATA_LOSS also: what the store gives back is no order of this job's ranks.
  absl::StatusOr<OrderRecord> Get(JobId job);
  // The order as a launcher reads it, by the hosts that the job's ports are on now.
  absl::StatusOr<std::string> LaunchTextOf(const OrderRecord& order, LaunchFormat format);

 private:
  absl::StatusOr<JobView> ActiveJob(JobId job);

  Store* const store_;
  Manager* const manager_;
  const Clock* const clock_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_MAPPING_ORDER_STORE_H_
