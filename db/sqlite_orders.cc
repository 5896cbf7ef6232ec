#include "db/sqlite_orders.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/json_lists.h"
#include "db/refusals.h"

namespace coppice {

absl::Status OrderWriter::Prepare() {
  ASSIGN_OR_RETURN(find_active_job_,
                   connection_.Prepare("SELECT 1 FROM job WHERE id = ? AND state = 'active'"));
  // From the index alone: the rows are long.
  ASSIGN_OR_RETURN(count_others_, connection_.Prepare(R"sql(
      SELECT ifnull(sum(position_count), 0) FROM job_order WHERE job_id <> ?)sql"));
  ASSIGN_OR_RETURN(put_, connection_.Prepare(R"sql(
      INSERT INTO job_order (job_id, position_count, note, created_ns, positions)
      VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (job_id) DO UPDATE SET position_count = excluded.position_count,
          note = excluded.note, created_ns = excluded.created_ns,
          positions = excluded.positions)sql"));
  return absl::OkStatus();
}

absl::Status OrderWriter::Put(const PutOrder& put) {
  const OrderRecord& order = put.order;
  ASSIGN_OR_RETURN(const int64_t active, find_active_job_.Bind(order.job.value()).Number());
  if (active == 0) return OrderOfNoActiveJob(order.job);
  ASSIGN_OR_RETURN(const int64_t others, count_others_.Bind(order.job.value()).Number());
  const auto count = static_cast<int64_t>(order.positions.size());
  if (count > put.max_positions - others) return NoRoomForOrder(put, others);
  std::string positions;
  AppendNumbers(std::vector<int64_t>(order.positions.begin(), order.positions.end()), positions);
  put_.Bind(order.job.value()).Bind(count).Bind(order.note).Bind(order.created);
  return put_.Bind(positions).Run();
}

absl::Status OrderReader::Prepare() {
  ASSIGN_OR_RETURN(find_, connection_.Prepare(R"sql(
      SELECT job_id, position_count, note, created_ns, positions FROM job_order
      WHERE job_id = ?)sql"));
  return absl::OkStatus();
}

absl::StatusOr<OrderRecord> OrderReader::RecordAt(const Statement& row) const {
  OrderRecord record;
  record.job = JobId(row.Integer(0));
  record.note = std::string(row.Text(2));
  record.created = row.TimeAt(3);
  absl::StatusOr<std::vector<uint64_t>> positions = ParseUnsigned(row.Text(4));
  absl::Status damage = positions.status();
  if (damage.ok() && static_cast<int64_t>(positions->size()) != row.Integer(1)) {
    damage = absl::DataLossError(
        absl::StrCat(positions->size(), " positions where there were ", row.Integer(1)));
  }
  if (damage.ok()) {
    record.positions.reserve(positions->size());
    for (const uint64_t position : *positions) {
      if (position > UINT32_MAX) {
        damage = absl::DataLossError(absl::StrCat("position ", position, " is beyond all ranks"));
        break;
      }
      record.positions.push_back(static_cast<uint32_t>(position));
    }
  }
  if (damage.ok()) return record;
  return Annotate(
      damage, absl::StrCat("database ", connection_.path(), ": order of job ", record.job.value()));
}

absl::StatusOr<OrderRecord> OrderReader::Get(JobId job) {
  ASSIGN_OR_RETURN(const bool row, find_.Bind(job.value()).Step());
  if (!row) return NoSuchOrder(job);
  absl::StatusOr<OrderRecord> record = RecordAt(find_);
  find_.Reset();
  return record;
}

}  // namespace coppice
