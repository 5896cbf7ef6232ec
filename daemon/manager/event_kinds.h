// Every kind of event that the daemon tells: the one list of them. Events take their severity from
// it, filters are checked against it, and the administrator's guide (deploy/README.md) has it as a
// table, which a test compares.
#ifndef COPPICE_DAEMON_MANAGER_EVENT_KINDS_H_
#define COPPICE_DAEMON_MANAGER_EVENT_KINDS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "db/store.h"

namespace coppice {

struct EventKind {
  absl::string_view name;      // "FAMILY.WHAT"
  absl::string_view severity;  // "info", "warning" or "error"
  absl::string_view object;    // what `object` of such an event is, "link:GUID/PORT-GUID/PORT"
  absl::string_view meaning;   // what happened, and what to do
};

// By name.
absl::Span<const EventKind> EventKinds();

// The kind of that name, which has to be one of them.
const EventKind& EventKindOf(absl::string_view name);

// An event of that kind, with the kind's severity.
EventRecord EventOf(absl::string_view kind, absl::Time when, std::string object,
                    std::string message);

// OK if a kind begins with `prefix`. INVALID_ARGUMENT: none does; the families are named.
absl::Status CheckKindPrefix(absl::string_view prefix);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_EVENT_KINDS_H_
