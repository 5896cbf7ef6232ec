#include "daemon/manager/topology.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/log.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/inventory.h"

namespace coppice {
namespace {

void FillMetadata(FabricView& view, const SubnetPort& port, absl::Time swept, SweepResult& result) {
  view.source = port.Describe();
  view.swept = swept;
  view.sweep_duration = result.elapsed;
  view.mads_sent = result.mads_sent;
  view.mads_resent = result.mads_resent;
  view.mads_timed_out = result.mads_timed_out;
  view.has_subnet_manager = result.has_subnet_manager;
  view.unanswered = std::move(result.unanswered);
}

}  // namespace

Topology::Topology(StoreCalls* calls, EventLog* events, SubnetPort* port, const Clock* clock,
                   Tables* tables, std::vector<CapabilityRule> rules, uint64_t last_version)
    : calls_(calls),
      events_(events),
      port_(port),
      clock_(clock),
      tables_(tables),
      rules_(std::move(rules)),
      last_version_(last_version) {}

absl::StatusOr<Topology::View> Topology::Sweep() {
  {
    std::unique_lock lock(mu_);
    if (sweeping_) {
      const uint64_t joined = sweeps_;
      swept_.wait(lock, [&] { return sweeps_ != joined; });
      return last_result_;
    }
    sweeping_ = true;
  }
  absl::StatusOr<View> result = SweepNow();
  Note(result.status());
  std::lock_guard lock(mu_);
  sweeping_ = false;
  ++sweeps_;
  last_result_ = result;
  swept_.notify_all();
  return result;
}

std::string Topology::last_error() const {
  std::lock_guard lock(mu_);
  return last_error_;
}

absl::StatusOr<Topology::View> Topology::SweepNow() {
  ASSIGN_OR_RETURN(SweepResult result, port_->Sweep(SweepOptions()));
  View old;
  {
    std::lock_guard lock(tables_->mu);
    old = tables_->view;
  }
  if (old && SameFabric(*old->snapshot->fabric, *result.fabric) &&
      SameTables(old->snapshot->routes->tables(), result.tables.get())) {
    return PublishRefreshed(*old, std::move(result));
  }
  return PublishChanged(old, std::move(result));
}

absl::StatusOr<Topology::View> Topology::PublishRefreshed(const FabricView& old,
                                                          SweepResult result) {
  auto view = std::make_shared<FabricView>(old);
  FillMetadata(*view, *port_, clock_->Now(), result);
  std::lock_guard lock(tables_->mu);
  tables_->view = view;
  return View(std::move(view));
}

absl::StatusOr<Topology::View> Topology::PublishChanged(const View& old, SweepResult result) {
  auto view = std::make_shared<FabricView>();
  FillMetadata(*view, *port_, clock_->Now(), result);
  const std::shared_ptr<const Fabric> fabric = result.fabric->WithVersion(last_version_ + 1);
  ASSIGN_OR_RETURN(view->snapshot, MakeSnapshot(fabric, std::move(result.tables)));
  RETURN_IF_ERROR(WriteInventory(old, *fabric, view->swept));
  ASSIGN_OR_RETURN(std::vector<int64_t> ids, calls_->store().LinkIds(LinksOf(*fabric)));
  view->link_ids = std::make_shared<const std::vector<int64_t>>(std::move(ids));

  Promises promises = FindPromises(*view);
  // From here on the store judges by the new capabilities and the tables by the old: not for long.
  RETURN_IF_ERROR(calls_->store().Apply(PutCapabilities{ApplyRules(*fabric, rules_)}));
  // Read back: the store raises a switch's total to what is taken, and it is the store that judges.
  ASSIGN_OR_RETURN(const std::vector<EntryUse> uses, calls_->store().Entries());
  Publish(view, uses, promises);
  events_->Append(
      view->unanswered.empty() ? "info" : "warning", "sweep.done", "fabric",
      absl::StrCat("fabric version ", fabric->version(), ": ", fabric->switch_count(),
                   " switches, ", fabric->endpoint_count(), " endpoints, ", fabric->link_count(),
                   " links; unanswered requests: ", view->unanswered.size()));
  return View(std::move(view));
}

// What granted trees promise on the new fabric is found without the lock, as far as they are there.
Topology::Promises Topology::FindPromises(const FabricView& view) {
  std::vector<std::pair<std::shared_ptr<const TreeRecord>, std::shared_ptr<const JobRecord>>> trees;
  std::shared_ptr<const CostProfile> profile;
  double duty = 0;
  {
    std::lock_guard lock(tables_->mu);
    for (const auto& tree : tables_->trees.List(nullptr, TreeId(), tables_->trees.size())) {
      trees.emplace_back(tree->record, tree->job->record);
    }
    profile = tables_->profile;
    duty = tables_->promised_duty;
  }
  Promises promises;
  LinkUseCounter counter;
  for (auto& [record, job] : trees) {
    promises[record] =
        PromiseOfRecord(*view.snapshot, *view.link_ids, *profile, duty, *job, *record, counter);
  }
  return promises;
}

void Topology::Publish(const View& view, absl::Span<const EntryUse> uses, Promises& promises) {
  std::lock_guard lock(tables_->mu);
  tables_->entries.Rebase(*view->snapshot->fabric, uses);
  tables_->view = view;
  tables_->load.Rebase(*view->snapshot);
  for (const auto& tree : tables_->trees.List(nullptr, TreeId(), tables_->trees.size())) {
    const auto found = promises.find(tree->record);
    tree->promise = found != promises.end()
                        ? std::move(found->second)
                        : tables_->FindPromise(*view, *tree->job->record, *tree->record);
    tables_->load.Add(tree->promise.channels);
  }
}

absl::Status Topology::WriteInventory(const View& old, const Fabric& fabric, absl::Time swept) {
  // Sweeps that saw no change wrote nothing. What is about to vanish was last seen by the last of
  // them, so the store learns that first.
  if (old && old->swept > inventory_time_) {
    RETURN_IF_ERROR(calls_->store().Apply(InventoryOf(*old->snapshot->fabric, old->swept)));
    inventory_time_ = old->swept;
  }
  RETURN_IF_ERROR(calls_->store().Apply(InventoryOf(fabric, swept)));
  // From here on the number is used up, even if the sweep fails before it is published.
  last_version_ = fabric.version();
  inventory_time_ = swept;
  return absl::OkStatus();
}

void Topology::Note(const absl::Status& status) {
  std::string before, now;
  {
    std::lock_guard lock(mu_);
    before = std::exchange(last_error_, status.ok() ? "" : status.ToString());
    now = last_error_;
  }
  // A subnet that stays away is one event, not one per period.
  if (now == before) return;
  if (now.empty()) {
    spdlog::info("sweep of {} is well again", port_->Describe());
    events_->Append("info", "sweep.recovered", "fabric", "the sweep went well again");
  } else {
    spdlog::error("sweep of {} failed: {}", port_->Describe(), now);
    events_->Append("error", "sweep.failed", "fabric", now);
  }
}

}  // namespace coppice
