#include "db/sqlite_events.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/fair_level.h"
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

EventWriter::EventWriter(SqliteConnection& connection)
    : insert_(connection, R"sql(
      INSERT INTO event (id, time_ns, severity, kind, object, message, actor)
      VALUES (nullif(?, 0), ?, ?, ?, ?, ?, ?))sql"),
      list_oldest_(connection, "SELECT id, time_ns FROM event ORDER BY id LIMIT ?"),
      oldest_(connection, "SELECT id FROM event ORDER BY id LIMIT 1"),
      newest_(connection, "SELECT seq FROM sqlite_sequence WHERE name = 'event'"),
      delete_(connection, "DELETE FROM event WHERE id <= ?") {}

absl::Status EventWriter::Apply(const AppendEvents& append) {
  for (const EventRecord& event : append.events) {
    absl::Status status = insert_.Run(event.id, event.time, event.severity, event.kind,
                                      event.object, event.message, event.actor);
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
  return delete_.Run(std::min(newest - keep, oldest + most - 1));
}

absl::Status EventWriter::Apply(const PruneEvents& prune) {
  ASSIGN_OR_RETURN(const int64_t newest, newest_.Number());
  int64_t last = 0;
  list_oldest_.Bind(prune.rows);
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, list_oldest_.Step());
    if (!row) break;
    const int64_t id = list_oldest_.Integer(0);
    if (id > newest - prune.keep && list_oldest_.TimeAt(1) >= prune.before) break;
    last = id;
  }
  list_oldest_.Reset();
  return last > 0 ? delete_.Run(last) : absl::OkStatus();
}

EventReader::EventReader(SqliteConnection& connection)
    : by_id_(connection, List("NOT INDEXED", "")),
      of_object_(connection, List("INDEXED BY event_by_object", "object = ?8 AND ")),
      of_concern_(connection, List("INDEXED BY event_of_concern", "severity <> 'info' AND ")),
      of_kind_(connection, List("INDEXED BY event_by_kind", "kind = ?8 AND ")),
      next_kind_(connection, "SELECT min(kind) FROM event WHERE kind > ?"),
      ids_in_time_(connection, R"sql(
      SELECT min(id), max(id) FROM event INDEXED BY event_by_time
      WHERE time_ns >= ? AND time_ns < ?)sql"),
      newer_in_time_(connection, R"sql(
      SELECT max(id) FROM event NOT INDEXED
      WHERE id > ? AND +time_ns >= ? AND +time_ns < ?)sql"),
      kept_(connection, R"sql(
      SELECT min(id), (SELECT seq FROM sqlite_sequence WHERE name = 'event') FROM event)sql") {}

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
  RETURN_IF_ERROR(  // an aggregate: always one row
      ids_in_time_.Step(Nanoseconds(filter.start), Nanoseconds(filter.end)).status());
  const bool has_any = !ids_in_time_.IsNull(0);
  if (has_any) ids.after = std::max(ids.after, ids_in_time_.Integer(0) - 1);
  ids.last = has_any ? ids_in_time_.Integer(1) : 0;
  ids_in_time_.Reset();
  held_ = {filter.start, filter.end, ids.last, kept.newest};
  return ids;
}

