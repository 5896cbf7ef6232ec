// The use cases of the daemon: keep the fabric, register jobs, grant and release trees, hold nodes
// for jobs to come. One object that the services call and that knows neither gRPC nor SQLite nor
// MADs: it is handed a Store, a SubnetPort and a Clock.
//
// Invariants
// - A tree is answered as granted only after the store made it durable; entry counts in memory are
//   never below what the store holds.
// - Planning runs unlocked on a shared snapshot; a grant against a stale snapshot or against
// entries
//   that went meanwhile is planned again, a bounded number of times, then ABORTED.
// - A job that ends or expires takes its trees with it, in one mutation.
//
// Thread-safe. Callbacks run on the store's thread or, when nothing need be written or on error,
// on the caller's; they must not block. How the parts divide the work: README.md.
//
// What the manager writes into the free field of a TreeRecord
// - physical: pairs (GUID, position of the parent + 1, 0 for the root), parents before children;
//   first the switches by node GUID, then the members' ports by port GUID, each port once. So the
//   number of switches is the number of pairs less the number of distinct ports of the ranks.
#ifndef COPPICE_DAEMON_MANAGER_MANAGER_H_
#define COPPICE_DAEMON_MANAGER_MANAGER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/manager/activity.h"
#include "daemon/manager/capability_rules.h"
#include "daemon/manager/deed_log.h"
#include "daemon/manager/load/direction_states.h"
#include "daemon/manager/options.h"
#include "daemon/manager/sweep/down_links.h"
#include "daemon/manager/sweep/schedule.h"
#include "daemon/manager/sweep/unseen.h"
#include "daemon/tree/batch/grid.h"
#include "daemon/tree/calibration/calibration.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/planner.h"
#include "db/store.h"

