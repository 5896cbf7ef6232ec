#include "daemon/manager/repair.h"

#include <algorithm>
#include <array>
#include <future>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/manager/tree_draft.h"
#include "daemon/tree/contended_metrics.h"
#include "daemon/tree/tree_metrics.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

constexpr size_t kMaxNamedTrees = 32;  // trees in one event; the rest is a number

// The switches of a tree that are not also the other's: where it stays, it has been all along.
std::vector<TreeSwitchRecord> Beyond(const TreeRecord& tree, const TreeRecord& other) {
  std::vector<TreeSwitchRecord> beyond;
  for (const TreeSwitchRecord& one : tree.switches) {
    const bool is_common =
        std::any_of(other.switches.begin(), other.switches.end(),
                    [&](const TreeSwitchRecord& of) { return of.guid == one.guid; });
    if (!is_common) beyond.push_back(one);
  }
  return beyond;
}

// What another round may set right: something else reached the store first.
bool IsOvertaken(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsFailedPrecondition(status) || absl::IsAborted(status);
}

}  // namespace

bool Repair::Run(bool swept) {
  std::lock_guard lock(running_);
  swept_ = swept;
  avoided_.clear();
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const Outcome outcome = RunOnce();
    if (outcome == Outcome::kDone) return patience_.empty();
    if (outcome == Outcome::kFailed) return false;
  }
  return false;
}

absl::Duration Repair::PatienceLeft() {
  std::lock_guard lock(running_);
  const absl::Duration now = clock_->Monotonic();
  absl::Duration left = absl::InfiniteDuration();
  for (const auto& [tree, patience] : patience_) {
    if (patience.until > now) left = std::min(left, patience.until - now);
  }
  return left;
}

Repair::Outcome Repair::RunOnce() {
  Round round = Begin();
  if (round.view == nullptr) return Outcome::kDone;
  if (round.cases.empty()) {
    judged_ = round.view;
    if (round.all) is_judged_ = true;
    EndPatience(round, {});
    return Outcome::kDone;
  }
  JudgeAll(round);
  const absl::Duration now = clock_->Monotonic();
  absl::StatusOr<RepairPlan> plan =
      PlanRepair(*tables_, round.view, survivors_, *round.profile, round.cases, *installer_,
                 avoided_, [&](TreeId tree) {
                   const Patience anew{now + kPatience};
                   return now < patience_.try_emplace(tree, anew).first->second.until;
                 });
  const Outcome outcome = plan.ok() ? Carry(round, *plan) : Outcome::kAgain;
  if (plan.ok()) Announce(round, *plan);
  if (outcome != Outcome::kDone) {
    is_judged_ = false;  // look at all of them again
    return outcome;
  }
  judged_ = round.view;
  if (round.all) is_judged_ = true;
  EndPatience(round, *plan);
  // What entered late meanwhile is next.
  std::lock_guard lock(tables_->mu);
  return tables_->stale_trees.empty() ? Outcome::kDone : Outcome::kAgain;
}

Repair::Round Repair::Begin() {
  Round round;
  std::lock_guard lock(tables_->mu);
  round.view = tables_->view;
  if (round.view == nullptr) return round;
  round.profile = tables_->profile;
  round.all = !is_judged_ || judged_->snapshot->fabric != round.view->snapshot->fabric;
  std::vector<TreeId> late = std::exchange(tables_->stale_trees, {});
  const auto add = [&](std::shared_ptr<GrantedTree> tree) {
    // What is on its way out needs no mending.
    if (tree == nullptr || tree->releasing || tree->job->ending) return;
    round.cases.push_back({tree, tree->record, tree->job, tree->route_kind, {}});
  };
  if (round.all) {
    tables_->waiting_trees.clear();
    for (auto& tree : tables_->trees.List(nullptr, TreeId(), tables_->trees.size())) {
      add(std::move(tree));
    }
    return round;
  }
  absl::erase_if(patience_,
                 [&](const auto& kept) { return tables_->trees.Find(kept.first) == nullptr; });
  if (swept_) {
    for (const auto& [tree, patience] : patience_) late.push_back(tree);
  }
  std::sort(late.begin(), late.end());
  late.erase(std::unique(late.begin(), late.end()), late.end());
  for (const TreeId tree : late) add(tables_->trees.Find(tree));
  return round;
}

