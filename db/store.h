// What must survive: jobs, granted trees, switch entries, placements, inventory, events. A Store
// applies each mutation whole or not at all, answers only when it is durable, and refuses, whatever
// the caller believes, to let the trees in a switch take more entries than the switch has.
//
// SqliteStore (sqlite_store.h) is what runs, in tests, too; theirs that refuse, hold back or fail
// are in front of one. Plain structs only: no SQL, no protobuf; of planners the values that
// requests and answers have, tree_spec.h and placement_terms.h.
#ifndef COPPICE_DB_STORE_H_
#define COPPICE_DB_STORE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/strong_id.h"
#include "daemon/tree/tree_spec.h"
#include "db/event_records.h"
#include "db/fabric_records.h"
#include "db/job_records.h"

namespace coppice {

// One serving switch of a granted type II tree: it takes one entry there.
struct TreeSwitchRecord {
  Guid guid;
  uint32_t children = 0;
  friend bool operator==(const TreeSwitchRecord&, const TreeSwitchRecord&) = default;
};

// What the serving switches of a tree carry it with, where all of them speak (Switches.Connect).
struct CarriageRecord {
  static constexpr size_t kKeyBytes = 16;
  // Random, of one revision, and secret: who shows it is a member or a switch of the tree. Empty:
  // no switch carries the tree.
  std::string key;
  uint32_t segment_bytes = 0, window = 0;  // the longest segment; segments in flight
  friend bool operator==(const CarriageRecord&, const CarriageRecord&) = default;
};

// One tree of a forest.
struct ForestTreeRecord {
  double share = 1;              // of every message
  std::vector<int32_t> parents;  // [member]; -1 for the root
  friend bool operator==(const ForestTreeRecord&, const ForestTreeRecord&) = default;
};

struct TreeRecord {
  TreeId id;
  JobId job;
  std::string request_id;  // empty: none; else unique within the job
  uint64_t request_fingerprint = 0;
  uint64_t fabric_version = 0;  // snapshot that it was planned on
  uint32_t revision = 1;        // rises when the tree is re-planned
  uint8_t type = 1;             // 1 or 2
  std::string builder;          // "kary", "knomial", "hierarchical", "postal", "minimum-cost"
  uint32_t width = 0, height = 0, radius = 0;
  TreeSpec spec;                           // as it was asked for; its sizes are never empty
  bool accepts_type1 = false;              // spec.type is II, but I will do
  bool lacks_spec = false;                 // of a release that kept only the mix of a request
  std::vector<uint32_t> ranks;             // [member] job ranks
  std::vector<int32_t> parents;            // [node] members, then switches; -1 for the root
  std::vector<TreeSwitchRecord> switches;  // nodes from ranks.size() on
  std::vector<uint32_t> edge_links_up, edge_links_down;  // [node] edge lengths
  std::vector<uint64_t> physical;  // type II: flat pairs (vertex id, position of parent + 1), see
                                   // manager; empty for type I
  std::vector<ForestTreeRecord> forest;  // of several trees, type I: all, from that of `parents` on
  std::vector<int64_t> links;  // ids of the links that its edges cross, of a forest all trees';
                               // ascending, unique
  double aggregate_us = 0, distribute_us = 0, total_us = 0;
  std::string reason;  // in words
  std::vector<Alternative> alternatives;
  absl::Time created;
  CarriageRecord carriage;
  friend bool operator==(const TreeRecord&, const TreeRecord&) = default;
};

// Aggregation capability of one switch, as the configuration's rules or the switch itself give it.
struct CapabilityRecord {
  Guid guid;
  uint32_t entries_total = 0;     // 0: cannot aggregate
  uint32_t entries_reserved = 0;  // held by others; total - reserved may be granted
  uint32_t degree_limit = 0;
  friend bool operator==(const CapabilityRecord&, const CapabilityRecord&) = default;
};

struct EntryUse {
  CapabilityRecord capability;
  uint32_t entries_taken = 0;  // = number of granted trees with this switch, by construction
  friend bool operator==(const EntryUse&, const EntryUse&) = default;
};

// FAILED_PRECONDITION: the job is not active. ALREADY_EXISTS: the id is taken or belongs to an
// earlier run of the daemon (take ids from a counter above StoredState::last_tree), or, within the
// job, the request_id is taken. ABORTED: a switch has no capability record, as one has that left
// the fabric since the tree was planned. RESOURCE_EXHAUSTED: a switch has no entry left (the
// message names it, its total and what is taken). Checked in this order, switches in the order
// given; parents, edge_links_up and edge_links_down each hold one number per rank and switch.
struct GrantTree {
  explicit GrantTree(TreeRecord record)
      : tree(std::make_shared<const TreeRecord>(std::move(record))) {}
  explicit GrantTree(std::shared_ptr<const TreeRecord> record, DeedPtr made_by = nullptr)
      : tree(std::move(record)), deed(std::move(made_by)) {}
  std::shared_ptr<const TreeRecord> tree;  // shared with who asks: not null, not copied on its way
  DeedPtr deed;
};

// Frees its entries. NOT_FOUND: no such tree in that job.
struct ReleaseTree {
  TreeId tree;
  JobId job;
  DeedPtr deed{};
};

// Grants, plans anew and takes back trees, all or none. First the revoked trees and the old
// revisions free their entries, then the revised and the granted ones take theirs, in this order: a
// tree never counts twice, and one may move into what another leaves. Errors: INVALID_ARGUMENT: a
// tree is named twice, or a revision changes the tree's job, request id, fingerprint or time of
// creation. NOT_FOUND: no such tree (in that job, if revoked). FAILED_PRECONDITION: a revision's
// number is not the stored one + 1. For what is granted and for entries as GrantTree. Checked in
// the order revoked, revised, then entries of the revised, then the granted. Pointers are not null.
struct ChangeTrees {
  std::vector<std::shared_ptr<const TreeRecord>> granted;
  std::vector<std::shared_ptr<const TreeRecord>> revised;
  std::vector<std::pair<TreeId, JobId>> revoked;
  DeedPtr deed{};
};

// Replaces the capabilities of all switches. Where granted trees take more than a switch would now
// have, its total is raised to what is reserved and taken and the switch's GUID is reported in the
// message of a later event by the caller; nothing granted is lost. A switch that is not named keeps
// its record as long as trees use it: the first PutCapabilities that finds none drops it.
struct PutCapabilities {
  std::vector<CapabilityRecord> capabilities;
  bool others_stay = false;  // only those that are named change
};

// The cost profile that a calibration put in force, as text for the daemon; empty: none, the
// configuration's holds.
struct PutProfile {
  std::string toml;
};

// Each is one atomic, durable step. Each refuses a malformed record (an id below 1, vectors of
// unequal length, an unknown severity, a switch named twice) with INVALID_ARGUMENT. What somebody
// does brings its deed (event_records.h; null: none), which is written in the same step.
using Mutation =
    std::variant<PutJob, EndJob, GrantTree, ReleaseTree, ChangeTrees, PutCapabilities, PutProfile,
                 PutInventory, AppendEvents, PutCounters, PruneHistory, PruneEvents, PruneJobs,
                 PutPatternPart, PutPattern, DropPatternParts, DropPattern, PutDistances,
                 PutPlacements, EndPlacement, StartPlacement, PrunePlacements, PutOrder, PutQuota,
                 PutAccounts, PutReservation, DropReservation, AppendDeeds, PutWayTimes>;

// What a daemon needs to carry on where the last one stopped.
struct StoredState {
  std::vector<JobRecord> jobs;    // active ones, by id
  std::vector<TreeRecord> trees;  // granted ones, by id
  std::vector<EntryUse> entries;  // by GUID
  // By id: those that are held, and the exclusive ones whose jobs are active.
  std::vector<PlacementRecord> placements;
  JobId last_job;  // highest ids ever used; 0 if none
  TreeId last_tree;
  PlacementId last_placement;
  uint64_t last_fabric_version = 0;
  std::string profile_toml;                      // of the last PutProfile
  std::vector<QuotaRecord> quotas;               // by kind, holder and limit
  std::vector<AccountRecord> accounts;           // by name
  std::vector<AccountUserRecord> account_users;  // by user and account
  std::vector<ReservationRecord> reservations;   // by id
  ReservationId last_reservation;
  std::vector<WayTimesRecord> way_times;  // by program
  friend bool operator==(const StoredState&, const StoredState&) = default;
};

// How a store's writer does, since it was opened.
struct StoreStatistics {
  // Bounds of the histogram's buckets: a commit took at most so long; the last bucket has no bound.
  static constexpr std::array<absl::Duration, 12> kBounds = {
      absl::Microseconds(100), absl::Microseconds(250), absl::Microseconds(500),
      absl::Milliseconds(1),   absl::Milliseconds(2),   absl::Milliseconds(5),
      absl::Milliseconds(10),  absl::Milliseconds(25),  absl::Milliseconds(50),
      absl::Milliseconds(100), absl::Milliseconds(250), absl::Seconds(1)};
  uint64_t queued = 0;     // mutations that are submitted and not answered
  uint64_t mutations = 0;  // that were answered
  uint64_t commits = 0, failed_commits = 0;
  uint64_t refused = 0;  // mutations that the storage, not their content, kept from being written
  std::string fault;     // of the storage, as the next write would meet it; empty: none is known
  std::array<uint64_t, kBounds.size() + 1> commit_times = {};  // [bucket], also of failed ones
  absl::Duration commit_time;                                  // sum of them
  uint64_t database_bytes = 0;                                 // with the write-ahead log; 0: none
};

// Thread-safe. Storage failures are UNAVAILABLE (busy, I/O, "disk full", a file that was deleted or
// exchanged), FAILED_PRECONDITION (read-only) or DATA_LOSS (corrupt); the message names the
// database file.
class Store {
 public:
  // Called exactly once, on the store's own thread, in the order in which mutations take effect;
  // must not block and must not call the store's blocking methods.
  using Done = absl::AnyInvocable<void(absl::Status)>;

