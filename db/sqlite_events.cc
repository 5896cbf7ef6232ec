// What happened: events, and the account of deeds.
//
// Events are added at one end of a table and dropped from the other. The database numbers them, so
// that no id is given twice, even after the last event was dropped; ids rise in the order of
// commits.
#include <array>
#include <deque>
#include <limits>
#include <map>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/fair_level.h"
#include "daemon/base/status_macros.h"
#include "db/sqlite_tables.h"

namespace coppice {
namespace {

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
constexpr char kNewestEvent[] = "SELECT seq FROM sqlite_sequence WHERE name = 'event'";

// Beyond what a stored time can be: before every event, after every event.
int64_t Nanoseconds(absl::Time time) {
  if (time == absl::InfinitePast()) return std::numeric_limits<int64_t>::min();
  if (time == absl::InfiniteFuture()) return kMaxInt64;
  return absl::ToUnixNanos(time);
}

constexpr char kDeedColumns[] =
    "SELECT id, time_ns, share, caller, user, origin, method, object, outcome, count, first_ns";

// From a row of these columns.
void ReadDeed(const Statement& row, DeedRecord& deed) {
  int64_t share = 0;
  row.Read(deed.id, deed.time, share, deed.caller, deed.user, deed.origin, deed.method, deed.object,
           deed.outcome, deed.count, deed.first);
  deed.share = static_cast<DeedShare>(share);
}

}  // namespace

absl::Status Apply(SqliteConnection& db, const AppendEvents& append) {
  for (const EventRecord& event : append.events) {
    absl::Status status = db.Sql(R"sql(
      INSERT INTO event (id, time_ns, severity, kind, object, message, actor)
      VALUES (nullif(?, 0), ?, ?, ?, ?, ?, ?))sql")
                              .Run(event.id, event.time, event.severity, event.kind, event.object,
                                   event.message, event.actor);
    if (absl::IsInternal(status) && event.id != 0) {
      return absl::AlreadyExistsError(
          absl::StrCat("event ", event.id, " exists: leave the id 0 to have one assigned"));
    }
    RETURN_IF_ERROR(status);
  }
  if (append.events.empty() || append.keep == kMaxInt64) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t newest, db.Sql(kNewestEvent).Number());
  ASSIGN_OR_RETURN(const int64_t oldest,
                   db.Sql("SELECT id FROM event ORDER BY id LIMIT 1").Number());
  if (oldest == 0 || oldest > newest - append.keep) return absl::OkStatus();
  const int64_t most = 2 * static_cast<int64_t>(append.events.size());
  return db.Sql("DELETE FROM event WHERE id <= ?")
      .Run(std::min(newest - append.keep, oldest + most - 1));
}

absl::Status Apply(SqliteConnection& db, const PruneEvents& prune) {
  ASSIGN_OR_RETURN(const int64_t newest, db.Sql(kNewestEvent).Number());
  int64_t last = 0;
  RETURN_IF_ERROR(db.Sql("SELECT id, time_ns FROM event ORDER BY id LIMIT ?")
                      .Bind(prune.rows)
                      .ForEach([&](const Statement& row) {
                        const bool goes =
                            row.Integer(0) <= newest - prune.keep || row.TimeAt(1) < prune.before;
                        if (goes) last = row.Integer(0);
                        return goes;
                      }));
  return last > 0 ? db.Sql("DELETE FROM event WHERE id <= ?").Run(last) : absl::OkStatus();
}

absl::StatusOr<EventReader::Ids> EventReader::FindIds(const EventFilter& filter) {
  Ids ids{filter.after_id, kMaxInt64};
  const bool is_first = filter.after_id <= 0;
  const bool has_end = filter.end != absl::InfiniteFuture();
  // Later pages begin where the list goes on, and a list without a start at the first event.
  if (!has_end && (!is_first || filter.start == absl::InfinitePast())) return ids;
  if (!is_first && held_.start == filter.start && held_.end == filter.end) {
    RETURN_IF_ERROR(BringUpToDate());
    ids.last = held_.last;
    return ids;
  }
  ASSIGN_OR_RETURN(const EventRange kept, ReadEventRange(db_));
  Statement& in_time = db_.Sql(R"sql(
      SELECT min(id), max(id) FROM event INDEXED BY event_by_time
      WHERE time_ns >= ? AND time_ns < ?)sql");
  in_time.Bind(Nanoseconds(filter.start), Nanoseconds(filter.end));
  RETURN_IF_ERROR(in_time.ForEach([&ids](const Statement& row) {
    if (!row.IsNull(0)) ids.after = std::max(ids.after, row.Integer(0) - 1);
    ids.last = row.Integer(1);  // NULL is 0
  }));
  held_ = {filter.start, filter.end, ids.last, kept.newest};
  return ids;
}