void Repair::JudgeAll(Round& round) {
  const Snapshot& snapshot = *round.view->snapshot;
  if (survivors_.fabric != snapshot.fabric) {
    survivors_ = snapshot;
    survivors_.routes = ShortestPathsOf(*tables_, snapshot.fabric);
  }
  StandingJudge judge(*round.view, judged_.get(), survivors_, *round.profile);
  for (RepairCase& granted : round.cases) {
    granted.standing =
        judge.Judge(*granted.job->record, PartitionOfJob(*tables_, *granted.job, snapshot),
                    *granted.record, granted.route_kind);
    JudgeCarriage(granted);
    std::lock_guard lock(tables_->mu);
    const auto called = tables_->called_back.find(granted.record->id);
    if (called == tables_->called_back.end()) continue;
    if (granted.standing.standing == Standing::kBroken) continue;
    granted.standing = {
        Standing::kBroken, called->second, {}, granted.standing.route_kind, nullptr};
  }
}

void Repair::JudgeCarriage(RepairCase& granted) const {
  const TreeRecord& record = *granted.record;
  TreeStanding& standing = granted.standing;
  granted.is_waited_for = installer_->LacksSwitch(record);
  if (standing.standing == Standing::kBroken) return;
  std::string refusal;
  for (const TreeSwitchRecord& serving : record.switches) {
    const auto refusing = avoided_.find(serving.guid);
    if (refusing == avoided_.end()) continue;
    refusal = absl::StrCat("switch ", ToString(serving.guid), ": ", refusing->second);
  }
  std::optional<std::string> lost = installer_->WhyLost(record);
  if (!lost && standing.standing == Standing::kMoved) {
    if (PutOff(granted)) {
      standing = {};
      return;
    }
    if (!refusal.empty()) lost = refusal;
  }
  if (!lost) return;
  standing.lost = *std::move(lost);
  if (!refusal.empty() || installer_->HasLost(record) || IsOverfull(record)) {
    standing.standing = Standing::kBroken;
    return;
  }
  // All of its switches are there: they take it once more, which no plan is as sure of.
  if (standing.moved == nullptr) standing.moved = NextRevision(record, record);
  standing.standing = Standing::kMoved;
}

bool Repair::IsOverfull(const TreeRecord& record) const {
  std::lock_guard lock(tables_->mu);
  return std::any_of(record.switches.begin(), record.switches.end(), [&](const auto& serving) {
    return SurplusOf(tables_->entries.Use(serving.guid)) > 0;
  });
}

bool Repair::PutOff(const RepairCase& moved) const {
  if (!installer_->LacksSwitch(*moved.record)) return false;
  // Once more with the lock: whoever speaks again takes it after that, and then finds the tree.
  std::lock_guard lock(tables_->mu);
  if (!installer_->IsWaitedFor(*moved.record)) return false;
  tables_->waiting_trees.insert(moved.record->id);
  return true;
}

// What is overtaken by a release or an end of its job goes out of the plan, and the rest is right
// without it: nobody else was planned on an entry that is not there now. Of a tree that a switch
// refused that is not so, as it keeps its entries: what the rest takes is claimed once more.
Repair::Outcome Repair::Carry(const Round& round, RepairPlan& plan) {
  Outcome outcome = Outcome::kDone;
  for (;;) {
    if (!Claim(round, plan)) break;
    Abandon(round, plan);
    const size_t changes = plan.changes.size();
    if (const Outcome installed = Install(plan); installed != Outcome::kDone) outcome = installed;
    const bool is_claimed = plan.changes.size() == changes || ClaimAgain(plan);
    if (outcome == Outcome::kFailed || !is_claimed) {
      Uninstall(plan);
      Unclaim(plan);
      break;
    }
    const absl::Status status = Commit(plan);
    if (status.ok()) return outcome;
    // One of the trees was gone before. Fewer are left each time.
    if (absl::IsNotFound(status) && DropOvertaken(plan)) continue;
    if (IsOvertaken(status) || absl::IsResourceExhausted(status)) break;
    spdlog::error("{} trees could not be mended: {}", plan.changes.size(), status.ToString());
    outcome = Outcome::kFailed;
    break;
  }
  plan.changes.clear();
  return outcome == Outcome::kFailed ? Outcome::kFailed : Outcome::kAgain;
}

