// The tables of what happened: events, and the account of deeds.
//
// Events as SQL: the writer's part and the reader's.
//
// They are added at one end of a table and dropped from the other. The database numbers them, so
// that no id is given twice, even after the last event was dropped; ids rise in the order of
// commits.
//
// Filtered lists of events that stay quick on a million: every filter is led by the index that
// leaves least to look at, and all give events by id.
//
//     object given           event_by_object
//     warnings or errors     event_of_concern
//     kinds with a prefix    event_by_kind, the first so many of each kind, merged: kinds are few
//     otherwise              by id
//
// Times rise with ids unless the clock was set back, so the first page of a list with a start or an
// end looks up in event_by_time, once, where to begin and to end; what lies between is still
// compared. The end found holds for the later pages.
#ifndef COPPICE_DB_SQLITE_EVENTS_H_
#define COPPICE_DB_SQLITE_EVENTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "db/event_records.h"
#include "db/sqlite_connection.h"
#include "db/store.h"

namespace coppice {

// Belongs to the writer's thread; works within its transaction.
class EventWriter {
 public:
  explicit EventWriter(SqliteConnection& connection);

  absl::Status Apply(const AppendEvents& append);
  absl::Status Apply(const PruneEvents& prune);

 private:
  // Drops what is beyond `keep`, at most `most` of them. O(log events) if nothing is.
  absl::Status DropBeyond(int64_t keep, int64_t most);

  Statement insert_, list_oldest_, oldest_, newest_, delete_;
};

// As SqliteReader, part of which it is. Contracts as of Store.
class EventReader {
 public:
  explicit EventReader(SqliteConnection& connection);

  absl::StatusOr<std::vector<EventRecord>> Find(const EventFilter& filter);
  absl::StatusOr<EventRange> Kept();

 private:
  // Ids outside of which the filter picks nothing.
  struct Ids {
    int64_t after = 0, last = 0;
  };

  // What the last list with an end was found to be bounded by: its later pages need not look for
  // it, and the last of them does not read on to the newest event.
  struct Held {
    absl::Time start = absl::InfiniteFuture(), end = absl::InfinitePast();
    int64_t last = 0;    // highest id in that time
    int64_t newest = 0;  // of all events, when that was found
  };

  absl::StatusOr<Ids> FindIds(const EventFilter& filter);
  // Of held_: looks at what has been added since.
  absl::Status BringUpToDate();
  absl::StatusOr<std::vector<std::string>> KindsWith(const std::string& prefix);
  // Appends what `statement` gives, whose first parameters are `leading` and then the filter's.
  absl::Status Append(Statement& statement, const EventFilter& filter, const Ids& ids,
                      const std::string* leading, std::vector<EventRecord>& found);

  Statement by_id_, of_object_, of_concern_, of_kind_;
  Statement next_kind_, ids_in_time_, newer_in_time_, kept_;
  Held held_;
};

// The account of deeds as SQL: the writer's part and the reader's.

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
  void Enter(const DeedRecord& deed, const DeedLimits& limits, Changes& changes);
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
  static void Fold(Share& share, Rows& rows, int64_t left, Changes& changes);
  static void MakeRoom(Share& share, const DeedLimits& limits, absl::Time now, Changes& changes);
  static void DropOld(Share& share, absl::Time before, Changes& changes);
  // Every kind has one row.
  static void DropSingle(Share& share, int64_t most, Changes& changes);

  std::array<Share, 4> shares_;  // [DeedShare]
  int64_t last_ = 0;
};

// Belongs to the writer's thread; works within its transaction. Contracts as of the mutations.
class DeedWriter {
 public:
  explicit DeedWriter(SqliteConnection& connection);

  absl::Status Apply(const AppendDeeds& append);
  absl::Status Append(const DeedRecord& deed, const DeedLimits& limits);
  // What became of the transaction.
  void Committed() { changed_ = false; }
  void RolledBack() {
    if (changed_) kept_.reset();
    changed_ = false;
  }

 private:
  absl::Status ReadKept();

  Statement insert_, fold_, delete_, list_;
  std::optional<KeptDeeds> kept_;  // unset: not read, or what was read is undone
  bool changed_ = false;           // in the open transaction
  KeptDeeds::Changes changes_;     // reused from deed to deed
};

// As SqliteReader, part of which it is. Contracts as of Store.
class DeedReader {
 public:
  explicit DeedReader(SqliteConnection& connection);

  absl::StatusOr<std::vector<DeedRecord>> Find(const DeedFilter& filter);

 private:
  Statement find_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_EVENTS_H_