namespace coppice {

class EventWatch;   // daemon/manager/event_log.h
class Placements;   // daemon/manager/placement/placements.h
class QuotaLedger;  // daemon/manager/quota_ledger.h
class TreeWatch;    // daemon/manager/change_feed.h

struct ManagerOptions {
  CostProfile profile;
  std::vector<CapabilityRule> capability_rules;  // the first that matches a switch wins
  absl::Duration default_lease = absl::Seconds(60);
  absl::Duration min_lease = absl::Seconds(1), max_lease = absl::Hours(24);
  // Infinite: full sweeps at start, on request and after changes only; no others.
  SweepPeriods sweep_periods;
  // Share of the time that a job with a tree is taken to be in its collective: how much of what the
  // collective puts on links is promised to others as load. 0: none.
  double promised_duty = 0.1;
  LoadOptions load;
  int64_t kept_events = 1'000'000;
  // Of one user in an hour that are told singly, so that none washes out the others'.
  int64_t events_per_user = 10'000;
  absl::Duration kept_event_age = absl::Hours(24 * 400);
  // Jobs that are over are forgotten, with their request_ids: all but the newest so many, and those
  // that ended longer ago.
  int64_t kept_ended_jobs = 100'000;
  absl::Duration kept_ended_job_age = absl::Hours(24 * 30);
  uint32_t max_job_ranks = 1u << 20;
  uint32_t max_trees_per_job = 100'000;
  uint32_t kept_tree_changes = 65'536;  // that a watch can resume within
  PlacementOptions placement;
  QuotaOptions quotas;
};

// The fabric as last published, immutable.
struct FabricView {
  std::shared_ptr<const Snapshot> snapshot;              // version >= 1
  std::shared_ptr<const std::vector<int64_t>> link_ids;  // [link] id in the store
  std::string source;                                    // SubnetPort::Describe()
  absl::Time swept;                                      // when the sweep that produced it ended
  absl::Duration sweep_duration;
  uint64_t mads_sent = 0, mads_resent = 0, mads_timed_out = 0;
  bool has_subnet_manager = true;
  Lid subnet_manager_lid;  // 0: unknown
  std::vector<UnansweredNode> unanswered;
  Unseen unseen;  // what follows from these
  // The forwarding tables, if there are any, are as they were when last read and lead over nothing
  // that is gone.
  bool routes_settled = false;
};

// One kind of sweep, since the start.
struct SweepNumbers {
  uint64_t count = 0, failed = 0;
  absl::Time last_time = absl::InfinitePast();  // end of the last that went well
  absl::Duration last_duration;                 // of that one
  absl::Duration period;                        // infinite: none
  std::string last_error;                       // empty: the last one went well
};

struct SweepStanding {
  SweepNumbers full, light, counters;
  bool routes_settled = false;  // as FabricView; false before the first sweep
  uint64_t mads_sent = 0, mads_resent = 0, mads_timed_out = 0;
};

struct SwitchEntries {
  SwitchIndex index;
  uint32_t entries_total = 0, entries_reserved = 0, entries_taken = 0, degree_limit = 0;
};

struct RegisterJobArgs {
  std::string request_id;
  std::string display_name;
  std::string owner;
  std::vector<std::string> endpoints;  // "host", "host/port" or port GUID; see ResolveEndpoint
  bool all_endpoints = false;
  std::optional<absl::Duration> lease;
  Actor actor = {};
};

struct JobView {
  std::shared_ptr<const JobRecord> record;
  absl::Duration lease_left;  // zero unless active
  uint32_t tree_count = 0;
  std::vector<uint32_t> lost_ranks = {};  // ascending: whose ports have gone from the fabric
};

struct CreateTreeArgs : TreeSpec {
  JobId job;
  std::string request_id;
  std::vector<uint32_t> ranks;  // of the job; empty: all
  Actor actor = {};
};

// A granted tree or advice, immutable. `record` is complete for both; advice has id 0.
struct TreeView {
  std::shared_ptr<const TreeRecord> record;
  std::shared_ptr<const JobRecord> job;
  RouteKind route_kind = RouteKind::kShortestPath;
  BusiestLink busiest;                   // all zero before the first sweep
  std::vector<Tradeoff> tradeoffs = {};  // of advice, if asked for
};

// Communicators of one job that are planned together: every line of a process grid, or lists.
struct CreateBatchArgs : CollectiveMix {
  JobId job;
  std::string request_id;
  std::optional<ProcessGrid> grid;
  std::vector<uint32_t> rank_order;  // of a grid: job rank of each cell; empty: cell r is rank r
  std::vector<std::vector<uint32_t>> communicators;  // without a grid: job ranks, none empty
  bool largest_part = false;                         // as many as fit; false: all or none
  bool accept_type1 = false;   // for a communicator that gets no tree of type II
  bool validate_only = false;  // plan, take nothing
  BatchGoal goal = BatchGoal::kBoth;
  Actor actor = {};
};

// A granted batch or, with ids of 0, a planned one; immutable.
struct BatchView {
  struct Tree {
    uint32_t communicator = 0;
    TreeView view;
  };
  struct Refusal {
    uint32_t communicator = 0;
    std::string why_not;
  };
  uint32_t communicators = 0;
  std::vector<Tree> trees;        // by communicator
  std::vector<Refusal> refusals;  // by communicator: those without a tree
  // Messages on the most loaded channel in one reduction of every communicator, and that channel;
  // 0 and empty if no type II tree crosses one, or for a retry after a restart.
  uint32_t most_packets = 0;
  std::string most_loaded;
  uint64_t fabric_version = 0;
};

// How a caller follows a batch while it is planned. Both are called on the thread that plans, often
// and with no lock held; either may be null.
struct BatchWatch {
  enum class Phase : uint8_t { kPlanning, kImproving, kHangingRanks, kGranting };
  std::function<void(Phase phase, uint32_t done, uint32_t communicators)> progress;
  std::function<bool()> is_cancelled;  // true: whoever asked has gone
};

struct CalibrateArgs {
  std::string samples_csv;
  std::string origin;              // what errors call it
  std::vector<std::string> fixed;  // as FixConstant takes them
  ResidualScale scale = ResidualScale::kAbsolute;
  std::string name;  // of the new profile; empty: "calibrated"
  bool apply = false;
};

struct CalibrationView {
  std::vector<LatencySample> samples;
  Calibration fit;
  bool applied = false;
};

enum class TreeChangeKind : uint8_t {
  kPresent,  // was granted when the watch began
  kSynced,   // all that were have been told; no tree
  kGranted,
  kRevised,   // planned anew: the same id with the next revision
  kRevoked,   // could not be planned anew
  kReleased,  // by its job, or with it
};

struct TreeChange {
  TreeChangeKind kind = TreeChangeKind::kGranted;
  std::string resume_token;  // empty: of kPresent
  TreeView tree;             // as it is now; of what is gone, as it was last
  std::string reason;        // kRevised, kRevoked: what was lost, in words
};

struct DaemonCounts {
  uint32_t active_jobs = 0, granted_trees = 0;
  uint32_t held_placements = 0;
  uint64_t placed_nodes = 0;  // that they hold
  uint64_t entries_total = 0, entries_reserved = 0, entries_taken = 0;
  TreeTotals trees;
  std::string last_sweep_error;  // empty: the last sweep went well
  // Signs that another daemon grants trees here, in words.
  std::vector<std::string> other_daemons = {};
  std::vector<DownLink> down_links = {};
};

class Manager final {
 public:
  template <class T>
  using Callback = absl::AnyInvocable<void(absl::StatusOr<T>)>;