bool Repair::DropOvertaken(RepairPlan& plan) {
  std::lock_guard lock(tables_->mu);
  return DropLocked(plan);
}

// With the lock held.
bool Repair::DropLocked(RepairPlan& plan) const {
  const size_t dropped = std::erase_if(plan.changes, [&](const RepairPlan::Change& change) {
    const GrantedTree& tree = *change.tree;
    return tree.record != change.before || tree.releasing || tree.job->ending ||
           tables_->trees.Find(change.before->id) != change.tree;
  });
  if (dropped > 0) plan.claims = ClaimsOf(plan);
  return dropped > 0;
}

bool Repair::Claim(const Round& round, RepairPlan& plan) {
  std::lock_guard lock(tables_->mu);
  if (tables_->view->snapshot->fabric != round.view->snapshot->fabric) return false;
  DropLocked(plan);
  if (!LeavesKept(plan) || !tables_->entries.ClaimMore(plan.claims)) return false;
  for (const RepairPlan::Change& change : plan.changes) {
    change.tree->is_moving = true;
    moving_.push_back(change.tree);
  }
  return true;
}

// With the lock held.
void Repair::EndMoves() {
  for (const std::shared_ptr<GrantedTree>& tree : std::exchange(moving_, {})) {
    tree->is_moving = false;
    const bool has_ended = tables_->trees.Find(tree->record->id) == nullptr;
    if (has_ended) tables_->entries.Cancel(tree->record->switches);
  }
}

// With the lock held.
bool Repair::LeavesKept(const RepairPlan& plan) const {
  if (tables_->kept->switches().empty()) return true;
  HeldEntries::Changes held;
  absl::flat_hash_map<Guid, int64_t> free;  // more, or less
  for (const RepairPlan::Change& change : plan.changes) {
    if (change.fate == Fate::kKept) continue;
    const std::string tenant = tables_->quotas.TenantOf(PayerOf(*change.tree->job->record));
    const auto count = [&](const TreeRecord& record, int64_t more) {
      for (const TreeSwitchRecord& serving : record.switches) {
        held[{tenant, serving.guid}] += more;
        free[serving.guid] -= more;
      }
    };
    count(*change.before, -1);
    if (change.after != nullptr) count(*change.after, 1);
  }
  const HeldEntries after(tables_->quotas, &held);
  for (const auto& [guid, more] : free) {
    const auto beyond = [&](const HeldEntries& of, int64_t free_then) {
      return free_then - tables_->kept->KeptFrom("", guid, of, KeptEntries::Asker::kRepair);
    };
    const int64_t now = tables_->entries.FreeOf(guid);
    const int64_t then = beyond(after, now + more);
    if (then < 0 && then < beyond(tables_->quotas, now)) return false;
  }
  return true;
}

bool Repair::ClaimAgain(RepairPlan& plan) {
  std::lock_guard lock(tables_->mu);
  tables_->entries.Unclaim(std::exchange(plan.claims, {}));
  std::vector<EntryLedger::Claim> claims = ClaimsOf(plan);
  if (!tables_->entries.ClaimMore(claims)) return false;
  plan.claims = std::move(claims);
  return true;
}

void Repair::Unclaim(const RepairPlan& plan) {
  std::lock_guard lock(tables_->mu);
  EndMoves();
  tables_->entries.Unclaim(plan.claims);
}

