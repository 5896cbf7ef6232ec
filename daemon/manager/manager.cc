#include "daemon/manager/manager.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

constexpr absl::Duration kToldStall = absl::Seconds(1);

}  // namespace

Manager::Manager(Store* store, SubnetPort* port, const Clock* clock, ManagerOptions options,
                 uint64_t last_version)
    : options_(std::move(options)),
      clock_(clock),
      event_feed_(store),
      calls_(store, [this](const DeedRecord& deed) { deeds_.Told(deed); }),
      deeds_(&calls_, clock),
      events_(&calls_, clock, options_, [this] { event_feed_.Look(); }),
      pruning_(&calls_, clock),
      others_(store->DatabaseId(), &events_, clock),
      load_(store, &tables_, options_->load),
      installer_(&events_, clock, [this](const std::vector<TreeId>& trees) { NoteLost(trees); }),
      with_{&calls_, &events_, clock, &tables_, options_, &installer_},
      topology_(with_, port, &load_, last_version),
      switches_(with_, &topology_),
      jobs_(with_, [this] { background_.Wake(); }),
      placements_(with_, &jobs_, [this] { background_.Wake(); }),
      reservations_(with_, [this] { background_.Wake(); }),
      profiles_(with_),
      known_times_(&calls_, clock),
      grants_(with_, &jobs_),
      repair_(with_),
      rounds_(with_, port, &topology_, &repair_, &load_),
      store_watch_(&calls_, &events_, clock),
      background_({[this] { return clock_->Monotonic(); },
                   [this](absl::Duration stalled) { ForgiveStall(stalled); },
                   [this](absl::Duration now) { return Expire(now); },
                   [this] { store_watch_.Look(); }, [this] { FlushActivity(); }}),
      sweeper_(rounds_.Duties(), clock, options_->sweep_periods) {}

Manager::~Manager() {
  Stop();
  calls_.AwaitAll();  // the last callbacks use what is destroyed next
}

absl::StatusOr<std::unique_ptr<Manager>> Manager::Create(Store* store, SubnetPort* port,
                                                         const Clock* clock,
                                                         ManagerOptions options) {
  ASSIGN_OR_RETURN(StoredState state, store->Load());
  std::unique_ptr<Manager> manager(
      new Manager(store, port, clock, std::move(options), state.last_fabric_version));
  Tables& tables = manager->tables_;
  const std::shared_ptr<const ManagerOptions> given = manager->options_.Get();
  {
    std::lock_guard lock(tables.mu);
    tables.entries.SetCapabilities(state.entries);
    tables.promised_duty = given->promised_duty;
    tables.feed.KeepAtMost(given->kept_tree_changes);
    tables.on_stale = [sweeper = &manager->sweeper_] { sweeper->WakeRepair(); };
  }
  RETURN_IF_ERROR(manager->load_.Restore(clock->Now()));
  tables.quotas.Configure(given->quotas);
  tables.quotas.SetRows(state.quotas);
  tables.quotas.SetAccounts(
      std::make_shared<const Accounts>(std::move(state.accounts), std::move(state.account_users)));
  manager->reservations_.Restore(std::move(state.reservations), state.last_reservation);
  manager->profiles_.Restore(state.profile_toml);
  manager->known_times_.Restore(std::move(state.way_times));
  manager->jobs_.Restore(std::move(state.jobs), state.last_job);
  manager->placements_.Restore(std::move(state.placements), state.last_placement);
  RETURN_IF_ERROR(manager->grants_.Restore(std::move(state.trees), state.last_tree));
  manager->reservations_.Refresh();
  return manager;
}

void Manager::NoteLost(const std::vector<TreeId>& trees) {
  std::lock_guard lock(tables_.mu);
  for (const TreeId tree : trees) {
    if (tables_.trees.Find(tree) != nullptr) tables_.NoteUnjudged(tree);
  }
}

void Manager::Stop() {
  installer_.Stop();  // first: a repair may wait for it, and a grant be refused by it
  grants_.Stop();
  sweeper_.Stop();
  background_.Stop();
  FlushActivity();
  const absl::Status flushed = load_.Flush();
  if (!flushed.ok()) spdlog::warn("the last minutes of history are lost: {}", flushed.ToString());
}

// The store's part first: it alone can fail, and then nothing has changed.
absl::Status Manager::Reconfigure(const ManagerOptions& next) {
  RETURN_IF_ERROR(topology_.SetRules(next.capability_rules));
  options_.Set(next);
  tables_.quotas.Configure(next.quotas);
  profiles_.Configure(next.profile);
  load_.Configure(next.load);
  {
    std::lock_guard lock(tables_.mu);
    tables_.promised_duty = next.promised_duty;
  }
  sweeper_.SetPeriods(next.sweep_periods);
  return absl::OkStatus();
}

absl::Duration Manager::Expire(absl::Duration now) {
  const absl::Duration next_job = jobs_.ExpireLeases(now);
  return std::min({next_job, placements_.Expire(now), reservations_.Expire()});
}

