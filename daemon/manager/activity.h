// What happened since the last look, in numbers: trees come and go thousands of times a second, and
// the trees table is their record; one event each would only wear the disk. So grants, releases and
// refusals are counted and written as a few events per period.
#ifndef COPPICE_DAEMON_MANAGER_ACTIVITY_H_
#define COPPICE_DAEMON_MANAGER_ACTIVITY_H_

#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "db/store.h"

namespace coppice {

// Trees since the daemon started.
struct TreeTotals {
  uint64_t granted = 0;
  uint64_t released = 0;  // by their job, or with it
  uint64_t refused = 0;   // for want of entries
  uint64_t repaired = 0;  // planned anew
  uint64_t revoked = 0;
};

// A switch that kept a type II tree away.
struct RefusedSwitch {
  Guid guid;
  uint32_t entries_total = 0;
};

// Not thread-safe; the manager's lock guards it.
class Activity {
 public:
  void Granted(uint64_t trees = 1) { now_.granted += trees; }
  void Released(uint64_t trees) { now_.released += trees; }
  // A type II tree was refused because of these.
  void Refused(absl::Span<const RefusedSwitch> switches);
  // Have events of their own.
  void Repaired() { ++now_.repaired; }
  void Revoked() { ++now_.revoked; }

  // The events of the period that ends at `now`, and starts the next: one "trees.changed", one
  // "entries.exhausted" for each of the first switches that refused. Nothing happened: none.
  std::vector<EventRecord> Take(absl::Time now);

  const TreeTotals& totals() const { return now_; }

 private:
  // Most switches that one period names; the rest is a number.
  static constexpr size_t kMaxSwitches = 32;
  struct Refusals {
    uint32_t entries_total = 0;
    uint64_t count = 0;
  };

  TreeTotals now_;
  TreeTotals before_;  // at the start of the period
  absl::btree_map<Guid, Refusals> by_switch_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_ACTIVITY_H_
