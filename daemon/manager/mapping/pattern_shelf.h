// Patterns that are kept by the name of their application, so that its next run is mapped by what
// the last one did.
//
//   Put: encoded --> parts of 256 KiB, one mutation each, so that grants go on between them
//                --> PutPattern, which makes the whole visible in one durable step
#ifndef COPPICE_DAEMON_MANAGER_MAPPING_PATTERN_SHELF_H_
#define COPPICE_DAEMON_MANAGER_MAPPING_PATTERN_SHELF_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "daemon/base/clock.h"
#include "daemon/mapping/pattern.h"
#include "db/store.h"

namespace coppice {

// Thread-safe. Every method may block for the store: not for gRPC's threads.
class PatternShelf final {
 public:
  // Reads what there is. Both outlive it. `max_bytes`: of all stored patterns together, each of
  // which counts as 4 KiB at least, so that their number is bounded, too. Errors: as
  // Store::Patterns.
  static absl::StatusOr<std::unique_ptr<PatternShelf>> Create(Store* store, const Clock* clock,
                                                              uint64_t max_bytes);

  // Whether a pattern of that owner may be replaced or deleted: OK or PERMISSION_DENIED.
  using MayChange = std::function<absl::Status(const PatternRecord&)>;

  // Durable when it returns. INVALID_ARGUMENT: not a name; RESOURCE_EXHAUSTED: no room, with the
  // limit; what `may_change` says of the one of that name; errors of the store.
  absl::StatusOr<PatternRecord> Put(absl::string_view name, absl::string_view owner,
                                    const Pattern& pattern, const MayChange& may_change);
  // NOT_FOUND.
  absl::StatusOr<PatternRecord> Get(absl::string_view name) const;
  // By name, those after `after`.
  std::vector<PatternRecord> List(absl::string_view after, size_t limit) const;
  // NOT_FOUND; DATA_LOSS: it cannot be read back.
  absl::StatusOr<std::shared_ptr<const Pattern>> Load(absl::string_view name);
  absl::Status Delete(absl::string_view name, const MayChange& may_change);

 private:
  PatternShelf(Store* store, const Clock* clock, uint64_t max_bytes)
      : store_(store), clock_(clock), max_bytes_(max_bytes) {}
  absl::Status MakeRoom(const PatternRecord& record) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After a write that was told as failed and may have been done.
  void Reread() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Write(const PatternRecord& record, absl::string_view data)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  // Drops what a failed write left, now or, if the store takes nothing, before the next one.
  absl::Status DropUnfinished() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);

  Store* const store_;
  const Clock* const clock_;
  const uint64_t max_bytes_;
  absl::Mutex writing_;  // one Put or Delete at a time; before mutex_
  mutable absl::Mutex mutex_;
  std::map<std::string, PatternRecord, std::less<>> records_ ABSL_GUARDED_BY(mutex_);
  int64_t last_id_ ABSL_GUARDED_BY(writing_) = 0;
  int64_t unfinished_ ABSL_GUARDED_BY(writing_) = 0;  // id whose parts may be there; 0: none
};

// 1 to 128 letters, digits and . _ - + / @. INVALID_ARGUMENT names the text.
absl::Status CheckPatternName(absl::string_view name);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_MAPPING_PATTERN_SHELF_H_
