// Orders of jobs' ranks in memory, as sqlite_orders.h keeps them in the database.
#ifndef COPPICE_DB_MEMORY_ORDERS_H_
#define COPPICE_DB_MEMORY_ORDERS_H_

#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/order_records.h"
#include "db/refusals.h"

namespace coppice {

// Contracts as of the mutations and of Store; of jobs that are active.
class MemoryOrders {
 public:
  absl::Status Put(PutOrder& put) {
    int64_t others = 0;
    for (const auto& [job, order] : orders_) {
      if (job != put.order.job) others += static_cast<int64_t>(order.positions.size());
    }
    if (static_cast<int64_t>(put.order.positions.size()) > put.max_positions - others) {
      return NoRoomForOrder(put, others);
    }
    const JobId job = put.order.job;
    orders_.insert_or_assign(job, std::move(put.order));
    return absl::OkStatus();
  }
  void Drop(JobId job) { orders_.erase(job); }

  absl::StatusOr<OrderRecord> Get(JobId job) const {
    const auto found = orders_.find(job);
    if (found == orders_.end()) return NoSuchOrder(job);
    return found->second;
  }

 private:
  std::map<JobId, OrderRecord> orders_;
};

}  // namespace coppice

#endif  // COPPICE_DB_MEMORY_ORDERS_H_