// Before any is installed: the entries that one leaves may be another's.
void Repair::Abandon(const Round& round, const RepairPlan& plan) {
  std::set<TreeId> leaving;
  for (const RepairPlan::Change& change : plan.changes) {
    if (change.fate != Fate::kKept) leaving.insert(change.before->id);
  }
  for (const RepairCase& tree : round.cases) {
    if (tree.standing.standing != Standing::kBroken || tree.record->carriage.key.empty()) continue;
    if (!leaving.contains(tree.record->id)) continue;
    installer_->Abandon({tree.record->id, tree.record->revision});
  }
}

// Each tree is an installation, so that a switch that refuses one costs no other.
Repair::Outcome Repair::Install(RepairPlan& plan) {
  std::map<TreeId, std::future<InstallOutcome>> outcomes;
  std::set<TreeId> refused;
  const bool does_any_speak = installer_->numbers().connected > 0;
  for (RepairPlan::Change& change : plan.changes) {
    if (change.after == nullptr || change.after->switches.empty()) continue;
    if (!does_any_speak && change.before->carriage.key.empty()) continue;
    if (change.planned == nullptr) change.planned = change.after;
    auto after = std::make_shared<TreeRecord>(*change.planned);
    after->carriage = change.before->carriage;  // that it is lost is told
    if (const absl::Status status = GiveCarriage(*installer_, *after); !status.ok()) {
      spdlog::error("tree {} could not be mended: {}", after->id.value(), status.ToString());
      refused.insert(after->id);
      continue;
    }
    // One has gone since the tree was judged.
    const bool was_carried = !change.before->carriage.key.empty();
    if (was_carried && after->carriage.key.empty() && installer_->HasLost(*after)) {
      refused.insert(after->id);
      continue;
    }
    change.after = after;
    if (after->carriage.key.empty()) continue;
    auto one = CarriedTreeOf(*after);
    if (!one) continue;
    auto given = std::make_shared<std::promise<InstallOutcome>>();
    outcomes[after->id] = given->get_future();
    installer_->Install({*std::move(one)},
                        [given](InstallOutcome outcome) { given->set_value(std::move(outcome)); });
  }
  bool is_closed = false;
  for (auto& [tree, given] : outcomes) {
    const InstallOutcome outcome = given.get();
    if (outcome.status.ok()) continue;
    refused.insert(tree);
    is_closed |= outcome.refusing.empty();
    // Who has gone is not in the next plan anyhow, unless it is back.
    for (const RefusingSwitch& one : outcome.refusing) {
      if (!one.has_gone) avoided_[one.guid] = one.words;
    }
  }
  std::erase_if(plan.changes, [&](const RepairPlan::Change& change) {
    return refused.contains(change.before->id);
  });
  if (is_closed) return Outcome::kFailed;
  return refused.empty() ? Outcome::kDone : Outcome::kAgain;
}

void Repair::Uninstall(const RepairPlan& plan) {
  for (const RepairPlan::Change& change : plan.changes) {
    if (change.after == nullptr || change.after->carriage.key.empty()) continue;
    installer_->Remove({change.after->id, change.after->revision});
  }
}

absl::Status Repair::Commit(const RepairPlan& plan) {
  ChangeTrees change;
  for (const RepairPlan::Change& planned : plan.changes) {
    if (planned.after != nullptr) change.revised.push_back(planned.after);
    if (planned.fate == Fate::kRevoked) {
      change.revoked.emplace_back(planned.before->id, planned.before->job);
    }
  }
  if (change.revised.empty() && change.revoked.empty()) {
    Unclaim(plan);
    return absl::OkStatus();
  }
  std::promise<absl::Status> answer;
  calls_->Submit(std::move(change), [this, &plan, &answer](absl::Status status) {
    EnterCommitted(plan, status);
    answer.set_value(std::move(status));
  });
  return answer.get_future().get();
}

