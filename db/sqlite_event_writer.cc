#include "db/sqlite_event_writer.h"

#include <algorithm>

#include "daemon/base/status_macros.h"
#include "db/refusals.h"

namespace coppice {

absl::Status EventWriter::Prepare() {
  ASSIGN_OR_RETURN(insert_, connection_.Prepare(R"sql(
      INSERT INTO event (id, time_ns, severity, kind, object, message, actor)
      VALUES (?, ?, ?, ?, ?, ?, ?))sql"));
  ASSIGN_OR_RETURN(list_oldest_,
                   connection_.Prepare("SELECT id, time_ns FROM event ORDER BY id LIMIT ?"));
  ASSIGN_OR_RETURN(oldest_, connection_.Prepare("SELECT id FROM event ORDER BY id LIMIT 1"));
  ASSIGN_OR_RETURN(newest_,
                   connection_.Prepare("SELECT seq FROM sqlite_sequence WHERE name = 'event'"));
  ASSIGN_OR_RETURN(delete_, connection_.Prepare("DELETE FROM event WHERE id <= ?"));
  return absl::OkStatus();
}

absl::Status EventWriter::Append(const AppendEvents& append) {
  for (const EventRecord& event : append.events) {
    event.id == 0 ? insert_.BindNull() : insert_.Bind(event.id);
    insert_.Bind(event.time).Bind(event.severity).Bind(event.kind).Bind(event.object);
    absl::Status status = insert_.Bind(event.message).Bind(event.actor).Run();
    if (absl::IsInternal(status) && event.id != 0) return EventIdTaken(event.id);
    RETURN_IF_ERROR(status);
  }
  if (append.events.empty() || append.keep == INT64_MAX) return absl::OkStatus();
  return DropBeyond(append.keep, 2 * static_cast<int64_t>(append.events.size()));
}

absl::Status EventWriter::DropBeyond(int64_t keep, int64_t most) {
  ASSIGN_OR_RETURN(const int64_t newest, Number(newest_));
  ASSIGN_OR_RETURN(const int64_t oldest, Number(oldest_));
  if (oldest == 0 || oldest > newest - keep) return absl::OkStatus();
  return delete_.Bind(std::min(newest - keep, oldest + most - 1)).Run();
}

absl::Status EventWriter::Prune(const PruneEvents& prune) {
  ASSIGN_OR_RETURN(const int64_t newest, Number(newest_));
  int64_t last = 0;
  list_oldest_.Bind(int64_t{prune.rows});
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, list_oldest_.Step());
    if (!row) break;
    const int64_t id = list_oldest_.Integer(0);
    if (id > newest - prune.keep && list_oldest_.TimeAt(1) >= prune.before) break;
    last = id;
  }
  list_oldest_.Reset();
  return last > 0 ? delete_.Bind(last).Run() : absl::OkStatus();
}

absl::StatusOr<int64_t> EventWriter::Number(Statement& statement) {
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  const int64_t number = row ? statement.Integer(0) : 0;
  statement.Reset();
  return number;
}

}  // namespace coppice
