// What is stored of what users hold: jobs, placements, the orders of jobs' ranks, communication
// patterns and quotas. Part of the interface in store.h, which includes this. Plain structs; what
// the positions of an order, the data of a pattern and a limit mean, why a placement has these
// nodes, and for how long, is the manager's.
#ifndef COPPICE_DB_JOB_RECORDS_H_
#define COPPICE_DB_JOB_RECORDS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/strong_id.h"
#include "daemon/placement/placement_terms.h"
#include "daemon/tree/tree_spec.h"
#include "db/event_records.h"

namespace coppice {

// What names jobs, trees and placements, in the store and everywhere else; all from 1, never
// reused.
using JobId = StrongId<struct JobIdTag, int64_t>;
using TreeId = StrongId<struct TreeIdTag, int64_t>;
using PlacementId = StrongId<struct PlacementIdTag, int64_t>;
using ReservationId = StrongId<struct ReservationIdTag, int64_t>;

// --- Jobs ---

enum class JobState : uint8_t { kActive = 1, kEnded = 2, kExpired = 3 };

struct JobRecord {
  JobId id;
  std::string request_id;            // empty: none; else unique among the owner's jobs
  uint64_t request_fingerprint = 0;  // of the request's content, to tell a retry from a misuse
  std::string name;                  // what the launcher calls it
  std::string owner;                 // user
  std::vector<Guid> endpoints;       // [rank] port GUIDs
  absl::Duration lease;              // term that each keepalive renews
  JobState state = JobState::kActive;
  absl::Time created, ended;      // ended: InfiniteFuture while active
  bool by_administrator = false;  // registered with an administrator's rights
  uint32_t placed_nodes = 0;      // of the placement that it was started from
  PartitionNum partition;         // 0: none, or one of an earlier release, which knew of none
  std::string account = {};       // that pays; empty: none
  uint32_t dropped_ranks = 0;     // of an ended one whose endpoints are kept no more: their number
  friend bool operator==(const JobRecord&, const JobRecord&) = default;
};

// ALREADY_EXISTS: the id or the owner's request_id is taken, also by a job that has ended and is
// kept. A job of very many ranks is written in steps between which other mutations go on, so it
// takes effect, and is answered, after some that were submitted later; until then nothing of it
// counts.
struct PutJob {
  explicit PutJob(JobRecord record, DeedPtr made_by = nullptr)
      : PutJob(std::make_shared<const JobRecord>(std::move(record)), std::move(made_by)) {}
  explicit PutJob(std::shared_ptr<const JobRecord> record, DeedPtr made_by = nullptr)
      : job(std::move(record)), deed(std::move(made_by)) {}
  std::shared_ptr<const JobRecord> job;  // shared with who asks: not null, not copied on its way
  DeedPtr deed;
};

// Bytes of the lists of ended jobs' ranks that are kept, 19 a rank.
struct KeptRankBytes {
  int64_t per_owner = INT64_MAX, all = INT64_MAX;
};

// Ends the job, releases all its trees and drops the order of its ranks; and the endpoints of as
// many ended jobs as are beyond `keep`: the owner's oldest, then those of who keeps the most (at
// most 64 each time, so several may be beyond it for all for a while). NOT_FOUND: no such active
// job.
struct EndJob {
  JobId job;
  JobState state = JobState::kEnded;
  absl::Time time;
  KeptRankBytes keep{};
  DeedPtr deed{};
};

// Drops the job that ended first, by time and then by id, as long as `keep` or more have ended
// after it, or it ended before `before`; at most `rows` of them. Their request_ids are free again;
// StoredState::last_job does not fall. Jobs that are active stay.
struct PruneJobs {
  int64_t keep = 100'000;
  absl::Time before = absl::InfinitePast();
  uint32_t rows = 16;                  // of up to 20 MB each
  std::optional<std::string> owner{};  // only his jobs go, and only his count
};

struct OwnedJobs {
  std::string owner;
  int64_t jobs = 0;
};

// --- Placements: nodes that are held for a job to come ---
//
//   held --StartPlacement--> started     a held placement has its nodes for itself; the others
//    |----EndPlacement-----> released    are kept for whoever asks, until PrunePlacements drops
//    +----EndPlacement-----> expired     them

enum class PlacementState : uint8_t { kHeld = 1, kStarted = 2, kReleased = 3, kExpired = 4 };

struct PlacementRecord {
  PlacementId id;
  std::string request_id;            // empty: none; else unique among the owner's placements
  uint64_t request_fingerprint = 0;  // of the request's content
  std::string name;                  // what the scheduler calls it
  std::string owner;                 // user
  std::vector<std::string> nodes;    // host names, distinct, in the order of the ranks
  uint32_t ranks_per_node = 1;
  std::vector<uint32_t> permutation;  // [rank] position in nodes * ranks_per_node; empty: none
  bool is_exclusive = false;          // nobody else may be placed on the nodes' leaf switches
  absl::Duration term;                // that each renewal begins anew
  uint64_t fabric_version = 0;        // snapshot that it was planned on
  PartitionNum partition;             // of the job to come; 0: none, or of an earlier release
  std::string account = {};           // that pays; empty: none
  std::string reason;                 // in words
  PlacementMeasures measures;
  bool is_optimal = false;  // nothing costs less, as far as is known
  PlacementState state = PlacementState::kHeld;
  JobId job;                      // of a started one: which took the nodes; else 0
  absl::Time created, ended;      // ended: InfiniteFuture while held
  bool by_administrator = false;  // made with an administrator's rights
  friend bool operator==(const PlacementRecord&, const PlacementRecord&) = default;
};

// All of them or none. ALREADY_EXISTS: an id or the owner's request_id is taken, also by a
// placement that is over and kept. FAILED_PRECONDITION: a node is held by another placement
// (named), also by one before it in the list. Checked in this order for one after the other.
// INVALID_ARGUMENT: an id below 1, a state other than held, no nodes, a node twice in one
// placement, no term, no ranks.
struct PutPlacements {
  std::vector<PlacementRecord> placements;
  DeedPtr deed{};
};

// Gives the nodes free. NOT_FOUND: no such held placement. INVALID_ARGUMENT: a state that is not
// released or expired.
struct EndPlacement {
  PlacementId placement;
  PlacementState state = PlacementState::kReleased;
  absl::Time time;
  DeedPtr deed{};
};

// Drops the placement that ended first, as PruneJobs does with jobs.
struct PrunePlacements {
  int64_t keep = 100'000;
  absl::Time before = absl::InfinitePast();
  uint32_t rows = 16;
};

// The job takes the nodes of the placement, which is over then: at no time are they free.
// NOT_FOUND: no such held placement. For the job as PutJob; checked in this order.
struct StartPlacement {
  StartPlacement(PlacementId id, JobRecord record)
      : StartPlacement(id, std::make_shared<const JobRecord>(std::move(record)), nullptr) {}
  StartPlacement(PlacementId id, std::shared_ptr<const JobRecord> record, DeedPtr made_by)
      : placement(id), job(std::move(record)), deed(std::move(made_by)) {}
  PlacementId placement;
  std::shared_ptr<const JobRecord> job;  // as PutJob's
  DeedPtr deed;
};

// --- Orders of jobs' ranks that somebody found for the launcher ---

// One for each job, at most, as long as it is active: EndJob drops it in the same step.
struct OrderRecord {
  JobId job;
  std::vector<uint32_t> positions;  // [rank] in the job's present order; not empty
  std::string note;                 // who found it and how
  absl::Time created;
  friend bool operator==(const OrderRecord&, const OrderRecord&) = default;
};

// Keeps the order in place of the job's one before. INVALID_ARGUMENT: a job id below 1, no
// positions, no time of creation. FAILED_PRECONDITION: the job is not active. RESOURCE_EXHAUSTED:
// together with the orders of other jobs it would have more than `max_positions`. Checked in this
// order; the one before stays after a refusal.
struct PutOrder {
  OrderRecord order;
  int64_t max_positions = INT64_MAX;
};

// --- How soon collectives went ---

// Which way collectives of a communicator go: the MPI library's own; along its tree; along other
// trees over its ranks; by exchanges; along all trees of a forest.
enum class CollectiveWay : uint8_t { kNative, kTree, kChain, kBinomial, kExchange, kForest };
inline constexpr int kCollectiveWays = 6;

// Of which program on which nodes: a user's application, on ranks that lie alike.
struct WayTimesOf {
  std::string owner;        // user
  std::string application;  // as the user calls it
  std::string layout;       // "32 ranks: 8 hosts, 2 leaf switches"
  uint8_t tree_type = 1;    // of the communicator's tree, 1 or 2
  friend auto operator<=>(const WayTimesOf&, const WayTimesOf&) = default;
};

// One operation on messages of 2^(length_bits - 1) to 2^length_bits - 1 bytes, 0 of none, in one
// way.
struct WayTime {
  Operation operation = Operation::kAllreduce;
  uint8_t length_bits = 0;
  CollectiveWay way = CollectiveWay::kNative;
  double us = 0;      // mean of the last runs
  double spread = 0;  // by how much runs differ from it, as a share of it
  uint32_t runs = 0;  // jobs
  JobId last_job;     // that measured it
  friend bool operator==(const WayTime&, const WayTime&) = default;
};

struct WayTimesRecord {
  WayTimesOf of;
  std::vector<WayTime> times;  // in no order
  absl::Time measured;         // last
  friend bool operator==(const WayTimesRecord&, const WayTimesRecord&) = default;
};

// Drops what is known of programs, whether or not there is something, then puts each of the times
// in place of the one of its operation, length and way. INVALID_ARGUMENT: an owner, application or
// layout without a name; a tree type that is none; no times, or one that is not above 0 or not
// finite, a spread below 0, more than 64 bits, no runs; one named twice.
struct PutWayTimes {
  WayTimesRecord record;
  std::vector<WayTimesOf> drop;
};

// --- Communication patterns ---

struct PatternRecord {
  int64_t id = 0;    // from 1, above all that were ever given
  std::string name;  // unique among the owner's, and among all of administrators
  std::string owner;
  uint32_t rank_count = 0;
  uint64_t pair_count = 0;  // unordered
  double total_bytes = 0, total_messages = 0;
  absl::Time created;
  uint64_t stored_bytes = 0;      // of its data
  bool by_administrator = false;  // put with an administrator's rights: everybody's to use
  std::string account = {};       // that pays; empty: none
  friend bool operator==(const PatternRecord&, const PatternRecord&) = default;
};

// One part of the data of a pattern that is to come: parts are numbered from 0. One mutation each,
// so that others go on between them. ALREADY_EXISTS: that part is there, or the pattern is.
struct PutPatternPart {
  int64_t pattern = 0;
  uint32_t part = 0;
  std::string data;
};

// Makes the pattern of these parts visible, in place of the owner's of that name or, put by an
// administrator, of that of any administrator, if there is one.
// INVALID_ARGUMENT: an id below 1, no name, no ranks, totals that are negative or no numbers;
// ALREADY_EXISTS: the id is taken; FAILED_PRECONDITION: not that many parts are there, from 0 on.
struct PutPattern {
  PatternRecord pattern;
  uint32_t parts = 0;
  DeedPtr deed{};
};

// Drops what there is of the parts of a pattern that will not come. ALREADY_EXISTS: it has come.
struct DropPatternParts {
  int64_t pattern = 0;
};

// With its data. NOT_FOUND. Of administrators' `owner` means nothing.
struct DropPattern {
  std::string name;
  std::string owner{};
  bool by_administrator = false;
  DeedPtr deed{};
};

// --- Accounts: who pays ---

// A group of users, within another or within none.
struct AccountRecord {
  std::string name;
  std::string parent = {};  // another account; empty: none
  std::string tenant = {};  // of all below it, too, that name no other; empty: its parent's
  friend bool operator==(const AccountRecord&, const AccountRecord&) = default;
};

inline constexpr size_t kMaxAccountDepth = 16;  // accounts above one

struct AccountUserRecord {
  std::string user;
  std::string account;
  bool is_default = false;  // pays where no account is named; one of a user's at most
  friend bool operator==(const AccountUserRecord&, const AccountUserRecord&) = default;
};

// Puts these, which are all that there are, in place of the present ones. INVALID_ARGUMENT: an
// account without a name or named twice, a parent or a user's account that is not among them,
// parents in a circle or more
// than kMaxAccountDepth, a user twice in an account or with two defaults.
struct PutAccounts {
  std::vector<AccountRecord> accounts;
  std::vector<AccountUserRecord> users;
  DeedPtr deed{};
};

// --- Reservations: what is kept for a tenant ---

struct ReservationRecord {
  ReservationId id;  // from 1
  std::string tenant;
  uint32_t entries = 0;  // of each of the switches
  std::vector<Guid> switches;
  std::vector<std::string> nodes;  // names of hosts
  bool lends = false;              // entries that the tenant does not use
  absl::Time from, until;
  absl::Time created;
  friend bool operator==(const ReservationRecord&, const ReservationRecord&) = default;
};

// INVALID_ARGUMENT: an id below 1, no tenant, neither entries of switches nor nodes, a switch or a
// node twice, an end at or before the beginning. ALREADY_EXISTS: the id is taken.
struct PutReservation {
  ReservationRecord reservation;
  DeedPtr deed{};
};

// NOT_FOUND.
struct DropReservation {
  ReservationId id;
  DeedPtr deed{};
};

// --- Quotas: limits that an administrator gave to one holder, where the configuration's are for
// all users ---

// What a user holds counts against him, against the account that pays and those above it, and
// against their tenant.
enum class QuotaHolder : uint8_t { kUser = 1, kAccount = 2, kTenant = 3 };

struct QuotaRecord {
  QuotaHolder kind = QuotaHolder::kUser;
  std::string holder;  // a user as JobRecord::owner has him, an account, or a tenant
  std::string limit;   // "entries"
  int64_t value = 0;   // most that may be held; INT64_MAX: as much as there is
  friend bool operator==(const QuotaRecord&, const QuotaRecord&) = default;
};

// Puts the limit in place of the holder's present one, or drops that, if there is one.
// INVALID_ARGUMENT: no holder, no name of a limit, a value below 0.
struct PutQuota {
  QuotaRecord quota;
  bool drop = false;
  DeedPtr deed{};
};

}  // namespace coppice

#endif  // COPPICE_DB_JOB_RECORDS_H_