// On the store's thread: the tables follow the store in its order. Switches are told to leave
// before the ledger has their entries for others.
void Repair::EnterCommitted(const RepairPlan& plan, const absl::Status& status) {
  std::lock_guard lock(tables_->mu);
  if (!status.ok()) Uninstall(plan);
  EndMoves();
  tables_->entries.Unclaim(plan.claims);
  if (!status.ok()) return;
  for (const RepairPlan::Change& change : plan.changes) {
    const bool is_kept = change.fate == Fate::kKept;
    if (is_kept || change.before->carriage.key.empty()) continue;
    installer_->Remove({change.before->id, change.before->revision});
  }
  for (const RepairPlan::Change& change : plan.changes) {
    if (change.after != nullptr) {
      tables_->entries.Release(change.before->id, Beyond(*change.before, *change.after));
    } else if (change.fate == Fate::kRevoked) {
      tables_->RemoveTree(*change.tree, TreeChangeKind::kRevoked, change.reason);
    }
  }
  for (const RepairPlan::Change& change : plan.changes) {
    if (change.after == nullptr) continue;
    tables_->entries.Restore(change.after->id, Beyond(*change.after, *change.before),
                             tables_->Stamp(clock_->Now()));
    tables_->ReviseTree(*change.tree, change.after, change.promise, change.route_kind,
                        change.reason);
    if (change.fate != Fate::kReplanned) continue;
    tables_->activity.Repaired();
    // Planned without the tables, it may be one that they lead over: the next round sees.
    const bool is_routed = change.route_kind == tables_->view->snapshot->routes->kind();
    if (!is_routed) tables_->stale_trees.push_back(change.after->id);
  }
}

// With whatever was judged and is not kept.
void Repair::EndPatience(const Round& round, const RepairPlan& plan) {
  absl::flat_hash_set<TreeId> kept;
  for (const RepairPlan::Change& change : plan.changes) {
    if (change.fate == Fate::kKept) kept.insert(change.before->id);
  }
  if (round.all) {
    absl::erase_if(patience_, [&](const auto& tree) { return !kept.contains(tree.first); });
    return;
  }
  for (const RepairCase& judged : round.cases) {
    if (!kept.contains(judged.record->id)) patience_.erase(judged.record->id);
  }
}

void Repair::Announce(const Round& round, const RepairPlan& plan) {
  std::array<std::vector<std::string>, 4> trees;  // [Fate]
  for (const RepairPlan::Change& change : plan.changes) {
    // That one is kept is told once.
    if (change.fate == Fate::kKept && std::exchange(patience_[change.before->id].is_told, true)) {
      continue;
    }
    trees[static_cast<size_t>(change.fate)].push_back(
        absl::StrCat(change.before->id.value(), " (", change.reason, ")"));
  }
  static constexpr std::pair<absl::string_view, absl::string_view> kEvents[] = {
      {"trees.repaired", "planned anew"},
      {"trees.rerouted", "on other routes"},
      {"trees.revoked", "revoked"},
      {"trees.broken",
       "broken, and kept for a while: nodes that did not answer or routes may come back"}};
  for (size_t i = 0; i < trees.size(); ++i) {
    AnnounceOne(round, kEvents[i].first, kEvents[i].second, trees[i]);
  }
}

void Repair::AnnounceOne(const Round& round, absl::string_view kind, absl::string_view what,
                         const std::vector<std::string>& trees) {
  if (trees.empty()) return;
  std::string message =
      absl::StrCat("fabric version ", round.view->snapshot->fabric->version(), ": ", trees.size(),
                   trees.size() == 1 ? " tree " : " trees ", what, ": ");
  for (size_t i = 0; i < trees.size() && i < kMaxNamedTrees; ++i) {
    absl::StrAppend(&message, i > 0 ? ", " : "", trees[i]);
  }
  if (trees.size() > kMaxNamedTrees) absl::StrAppend(&message, ", ...");
  spdlog::warn("{}", message);
  events_->Append(kind, "fabric", std::move(message));
}

