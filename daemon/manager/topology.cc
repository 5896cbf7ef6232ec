#include "daemon/manager/topology.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/manager/event_kinds.h"

namespace coppice {
namespace {

bool HasLid(const Fabric& fabric, VertexIndex v) { return fabric.lid(v).value() != 0; }

// Whether a table still leads to a port where nothing is, or the subnet manager owes an endpoint
// its LID. O(switches * LIDs), a few instructions each.
bool HasBlackHole(const Fabric& fabric, const ForwardingTables& tables) {
  std::vector<uint8_t> in_use;  // [LID]
  for (uint32_t v = 0; v < fabric.vertex_count(); ++v) {
    const VertexIndex vertex(v);
    if (!HasLid(fabric, vertex)) {
      if (!fabric.IsSwitch(vertex)) return true;
      continue;
    }
    const size_t lid = fabric.lid(vertex).value();
    if (lid >= in_use.size()) in_use.resize(lid + 1);
    in_use[lid] = 1;
  }
  for (uint32_t i = 0; i < fabric.switch_count(); ++i) {
    const SwitchIndex s(i);
    std::array<uint8_t, 256> is_empty = {};  // [port]
    for (uint32_t port = 1; port < ForwardingTables::kNoRoute; ++port) {
      is_empty[port] = fabric.channel_at(s, PortNum(static_cast<uint8_t>(port))) == kNoChannel;
    }
    const absl::Span<const uint8_t> row = tables.row(s);
    const size_t lids = std::min(row.size(), in_use.size());
    uint8_t found = 0;
    for (size_t lid = 0; lid < lids; ++lid) found |= is_empty[row[lid]] & in_use[lid];
    if (found != 0) return true;
  }
  return false;
}

// [link] of those with an end that says it is down; empty: none is.
std::vector<bool> LostLinks(const Fabric& fabric, absl::Span<const LinkChange> changes) {
  std::vector<bool> lost;
  for (const LinkChange& change : changes) {
    const std::optional<SwitchIndex> s = fabric.FindSwitch(change.node);
    if (change.is_up || !s) continue;
    const ChannelIndex channel = fabric.channel_at(*s, change.port);
    if (channel == kNoChannel) continue;
    lost.resize(fabric.link_count());
    lost[Fabric::link_of(channel).value()] = true;
  }
  return lost;
}

bool HasBlackHole(const FabricView& view) {
  const ForwardingTables* tables = view.snapshot->routes->tables();
  return tables != nullptr && HasBlackHole(*view.snapshot->fabric, *tables);
}

}  // namespace

void Topology::FillMetadata(FabricView& view, const FabricView* old, const Fabric& fabric,
                            SweepResult& result) const {
  view.source = port_->Describe();
  view.swept = clock_->Now();
  view.sweep_duration = result.elapsed;
  view.mads_sent = result.mads_sent;
  view.mads_resent = result.mads_resent;
  view.mads_timed_out = result.mads_timed_out;
  view.has_subnet_manager = result.has_subnet_manager;
  view.subnet_manager_lid = result.subnet_manager_lid;
  view.is_subnet_manager_silent = result.is_subnet_manager_silent;
  view.unanswered = std::move(result.unanswered);
  view.unseen =
      FindUnseen(view.unanswered, fabric, old != nullptr ? old->snapshot->fabric.get() : nullptr,
                 old != nullptr ? old->unseen : Unseen(), clock_->Monotonic());
}

absl::StatusOr<Topology::Outcome> Topology::Sweep(bool in_haste, std::function<void()> between) {
  SweepOptions options;
  options.keep_forwarding_tables = in_haste;
  options.between = std::move(between);
  dropped_.clear();
  ASSIGN_OR_RETURN(SweepResult result, port_->Sweep(options));
  if (options.between) options.between();  // writing it down takes long, too
  // What it saw before they were lost; if they are back by now the next light sweep says so.
  if (const std::vector<bool> lost = LostLinks(*result.fabric, dropped_); !lost.empty()) {
    ASSIGN_OR_RETURN(result.fabric, WithoutLinks(*result.fabric, lost));
  }
  const View old = tables_->Published();
  // A source without them keeps nobody from speaking.
  if (result.partitions == nullptr) result.partitions = Partitions::Unknown();
  Outcome outcome;
  outcome.are_tables_kept = result.are_tables_kept;
  outcome.fabric_changed = !old || !SameFabric(*old->snapshot->fabric, *result.fabric);
  outcome.tables_changed =
      !old || !SameTables(old->snapshot->routes->tables(), result.tables.get());
  outcome.partitions_changed = old && *old->snapshot->partitions != *result.partitions;
  if (!outcome.fabric_changed && !outcome.tables_changed && !outcome.partitions_changed) {
    outcome.view = PublishRefreshed(old, std::move(result));
  } else {
    const bool are_routes_old = !outcome.fabric_changed && !outcome.tables_changed;
    ASSIGN_OR_RETURN(outcome.view, PublishChanged(old, std::move(result), are_routes_old));
  }
  TellChanges(old.get(), *outcome.view);
  return outcome;
}

void Topology::TellChanges(const FabricView* old, const FabricView& now) {
  events_->Append(flaps_.Pass(FabricEvents(old, now, now.swept), clock_->Monotonic()));
  if (old == nullptr || old->snapshot->fabric == now.snapshot->fabric) return;
  down_links_.Compare(*old->snapshot->fabric, *now.snapshot->fabric, now.swept);
}

absl::Status Topology::SetRules(std::vector<CapabilityRule> rules) {
  std::lock_guard applying(rules_mu_);
  if (rules == rules_) return absl::OkStatus();
  if (const View view = tables_->Published(); view != nullptr) {
    const Fabric& fabric = *view->snapshot->fabric;
    RETURN_IF_ERROR(calls_->store().Apply(PutCapabilities{CapabilitiesOf(fabric, rules)}));
    ASSIGN_OR_RETURN(const std::vector<EntryUse> uses, calls_->store().Entries());
    std::lock_guard lock(tables_->mu);
    tables_->RebaseEntries(fabric, uses);
  }
  rules_ = std::move(rules);
  return absl::OkStatus();
}

std::vector<CapabilityRecord> Topology::CapabilitiesOf(
    const Fabric& fabric, const std::vector<CapabilityRule>& rules) const {
  std::vector<CapabilityRecord> capabilities = ApplyRules(fabric, rules);
  if (spoken_.empty()) return capabilities;
  for (CapabilityRecord& record : capabilities) {
    const auto spoken = spoken_.find(record.guid);
    if (spoken != spoken_.end()) record = spoken->second;
  }
  return capabilities;
}

absl::Status Topology::SetSpoken(const CapabilityRecord& capability) {
  std::lock_guard applying(rules_mu_);
  const auto known = spoken_.find(capability.guid);
  if (known != spoken_.end() && known->second == capability) return absl::OkStatus();
  PutCapabilities put{{capability}};
  put.others_stay = true;
  RETURN_IF_ERROR(calls_->store().Apply(std::move(put)));
  spoken_[capability.guid] = capability;
  std::lock_guard lock(tables_->mu);
  tables_->SetCapability(capability);
  return absl::OkStatus();
}

void Topology::EndFlapping() { events_->Append(flaps_.End(clock_->Now(), clock_->Monotonic())); }

Topology::View Topology::PublishRefreshed(const View& old, SweepResult result) {
  auto view = std::make_shared<FabricView>(*old);
  FillMetadata(*view, old.get(), *result.fabric, result);
  view->routes_settled = old->routes_settled || !HasBlackHole(*view);
  std::lock_guard lock(tables_->mu);
  view->snapshot = tables_->view->snapshot;  // its load may be newer than the old one's
  tables_->view = view;
  return view;
}

absl::StatusOr<Topology::View> Topology::PublishChanged(const View& old, SweepResult result,
                                                        bool are_routes_old) {
  auto view = std::make_shared<FabricView>();
  FillMetadata(*view, old.get(), *result.fabric, result);
  const std::shared_ptr<const Fabric> fabric = result.fabric->WithVersion(last_version_ + 1);
  view->routes_settled = result.tables == nullptr;  // else not before they are read again
  const bool is_dimension_ordered = result.tables == nullptr && result.is_dimension_ordered;
  ASSIGN_OR_RETURN(const auto unloaded, MakeSnapshot(fabric, std::move(result.tables)));
  RETURN_IF_ERROR(WriteInventory(old.get(), *fabric, view->swept));
  ASSIGN_OR_RETURN(std::vector<int64_t> ids, calls_->store().LinkIds(LinksOf(*fabric)));
  view->link_ids = std::make_shared<const std::vector<int64_t>>(std::move(ids));
  auto snapshot = std::make_shared<Snapshot>(*unloaded);
  snapshot->partitions = std::move(result.partitions);
  snapshot->load = result.load != nullptr ? result.load : load_->LoadOf(fabric, *view->link_ids);
  if (is_dimension_ordered) {
    ASSIGN_OR_RETURN(snapshot->routes, Routes::DimensionOrder(fabric));
  }
  view->snapshot = std::move(snapshot);
  if (are_routes_old) view->routes_settled = old->routes_settled || !HasBlackHole(*view);

  Promises promises = FindPromises(*view);
  std::lock_guard applying(rules_mu_);
  // From here on the store judges by the new capabilities and the tables by the old: not for long.
  RETURN_IF_ERROR(calls_->store().Apply(PutCapabilities{CapabilitiesOf(*fabric, rules_)}));
  // Read back: the store raises a switch's total to what is taken, and it is the store that judges.
  ASSIGN_OR_RETURN(const std::vector<EntryUse> uses, calls_->store().Entries());
  Publish(view, &uses, promises);
  load_->ClearIfSilent();
  EventRecord done = EventOf(
      "sweep.done", clock_->Now(), "fabric",
      absl::StrCat("fabric version ", fabric->version(), ": ", fabric->switch_count(),
                   " switches, ", fabric->endpoint_count(), " endpoints, ", fabric->link_count(),
                   " links; unanswered requests: ", view->unanswered.size()));
  if (!view->unanswered.empty()) done.severity = "warning";
  events_->Append({std::move(done)});
  return View(std::move(view));
}

absl::StatusOr<bool> Topology::DropLinks(absl::Span<const LinkChange> changes) {
  const View old = tables_->Published();
  if (old == nullptr) return false;
  const Fabric& before = *old->snapshot->fabric;
  const std::vector<bool> lost = LostLinks(before, changes);
  if (lost.empty()) return false;
  ASSIGN_OR_RETURN(const std::shared_ptr<const Fabric> rest, WithoutLinks(before, lost));
  const std::shared_ptr<const Fabric> fabric = rest->WithVersion(last_version_ + 1);
  auto view = std::make_shared<FabricView>(*old);
  view->swept = clock_->Now();
  std::vector<int64_t> ids;
  ids.reserve(fabric->link_count());
  for (size_t l = 0; l < lost.size(); ++l) {
    if (!lost[l]) ids.push_back((*old->link_ids)[l]);
  }
  view->link_ids = std::make_shared<const std::vector<int64_t>>(std::move(ids));
  // Of the old routes, which live as long as these.
  const std::shared_ptr<const ForwardingTables> tables(old->snapshot->routes,
                                                       old->snapshot->routes->tables());
  view->routes_settled = tables == nullptr;
  ASSIGN_OR_RETURN(const auto unloaded, MakeSnapshot(fabric, tables));
  auto snapshot = std::make_shared<Snapshot>(*unloaded);
  snapshot->partitions = old->snapshot->partitions;
  snapshot->load = load_->LoadOf(fabric, *view->link_ids);
  view->snapshot = std::move(snapshot);
  Promises promises = FindPromises(*view);
  PutInventory version;
  version.fabric_version = fabric->version();
  version.time = view->swept;
  RETURN_IF_ERROR(calls_->store().Apply(std::move(version)));
  last_version_ = fabric->version();
  dropped_.insert(dropped_.end(), changes.begin(), changes.end());
  Publish(view, nullptr, promises);
  load_->ClearIfSilent();
  TellChanges(old.get(), *view);
  return true;
}

absl::Status Topology::KeepDropped(const FabricView& before) {
  const View now = tables_->Published();
  return WriteInventory(&before, *now->snapshot->fabric, now->swept);
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

void Topology::Publish(const View& view, const std::vector<EntryUse>* uses, Promises& promises) {
  std::lock_guard lock(tables_->mu);
  if (uses != nullptr) tables_->RebaseEntries(*view->snapshot->fabric, *uses);
  tables_->view = view;
  tables_->load.Rebase(*view->snapshot);
  for (const auto& tree : tables_->trees.List(nullptr, TreeId(), tables_->trees.size())) {
    const auto found = promises.find(tree->record);
    tree->promise = found != promises.end()
                        ? std::move(found->second)
                        : tables_->FindPromise(*view, *tree->job->record, *tree->record);
    tables_->load.Add(tree->record->job, tree->promise.channels, tables_->promised_duty);
  }
}

absl::Status Topology::WriteInventory(const FabricView* old, const Fabric& fabric,
                                      absl::Time swept) {
  // Sweeps that saw no change wrote nothing. What is about to vanish was last seen by the last of
  // them, so the store learns that first.
  if (old != nullptr && old->swept > inventory_time_) {
    RETURN_IF_ERROR(calls_->store().Apply(InventoryOf(*old->snapshot->fabric, old->swept)));
    inventory_time_ = old->swept;
  }
  RETURN_IF_ERROR(calls_->store().Apply(InventoryOf(fabric, swept)));
  // From here on the number is used up, even if the sweep fails before it is published.
  last_version_ = fabric.version();
  inventory_time_ = swept;
  return absl::OkStatus();
}

}  // namespace coppice
