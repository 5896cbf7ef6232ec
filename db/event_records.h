// What is stored of what happened: events, and the account of deeds, which tells who changed what,
// for whom, from where, and what was denied. Part of the interface in store.h, which includes this.
#ifndef COPPICE_DB_EVENT_RECORDS_H_
#define COPPICE_DB_EVENT_RECORDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace coppice {

struct EventRecord {
  int64_t id = 0;  // assigned by the store when 0
  absl::Time time;
  std::string severity;  // "info", "warning", "error"
  std::string kind;      // of daemon/manager/event_kinds.h: "job.registered"
  std::string object;    // "job:7", "switch:0002c9020040b0e0"
  std::string message;
  std::string actor{};  // who did it; empty: nobody, it happened
  friend bool operator==(const EventRecord&, const EventRecord&) = default;
};

// Also drops the oldest events whose ids are `keep` or more below the highest given by then, of a
// surplus about twice as many as come: so there are never more than `keep`, once there are no more.
// ALREADY_EXISTS: the id of an event, where given, is taken.
struct AppendEvents {
  std::vector<EventRecord> events;
  int64_t keep = INT64_MAX;
};

// Drops the oldest event as long as its id is `keep` or more below the highest ever given, or it is
// from before `before`; at most `rows` of them.
struct PruneEvents {
  int64_t keep = 1'000'000;
  absl::Time before = absl::InfinitePast();
  uint32_t rows = 2048;
};

struct EventFilter {
  int64_t after_id = 0;                                 // only later ones
  std::string kind_prefix{}, object{}, min_severity{};  // empty: any
  uint32_t limit = 1000;                                // the first so many, by id
  absl::Time start = absl::InfinitePast();              // not before
  absl::Time end = absl::InfiniteFuture();              // before
};

// Which events are kept: all with ids from `oldest` to `newest` that there ever were. None:
// `oldest` is newest + 1.
struct EventRange {
  int64_t oldest = 1;
  int64_t newest = 0;  // the highest id ever given
  friend bool operator==(const EventRange&, const EventRange&) = default;
};

// INVALID_ARGUMENT: no such severity.
absl::Status CheckFilter(const EventFilter& filter);
// Whether a filter that is good picks the event, whatever its after_id and limit say.
bool Matches(const EventFilter& filter, const EventRecord& event);

// --- The account of deeds ---
//
// Rows are added, and bounded so that nobody washes out another's: which go, and which stand for
// others, is in README.md.
//
// A change brings its deed with it (the member `deed` of mutations): both are durable or neither.

enum class DeedShare : uint8_t { kUser = 1, kAdministrator = 2, kDenial = 3 };

struct DeedRecord {
  int64_t id = 0;                             // assigned by the store
  absl::Time time;                            // of the last, if there were several
  absl::Time first = absl::InfiniteFuture();  // of the first; the store knows it of single ones
  DeedShare share = DeedShare::kUser;
  std::string caller;   // who connected
  std::string user;     // for whom: whose rights the call had
  std::string origin;   // from where: "uid:1000", "ipv4:10.0.0.7:40112"
  std::string method;   // "Jobs.EndJob"
  std::string object;   // "job:7"
  std::string outcome;  // name of the status code: "OK", "PERMISSION_DENIED"
  uint32_t count = 1;   // of the same kind, of which caller, origin and object are the last one's
  friend bool operator==(const DeedRecord&, const DeedRecord&) = default;
};

using DeedPtr = std::shared_ptr<const DeedRecord>;

struct DeedLimits {
  int64_t singly = 2'000;  // of one kind; a few more until they are folded
  int64_t per_share = 50'000;
  absl::Duration age = 90 * absl::Hours(24);  // from then on rows may go for good
};

// Deeds that come without another mutation. INVALID_ARGUMENT: a count of 0, limits below 1.
struct AppendDeeds {
  std::vector<DeedRecord> deeds;
  DeedLimits limits{};
};

struct DeedFilter {
  int64_t after_id = 0;                     // only later ones
  std::string user{};                       // the caller or for whom it was; empty: any
  std::string method_prefix{};              // empty: any
  absl::Time start = absl::InfinitePast();  // not before
  bool only_denials = false;
  uint32_t limit = 1000;  // the first so many, by id
};

}  // namespace coppice

#endif  // COPPICE_DB_EVENT_RECORDS_H_