  // Loads what the last daemon left; granted trees are granted at once, leases start anew. Nothing
  // is swept yet. The three outlive the manager. Errors: as Store::Load.
  static absl::StatusOr<std::unique_ptr<Manager>> Create(Store* store, SubnetPort* port,
                                                         const Clock* clock,
                                                         ManagerOptions options);
  // Stops, then waits for the store to answer what was submitted. No other call may be under way.
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // Starts the threads that read the subnet (at once, then by periods) and that end expired leases.
  // Stop joins them and refuses nothing: calls in flight finish. Both idempotent.
  void Start();
  void Stop();

  // Puts other options in force while it runs: all but max_job_ranks, which holds for whoever
  // checks requests too, and kept_tree_changes. Rules hold for the published fabric at once, the
  // rest for what is asked for from now on; a calibrated profile stays in force. Blocks for the
  // store; on its error nothing has changed.
  absl::Status Reconfigure(const ManagerOptions& options);
  // Adds an event of a kind of event_kinds.h, without waiting for it to be kept.
  void Announce(absl::string_view kind, std::string object, std::string message,
                std::string actor = "");

  // --- Quotas and the account of deeds ---
  // Who holds how much, and may. Goes with the manager.
  QuotaLedger& quotas();
  // Gives a user a limit of his own or (`drop`) the configuration's again. INVALID_ARGUMENT: there
  // is no limit of that name.
  void SetQuota(PutQuota put, const Actor& actor, Callback<QuotaRecord> done);
  // As Store::Deeds.
  absl::StatusOr<std::vector<DeedRecord>> Deeds(const DeedFilter& filter) const;
  // Where deeds are noted that no change brings with it.
  DeedLog& deeds();

  // As Store::DatabaseId: who this daemon is, to those that it serves.
  uint64_t DatabaseId() const;
  // `from` ("the agent of host n7") was served by the daemon with that database last; 0: by none.
  // Another database than ours is a sign of another daemon, told as an event and by Counts.
  void HeardOfDatabase(uint64_t database, absl::string_view from);

  // --- Fabric ---
  // Null before the first successful sweep.
  std::shared_ptr<const FabricView> fabric() const;
  // Sweeps now, or joins the sweep under way, and publishes; blocks. A failed sweep leaves the
  // published view as it is. Errors: as SubnetPort::Sweep and Store.
  absl::StatusOr<std::shared_ptr<const FabricView>> Sweep();
  // Utilisation of the published fabric's channels as a plan would see it now: measured, and
  // promised to granted trees. Never null; empty where there is none.
  std::shared_ptr<const LinkLoad> load();
  // Measured and promised load of a link of the published fabric; of another fabric, what is
  // measured of the same link.
  LinkMeasure Measure(const Fabric& fabric, LinkIndex link) const;
  // Newest counters of a switch's ports, by port; empty: none was read yet. Errors: as Store.
  absl::StatusOr<std::vector<PortCounterRecord>> PortCounts(Guid guid) const;
  // As Store::History.
  absl::StatusOr<std::vector<HistoryPoint>> PortHistory(const HistoryQuery& query) const;
  // How the store's writer does.
  StoreStatistics Statistics() const;
  // Of every switch of the published fabric, in index order. Empty before the first sweep.
  std::vector<SwitchEntries> Entries() const;
  // Trees with an entry in that switch, ascending.
  std::vector<TreeId> TreesOfSwitch(Guid guid) const;
  DaemonCounts Counts() const;
  // How the reading of the subnet fares. Never waits for it.
  SweepStanding Sweeps() const;
  // Other periods than at the start, from now on.
  void SetSweepPeriods(const SweepPeriods& periods);
  absl::StatusOr<std::vector<EventRecord>> Events(const EventFilter& filter);
  // Events that match `filter` as they become durable: after the one with id `after`, all that are
  // kept (0), or from now on (unset). As EventFeed::Watch; must not outlive the manager.
  absl::StatusOr<std::unique_ptr<EventWatch>> WatchEvents(EventFilter filter,
                                                          std::optional<int64_t> after,
                                                          std::function<void()> wake);
  // With which trees are planned now; never null.
  std::shared_ptr<const CostProfile> profile() const;

