// What is stored of the orders of jobs' ranks that somebody found for the launcher. Part of the
// interface in store.h, which includes this. Plain structs; what the positions mean, and whether
// they are the job's, is the manager's.
#ifndef COPPICE_DB_ORDER_RECORDS_H_
#define COPPICE_DB_ORDER_RECORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "db/record_ids.h"

namespace coppice {

// One for each job, at most, as long as it is active: EndJob drops it in the same step.
struct OrderRecord {
  JobId job;
  std::vector<uint32_t> positions;  // [rank] in the job's present order; not empty
  std::string note;                 // who found it and how
  absl::Time created;
  friend bool operator==(const OrderRecord&, const OrderRecord&) = default;
};

// Keeps the order in place of the job's one before. INVALID_ARGUMENT: a job id below 1, no
// positions, no time of creation. FAILED_PRECONDITION: the job is not active. RESOURCE_EXHAUSTED:
// together with the orders of other jobs it would have more than `max_positions`. Checked in this
// order; the one before stays after a refusal.
struct PutOrder {
  OrderRecord order;
  int64_t max_positions = INT64_MAX;
};

}  // namespace coppice

#endif  // COPPICE_DB_ORDER_RECORDS_H_
