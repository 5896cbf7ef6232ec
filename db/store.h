// What must survive: jobs, granted trees, switch entries, placements, inventory, events. A Store
// applies each mutation whole or not at all, answers only when it is durable, and refuses, whatever
// the caller believes, to let the trees in a switch take more entries than the switch has.
//
// SqliteStore (sqlite_store.h) is what runs, in tests, too; theirs that refuse, hold back or fail are
// in front of one. Plain structs only: no SQL, no protobuf, no planner types beyond ids.
#ifndef COPPICE_DB_STORE_H_
#define COPPICE_DB_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/strong_id.h"
#include "db/deed_records.h"
#include "db/distance_records.h"
#include "db/load_records.h"
#include "db/order_records.h"
#include "db/pattern_records.h"
#include "db/placement_records.h"
#include "db/quota_records.h"
#include "db/record_ids.h"

namespace coppice {

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
  uint32_t dropped_ranks = 0;     // of an ended one whose endpoints are kept no more: their number
  friend bool operator==(const JobRecord&, const JobRecord&) = default;
};

// One serving switch of a granted type II tree: it takes one entry there.
struct TreeSwitchRecord {
  Guid guid;
  uint32_t children = 0;
  friend bool operator==(const TreeSwitchRecord&, const TreeSwitchRecord&) = default;
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
  std::string operation;                   // "allreduce", ...
  std::string sizes;                       // JSON: [[bytes,weight],...]
  std::string demands;                     // JSON: what else the request said, see manager
  std::vector<uint32_t> ranks;             // [member] job ranks
  std::vector<int32_t> parents;            // [node] members, then switches; -1 for the root
  std::vector<TreeSwitchRecord> switches;  // nodes from ranks.size() on
  std::vector<uint32_t> edge_links_up, edge_links_down;  // [node] edge lengths
  std::vector<uint64_t> physical;  // type II: flat pairs (vertex id, position of parent + 1), see
                                   // manager; empty for type I
  std::vector<int64_t> links;      // ids of the links that its edges cross, ascending, unique
  double aggregate_us = 0, distribute_us = 0, total_us = 0;
  std::string reason;        // in words
  std::string alternatives;  // JSON: [{"type","builder","width","total_us","why_not"},...]
  absl::Time created;
  friend bool operator==(const TreeRecord&, const TreeRecord&) = default;
};

// Aggregation capability of one switch, as the configuration's rules give it.
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

enum class NodeKind : uint8_t { kSwitch = 1, kChannelAdapter = 2, kRouter = 3 };

struct NodeRecord {
  Guid guid;
  NodeKind kind = NodeKind::kSwitch;
  std::string description;
  std::string host;  // of an adapter; empty for switches
  uint32_t vendor_id = 0, device_id = 0;
  uint8_t port_count = 0;
  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

struct PortRecord {
  Guid node;
  uint8_t port = 0;  // 0: a switch's management port, the one with its LID
  Guid port_guid;
  uint16_t lid = 0;
  friend bool operator==(const PortRecord&, const PortRecord&) = default;
};

struct LinkRecord {
  Guid node_a;
  uint8_t port_a = 0;
  Guid node_b;
  uint8_t port_b = 0;  // (node_a, port_a) < (node_b, port_b)
  std::string rate;    // "4xQDR"
  double capacity_gbps = 0;
  friend bool operator==(const LinkRecord&, const LinkRecord&) = default;
};

struct EventRecord {
  int64_t id = 0;  // assigned by the store when 0
  absl::Time time;
  std::string severity;  // "info", "warning", "error"
  std::string kind;      // "job.registered", "tree.granted", "sweep.done", ...
  std::string object;    // "job:7", "switch:0002c9020040b0e0"
  std::string message;
  std::string actor{};  // who did it; empty: nobody, it happened
  friend bool operator==(const EventRecord&, const EventRecord&) = default;
};

// --- Mutations. Each is one atomic, durable step. Each refuses a malformed record (an id below 1,
// vectors of unequal length, an unknown severity, a switch named twice) with INVALID_ARGUMENT. What
// somebody does brings its deed (deed_records.h; null: none), which is written in the same step.
// ---

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
};

// The cost profile that a calibration put in force, as text for the daemon; empty: none, the
// configuration's holds.
struct PutProfile {
  std::string toml;
};

// Everything that the newest snapshot holds: first_seen is set on new rows, last_seen on all, rows
// that are not named keep their last_seen (what went away stays known). Ports and links may name
// nodes of this or an earlier inventory only. A link's ends may come in either order.
struct PutInventory {
  uint64_t fabric_version = 0;
  absl::Time time;
  std::vector<NodeRecord> nodes;
  std::vector<PortRecord> ports;
  std::vector<LinkRecord> links;
};

// Also drops the oldest events whose ids are `keep` or more below the highest given by then, of a
// surplus about twice as many as come: so there are never more than `keep`, once there are no more.
// ALREADY_EXISTS: the id of an event, where given, is taken.
struct AppendEvents {
  std::vector<EventRecord> events;
  int64_t keep = INT64_MAX;
};

// A part of what a counter sweep found: rows replace those of the same port or the same direction.
// A sweep of a large fabric is split into several, so that none holds up other mutations for long;
// slots are closed by the last. Cheapest with rows in an order that is the same each time.
// NOT_FOUND: a load of a link that no inventory ever held, history of a port without counters (this
// mutation's included). INVALID_ARGUMENT: a slot that is not in 1..2^39-1, a load, a rate or a
// length that is negative or not a number. ALREADY_EXISTS: a slot not above the highest that is
// closed. Checked in this order.
struct PutCounters {
  std::vector<PortCounterRecord> counters;
  std::vector<LinkLoadRecord> loads;
  std::vector<HistoryPart> history;
  std::vector<HistorySlot> closed;
};

// Drops the oldest history beyond LimitOf, at most `rows` rows: call it again and again.
struct PruneHistory {
  uint32_t rows = 2048;
};

// Drops the oldest event as long as its id is `keep` or more below the highest ever given, or it is
// from before `before`; at most `rows` of them.
struct PruneEvents {
  int64_t keep = 1'000'000;
  absl::Time before = absl::InfinitePast();
  uint32_t rows = 2048;
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

using Mutation = std::variant<PutJob, EndJob, GrantTree, ReleaseTree, ChangeTrees, PutCapabilities,
                              PutProfile, PutInventory, AppendEvents, PutCounters, PruneHistory,
                              PruneEvents, PruneJobs, PutPatternPart, PutPattern, DropPatternParts,
                              DropPattern, PutDistances, PutPlacements, EndPlacement,
                              StartPlacement, PrunePlacements, PutOrder, PutQuota, AppendDeeds>;

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
  std::string profile_toml;         // of the last PutProfile
  std::vector<QuotaRecord> quotas;  // by kind, holder and limit
  friend bool operator==(const StoredState&, const StoredState&) = default;
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