  virtual ~Store() = default;

  // Queues `mutation`; `done` gets OK once it is durable. Mutations take effect in the order of
  // submission, but for large jobs (PutJob); many that wait together are made durable together
  // (group commit), yet one that fails leaves the others whole.
  virtual void Submit(Mutation mutation, Done done) = 0;

  // Submit, and wait.
  absl::Status Apply(Mutation mutation);

  // As of some instant between call and return.
  virtual absl::StatusOr<StoredState> Load() = 0;
  virtual absl::StatusOr<std::vector<EntryUse>> Entries() = 0;
  // INVALID_ARGUMENT: no such severity.
  virtual absl::StatusOr<std::vector<EventRecord>> Events(const EventFilter& filter) = 0;
  virtual absl::StatusOr<EventRange> KeptEvents() = 0;
  // Also ended and expired ones that are kept. NOT_FOUND.
  virtual absl::StatusOr<JobRecord> GetJob(JobId id) = 0;
  // Number of jobs that are kept and ended before that time; of all for InfiniteFuture.
  virtual absl::StatusOr<int64_t> EndedJobs(absl::Time before) = 0;
  // How many each owner has of them, in no order.
  virtual absl::StatusOr<std::vector<OwnedJobs>> EndedJobsOfOwners() = 0;
  // The same of placements.
  virtual absl::StatusOr<PlacementRecord> GetPlacement(PlacementId id) = 0;
  virtual absl::StatusOr<int64_t> EndedPlacements(absl::Time before) = 0;
  // Ids of links, in the order asked for; NOT_FOUND names a link that no inventory ever held.
  virtual absl::StatusOr<std::vector<int64_t>> LinkIds(const std::vector<LinkRecord>& links) = 0;
  // Those that were seen last: of the newest inventory that named links, in no order.
  virtual absl::StatusOr<std::vector<LinkRecord>> LastLinks() = 0;

