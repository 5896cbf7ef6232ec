// The use cases of the daemon: keep the fabric, register jobs, grant and release trees, hold nodes
// for jobs to come. One object that the services call and that knows neither gRPC nor SQLite nor
// MADs: it is handed a Store, a SubnetPort and a Clock.
//
// Invariants
// - A tree is answered as granted only after the store made it durable; entry counts in memory are
//   never below what the store holds.
// - Planning runs unlocked on a shared snapshot; a grant against a stale snapshot or against
//   entries that went meanwhile is planned again, a bounded number of times, then ABORTED.
// - A job that ends or expires takes its trees with it, in one mutation.
//
// Thread-safe. Callbacks run on the store's thread or, when nothing need be written or on error,
// on the caller's; they must not block. How the parts divide the work: README.md.
#ifndef COPPICE_DAEMON_MANAGER_MANAGER_H_
#define COPPICE_DAEMON_MANAGER_MANAGER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/manager/background.h"
#include "daemon/manager/change_feed.h"
#include "daemon/manager/event_log.h"
#include "daemon/manager/fabric_view.h"
#include "daemon/manager/grants.h"
#include "daemon/manager/jobs.h"
#include "daemon/manager/known_times.h"
#include "daemon/manager/load_keeper.h"
#include "daemon/manager/options.h"
#include "daemon/manager/placement/placements.h"
#include "daemon/manager/repair.h"
#include "daemon/manager/requests.h"
#include "daemon/manager/reservations.h"
#include "daemon/manager/rounds.h"
#include "daemon/manager/store_calls.h"
#include "daemon/manager/sweeper.h"
#include "daemon/manager/switches/switches.h"
#include "daemon/manager/tables.h"
#include "daemon/manager/topology.h"
#include "daemon/tree/cost_profile.h"
#include "db/store.h"

namespace coppice {

// The use cases of calibration (profiles.cc). Thread-safe. Methods as Manager's.
class Profiles : private UseCase {
 public:
  using Profile = std::shared_ptr<const CostProfile>;

  // Puts the configured profile in force.
  explicit Profiles(const UseCase& with);

  // Puts in force what an earlier run left; empty: nothing. Text that is no profile any more is
  // told, as a log line and an event, and left in the store for whoever wants to mend it.
  void Restore(const std::string& toml);

  // Another configured profile: in force at once, unless a calibrated one is.
  void Configure(const CostProfile& profile);

  void Calibrate(const CalibrateArgs& args, Callback<std::shared_ptr<const CalibrationView>> done);
  void Reset(Callback<Profile> done);

 private:
  void PutInForce(Profile profile);

  Profile configured_;  // guarded by tables_->mu
};

class Manager final {
 public:
  template <class T>
  using Callback = coppice::Callback<T>;

  // Loads what the last daemon left; granted trees are granted at once, leases start anew. Nothing
  // is swept yet. The three outlive the manager. Errors: as Store::Load.
  static absl::StatusOr<std::unique_ptr<Manager>> Create(Store* store, SubnetPort* port,
                                                         const Clock* clock,
                                                         ManagerOptions options);
  // Stops, then waits for the store to answer what was submitted. No other call may be under way.
  ~Manager();

  // Starts the threads that read the subnet (at once, then by periods) and that end expired leases.
  // Stop joins them; calls in flight finish, and of what is asked for later only trees that
  // switches are to carry are refused, with UNAVAILABLE. Both idempotent.
  void Start() {
    installer_.Start();
    grants_.Start();
    sweeper_.Start();
    background_.Start();
  }
  void Stop();

  // Puts other options in force while it runs: all but max_job_ranks, which holds for whoever
  // checks requests too, and kept_tree_changes. Rules hold for the published fabric at once, the
  // rest for what is asked for from now on; a calibrated profile stays in force. Blocks for the
  // store; on its error nothing has changed.
  absl::Status Reconfigure(const ManagerOptions& options);
  // Adds an event of a kind of event_kinds.h, without waiting for it to be kept.
  void Announce(absl::string_view kind, std::string object, std::string message,
                std::string actor = "") {
    events_.Append(kind, std::move(object), std::move(message), {std::move(actor), ""});
  }

