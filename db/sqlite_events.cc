#include "db/sqlite_events.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/record_check.h"
#include "db/refusals.h"

namespace coppice {
namespace {

// Parameters 3 to 7 of every list; what leads it is parameter 8. Terms with a + use no index.
constexpr char kFilter[] = R"sql(
    +time_ns >= ?3 AND +time_ns < ?4 AND substr(kind, 1, length(?5)) = ?5
    AND instr('info   warningerror', severity) >= instr('info   warningerror', ?6)
    ORDER BY id LIMIT ?7)sql";

std::string List(absl::string_view source, absl::string_view leading) {
  return absl::StrCat("SELECT id, time_ns, severity, kind, object, message, actor FROM event ",
                      source, " WHERE id > ?1 AND id <= ?2 AND ", leading, kFilter);
}

// Beyond what a stored time can be: before every event, after every event.
int64_t Nanoseconds(absl::Time time) {
  if (time == absl::InfinitePast()) return std::numeric_limits<int64_t>::min();
  if (time == absl::InfiniteFuture()) return std::numeric_limits<int64_t>::max();
  return absl::ToUnixNanos(time);
}

}  // namespace

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
  ASSIGN_OR_RETURN(const int64_t newest, newest_.Number());
  ASSIGN_OR_RETURN(const int64_t oldest, oldest_.Number());
  if (oldest == 0 || oldest > newest - keep) return absl::OkStatus();
  return delete_.Bind(std::min(newest - keep, oldest + most - 1)).Run();
}