  virtual absl::StatusOr<StoredLoad> LoadMeasurements() = 0;
  // Of a node's ports, by port; empty: none was ever counted.
  virtual absl::StatusOr<std::vector<PortCounterRecord>> Counters(Guid node) = 0;
  // Oldest first, one point for each label that begins in the asked time; none for slots in which
  // nothing is known of the port. A port that was never counted has an empty history.
  virtual absl::StatusOr<std::vector<HistoryPoint>> History(const HistoryQuery& query) = 0;
  // By name, then owner.
  virtual absl::StatusOr<std::vector<PatternRecord>> Patterns() = 0;
  // The parts of a pattern, one after the other. NOT_FOUND.
  virtual absl::StatusOr<std::string> PatternData(int64_t id) = 0;
  // By host_a, then host_b.
  virtual absl::StatusOr<std::vector<DistanceRecord>> Distances() = 0;
  // Of the ranks of an active job. NOT_FOUND: none is kept; DATA_LOSS: it cannot be read back.
  virtual absl::StatusOr<OrderRecord> GetOrder(JobId job) = 0;
  virtual absl::StatusOr<std::vector<DeedRecord>> Deeds(const DeedFilter& filter) = 0;
  virtual StoreStatistics Statistics() = 0;
  // A number of this database alone, made with it.
  virtual uint64_t DatabaseId() = 0;
};

}  // namespace coppice

#endif  // COPPICE_DB_STORE_H_