  // --- Quotas and the account of deeds ---
  // Who holds how much, and may. Goes with the manager.
  QuotaLedger& quotas() { return tables_.quotas; }
  // Gives a user, an account or a tenant a limit of its own or (`drop`) what holds without one
  // again. INVALID_ARGUMENT: there is no limit of that name.
  void SetQuota(PutQuota put, const Actor& actor, Callback<QuotaRecord> done);
  // Puts these accounts in place of the present ones; one that stays and names no tenant keeps its
  // own. Blocks for the store. Errors: as PutAccounts.
  absl::Status ImportAccounts(PutAccounts put, const Actor& actor);
  // Another tenant, "0x0001" for a partition; empty: its parent's. Blocks for the store. NOT_FOUND:
  // there is no such account.
  absl::Status SetTenant(const std::string& account, const std::string& tenant, const Actor& actor);
  Reservations& reservations() { return reservations_; }
  // As Store::Deeds.
  absl::StatusOr<std::vector<DeedRecord>> Deeds(const DeedFilter& filter) const {
    return calls_.store().Deeds(filter);
  }
  // Where deeds are noted that no change brings with it.
  DeedLog& deeds() { return deeds_; }

  // As Store::DatabaseId: who this daemon is, to those that it serves.
  uint64_t DatabaseId() const { return calls_.store().DatabaseId(); }
  // `from` ("the agent of host n7") was served by the daemon with that database last; 0: by none.
  // Another database than ours is a sign of another daemon, told as an event and by Counts.
  void HeardOfDatabase(uint64_t database, absl::string_view from) { others_.Hear(database, from); }

  // --- Fabric ---
  // Null before the first successful sweep.
  std::shared_ptr<const FabricView> fabric() const { return tables_.Published(); }
  // Sweeps now, or joins the sweep under way, and publishes; blocks. A failed sweep leaves the
  // published view as it is. Errors: as SubnetPort::Sweep and Store.
  absl::StatusOr<std::shared_ptr<const FabricView>> Sweep() { return sweeper_.Sweep(); }
  // Utilisation of the published fabric's channels as a plan would see it now: measured, and
  // promised to granted trees. Never null; empty where there is none.
  std::shared_ptr<const LinkLoad> load();
  // Measured and promised load of a link of the published fabric; of another fabric, what is
  // measured of the same link.
  LinkMeasure Measure(const Fabric& fabric, LinkIndex link) const;
  // Newest counters of a switch's ports, by port; empty: none was read yet. Errors: as Store.
  absl::StatusOr<std::vector<PortCounterRecord>> PortCounts(Guid guid) const;
  // As Store::History.
  absl::StatusOr<std::vector<HistoryPoint>> PortHistory(const HistoryQuery& query) const {
    return calls_.store().History(query);
  }
  // How the store's writer does.
  StoreStatistics Statistics() const { return calls_.store().Statistics(); }
  // Of every switch of the published fabric, in index order. Empty before the first sweep.
  std::vector<SwitchEntries> Entries() const;
  // Trees with an entry in that switch, ascending.
  std::vector<TreeId> TreesOfSwitch(Guid guid) const;
  DaemonCounts Counts() const;
  // How the reading of the subnet fares. Never waits for it.
  SweepStanding Sweeps() const { return sweeper_.standing(); }
  absl::StatusOr<std::vector<EventRecord>> Events(const EventFilter& filter) {
    return calls_.store().Events(filter);
  }
  // Events that match `filter` as they become durable: after the one with id `after`, all that are
  // kept (0), or from now on (unset). As EventFeed::Watch; must not outlive the manager.
  absl::StatusOr<std::unique_ptr<EventWatch>> WatchEvents(EventFilter filter,
                                                          std::optional<int64_t> after,
                                                          std::function<void()> wake) {
    return event_feed_.Watch(std::move(filter), after, std::move(wake));
  }
  // With which trees are planned now; never null.
  std::shared_ptr<const CostProfile> profile() const;

  // --- Calibration --- (status codes: proto/coppice/v1/fabric.proto)
  // Fits against the profile in force. With `apply` the result is in force, and durable, when
  // `done` is called. O(samples * constants^2) on the caller's thread.
  void Calibrate(const CalibrateArgs& args, Callback<std::shared_ptr<const CalibrationView>> done) {
    profiles_.Calibrate(args, std::move(done));
  }
  // Back to the profile of the configuration, which is the answer.
  void ResetCalibration(Callback<std::shared_ptr<const CostProfile>> done) {
    profiles_.Reset(std::move(done));
  }

  // --- Jobs --- (status codes: proto/coppice/v1/jobs.proto)
  void RegisterJob(RegisterJobArgs args, Callback<JobView> done) {
    jobs_.Register(std::move(args), std::move(done));
  }
  absl::StatusOr<JobView> GetJob(JobId id) { return jobs_.Get(id); }
  std::vector<JobView> ListJobs(JobId after, size_t limit) const {
    return jobs_.List(after, limit);
  }
  // Renews the lease; returns the job's state (kEnded and kExpired are not errors). NOT_FOUND.
  absl::StatusOr<JobView> KeepAlive(JobId id) { return jobs_.KeepAlive(id); }
  // The number of trees that were released. Ending an ended job is OK and gives 0.
  void EndJob(JobId id, Callback<uint32_t> done, const Actor& actor = {}) {
    jobs_.End(id, std::move(done), actor);
  }