void Repair::Replan() {
  std::lock_guard running(running_);
  Round round;
  {
    std::lock_guard lock(tables_->mu);
    round.view = tables_->view;
    round.profile = tables_->profile;
  }
  if (round.view == nullptr || !round.view->routes_settled) return;
  const std::shared_ptr<const Routes>& routes = round.view->snapshot->routes;
  if (looked_at_ == routes) return;
  if (looking_at_ != routes) last_ = TreeId();
  looking_at_ = routes;
  const absl::Duration end = clock_->Monotonic() + kMaxReplanning;
  std::vector<std::string> replanned;
  bool is_done = true;
  for (RepairCase& tree : Replannable(last_, *round.view)) {
    if (clock_->Monotonic() >= end) {
      is_done = false;
      break;
    }
    last_ = tree.record->id;
    if (auto words = Improve(round, std::move(tree))) replanned.push_back(*std::move(words));
  }
  if (is_done) {
    looked_at_ = routes;
  } else {
    std::lock_guard lock(tables_->mu);
    if (tables_->on_stale) tables_->on_stale();
  }
  AnnounceOne(round, "trees.replanned", "planned again for a gain", replanned);
}

std::vector<RepairCase> Repair::Replannable(TreeId after, const FabricView& view) const {
  std::vector<RepairCase> cases;
  const RouteKind kind = view.snapshot->routes->kind();
  std::lock_guard lock(tables_->mu);
  for (auto& tree : tables_->trees.List(nullptr, after, tables_->trees.size())) {
    if (tree->record->revision <= 1 || tree->releasing || tree->job->ending) continue;
    if (tree->route_kind.value_or(kind) != kind) continue;  // to be judged first
    cases.push_back({tree, tree->record, tree->job, tree->route_kind, {}});
  }
  return cases;
}

std::optional<std::string> Repair::Improve(const Round& round, RepairCase tree) {
  const std::optional<double> present_us = PresentUs(tree);
  if (!present_us) return std::nullopt;
  tree.standing.standing = Standing::kBroken;  // as a repair plans it: with its own entries free
  absl::StatusOr<RepairPlan> plan =
      PlanRepair(*tables_, round.view, *round.view->snapshot, *round.profile, {tree}, *installer_,
                 avoided_, [](TreeId) { return false; });
  if (!plan.ok()) return std::nullopt;
  RepairPlan::Change& change = plan->changes.front();
  if (change.fate != Fate::kReplanned ||
      change.route_kind != round.view->snapshot->routes->kind() ||
      change.after->total_us * kWorthIt > *present_us) {
    return std::nullopt;
  }
  change.reason = absl::StrFormat("planned again: %.2f us instead of %.2f", change.after->total_us,
                                  *present_us);
  std::string words = absl::StrCat(tree.record->id.value(), " (", change.reason, ")");
  if (Carry(round, *plan) == Outcome::kDone) return words;
  if (installer_->WhyLost(*tree.record)) {  // what its switches had, they gave away for this
    std::lock_guard lock(tables_->mu);
    tables_->NoteUnjudged(tree.record->id);
  }
  return std::nullopt;
}

// Of forests it is not asked: they are planned anew whenever their routes move.
std::optional<double> Repair::PresentUs(const RepairCase& tree) {
  if (!tree.record->forest.empty()) return std::nullopt;
  std::vector<SwitchCapacity> capacity;
  const absl::StatusOr<PlanBasis> basis = TakeBasis(*tables_, *tree.job, capacity);
  if (!basis.ok()) return std::nullopt;
  const CostProfile& profile = *basis->profile;
  const Snapshot predicting = ForPrediction(basis->snapshot, profile);
  const AggregationTree placed = PlaceTree(*predicting.fabric, *tree.job->record, *tree.record);
  for (const VertexIndex vertex : placed.vertices) {
    if (vertex == kGoneVertex) return std::nullopt;
  }
  const absl::StatusOr<std::vector<EdgeCost>> edges = EdgeCosts(predicting, profile, placed);
  if (!edges.ok()) return std::nullopt;
  const CollectiveMix& mix = tree.record->spec;
  Prediction predicted = EvaluateMix(profile, placed, *edges, mix);
  if (!AddContention(predicting, profile, placed, *edges, mix, predicted).ok()) {
    return std::nullopt;
  }
  return predicted.total_us;
}

}  // namespace coppice
