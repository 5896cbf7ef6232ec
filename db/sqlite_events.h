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

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/sqlite_connection.h"
#include "db/store.h"

namespace coppice {

// Belongs to the writer's thread; works within its transaction.
class EventWriter {
 public:
  explicit EventWriter(Connection& connection) : connection_(connection) {}
  // The connection must hold the newest schema.
  absl::Status Prepare();

  absl::Status Append(const AppendEvents& append);
  absl::Status Prune(const PruneEvents& prune);

 private:
  // Drops what is beyond `keep`, at most `most` of them. O(log events) if nothing is.
  absl::Status DropBeyond(int64_t keep, int64_t most);

  Connection& connection_;
  Statement insert_, list_oldest_, oldest_, newest_, delete_;
};

// As SqliteReader, part of which it is. Contracts as of Store.
class EventReader {
 public:
  explicit EventReader(Connection& connection) : connection_(connection) {}
  // The connection must hold the newest schema.
  absl::Status Prepare();

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

  Connection& connection_;
  Statement by_id_, of_object_, of_concern_, of_kind_;
  Statement next_kind_, ids_in_time_, newer_in_time_, kept_;
  Held held_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_EVENTS_H_
