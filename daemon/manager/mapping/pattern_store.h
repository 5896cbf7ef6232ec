// What is kept of mappings: patterns by the name of their application, so that its next run is
// mapped by what the last one did, and orders of jobs' ranks that somebody found elsewhere.
//
// Names of patterns are their owners': who asks for a name gets his own pattern, else an
// administrator's, never a stranger's unless he says whose ("ada:lammps/melt").
#ifndef COPPICE_DAEMON_MANAGER_MAPPING_PATTERN_STORE_H_
#define COPPICE_DAEMON_MANAGER_MAPPING_PATTERN_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "daemon/base/clock.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/mapping/memory_budget.h"
#include "daemon/manager/quota_ledger.h"
#include "daemon/manager/store_calls.h"
#include "daemon/mapping/output/mapping_answer.h"
#include "daemon/mapping/pattern.h"
#include "db/store.h"

namespace coppice {

// Thread-safe. Every method may block for the store: not for gRPC's threads.
class PatternStore final {
 public:
  // Reads what there is. Both outlive it. `max_bytes`: of all stored patterns together, each of
  // which counts as 4 KiB at least, so that their number is bounded, too. Errors: as
  // Store::Patterns.
  // What it takes counts in `quotas`, and who puts and deletes what is told to `deeds`, unless that
  // is null; both outlive it, too.
  static absl::StatusOr<std::unique_ptr<PatternStore>> Create(Store* store, const Clock* clock,
                                                              uint64_t max_bytes,
                                                              QuotaLedger* quotas,
                                                              DeedLog* deeds = nullptr);

  // Whether a pattern may be deleted: OK or PERMISSION_DENIED.
  using MayChange = std::function<absl::Status(const PatternRecord&)>;

  // In place of the actor's own of that name or, of an administrator, of that of any. Durable when
  // it returns. INVALID_ARGUMENT: not a name; RESOURCE_EXHAUSTED: no room, with the limit; errors
  // of the store.
  absl::StatusOr<PatternRecord> Put(absl::string_view name, const Actor& actor,
                                    const Pattern& pattern);
  // What `name` means to `user`: his own pattern of that name, else the administrators'; after
  // "OWNER:" that owner's. NOT_FOUND.
  absl::StatusOr<PatternRecord> Get(absl::string_view name, absl::string_view user) const;
  // Everybody's, by name and owner: those after `after`, which is empty or what TokenOf gave.
  std::vector<PatternRecord> List(absl::string_view after, size_t limit) const;
  static std::string TokenOf(const PatternRecord& record);
  // What reading takes counts in `memory`, which outlives it, and then the pattern as long as
  // anybody has it. NOT_FOUND; DATA_LOSS: it cannot be read back; RESOURCE_EXHAUSTED: no room.
  absl::StatusOr<std::shared_ptr<const Pattern>> Load(absl::string_view name,
                                                      absl::string_view user, MemoryBudget& memory);
  absl::Status Delete(absl::string_view name, const Actor& actor, const MayChange& may_change);

 private:
  using Key = std::tuple<std::string, std::string, bool>;  // name, owner, by_administrator
  using Records = std::map<Key, PatternRecord>;

  PatternStore(Store* store, const Clock* clock, uint64_t max_bytes, QuotaLedger* quotas,
               DeedLog* deeds)
      : store_(store), clock_(clock), max_bytes_(max_bytes), quotas_(quotas), deeds_(deeds) {}
  static Key KeyOf(const PatternRecord& record) {
    return {record.name, record.owner, record.by_administrator};
  }
  Records::const_iterator Find(absl::string_view name, absl::string_view user) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The administrators' of that name; `owner` empty: whoever's of them.
  Records::const_iterator FindShared(absl::string_view name, absl::string_view owner) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What `record` will take the place of.
  Records::const_iterator FindReplaced(const PatternRecord& record) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeRoom(const PatternRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  void Enter(const PatternRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  absl::Status CheckRoom(const PatternRecord& record) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After a write that was told as failed and may have been done.
  void Reread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Write(const PatternRecord& record, absl::string_view data, const DeedPtr& deed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  void Tell(const DeedPtr& deed) const;
  // Drops what a failed write left, now or, if the store takes nothing, before the next one.
  absl::Status DropUnfinished() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);

  Store* const store_;
  const Clock* const clock_;
  const uint64_t max_bytes_;
  QuotaLedger* const quotas_;
  DeedLog* const deeds_;
  absl::Mutex writing_;  // one Put or Delete at a time; before mutex_
  mutable absl::Mutex mutex_;
  Records records_ ABSL_GUARDED_BY(mutex_);
  int64_t last_id_ ABSL_GUARDED_BY(writing_) = 0;
  int64_t unfinished_ ABSL_GUARDED_BY(writing_) = 0;  // id whose parts may be there; 0: none
};

// --- A pattern as bytes, for the store: small, and the same on every machine (pattern_codec.cc)
// ---
//
//   "CPP1"  flags  ranks  then for each rank: pairs, and for each pair in order of the peers:
//           peer less the last peer, bytes, messages
//
// Numbers are varints (7 bits a byte, lowest first), except weights that are not whole, which are 8
// bytes, IEEE 754, lowest first. flags: 1 bytes are whole, 2 there are messages, 4 these are whole.

// About 5 bytes a pair and direction for whole weights.
std::string EncodePattern(const Pattern& pattern);
// How much memory DecodePattern takes beside `data`, from above. One pass over it.
size_t DecodingBytes(absl::string_view data);
// DATA_LOSS, with the position: not what EncodePattern writes. Takes memory in proportion to `data`
// and the ranks, of which there are at most Pattern::kMaxRanks.
absl::StatusOr<std::shared_ptr<const Pattern>> DecodePattern(absl::string_view data);

// 1 to 128 letters, digits and . _ - + / @; between slashes there is something, which is neither .
// nor .. and does not begin with -. INVALID_ARGUMENT names the text.
absl::Status CheckPatternName(absl::string_view name);

// Orders of jobs' ranks that somebody found elsewhere, such as coppice-search on the job's nodes:
// kept in the store until the job ends, for the launcher. One for each job, the latest wins.
//
// Remembers nothing itself: what a killed daemon had answered, the next one has. Knows neither gRPC
// nor SQLite.
// Thread-safe. Put and Get may block for the store: not for gRPC's threads. Status codes:
// proto/coppice/v1/mapping.proto.
class OrderStore final {
 public:
  static constexpr size_t kMaxNoteBytes = 1024;
  // Of all orders: 64 jobs of 2^20 ranks, some 512 MiB of text in the database.
  static constexpr int64_t kMaxPositions = int64_t{1} << 26;

  // All outlive it.
  OrderStore(Store* store, Manager* manager, const Clock* clock)
      : store_(store), manager_(manager), clock_(clock) {}

  // Whether the caller may change the job that the order is for.
  using MayChange = std::function<absl::Status(const JobRecord&)>;
  // Durable when it returns.
  absl::StatusOr<OrderRecord> Put(JobId job, std::vector<uint32_t> positions, std::string note,
                                  const MayChange& may_change);
  // DATA_LOSS also: what the store gives back is no order of this job's ranks.
  absl::StatusOr<OrderRecord> Get(JobId job);
  // The order as a launcher reads it, by the hosts that the job's ports are on now.
  absl::StatusOr<std::string> LaunchTextOf(const OrderRecord& order, LaunchFormat format);

 private:
  absl::StatusOr<JobView> ActiveJob(JobId job);

  Store* const store_;
  Manager* const manager_;
  const Clock* const clock_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_MAPPING_PATTERN_STORE_H_