void Manager::ForgiveStall(absl::Duration stalled) {
  jobs_.ForgiveStall(stalled);
  placements_.ForgiveStall(stalled);
  if (stalled < kToldStall) return;
  const std::string what =
      absl::StrFormat("it did not run for %.1f s, or waited for its disk: leases begin anew",
                      absl::ToDoubleSeconds(stalled));
  spdlog::warn("the daemon was stalled: {}", what);
  events_.Append("daemon.stalled", "daemon", what);
}

void Manager::FlushActivity() {
  std::vector<EventRecord> happened;
  {
    std::lock_guard lock(tables_.mu);
    happened = tables_.activity.Take(clock_->Now());
  }
  events_.Append(std::move(happened));
  events_.Flush();
  tables_.feed.Age(clock_->Monotonic());
  deeds_.FlushDue();
  load_.ForgetIfSilent(clock_->Monotonic());
  const std::shared_ptr<const ManagerOptions> now = options_.Get();
  pruning_.Run({now->kept_events, now->kept_event_age},
               {now->kept_ended_jobs, now->kept_ended_job_age});
}

absl::Status Manager::PutAccountsNow(PutAccounts put, const Actor& actor, const std::string& object,
                                     std::string what) {
  put.deed = DeedOf(actor, object, clock_->Now());
  auto next = std::make_shared<const Accounts>(put.accounts, put.users);
  RETURN_IF_ERROR(calls_.store().Apply(std::move(put)));
  tables_.quotas.SetAccounts(std::move(next));
  reservations_.Refresh();
  events_.Append("accounts.changed", object, std::move(what), {NameOf(actor), ""});
  return absl::OkStatus();
}

absl::Status Manager::ImportAccounts(PutAccounts put, const Actor& actor) {
  for (AccountRecord& account : put.accounts) {
    RETURN_IF_ERROR(CheckLength("account", account.name, kMaxNameBytes));
    RETURN_IF_ERROR(CheckLength("tenant", account.tenant, kMaxNameBytes));
    account.tenant = TenantName(account.tenant);
  }
  for (const AccountUserRecord& user : put.users) {
    RETURN_IF_ERROR(CheckLength("user", user.user, kMaxNameBytes));
  }
  std::lock_guard lock(accounts_mu_);
  const std::shared_ptr<const Accounts> present = tables_.quotas.accounts();
  for (AccountRecord& account : put.accounts) {
    const AccountRecord* const same = present->Find(account.name);
    if (account.tenant.empty() && same != nullptr) account.tenant = same->tenant;
  }
  std::string what = absl::StrCat(put.accounts.size(), " accounts of ", put.users.size(),
                                  " users, where there were ", present->accounts().size(), " of ",
                                  present->users().size());
  return PutAccountsNow(std::move(put), actor, "accounts", std::move(what));
}

absl::Status Manager::SetTenant(const std::string& account, const std::string& tenant,
                                const Actor& actor) {
  RETURN_IF_ERROR(CheckLength("tenant", tenant, kMaxNameBytes));
  std::lock_guard lock(accounts_mu_);
  const std::shared_ptr<const Accounts> present = tables_.quotas.accounts();
  PutAccounts put{{present->accounts().begin(), present->accounts().end()},
                  {present->users().begin(), present->users().end()}};
  const auto found = std::find_if(put.accounts.begin(), put.accounts.end(),
                                  [&](const auto& one) { return one.name == account; });
  if (found == put.accounts.end()) {
    return absl::NotFoundError(absl::StrCat(
        "account ", account, " is not known; coppicectl account list shows those there are"));
  }
  found->tenant = TenantName(tenant);
  std::string what =
      tenant.empty() ? "its tenant is its parent's" : absl::StrCat("its tenant is ", tenant);
  return PutAccountsNow(std::move(put), actor, absl::StrCat("account:", account), std::move(what));
}

void Manager::SetQuota(PutQuota put, const Actor& actor, Callback<QuotaRecord> done) {
  if (put.quota.kind == QuotaHolder::kTenant) put.quota.holder = TenantName(put.quota.holder);
  const QuotaRecord& quota = put.quota;
  if (!FindQuota(quota.limit).has_value()) {
    return done(absl::InvalidArgumentError(absl::StrCat(
        "quota: ", quota.limit, " is no limit; coppicectl quota shows those there are")));
  }
  const std::string object = ToString(QuotaHolderName{quota.kind, quota.holder});
  put.deed = DeedOf(actor, absl::StrCat(object, " ", quota.limit), clock_->Now());
  PutQuota mutation = put;
  calls_.Submit(
      std::move(mutation), [this, put = std::move(put), object, by = NameOf(actor),
                            callback = std::move(done)](const absl::Status& status) mutable {
        if (!status.ok()) return callback(status);
        tables_.quotas.SetRow(put.quota, put.drop);
        const bool is_none = put.quota.value == QuotaLimit::kNone;
        events_.Append("quota.changed", object,
                       absl::StrCat(put.quota.limit, ": ",
                                    put.drop  ? "as configured"
                                    : is_none ? "no limit"
                                              : absl::StrCat("at most ", put.quota.value)),
                       {by, ""});
        callback(std::move(put.quota));
      });
}