absl::Status EventWriter::Prune(const PruneEvents& prune) {
  ASSIGN_OR_RETURN(const int64_t newest, newest_.Number());
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

absl::Status EventReader::Prepare() {
  ASSIGN_OR_RETURN(by_id_, connection_.Prepare(List("NOT INDEXED", "")));
  ASSIGN_OR_RETURN(of_object_,
                   connection_.Prepare(List("INDEXED BY event_by_object", "object = ?8 AND ")));
  ASSIGN_OR_RETURN(of_concern_, connection_.Prepare(List("INDEXED BY event_of_concern",
                                                         "severity <> 'info' AND ")));
  ASSIGN_OR_RETURN(of_kind_,
                   connection_.Prepare(List("INDEXED BY event_by_kind", "kind = ?8 AND ")));
  ASSIGN_OR_RETURN(next_kind_, connection_.Prepare("SELECT min(kind) FROM event WHERE kind > ?"));
  ASSIGN_OR_RETURN(ids_in_time_, connection_.Prepare(R"sql(
      SELECT min(id), max(id) FROM event INDEXED BY event_by_time
      WHERE time_ns >= ? AND time_ns < ?)sql"));
  ASSIGN_OR_RETURN(newer_in_time_, connection_.Prepare(R"sql(
      SELECT max(id) FROM event NOT INDEXED
      WHERE id > ? AND +time_ns >= ? AND +time_ns < ?)sql"));
  ASSIGN_OR_RETURN(kept_, connection_.Prepare(R"sql(
      SELECT min(id), (SELECT seq FROM sqlite_sequence WHERE name = 'event') FROM event)sql"));
  return absl::OkStatus();
}

absl::StatusOr<EventReader::Ids> EventReader::FindIds(const EventFilter& filter) {
  Ids ids{filter.after_id, std::numeric_limits<int64_t>::max()};
  const bool is_first = filter.after_id <= 0;
  const bool has_end = filter.end != absl::InfiniteFuture();
  // Later pages begin where the list goes on, and a list without a start at the first event.
  if (!has_end && (!is_first || filter.start == absl::InfinitePast())) return ids;
  if (!is_first && held_.start == filter.start && held_.end == filter.end) {
    RETURN_IF_ERROR(BringUpToDate());
    ids.last = held_.last;
    return ids;
  }
  ASSIGN_OR_RETURN(const EventRange kept, Kept());
  ids_in_time_.Bind(Nanoseconds(filter.start)).Bind(Nanoseconds(filter.end));
  RETURN_IF_ERROR(ids_in_time_.Step().status());  // an aggregate: always one row
  const bool has_any = !ids_in_time_.IsNull(0);
  if (has_any) ids.after = std::max(ids.after, ids_in_time_.Integer(0) - 1);
  ids.last = has_any ? ids_in_time_.Integer(1) : 0;
  ids_in_time_.Reset();
  held_ = {filter.start, filter.end, ids.last, kept.newest};
  return ids;
}

absl::Status EventReader::BringUpToDate() {
  ASSIGN_OR_RETURN(const EventRange kept, Kept());
  newer_in_time_.Bind(held_.newest).Bind(Nanoseconds(held_.start)).Bind(Nanoseconds(held_.end));
  RETURN_IF_ERROR(newer_in_time_.Step().status());  // an aggregate: always one row
  if (!newer_in_time_.IsNull(0)) held_.last = std::max(held_.last, newer_in_time_.Integer(0));
  newer_in_time_.Reset();
  held_.newest = kept.newest;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> EventReader::KindsWith(const std::string& prefix) {
  std::vector<std::string> kinds;
  // The prefix itself may be a kind, and min(kind) > asks for what comes after it.
  std::string last = prefix;
  kinds.push_back(prefix);
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, next_kind_.Bind(last).Step());
    const bool is_more = row && !next_kind_.IsNull(0);
    std::string next = is_more ? std::string(next_kind_.Text(0)) : "";
    next_kind_.Reset();
    if (!is_more || !absl::StartsWith(next, prefix)) return kinds;
    kinds.push_back(next);
    last = std::move(next);
  }
}

absl::Status EventReader::Append(Statement& statement, const EventFilter& filter, const Ids& ids,
                                 const std::string* leading, std::vector<EventRecord>& found) {
  const std::string severity = filter.min_severity.empty() ? "info" : filter.min_severity;
  statement.Bind(ids.after).Bind(ids.last).Bind(Nanoseconds(filter.start));
  statement.Bind(Nanoseconds(filter.end)).Bind(filter.kind_prefix).Bind(severity);
  statement.Bind(int64_t{filter.limit});
  if (leading != nullptr) statement.Bind(*leading);
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return absl::OkStatus();
    found.push_back({statement.Integer(0), statement.TimeAt(1), std::string(statement.Text(2)),
                     std::string(statement.Text(3)), std::string(statement.Text(4)),
                     std::string(statement.Text(5)), std::string(statement.Text(6))});
  }
}

absl::StatusOr<std::vector<EventRecord>> EventReader::Find(const EventFilter& filter) {
  RETURN_IF_ERROR(CheckFilter(filter));
  ASSIGN_OR_RETURN(const Ids ids, FindIds(filter));
  std::vector<EventRecord> found;
  const bool is_of_concern = !filter.min_severity.empty() && filter.min_severity != "info";
  if (!filter.object.empty()) {
    RETURN_IF_ERROR(Append(of_object_, filter, ids, &filter.object, found));
  } else if (is_of_concern) {
    RETURN_IF_ERROR(Append(of_concern_, filter, ids, nullptr, found));
  } else if (filter.kind_prefix.empty()) {
    RETURN_IF_ERROR(Append(by_id_, filter, ids, nullptr, found));
  } else {
    ASSIGN_OR_RETURN(const std::vector<std::string> kinds, KindsWith(filter.kind_prefix));
    for (const std::string& kind : kinds) {
      RETURN_IF_ERROR(Append(of_kind_, filter, ids, &kind, found));
    }
    std::sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.id < b.id; });
    if (found.size() > filter.limit) found.resize(filter.limit);
  }
  return found;
}

absl::StatusOr<EventRange> EventReader::Kept() {
  RETURN_IF_ERROR(kept_.Step().status());  // an aggregate: always one row
  EventRange range;
  range.newest = kept_.IsNull(1) ? 0 : kept_.Integer(1);
  range.oldest = kept_.IsNull(0) ? range.newest + 1 : kept_.Integer(0);
  kept_.Reset();
  return range;
}

}  // namespace coppice
