#include "daemon/manager/manager.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/log.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/background.h"
#include "daemon/manager/change_feed.h"
#include "daemon/manager/event_log.h"
#include "daemon/manager/grants.h"
#include "daemon/manager/housekeeping.h"
#include "daemon/manager/jobs.h"
#include "daemon/manager/load/load_keeper.h"
#include "daemon/manager/placement/placements.h"
#include "daemon/manager/profiles.h"
#include "daemon/manager/repair.h"
#include "daemon/manager/sweep/rounds.h"
#include "daemon/manager/sweep/sweeper.h"
#include "daemon/manager/tables.h"
#include "daemon/manager/topology.h"

namespace coppice {
namespace {

constexpr absl::Duration kToldStall = absl::Seconds(1);

}  // namespace

class Manager::Parts {
 public:
  Parts(Store* store, SubnetPort* port, const Clock* wall_clock, ManagerOptions given,
        uint64_t last_version)
      : options(std::move(given)),
        clock(wall_clock),
        event_feed(store),
        calls(store, [this](const DeedRecord& deed) { deeds.Told(deed); }),
        deeds(&calls, clock),
        events(&calls, clock, options, [this] { event_feed.Look(); }),
        pruning(&calls, clock),
        others(store->DatabaseId(), &events, clock),
        load(store, &tables, options->load),
        topology(&calls, &events, port, clock, &tables, &load, options->capability_rules,
                 last_version),
        jobs(&calls, &events, clock, &tables, options, [this] { background.Wake(); }),
        placements(&calls, &events, clock, &tables, options, &jobs, [this] { background.Wake(); }),
        profiles(&calls, &events, &tables, options->profile),
        grants(&calls, clock, &tables, options, &jobs),
        repair(&calls, &events, clock, &tables),
        rounds(port, &tables, &topology, &repair, &events, clock,
               [this](CounterSweep sweep) { return TakeCounters(sweep); }),
        store_watch(&calls, &events, clock),
        background({[this] { return clock->Monotonic(); },
                    [this](absl::Duration stalled) { ForgiveStall(stalled); },
                    [this](absl::Duration now) { return Expire(now); },
                    [this] { store_watch.Look(); }, [this] { FlushActivity(); }}),
        sweeper(rounds.Duties(), clock, options->sweep_periods) {}

  ~Parts() {
    Stop();
    calls.AwaitAll();  // the last callbacks use what is destroyed next
  }

  void Start() {
    sweeper.Start();
    background.Start();
  }

  void Stop() {
    sweeper.Stop();
    background.Stop();
    FlushActivity();
    const absl::Status flushed = load.Flush();
    if (!flushed.ok()) spdlog::warn("the last minutes of history are lost: {}", flushed.ToString());
  }

  // The store's part first: it alone can fail, and then nothing has changed.
  absl::Status Reconfigure(const ManagerOptions& next) {
    RETURN_IF_ERROR(topology.SetRules(next.capability_rules));
    options.Set(next);
    tables.quotas.Configure(next.quotas);
    profiles.Configure(next.profile);
    load.Configure(next.load);
    {
      std::lock_guard lock(tables.mu);
      tables.promised_duty = next.promised_duty;
    }
    sweeper.SetPeriods(next.sweep_periods);
    return absl::OkStatus();
  }

  absl::Status TakeCounters(const CounterSweep& sweep) {
    const std::shared_ptr<const FabricView> view = tables.Published();
    if (view == nullptr) return NoFabricError();
    std::vector<EventRecord> told;
    unread.Take(sweep, clock->Now(), told);
    absl::Status status = load.TakeReadings(sweep, view, clock->Now(), told);
    events.Append(std::move(told));
    return status;
  }

  absl::Duration Expire(absl::Duration now) {
    const absl::Duration next_job = jobs.ExpireLeases(now);
    return std::min(next_job, placements.Expire(now));
  }

  void ForgiveStall(absl::Duration stalled) {
    jobs.ForgiveStall(stalled);
    placements.ForgiveStall(stalled);
    if (stalled < kToldStall) return;
    const std::string what =
        absl::StrFormat("it did not run for %.1f s, or waited for its disk: leases begin anew",
                        absl::ToDoubleSeconds(stalled));
    spdlog::warn("the daemon was stalled: {}", what);
    events.Append("daemon.stalled", "daemon", what);
  }