  // --- Calibration --- (status codes: proto/coppice/v1/fabric.proto)
  // Fits against the profile in force. With `apply` the result is in force, and durable, when
  // `done` is called. O(samples * constants^2) on the caller's thread.
  void Calibrate(const CalibrateArgs& args, Callback<std::shared_ptr<const CalibrationView>> done);
  // Back to the profile of the configuration, which is the answer.
  void ResetCalibration(Callback<std::shared_ptr<const CostProfile>> done);

  // --- Jobs --- (status codes: proto/coppice/v1/jobs.proto)
  void RegisterJob(RegisterJobArgs args, Callback<JobView> done);
  absl::StatusOr<JobView> GetJob(JobId id);
  std::vector<JobView> ListJobs(JobId after, size_t limit) const;
  // Renews the lease; returns the job's state (kEnded and kExpired are not errors). NOT_FOUND.
  absl::StatusOr<JobView> KeepAlive(JobId id);
  // The number of trees that were released. Ending an ended job is OK and gives 0.
  void EndJob(JobId id, Callback<uint32_t> done, const Actor& actor = {});

  // --- Trees --- (status codes: proto/coppice/v1/trees.proto)
  void CreateTree(CreateTreeArgs args, Callback<TreeView> done);
  absl::StatusOr<TreeView> AdviseTree(const CreateTreeArgs& args);
  // Plans on the caller's thread, for seconds if there are tens of thousands of ranks. One durable
  // step grants all of it or, after an error or a cancellation, nothing. Who waits for the same
  // request_id while its first caller is cancelled gets ABORTED.
  void BatchCreateTrees(CreateBatchArgs args, BatchWatch watch,
                        Callback<std::shared_ptr<const BatchView>> done);
  absl::StatusOr<TreeView> GetTree(TreeId id) const;
  // Granted trees by id, of one job or (JobId 0) of all.
  std::vector<TreeView> ListTrees(JobId job, TreeId after, size_t limit) const;
  void ReleaseTree(TreeId id, Callback<TreeId> done, const Actor& actor = {});
  // What becomes of the trees of one job or (JobId 0) of all, from now on or from `resume_token`
  // on. `wake` as TreeWatch has it. The watch must not outlive the manager.
  absl::StatusOr<std::unique_ptr<TreeWatch>> WatchTrees(JobId job, absl::string_view resume_token,
                                                        std::function<void()> wake);

  // --- Placements --- As thread-safe as the manager; goes with it.
  Placements& placements();

  // --- What the threads of Start do, for whoever turns the clock by hand ---
  // Ends all jobs whose lease has run out and all placements whose term has, without waiting for
  // the store; returns the time until the next ends at the earliest (infinite: there is none).
  absl::Duration ExpireLeases();
  // The daemon heard nobody for so long, at least Background::kStall: leases and terms that this
  // may have cost a renewal begin anew; a second or more is an event.
  void ForgiveStall(absl::Duration stalled);
  // Plans anew, or revokes, the trees that do not stand on the published fabric; Sweep does so,
  // too. Blocks. False: some are left, because the store failed or others were always quicker.
  bool RepairTrees();
  // Writes what was granted, released and refused since the last call as events.
  void FlushActivity();

 private:
  class Parts;
  explicit Manager(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// Key of a google.rpc.QuotaFailure payload on RESOURCE_EXHAUSTED statuses of CreateTree and
// BatchCreateTrees: one line per full switch, "GUID LIMIT USED DESCRIPTION"; rpc turns it into the
// message.
inline constexpr char kFullSwitchesPayload[] = "coppice/full-switches";

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_MANAGER_H_