absl::Status EventReader::BringUpToDate() {
  ASSIGN_OR_RETURN(const EventRange kept, ReadEventRange(db_));
  Statement& newer = db_.Sql(R"sql(
      SELECT max(id) FROM event NOT INDEXED
      WHERE id > ? AND +time_ns >= ? AND +time_ns < ?)sql");
  ASSIGN_OR_RETURN(const int64_t last,
                   newer.Number(held_.newest, Nanoseconds(held_.start), Nanoseconds(held_.end)));
  held_.last = std::max(held_.last, last);
  held_.newest = kept.newest;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> EventReader::KindsWith(const std::string& prefix) {
  // The prefix itself may be a kind, and min(kind) > asks for what comes after it.
  std::vector<std::string> kinds = {prefix};
  for (;;) {
    std::string next;
    RETURN_IF_ERROR(db_.Sql("SELECT min(kind) FROM event WHERE kind > ?")
                        .Bind(kinds.back())
                        .ForEach([&next](const Statement& row) { row.Read(next); }));
    if (next.empty() || !absl::StartsWith(next, prefix)) return kinds;
    kinds.push_back(std::move(next));
  }
}

absl::Status EventReader::Append(const char* index, const char* condition,
                                 const std::string& leading, const EventFilter& filter,
                                 const Ids& ids, std::vector<EventRecord>& found) {
  // Terms with a + use no index.
  Statement& list =
      db_.Sql(absl::StrCat("SELECT id, time_ns, severity, kind, object, message, actor FROM event ",
                           index, " WHERE id > ?1 AND id <= ?2 AND ", condition, R"sql(
    +time_ns >= ?3 AND +time_ns < ?4 AND substr(kind, 1, length(?5)) = ?5
    AND instr('info   warningerror', severity) >= instr('info   warningerror', ?6)
    ORDER BY id LIMIT ?7)sql"));
  const std::string severity = filter.min_severity.empty() ? "info" : filter.min_severity;
  list.Bind(ids.after, ids.last, Nanoseconds(filter.start), Nanoseconds(filter.end),
            filter.kind_prefix, severity, filter.limit);
  if (!leading.empty()) list.Bind(leading);
  return list.ForEach([&](const Statement& row) {
    EventRecord& event = found.emplace_back();
    row.Read(event.id, event.time, event.severity, event.kind, event.object, event.message,
             event.actor);
  });
}

absl::StatusOr<std::vector<EventRecord>> EventReader::Find(const EventFilter& filter) {
  RETURN_IF_ERROR(CheckFilter(filter));
  ASSIGN_OR_RETURN(const Ids ids, FindIds(filter));
  std::vector<EventRecord> found;
  const auto append = [&](const char* index, const char* condition, const std::string& leading) {
    return Append(index, condition, leading, filter, ids, found);
  };
  const bool is_of_concern = !filter.min_severity.empty() && filter.min_severity != "info";
  if (!filter.object.empty()) {
    RETURN_IF_ERROR(append("INDEXED BY event_by_object", "object = ?8 AND ", filter.object));
  } else if (is_of_concern) {
    RETURN_IF_ERROR(append("INDEXED BY event_of_concern", "severity <> 'info' AND ", ""));
  } else if (filter.kind_prefix.empty()) {
    RETURN_IF_ERROR(append("NOT INDEXED", "", ""));
  } else {
    ASSIGN_OR_RETURN(const std::vector<std::string> kinds, KindsWith(filter.kind_prefix));
    for (const std::string& kind : kinds) {
      RETURN_IF_ERROR(append("INDEXED BY event_by_kind", "kind = ?8 AND ", kind));
    }
    std::sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.id < b.id; });
    if (found.size() > filter.limit) found.resize(filter.limit);
  }
  return found;
}

absl::StatusOr<EventRange> ReadEventRange(SqliteConnection& db) {
  EventRange range;
  RETURN_IF_ERROR(db.Sql(R"sql(
      SELECT min(id), (SELECT seq FROM sqlite_sequence WHERE name = 'event') FROM event)sql")
                      .ForEach([&range](const Statement& row) {
                        range.newest = row.Integer(1);  // NULL is 0
                        range.oldest = row.IsNull(0) ? range.newest + 1 : row.Integer(0);
                      }));
  return range;
}

// --- The account of deeds ---

// Which deeds are kept, and which go when others come: the rule of event_records.h. Knows whose
// rows they are and when, not what they say.
//
//   new row --> its kind has too many: the oldest of the kind become one
//           --> its share is full: those of an age go for good; then every kind of more than N rows
//               is folded to N of them, for the greatest N that makes room; then, if it is full of
//               single rows, callers with more than N rows lose the oldest, in the same way
class KeptDeeds {
 public:
  // What a new row does to others, to be done in this order.
  struct Changes {
    struct Folded {
      int64_t id;
      uint32_t count;
      absl::Time first;
    };
    std::vector<Folded> folded;  // rows that stand for others of their kind from now on
    std::vector<int64_t> gone;
  };