  void FlushActivity() {
    std::vector<EventRecord> happened;
    {
      std::lock_guard lock(tables.mu);
      happened = tables.activity.Take(clock->Now());
    }
    events.Append(std::move(happened));
    events.Flush();
    tables.feed.Age(clock->Monotonic());
    deeds.FlushDue();
    load.ForgetIfSilent(clock->Monotonic());
    const std::shared_ptr<const ManagerOptions> now = options.Get();
    pruning.Run({now->kept_events, now->kept_event_age},
                {now->kept_ended_jobs, now->kept_ended_job_age});
  }

  LiveOptions options;
  const Clock* const clock;
  Tables tables;
  EventFeed event_feed;
  StoreCalls calls;
  DeedLog deeds;
  EventLog events;
  Pruning pruning;
  OtherDaemons others;
  UnreadWatch unread;  // of the sweeping thread
  LoadKeeper load;
  Topology topology;
  Jobs jobs;
  Placements placements;
  Profiles profiles;
  Grants grants;
  Repair repair;
  Rounds rounds;
  StoreWatch store_watch;  // of the background's thread
  Background background;
  Sweeper sweeper;
};

Manager::Manager(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Manager::~Manager() = default;

absl::StatusOr<std::unique_ptr<Manager>> Manager::Create(Store* store, SubnetPort* port,
                                                         const Clock* clock,
                                                         ManagerOptions options) {
  ASSIGN_OR_RETURN(StoredState state, store->Load());
  auto parts =
      std::make_unique<Parts>(store, port, clock, std::move(options), state.last_fabric_version);
  {
    std::lock_guard lock(parts->tables.mu);
    parts->tables.entries.SetCapabilities(state.entries);
    parts->tables.promised_duty = parts->options->promised_duty;
    parts->tables.feed.KeepAtMost(parts->options->kept_tree_changes);
    parts->tables.on_stale = [sweeper = &parts->sweeper] { sweeper->WakeRepair(); };
  }
  RETURN_IF_ERROR(parts->load.Restore(clock->Now()));
  parts->tables.quotas.Configure(parts->options->quotas);
  parts->tables.quotas.SetRows(state.quotas);
  parts->profiles.Restore(state.profile_toml);
  parts->jobs.Restore(std::move(state.jobs), state.last_job);
  parts->placements.Restore(std::move(state.placements), state.last_placement);
  RETURN_IF_ERROR(parts->grants.Restore(std::move(state.trees), state.last_tree));
  return std::unique_ptr<Manager>(new Manager(std::move(parts)));
}

void Manager::Start() { parts_->Start(); }
void Manager::Stop() { parts_->Stop(); }
absl::Status Manager::Reconfigure(const ManagerOptions& options) {
  return parts_->Reconfigure(options);
}
void Manager::Announce(absl::string_view kind, std::string object, std::string message,
                       std::string actor) {
  parts_->events.Append(kind, std::move(object), std::move(message), {std::move(actor), ""});
}

QuotaLedger& Manager::quotas() { return parts_->tables.quotas; }

void Manager::SetQuota(PutQuota put, const Actor& actor, Callback<QuotaRecord> done) {
  const QuotaRecord& quota = put.quota;
  if (!FindQuota(quota.limit).has_value()) {
    return done(absl::InvalidArgumentError(absl::StrCat(
        "quota: ", quota.limit, " is no limit; coppicectl quota shows those there are")));
  }
  const std::string object = absl::StrCat("user:", quota.holder);
  put.deed = DeedOf(actor, absl::StrCat(object, " ", quota.limit), parts_->clock->Now());
  PutQuota mutation = put;
  parts_->calls.Submit(
      std::move(mutation), [this, put = std::move(put), object, by = NameOf(actor),
                            callback = std::move(done)](const absl::Status& status) mutable {
        if (!status.ok()) return callback(status);
        parts_->tables.quotas.SetRow(put.quota, put.drop);
        const bool is_none = put.quota.value == QuotaLimit::kNone;
        parts_->events.Append("quota.changed", object,
                              absl::StrCat(put.quota.limit, ": ",
                                           put.drop  ? "as configured"
                                           : is_none ? "no limit"
                                                     : absl::StrCat("at most ", put.quota.value)),
                              {by, ""});
        callback(std::move(put.quota));
      });
}

absl::StatusOr<std::vector<DeedRecord>> Manager::Deeds(const DeedFilter& filter) const {
  return parts_->calls.store().Deeds(filter);
}

DeedLog& Manager::deeds() { return parts_->deeds; }
uint64_t Manager::DatabaseId() const { return parts_->calls.store().DatabaseId(); }
void Manager::HeardOfDatabase(uint64_t database, absl::string_view from) {
  parts_->others.Hear(database, from);
}
absl::Duration Manager::ExpireLeases() { return parts_->Expire(parts_->clock->Monotonic()); }
void Manager::ForgiveStall(absl::Duration stalled) { parts_->ForgiveStall(stalled); }
void Manager::FlushActivity() { parts_->FlushActivity(); }
bool Manager::RepairTrees() { return parts_->repair.Run(/*swept=*/false); }

std::shared_ptr<const FabricView> Manager::fabric() const { return parts_->tables.Published(); }

absl::StatusOr<std::shared_ptr<const FabricView>> Manager::Sweep() {
  return parts_->sweeper.Sweep();
}

LinkMeasure Manager::Measure(const Fabric& fabric, LinkIndex link) const {
  LinkMeasure measure = parts_->load.Measure(fabric, link);
  const Tables& tables = parts_->tables;
  std::lock_guard lock(tables.mu);
  if (tables.view == nullptr || tables.view->snapshot->fabric.get() != &fabric) return measure;
  const ChannelIndex ab(2 * link.value());
  const auto promised = [&](ChannelIndex c) {
    return std::min(static_cast<double>(tables.load.parts(c)) / kWholeChannel, 1.0);
  };
  measure.ab.promised = promised(ab);
  measure.ba.promised = promised(Fabric::Reverse(ab));
  return measure;
}

absl::StatusOr<std::vector<PortCounterRecord>> Manager::PortCounts(Guid guid) const {
  std::vector<PortCounterRecord> ports = parts_->load.Counters(guid);
  if (!ports.empty()) return ports;
  return parts_->calls.store().Counters(guid);
}

absl::StatusOr<std::vector<HistoryPoint>> Manager::PortHistory(const HistoryQuery& query) const {
  return parts_->calls.store().History(query);
}

StoreStatistics Manager::Statistics() const { return parts_->calls.store().Statistics(); }

std::shared_ptr<const LinkLoad> Manager::load() {
  std::lock_guard lock(parts_->tables.mu);
  return parts_->tables.load.Current();
}

std::vector<SwitchEntries> Manager::Entries() const {
  std::vector<SwitchEntries> entries;
  std::lock_guard lock(parts_->tables.mu);
  if (parts_->tables.view == nullptr) return entries;
  const Fabric& fabric = *parts_->tables.view->snapshot->fabric;
  entries.reserve(fabric.switch_count());
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    const EntryUse use = parts_->tables.entries.Use(fabric.switch_info(SwitchIndex(s)).guid);
    entries.push_back({SwitchIndex(s), use.capability.entries_total,
                       use.capability.entries_reserved, use.entries_taken,
                       use.capability.degree_limit});
  }
  return entries;
}

std::vector<TreeId> Manager::TreesOfSwitch(Guid guid) const {
  std::lock_guard lock(parts_->tables.mu);
  return parts_->tables.entries.TreesOf(guid);
}

DaemonCounts Manager::Counts() const {
  DaemonCounts counts;
  counts.last_sweep_error = parts_->sweeper.standing().full.last_error;
  const Placements::Numbers placed = parts_->placements.numbers();
  counts.held_placements = placed.held;
  counts.placed_nodes = placed.nodes;
  counts.other_daemons = parts_->others.Signs();
  counts.down_links = parts_->topology.down_links();
  std::lock_guard lock(parts_->tables.mu);
  counts.active_jobs = static_cast<uint32_t>(parts_->tables.jobs.size());
  counts.granted_trees = static_cast<uint32_t>(parts_->tables.trees.size());
  counts.entries_total = parts_->tables.entries.entries_total();
  counts.entries_reserved = parts_->tables.entries.entries_reserved();
  counts.entries_taken = parts_->tables.entries.entries_taken();
  counts.trees = parts_->tables.activity.totals();
  return counts;
}

SweepStanding Manager::Sweeps() const { return parts_->sweeper.standing(); }

void Manager::SetSweepPeriods(const SweepPeriods& periods) { parts_->sweeper.SetPeriods(periods); }

absl::StatusOr<std::vector<EventRecord>> Manager::Events(const EventFilter& filter) {
  return parts_->calls.store().Events(filter);
}

absl::StatusOr<std::unique_ptr<EventWatch>> Manager::WatchEvents(EventFilter filter,
                                                                 std::optional<int64_t> after,
                                                                 std::function<void()> wake) {
  return parts_->event_feed.Watch(std::move(filter), after, std::move(wake));
}

std::shared_ptr<const CostProfile> Manager::profile() const {
  std::lock_guard lock(parts_->tables.mu);
  return parts_->tables.profile;
}

void Manager::Calibrate(const CalibrateArgs& args,
                        Callback<std::shared_ptr<const CalibrationView>> done) {
  parts_->profiles.Calibrate(args, std::move(done));
}
void Manager::ResetCalibration(Callback<std::shared_ptr<const CostProfile>> done) {
  parts_->profiles.Reset(std::move(done));
}

void Manager::RegisterJob(RegisterJobArgs args, Callback<JobView> done) {
  parts_->jobs.Register(std::move(args), std::move(done));
}
absl::StatusOr<JobView> Manager::GetJob(JobId id) { return parts_->jobs.Get(id); }
std::vector<JobView> Manager::ListJobs(JobId after, size_t limit) const {
  return parts_->jobs.List(after, limit);
}
absl::StatusOr<JobView> Manager::KeepAlive(JobId id) { return parts_->jobs.KeepAlive(id); }
void Manager::EndJob(JobId id, Callback<uint32_t> done, const Actor& actor) {
  parts_->jobs.End(id, std::move(done), actor);
}

Placements& Manager::placements() { return parts_->placements; }

void Manager::CreateTree(CreateTreeArgs args, Callback<TreeView> done) {
  parts_->grants.CreateTree(std::move(args), std::move(done));
}
absl::StatusOr<TreeView> Manager::AdviseTree(const CreateTreeArgs& args) {
  return parts_->grants.AdviseTree(args);
}

void Manager::BatchCreateTrees(CreateBatchArgs args, BatchWatch watch,
                               Callback<std::shared_ptr<const BatchView>> done) {
  parts_->grants.BatchCreateTrees(std::move(args), watch, std::move(done));
}

absl::StatusOr<TreeView> Manager::GetTree(TreeId id) const {
  std::lock_guard lock(parts_->tables.mu);
  const std::shared_ptr<GrantedTree> tree = parts_->tables.trees.Find(id);
  if (tree == nullptr) return NoSuchTree(id);
  return parts_->tables.ViewOf(*tree);
}

std::vector<TreeView> Manager::ListTrees(JobId job, TreeId after, size_t limit) const {
  std::vector<TreeView> views;
  const Tables& tables = parts_->tables;
  std::lock_guard lock(tables.mu);
  const std::shared_ptr<Job> of_job = job == JobId() ? nullptr : tables.jobs.Find(job);
  if (job != JobId() && of_job == nullptr) return views;  // jobs that are over hold no trees
  for (const std::shared_ptr<GrantedTree>& tree : tables.trees.List(of_job.get(), after, limit)) {
    views.push_back(tables.ViewOf(*tree));
  }
  return views;
}

void Manager::ReleaseTree(TreeId id, Callback<TreeId> done, const Actor& actor) {
  parts_->grants.Release(id, std::move(done), actor);
}

absl::StatusOr<std::unique_ptr<TreeWatch>> Manager::WatchTrees(JobId job,
                                                               absl::string_view resume_token,
                                                               std::function<void()> wake) {
  Tables& tables = parts_->tables;
  if (job != JobId()) RETURN_IF_ERROR(parts_->jobs.Get(job).status());
  const bool resumes = !resume_token.empty();
  uint64_t from = 0, until = std::numeric_limits<uint64_t>::max();
  if (resumes) {
    ASSIGN_OR_RETURN(from, tables.feed.ParseToken(resume_token));
  }
  PresentTrees present;
  // In one section: what is listed and what follows leave no gap and do not overlap.
  std::lock_guard lock(tables.mu);
  const std::shared_ptr<Job> of_job = tables.jobs.Find(job);
  if (job != JobId() && of_job == nullptr) until = tables.feed.next();
  if (!resumes) {
    from = tables.feed.next();
    const auto list = [&] {
      std::vector<TreeView> trees;
      for (const auto& tree : tables.trees.List(of_job.get(), TreeId(), tables.trees.size())) {
        trees.push_back(tables.ViewOf(*tree));
      }
      return trees;
    };
    if (job == JobId()) {
      present = tables.feed.Present(list);
    } else if (of_job != nullptr) {
      present = std::make_shared<const std::vector<TreeView>>(list());
    }
  }
  return std::make_unique<TreeWatch>(&tables.feed, job, from, until, resumes, std::move(present),
                                     std::move(wake));
}

}  // namespace coppice
