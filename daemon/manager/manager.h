// The use cases of the daemon: keep the fabric, register jobs, grant and release trees. One object
// that the services call and that knows neither gRPC nor SQLite nor MADs: it is handed a Store, a
// SubnetPort and a Clock.
//
// Invariants
// - A tree is answered as granted only after the store made it durable; entry counts in memory are
//   never below what the store holds.
// - Planning runs unlocked on a shared snapshot; a grant against a stale snapshot or against entries
//   that went meanwhile is planned again, a bounded number of times, then ABORTED.
// - A job that ends or expires takes its trees with it, in one mutation.
//
// Thread-safe. Callbacks run on the store's thread or, when nothing need be written or on error,
// on the caller's; they must not block.
#ifndef COPPICE_DAEMON_MANAGER_MANAGER_H_
#define COPPICE_DAEMON_MANAGER_MANAGER_H_

#include <cstdint>
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
#include "daemon/fabric/snapshot.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/manager/capability_rules.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/planner.h"
#include "db/store.h"

namespace coppice {

struct ManagerOptions {
  CostProfile profile;
  std::vector<CapabilityRule> capability_rules;  // the first that matches a switch wins
  absl::Duration default_lease = absl::Seconds(60);
  absl::Duration min_lease = absl::Seconds(1), max_lease = absl::Hours(24);
  absl::Duration sweep_period = absl::InfiniteDuration();  // infinite: at start and on request only
  uint32_t max_job_ranks = 1u << 20;
  uint32_t max_trees_per_job = 100'000;
};

// The fabric as last published, immutable.
struct FabricView {
  std::shared_ptr<const Snapshot> snapshot;  // version >= 1
  std::shared_ptr<const std::vector<int64_t>> link_ids;  // [link] id in the store
  std::string source;                        // SubnetPort::Describe()
  absl::Time swept;                          // when the sweep that produced it ended
  absl::Duration sweep_duration;
  uint64_t mads_sent = 0, mads_resent = 0, mads_timed_out = 0;
  bool has_subnet_manager = true;
  std::vector<UnansweredNode> unanswered;
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
};

struct JobView {
  std::shared_ptr<const JobRecord> record;
  absl::Duration lease_left;           // zero unless active
  uint32_t tree_count = 0;
};

struct CreateTreeArgs {
  JobId job;
  std::string request_id;
  std::vector<uint32_t> ranks;         // of the job; empty: all
  Operation operation = Operation::kAllreduce;
  std::vector<SizeShare> sizes;        // empty: 8 B
  std::optional<TreeType> type;
  std::optional<TreeBuilder> builder;
  std::optional<uint32_t> width, nic_degree;
  std::optional<Guid> root_switch;
};

// A granted tree or advice, immutable. `record` is complete for both; advice has id 0.
struct TreeView {
  std::shared_ptr<const TreeRecord> record;
  std::shared_ptr<const JobRecord> job;
  RouteKind route_kind = RouteKind::kShortestPath;
};

struct DaemonCounts {
  uint32_t active_jobs = 0, granted_trees = 0;
  uint64_t entries_total = 0, entries_taken = 0;
  std::string last_sweep_error;        // empty: the last sweep went well
};

class Manager {
 public:
  template <class T>
  using Callback = absl::AnyInvocable<void(absl::StatusOr<T>)>;

  // Loads what the last daemon left; granted trees are granted at once, leases start anew. Nothing
  // is swept yet. The three outlive the manager. Errors: as Store::Load.
  static absl::StatusOr<std::unique_ptr<Manager>> Create(Store* store, SubnetPort* port,
                                                         const Clock* clock,
                                                         ManagerOptions options);
  virtual ~Manager() = default;

  // Starts the threads that sweep (at once, then by period) and that end expired leases. Stop joins
  // them and refuses nothing: calls in flight finish. Both idempotent.
  virtual void Start() = 0;
  virtual void Stop() = 0;

  // --- Fabric ---
  // Null before the first successful sweep.
  virtual std::shared_ptr<const FabricView> fabric() const = 0;
  // Sweeps now, or joins the sweep under way, and publishes; blocks. A failed sweep leaves the
  // published view as it is. Errors: as SubnetPort::Sweep and Store.
  virtual absl::StatusOr<std::shared_ptr<const FabricView>> Sweep() = 0;
  // Of every switch of the published fabric, in index order. Empty before the first sweep.
  virtual std::vector<SwitchEntries> Entries() const = 0;
  // Trees with an entry in that switch, ascending.
  virtual std::vector<TreeId> TreesOfSwitch(Guid guid) const = 0;
  virtual DaemonCounts Counts() const = 0;
  virtual absl::StatusOr<std::vector<EventRecord>> Events(const EventFilter& filter) = 0;
  virtual const CostProfile& profile() const = 0;

  // --- Jobs --- (status codes: proto/coppice/v1/jobs.proto)
  virtual void RegisterJob(RegisterJobArgs args, Callback<JobView> done) = 0;
  virtual absl::StatusOr<JobView> GetJob(JobId id) = 0;
  virtual std::vector<JobView> ListJobs(JobId after, size_t limit) const = 0;
  // Renews the lease; returns the job's state (kEnded and kExpired are not errors). NOT_FOUND.
  virtual absl::StatusOr<JobView> KeepAlive(JobId id) = 0;
  // The number of trees that were released. Ending an ended job is OK and gives 0.
  virtual void EndJob(JobId id, Callback<uint32_t> done) = 0;

  // --- Trees --- (status codes: proto/coppice/v1/trees.proto)
  virtual void CreateTree(CreateTreeArgs args, Callback<TreeView> done) = 0;
  virtual absl::StatusOr<TreeView> AdviseTree(const CreateTreeArgs& args) = 0;
  virtual absl::StatusOr<TreeView> GetTree(TreeId id) const = 0;
  // Granted trees by id, of one job or (JobId 0) of all.
  virtual std::vector<TreeView> ListTrees(JobId job, TreeId after, size_t limit) const = 0;
  virtual void ReleaseTree(TreeId id, Callback<TreeId> done) = 0;
};

// Finds the endpoint that a user names: host name (its first cabled port), "host/port", or a port
// GUID of 16 hex digits with or without 0x. NOT_FOUND names it and suggests what exists;
// INVALID_ARGUMENT: empty.
absl::StatusOr<EndpointIndex> ResolveEndpoint(const Fabric& fabric, absl::string_view name);

// Key of a google.rpc.QuotaFailure payload on RESOURCE_EXHAUSTED statuses of CreateTree: one line
// per full switch, "GUID LIMIT USED DESCRIPTION"; rpc turns it into the message.
inline constexpr char kFullSwitchesPayload[] = "coppice/full-switches";

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_MANAGER_H_