  // --- Trees --- (status codes: proto/coppice/v1/trees.proto)
  void CreateTree(CreateTreeArgs args, Callback<TreeView> done) {
    grants_.CreateTree(std::move(args), std::move(done));
  }
  absl::StatusOr<TreeView> AdviseTree(const CreateTreeArgs& args) {
    return grants_.AdviseTree(args);
  }
  // Plans on the caller's thread, for seconds if there are tens of thousands of ranks. One durable
  // step grants all of it or, after an error or a cancellation, nothing. Who waits for the same
  // request_id while its first caller is cancelled gets ABORTED.
  void BatchCreateTrees(CreateBatchArgs args, BatchWatch watch,
                        Callback<std::shared_ptr<const BatchView>> done) {
    grants_.BatchCreateTrees(std::move(args), watch, std::move(done));
  }
  absl::StatusOr<TreeView> GetTree(TreeId id) const;
  // Granted trees by id, of one job or (JobId 0) of all.
  std::vector<TreeView> ListTrees(JobId job, TreeId after, size_t limit) const;
  void ReleaseTree(TreeId id, Callback<TreeId> done, const Actor& actor = {}) {
    grants_.Release(id, std::move(done), actor);
  }
  // What earlier runs of the application measured on ranks that lie like the tree's, with trees of
  // its type. Empty: nothing is known.
  std::vector<WayTime> FindTimes(const TreeView& tree, const std::string& application) const;
  // Joins what a run of it measured with this tree; nothing where its ranks have left the fabric.
  // Errors as GetTree and KnownTimes::Add.
  absl::Status AddTimes(TreeId id, const std::string& application,
                        absl::Span<const WayTime> measured);
  // What becomes of the trees of one job or (JobId 0) of all, from now on or from `resume_token`
  // on. `wake` as TreeWatch has it. The watch must not outlive the manager.
  absl::StatusOr<std::unique_ptr<TreeWatch>> WatchTrees(JobId job, absl::string_view resume_token,
                                                        std::function<void()> wake);

  // --- Switches that aggregate --- Goes with the manager.
  Switches& switches() { return switches_; }

  // --- Placements --- As thread-safe as the manager; goes with it.
  Placements& placements() { return placements_; }

  // --- What the threads of Start do, for whoever turns the clock by hand ---
  // Ends all jobs whose lease has run out and all placements whose term has, without waiting for
  // the store; returns the time until the next ends at the earliest (infinite: there is none).
  absl::Duration ExpireLeases() { return Expire(clock_->Monotonic()); }
  // The daemon heard nobody for so long, at least Background::kStall: leases and terms that this
  // may have cost a renewal begin anew; a second or more is an event.
  void ForgiveStall(absl::Duration stalled);
  // Writes what was granted, released and refused since the last call as events.
  void FlushActivity();

 private:
  friend class ManagerPeer;  // of tests, which repair by hand

  Manager(Store* store, SubnetPort* port, const Clock* clock, ManagerOptions options,
          uint64_t last_version);
  absl::Duration Expire(absl::Duration now);
  WayTimesOf TimesOf(const TreeView& tree, const std::string& application) const;
  // With accounts_mu_ held: stores, counts and tells these accounts.
  absl::Status PutAccountsNow(PutAccounts put, const Actor& actor, const std::string& object,
                              std::string what);
  // Trees whose switches do not carry them any more are to be judged.
  void NoteLost(const std::vector<TreeId>& trees);

  LiveOptions options_;
  const Clock* const clock_;
  Tables tables_;
  EventFeed event_feed_;
  StoreCalls calls_;
  std::mutex accounts_mu_;  // held while accounts are read, changed and stored
  DeedLog deeds_;
  EventLog events_;
  Pruning pruning_;
  OtherDaemons others_;
  LoadKeeper load_;
  SwitchInstaller installer_;
  const UseCase with_;
  Topology topology_;
  Switches switches_;
  Jobs jobs_;
  Placements placements_;
  Reservations reservations_;
  Profiles profiles_;
  KnownTimes known_times_;
  Grants grants_;
  Repair repair_;
  Rounds rounds_;
  StoreWatch store_watch_;  // of the background's thread
  Background background_;
  Sweeper sweeper_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_MANAGER_H_