  // Ids rise from call to call. O(1), but for every kMaxFree-th row of a full share.
  void Enter(const DeedRecord& deed, const DeedLimits& limits, Changes& changes) {
    last_ = std::max(last_, deed.id);
    Share& share = shares_[static_cast<size_t>(deed.share) % shares_.size()];
    Rows& rows = share.kinds[absl::StrCat(deed.user, "\n", deed.method, "\n", deed.outcome)];
    rows.push_back({deed.id, deed.time, deed.first, deed.count, absl::HashOf(deed.caller)});
    ++share.count;
    const int64_t singly = limits.singly;
    if (SizeOf(rows) > singly + singly / 32) Fold(share, rows, singly, changes);
    if (share.count > limits.per_share) MakeRoom(share, limits, deed.time, changes);
  }

  int64_t last() const { return last_; }

 private:
  // A full share is cleared for so many rows at once.
  static constexpr int64_t kMaxFree = 1024;
  struct Row {
    int64_t id;
    absl::Time time, first;
    uint32_t count;
    size_t caller;  // a hash of the name
  };
  using Rows = std::deque<Row>;
  struct Share {
    absl::flat_hash_map<std::string, Rows> kinds;  // user, method and outcome; none is empty
    int64_t count = 0;
  };

  static int64_t SizeOf(const Rows& rows) { return static_cast<int64_t>(rows.size()); }
  // The oldest become one, so that `left` rows are left.
  static void Fold(Share& share, Rows& rows, int64_t left, Changes& changes) {
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

  static void MakeRoom(Share& share, const DeedLimits& limits, absl::Time now, Changes& changes) {
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

  static void DropOld(Share& share, absl::Time before, Changes& changes) {
    for (auto kind = share.kinds.begin(); kind != share.kinds.end();) {
      Rows& rows = kind->second;
      for (; !rows.empty() && rows.front().time < before; rows.pop_front(), --share.count) {
        changes.gone.push_back(rows.front().id);
      }
      const auto here = kind++;
      if (rows.empty()) share.kinds.erase(here);
    }
  }

  // Every kind has one row.
  static void DropSingle(Share& share, int64_t most, Changes& changes) {
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

  std::array<Share, 4> shares_;  // [DeedShare]
  int64_t last_ = 0;
};

DeedWriter::DeedWriter(SqliteConnection& db) : db_(db) {}
DeedWriter::~DeedWriter() = default;

absl::Status DeedWriter::ReadKept() {
  auto kept = std::make_unique<KeptDeeds>();
  const DeedLimits all{kMaxInt64 / 2, kMaxInt64, absl::InfiniteDuration()};
  KeptDeeds::Changes none;
  RETURN_IF_ERROR(db_.Sql(absl::StrCat(kDeedColumns, " FROM deed ORDER BY id"))
                      .ForEach([&](const Statement& row) {
                        DeedRecord deed;
                        ReadDeed(row, deed);
                        kept->Enter(deed, all, none);
                      }));
  kept_ = std::move(kept);
  return absl::OkStatus();
}

absl::Status DeedWriter::Apply(const AppendDeeds& append) {
  for (const DeedRecord& deed : append.deeds) RETURN_IF_ERROR(Append(deed, append.limits));
  return absl::OkStatus();
}

absl::Status DeedWriter::Append(const DeedRecord& deed, const DeedLimits& limits) {
  if (kept_ == nullptr) RETURN_IF_ERROR(ReadKept());
  changed_ = true;
  DeedRecord entered = deed;
  entered.id = kept_->last() + 1;
  entered.first = std::min(deed.first, deed.time);
  KeptDeeds::Changes changes;
  kept_->Enter(entered, limits, changes);
  RETURN_IF_ERROR(db_.Sql("INSERT INTO deed VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
                      .Run(entered.id, deed.time, static_cast<int64_t>(deed.share), deed.caller,
                           deed.user, deed.origin, deed.method, deed.object, deed.outcome,
                           deed.count, entered.first));
  for (const KeptDeeds::Changes::Folded& folded : changes.folded) {
    RETURN_IF_ERROR(db_.Sql("UPDATE deed SET count = ?, first_ns = ? WHERE id = ?")
                        .Run(folded.count, folded.first, folded.id));
  }
  for (const int64_t old : changes.gone) {
    RETURN_IF_ERROR(db_.Sql("DELETE FROM deed WHERE id = ?").Run(old));
  }
  return absl::OkStatus();
}

void DeedWriter::RolledBack() {
  if (changed_) kept_.reset();
  changed_ = false;
}

absl::StatusOr<std::vector<DeedRecord>> FindDeeds(SqliteConnection& db, const DeedFilter& filter) {
  const DeedShare first = filter.only_denials ? DeedShare::kDenial : DeedShare::kUser;
  return db
      .Sql(absl::StrCat(kDeedColumns, R"sql( FROM deed
      WHERE id > ?1 AND (?2 = '' OR user = ?2 OR caller = ?2)
        AND substr(method, 1, length(?3)) = ?3 AND time_ns >= ?4 AND share >= ?5
      ORDER BY id LIMIT ?6)sql"))
      .Bind(filter.after_id, filter.user, filter.method_prefix, Nanoseconds(filter.start),
            static_cast<int64_t>(first), filter.limit)
      .List<DeedRecord>(ReadDeed);
}

}  // namespace coppice