LinkMeasure Manager::Measure(const Fabric& fabric, LinkIndex link) const {
  LinkMeasure measure = load_.Measure(fabric, link);
  const Tables& tables = tables_;
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
  std::vector<PortCounterRecord> ports = load_.Counters(guid);
  if (!ports.empty()) return ports;
  return calls_.store().Counters(guid);
}

std::shared_ptr<const LinkLoad> Manager::load() {
  std::lock_guard lock(tables_.mu);
  return tables_.load.Current();
}

std::vector<SwitchEntries> Manager::Entries() const {
  std::vector<SwitchEntries> entries;
  std::lock_guard lock(tables_.mu);
  if (tables_.view == nullptr) return entries;
  const Fabric& fabric = *tables_.view->snapshot->fabric;
  entries.reserve(fabric.switch_count());
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    const EntryUse use = tables_.entries.Use(fabric.switch_info(SwitchIndex(s)).guid);
    entries.push_back({SwitchIndex(s), use.capability.entries_total,
                       use.capability.entries_reserved, use.entries_taken,
                       use.capability.degree_limit});
  }
  return entries;
}

std::vector<TreeId> Manager::TreesOfSwitch(Guid guid) const {
  std::vector<TreeId> trees;
  std::lock_guard lock(tables_.mu);
  for (const EntryLedger::Holder& holder : tables_.entries.TreesOf(guid)) {
    trees.push_back(holder.tree);
  }
  std::sort(trees.begin(), trees.end());
  return trees;
}

DaemonCounts Manager::Counts() const {
  DaemonCounts counts;
  counts.last_sweep_error = sweeper_.standing().full.last_error;
  const Placements::Numbers placed = placements_.numbers();
  counts.held_placements = placed.held;
  counts.placed_nodes = placed.nodes;
  counts.other_daemons = others_.Signs();
  counts.down_links = topology_.down_links();
  counts.switches = installer_.numbers();
  std::lock_guard lock(tables_.mu);
  counts.active_jobs = static_cast<uint32_t>(tables_.jobs.size());
  counts.granted_trees = static_cast<uint32_t>(tables_.trees.size());
  counts.entries_total = tables_.entries.entries_total();
  counts.entries_reserved = tables_.entries.entries_reserved();
  counts.entries_taken = tables_.entries.entries_taken();
  counts.trees = tables_.activity.totals();
  return counts;
}

std::shared_ptr<const CostProfile> Manager::profile() const {
  std::lock_guard lock(tables_.mu);
  return tables_.profile;
}

absl::StatusOr<TreeView> Manager::GetTree(TreeId id) const {
  std::lock_guard lock(tables_.mu);
  const std::shared_ptr<GrantedTree> tree = tables_.trees.Find(id);
  if (tree == nullptr) return NoSuchTree(id);
  return tables_.ViewOf(*tree);
}

std::vector<TreeView> Manager::ListTrees(JobId job, TreeId after, size_t limit) const {
  std::vector<TreeView> views;
  const Tables& tables = tables_;
  std::lock_guard lock(tables.mu);
  const std::shared_ptr<Job> of_job = job == JobId() ? nullptr : tables.jobs.Find(job);
  if (job != JobId() && of_job == nullptr) return views;  // jobs that are over hold no trees
  for (const std::shared_ptr<GrantedTree>& tree : tables.trees.List(of_job.get(), after, limit)) {
    views.push_back(tables.ViewOf(*tree));
  }
  return views;
}

WayTimesOf Manager::TimesOf(const TreeView& tree, const std::string& application) const {
  std::vector<Guid> ports;
  ports.reserve(tree.record->ranks.size());
  const std::vector<Guid>& endpoints = tree.job->endpoints;
  for (const uint32_t rank : tree.record->ranks) {
    if (rank < endpoints.size()) ports.push_back(endpoints[rank]);
  }
  const std::shared_ptr<const FabricView> view = fabric();
  return {tree.job->owner, application, view == nullptr ? "" : LayoutOf(*view->snapshot, ports),
          tree.record->type};
}

std::vector<WayTime> Manager::FindTimes(const TreeView& tree,
                                        const std::string& application) const {
  return known_times_.Find(TimesOf(tree, application));
}

absl::Status Manager::AddTimes(TreeId id, const std::string& application,
                               absl::Span<const WayTime> measured) {
  ASSIGN_OR_RETURN(const TreeView tree, GetTree(id));
  const WayTimesOf of = TimesOf(tree, application);
  return of.layout.empty() ? absl::OkStatus() : known_times_.Add(of, tree.record->job, measured);
}

absl::StatusOr<std::unique_ptr<TreeWatch>> Manager::WatchTrees(JobId job,
                                                               absl::string_view resume_token,
                                                               std::function<void()> wake) {
  Tables& tables = tables_;
  if (job != JobId()) RETURN_IF_ERROR(jobs_.Get(job).status());
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