absl::Status EventReader::BringUpToDate() {
  ASSIGN_OR_RETURN(const EventRange kept, Kept());
  ASSIGN_OR_RETURN(const int64_t last, newer_in_time_.Number(held_.newest, Nanoseconds(held_.start),
                                                             Nanoseconds(held_.end)));
  held_.last = std::max(held_.last, last);
  held_.newest = kept.newest;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> EventReader::KindsWith(const std::string& prefix) {
  std::vector<std::string> kinds;
  // The prefix itself may be a kind, and min(kind) > asks for what comes after it.
  std::string last = prefix;
  kinds.push_back(prefix);
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, next_kind_.Step(last));
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
  statement.Bind(ids.after, ids.last, Nanoseconds(filter.start), Nanoseconds(filter.end),
                 filter.kind_prefix, severity, filter.limit);
  if (leading != nullptr) statement.Bind(*leading);
  return statement.ForEach([&](const Statement& row) {
    EventRecord& event = found.emplace_back();
    row.Read(event.id, event.time, event.severity, event.kind, event.object, event.message,
             event.actor);
  });
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

namespace {

constexpr char kEventColumns[] =
    "SELECT id, time_ns, share, caller, user, origin, method, object, outcome, count, first_ns";

// From a row of these columns.
void ReadDeed(const Statement& row, DeedRecord& deed) {
  int64_t share = 0;
  row.Read(deed.id, deed.time, share, deed.caller, deed.user, deed.origin, deed.method, deed.object,
           deed.outcome, deed.count, deed.first);
  deed.share = static_cast<DeedShare>(share);
}

}  // namespace

void KeptDeeds::Enter(const DeedRecord& deed, const DeedLimits& limits, Changes& changes) {
  last_ = std::max(last_, deed.id);
  Share& share = shares_[static_cast<size_t>(deed.share) % shares_.size()];
  Rows& rows = share.kinds[absl::StrCat(deed.user, "\n", deed.method, "\n", deed.outcome)];
  rows.push_back({deed.id, deed.time, deed.first, deed.count, absl::HashOf(deed.caller)});
  ++share.count;
  const int64_t singly = limits.singly;
  if (SizeOf(rows) > singly + singly / 32) Fold(share, rows, singly, changes);
  if (share.count > limits.per_share) MakeRoom(share, limits, deed.time, changes);
}

void KeptDeeds::Fold(Share& share, Rows& rows, int64_t left, Changes& changes) {
  const auto last = rows.begin() + (SizeOf(rows) - left);
  uint64_t count = last->count;
  for (auto row = rows.begin(); row != last; ++row) {
    count += row->count;
    last->first = std::min(last->first, row->first);
    changes.gone.push_back(row->id);
  }
  last->count =
      static_cast<uint32_t>(std::min<uint64_t>(count, std::numeric_limits<uint32_t>::max()));
  share.count -= last - rows.begin();
  rows.erase(rows.begin(), last);
  changes.folded.push_back({rows.front().id, rows.front().count, rows.front().first});
}

void KeptDeeds::MakeRoom(Share& share, const DeedLimits& limits, absl::Time now, Changes& changes) {
  DropOld(share, now - limits.age, changes);
  if (share.count <= limits.per_share) return;
  const int64_t most = limits.per_share - std::min(kMaxFree, limits.per_share / 64);
  std::vector<int64_t> sizes;
  for (const auto& [kind, rows] : share.kinds) sizes.push_back(SizeOf(rows));
  const int64_t level = FairLevel(sizes, most, 1);
  for (auto& [kind, rows] : share.kinds) {
    if (SizeOf(rows) > level) Fold(share, rows, level, changes);
  }
  if (share.count > limits.per_share) DropSingle(share, most, changes);
}

void KeptDeeds::DropOld(Share& share, absl::Time before, Changes& changes) {
  for (auto kind = share.kinds.begin(); kind != share.kinds.end();) {
    Rows& rows = kind->second;
    for (; !rows.empty() && rows.front().time < before; rows.pop_front(), --share.count) {
      changes.gone.push_back(rows.front().id);
    }
    const auto here = kind++;
    if (rows.empty()) share.kinds.erase(here);
  }
}

void KeptDeeds::DropSingle(Share& share, int64_t most, Changes& changes) {
  std::map<size_t, std::vector<std::pair<int64_t, std::string>>> callers;  // ids and kinds
  for (const auto& [kind, rows] : share.kinds) {
    callers[rows.front().caller].emplace_back(rows.front().id, kind);
  }
  std::vector<int64_t> sizes;
  for (const auto& [caller, rows] : callers) sizes.push_back(static_cast<int64_t>(rows.size()));
  const int64_t level = FairLevel(sizes, most);
  for (auto& [caller, rows] : callers) {
    std::sort(rows.begin(), rows.end());
    const int64_t surplus = static_cast<int64_t>(rows.size()) - level;
    for (int64_t i = 0; i < surplus; ++i, --share.count) {
      changes.gone.push_back(rows[static_cast<size_t>(i)].first);
      share.kinds.erase(rows[static_cast<size_t>(i)].second);
    }
  }
}

DeedWriter::DeedWriter(SqliteConnection& connection)
    : insert_(connection, "INSERT INTO deed VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      fold_(connection, "UPDATE deed SET count = ?, first_ns = ? WHERE id = ?"),
      delete_(connection, "DELETE FROM deed WHERE id = ?"),
      list_(connection, absl::StrCat(kEventColumns, " FROM deed ORDER BY id")) {}

absl::Status DeedWriter::ReadKept() {
  KeptDeeds kept;
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  const DeedLimits all{kAll / 2, kAll, absl::InfiniteDuration()};
  KeptDeeds::Changes none;
  RETURN_IF_ERROR(list_.ForEach([&](const Statement& row) {
    DeedRecord deed;
    ReadDeed(row, deed);
    kept.Enter(deed, all, none);
  }));
  kept_ = std::move(kept);
  return absl::OkStatus();
}

absl::Status DeedWriter::Apply(const AppendDeeds& append) {
  for (const DeedRecord& deed : append.deeds) RETURN_IF_ERROR(Append(deed, append.limits));
  return absl::OkStatus();
}

absl::Status DeedWriter::Append(const DeedRecord& deed, const DeedLimits& limits) {
  if (!kept_.has_value()) RETURN_IF_ERROR(ReadKept());
  changed_ = true;
  DeedRecord entered = deed;
  entered.id = kept_->last() + 1;
  entered.first = std::min(deed.first, deed.time);
  changes_.folded.clear();
  changes_.gone.clear();
  kept_->Enter(entered, limits, changes_);
  RETURN_IF_ERROR(insert_.Run(entered.id, deed.time, static_cast<int64_t>(deed.share), deed.caller,
                              deed.user, deed.origin, deed.method, deed.object, deed.outcome,
                              deed.count, entered.first));
  for (const KeptDeeds::Changes::Folded& folded : changes_.folded) {
    RETURN_IF_ERROR(fold_.Run(folded.count, folded.first, folded.id));
  }
  for (const int64_t old : changes_.gone) RETURN_IF_ERROR(delete_.Run(old));
  return absl::OkStatus();
}

DeedReader::DeedReader(SqliteConnection& connection)
    : find_(connection, absl::StrCat(kEventColumns, R"sql( FROM deed
      WHERE id > ?1 AND (?2 = '' OR user = ?2 OR caller = ?2)
        AND substr(method, 1, length(?3)) = ?3 AND time_ns >= ?4 AND share >= ?5
      ORDER BY id LIMIT ?6)sql")) {}

absl::StatusOr<std::vector<DeedRecord>> DeedReader::Find(const DeedFilter& filter) {
  const DeedShare first = filter.only_denials ? DeedShare::kDenial : DeedShare::kUser;
  find_.Bind(filter.after_id, filter.user, filter.method_prefix, Nanoseconds(filter.start),
             static_cast<int64_t>(first), filter.limit);
  return find_.List<DeedRecord>(ReadDeed);
}

}  // namespace coppice
