// Placements::Create and Advise: from requests to nodes that are held.
#include <algorithm>
#include <functional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/event_kinds.h"
#include "daemon/manager/placement/barred_places.h"
#include "daemon/manager/placement/placements.h"
#include "proto/text/log.h"
#include "proto/text/node_list.h"

namespace coppice {
namespace {

constexpr size_t kMaxListTold = 200;   // letters of a node list in an event
constexpr size_t kMaxHoldersTold = 3;  // in the words of a refusal

// A refusal with the holders of the nodes that the request wanted to choose from: all of them for
// programs, the largest in words.
absl::Status WithHolders(const PlacementSnapshot& placing, const PlacementConstraints& constraints,
                         const absl::Status& refusal) {
  std::map<uint32_t, uint32_t> count;
  const auto look = [&](HostIndex host) {
    const uint32_t holder = placing.occupancy.holder[host.value()];
    if (holder != Occupancy::kFree) ++count[holder];
  };
  for (const HostIndex host : constraints.candidates) look(host);
  for (uint32_t h = 0; constraints.candidates.empty() && h < placing.occupancy.holder.size(); ++h) {
    look(HostIndex(h));
  }
  std::vector<std::pair<int64_t, std::string>> largest, lines;  // lines: for programs
  bool are_jobs = false;
  for (const auto& [holder, nodes] : count) {
    const auto label = placing.holders.find(holder);
    if (label == placing.holders.end()) continue;
    const size_t space = label->second.find(' ');
    lines.emplace_back(nodes, absl::StrCat(label->second.substr(0, space), " ", nodes, " nodes",
                                           label->second.substr(space)));
    largest.emplace_back(nodes, absl::StrCat(nodes, " by ", label->second));
    are_jobs |= absl::StartsWith(label->second, "job:");
  }
  if (lines.empty()) return refusal;
  std::sort(largest.begin(), largest.end(), std::greater<>());
  std::string words = absl::StrCat(refusal.message(), "; held: ");
  for (size_t i = 0; i < largest.size() && i < kMaxHoldersTold; ++i) {
    absl::StrAppend(&words, i > 0 ? ", " : "", largest[i].second);
  }
  if (largest.size() > kMaxHoldersTold) {
    absl::StrAppend(&words, " and more by ", largest.size() - kMaxHoldersTold, " others");
  }
  if (are_jobs && constraints.candidates.empty()) {
    absl::StrAppend(&words, "; what jobs hold may be shared: name nodes as candidates");
  }
  absl::Status told(refusal.code(), words);
  SetHolders(std::move(lines), told);
  return told;
}

// Of the job to come: as asked for, else the account's tenant's, else the one that all candidates
// share.
absl::StatusOr<PartitionNum> PartitionOfTask(const PlacementSnapshot& placing,
                                             const PlacementTask& task, const Accounts& accounts,
                                             absl::string_view account,
                                             const PlacementConstraints& constraints) {
  PartitionNum wanted = task.partition;
  if (!placing.snapshot.partitions->empty()) {
    ASSIGN_OR_RETURN(wanted, accounts.PartitionFor(account, wanted));
  }
  if (wanted == PartitionNum() && constraints.candidates.empty()) {
    const absl::StatusOr<PartitionNum>& of_all = placing.partitions->of_all;
    if (of_all.ok()) return of_all;
    return absl::FailedPreconditionError(
        absl::StrCat("without candidates, all nodes are: ", of_all.status().message(),
                     "; or name a partition, whose full members are candidates then"));
  }
  const Fabric& fabric = *placing.snapshot.fabric;
  std::vector<Guid> ports;
  if (wanted == PartitionNum()) {
    for (const HostIndex host : constraints.candidates) {
      const auto cabled = fabric.endpoints_of_host(host);
      if (!cabled.empty()) ports.push_back(fabric.endpoint(cabled.front()).port_guid);
    }
  }
  return ChoosePartition(placing.snapshot, ports, wanted);
}

// A search with a pattern has memory for each position. More than a job may have no start takes.
absl::Status CheckPositions(const PlacementTask& task, uint32_t most) {
  const uint64_t positions = uint64_t{task.constraints.host_count} * task.ranks_per_node;
  if (task.pattern == nullptr || positions <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("ranks per node: ", task.constraints.host_count, " nodes of ",
                   task.ranks_per_node, " ranks are ", positions,
                   " positions to order a pattern's ranks on, over the daemon's limits.job_ranks "
                   "of ",
                   most, "; ask for fewer, or without a pattern"));
}

// The store refused before it wrote; anything else may be durable all the same.
bool IsRefusal(const absl::Status& status) {
  return absl::IsAlreadyExists(status) || absl::IsFailedPrecondition(status) ||
         absl::IsInvalidArgument(status);
}

// Of more than one the message names the position.
template <class Requests>
absl::Status At(const Requests& requests, size_t i, const absl::Status& status) {
  return requests.size() > 1 ? Annotate(status, absl::StrCat("requests[", i, "]")) : status;
}

// What a plan makes of a record.
void Fill(const Fabric& fabric, const PlacementPlan& plan, const PlacementTask& task,
          PlacementRecord& record) {
  for (const HostIndex host : plan.hosts) record.nodes.emplace_back(fabric.host_name(host));
  record.ranks_per_node = task.ranks_per_node;
  record.permutation = plan.permutation;
  record.is_exclusive = task.constraints.exclusive_switches;
  record.reason = plan.reason;
  record.measures = plan.measures;
  record.is_optimal = plan.is_optimal;
}

absl::Status CheckCount(size_t requests) {
  if (requests >= 1 && requests <= Placements::kMaxAtOnce) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "requests: ", requests, " placements at once; ask for 1 to ", Placements::kMaxAtOnce));
}

}  // namespace

absl::StatusOr<Payer> Placements::FindPayer(const CreatePlacementArgs& args) const {
  Payer payer{args.owner, args.actor.is_administrator};
  ASSIGN_OR_RETURN(payer.account,
                   tables_->quotas.accounts()->Choose(args.owner, args.task.account,
                                                      MayNameAnyAccount(args.actor)));
  payer.partition = args.task.partition;
  return payer;
}

absl::Duration Placements::TermOf(const CreatePlacementArgs& args, const Payer& payer) const {
  if (args.term) return *args.term;
  return std::min(options_->placement.default_term, tables_->quotas.LongestLease(payer));
}

absl::Status Placements::CheckArgs(const Draft& draft) const {
  RETURN_IF_ERROR(CheckCount(draft.size()));
  absl::flat_hash_set<absl::string_view> names;
  for (size_t i = 0; i < draft.size(); ++i) {
    const CreatePlacementArgs& args = draft[i].args;
    absl::Status status = CheckLength("request_id", args.request_id, kMaxRequestIdBytes);
    status.Update(CheckLength("display_name", args.display_name, kMaxNameBytes));
    status.Update(CheckLength("account", args.task.account, kMaxNameBytes));
    status.Update(CheckTask(args.task));
    status.Update(CheckPositions(args.task, options_->max_job_ranks));
    const absl::Duration term = args.term.value_or(kMinLease);
    if (term < kMinLease || term > kMaxLease) {
      status.Update(absl::InvalidArgumentError(
          absl::StrCat("term: ", absl::FormatDuration(term), " must be between ",
                       absl::FormatDuration(kMinLease), " and ", absl::FormatDuration(kMaxLease))));
    }
    if (status.ok()) {
      const absl::StatusOr<Payer> payer = FindPayer(args);
      status = payer.ok() ? tables_->quotas.CheckLease(*payer, TermOf(args, *payer), "term")
                          : payer.status();
    }
    if (!args.request_id.empty() && !names.insert(args.request_id).second) {
      status.Update(absl::InvalidArgumentError(
          absl::StrCat("request_id ", args.request_id, " is given twice; each has its own")));
    }
    if (!status.ok()) return At(draft, i, status);
  }
  return absl::OkStatus();
}

absl::Status Placements::CheckRoom(const Draft& draft) const {
  const std::shared_ptr<const ManagerOptions> options = options_.Get();
  const size_t more = draft.size();
  const std::string& owner = draft.front().args.owner;
  const auto found = by_owner_.find(owner);
  const uint32_t own = found == by_owner_.end() ? 0 : found->second;
  absl::Status status;
  if (own + more > options->placement.most_held_per_owner) {
    status = absl::ResourceExhaustedError(absl::StrCat(
        owner, " holds ", own, " placements of ", options->placement.most_held_per_owner,
        " (placement.held_per_owner); start or release some, or wait for their terms to end"));
  } else if (counted_ + more > options->placement.most_held) {
    status = absl::ResourceExhaustedError(absl::StrCat(
        counted_, " placements are held of ", options->placement.most_held,
        " (placement.held); wait until some are started or released, or for their terms to end"));
  }
  if (status.ok()) return status;
  std::vector<std::pair<int64_t, std::string>> lines;
  for (const auto& [user, count] : by_owner_) {
    lines.emplace_back(count, absl::StrCat("user:", user, " ", count, " placements held"));
  }
  SetHolders(std::move(lines), status);
  return status;
}

bool Placements::Begin(const Draft& draft, Callback<Views>& done) {
  std::vector<Requests::Asked> asked;
  for (const Wanted& wanted : draft) {
    asked.push_back({OwnName(wanted.args.owner, wanted.args.request_id), wanted.args.request_id,
                     FingerprintOf(wanted.args)});
  }
  const auto made = [this](const std::vector<PlacementId>& ids) {
    Views views;
    for (const PlacementId id : ids) views.push_back(ViewOf(*Find(id)));
    return views;
  };
  const auto may_begin = [&] {
    absl::Status status = CheckRoom(draft);
    if (!status.ok()) return status;
    for (const Wanted& wanted : draft) CountOwner(wanted.args.owner, 1);
    return status;
  };
  return requests_.Begin(std::unique_lock(mu_), asked, made, may_begin, done);
}

absl::StatusOr<PlacementSnapshot> Placements::TakeSnapshot() {
  ASSIGN_OR_RETURN(PlacementSnapshot placing, keeper_.Take([this] {
    PlacementSnapshotKeeper::Holding holding;
    std::lock_guard lock(mu_);
    for (const auto& [id, held] : held_) holding.placements.push_back(held->record);
    for (const auto& [id, record] : taking_) holding.placements.push_back(record);
    holding.generation = holds_.generation();
    return holding;
  }));
  // Leaf switches of placements from before the start: known once there is a fabric.
  std::lock_guard lock(mu_);
  for (const std::shared_ptr<Held>& held : without_leaves_) {
    NodeHolds::Wish leaves;
    leaves.leaves =
        LeavesOf(*placing.index, HostsOfPlacement(*placing.snapshot.fabric, *held->record));
    leaves.is_exclusive = held->wish.is_exclusive;
    holds_.Restore(leaves);
    held->wish.leaves = std::move(leaves.leaves);
  }
  without_leaves_.clear();
  return placing;
}

std::shared_ptr<const KeptEntries> Placements::KeptNow() const {
  std::lock_guard lock(tables_->mu);
  return tables_->kept;
}

absl::StatusOr<PlacementPlan> Placements::PlanOne(const PlacementSnapshot& placing,
                                                  const PlacementTask& task, CallBudget& budget,
                                                  PlacementRecord& record) const {
  ASSIGN_OR_RETURN(const PlacementRequest request,
                   ReadTask(*placing.snapshot.fabric, task, options_->placement.weights));
  ASSIGN_OR_RETURN(record.partition, PartitionOfTask(placing, task, *tables_->quotas.accounts(),
                                                     record.account, request.constraints));
  BarredPlaces barred(placing);
  barred.BarForeign(record.partition, request.trees > 0);
  barred.BarKept(tables_->quotas.accounts()->TenantOf(record.account, record.partition), *KeptNow(),
                 tables_->quotas, request.trees > 0);
  const absl::Duration end = clock_->Monotonic() + budget.NextOf(task);
  const auto stopped = [&, this] { return budget.IsCancelled() || clock_->Monotonic() >= end; };
  const auto remaining = [&, this] { return absl::ToDoubleSeconds(end - clock_->Monotonic()); };
  absl::StatusOr<PlacementPlan> plan = Place(placing.snapshot, *placing.index, barred.occupancy(),
                                             request, SearchControl(stopped, nullptr, remaining));
  if (plan.ok()) {
    absl::StrAppend(&plan->reason, barred.WordsOfSwitches());
    return plan;
  }
  absl::Status refusal = plan.status();
  refusal = absl::Status(refusal.code(), absl::StrCat(refusal.message(), barred.Words()));
  if (!absl::IsResourceExhausted(refusal)) return refusal;
  return WithHolders(placing, request.constraints, refusal);
}

absl::StatusOr<PlacementRecord> Placements::RecordOf(const CreatePlacementArgs& args) const {
  PlacementRecord record;
  ASSIGN_OR_RETURN(const Payer payer, FindPayer(args));
  record.account = payer.account;
  record.request_id = args.request_id;
  record.request_fingerprint = FingerprintOf(args);
  record.name = args.display_name;
  record.owner = args.owner;
  record.by_administrator = args.actor.is_administrator;
  record.term = TermOf(args, payer);
  record.created = clock_->Now();
  record.ended = absl::InfiniteFuture();
  return record;
}

absl::Status Placements::PlanAll(PlacementSnapshot& placing, Draft& draft, CallBudget& budget,
                                 bool is_advice) const {
  const Fabric& fabric = *placing.snapshot.fabric;
  budget.BeginAttempt(std::count_if(draft.begin(), draft.end(), [](const Wanted& wanted) {
    return wanted.args.task.pattern != nullptr;
  }));
  for (size_t i = 0; i < draft.size(); ++i) {
    RETURN_IF_ERROR(budget.Check());
    const PlacementTask& task = draft[i].args.task;
    auto record = std::make_shared<PlacementRecord>();
    record->account = task.account;
    if (!is_advice) {
      absl::StatusOr<PlacementRecord> made = RecordOf(draft[i].args);
      if (!made.ok()) return At(draft, i, made.status());
      *record = *std::move(made);
    }
    const absl::StatusOr<PlacementPlan> plan = PlanOne(placing, task, budget, *record);
    const bool is_advice_against = is_advice && (absl::IsResourceExhausted(plan.status()) ||
                                                 absl::IsFailedPrecondition(plan.status()));
    if (!plan.ok() && !is_advice_against) return At(draft, i, plan.status());
    record->fabric_version = fabric.version();
    PlacementView& view = draft[i].view;
    if (plan.ok()) {
      Fill(fabric, *plan, task, *record);
      draft[i].wish = {record->nodes, LeavesOf(*placing.index, plan->hosts), record->is_exclusive};
      if (i + 1 < draft.size()) {
        placing.Add(plan->hosts, record->is_exclusive,
                    absl::StrCat("requests[", i, "] of this call"));
      }
    } else {
      view.why_not = std::string(plan.status().message());
    }
    view.term_left = record->term;
    view.record = draft[i].record = std::move(record);
  }
  return absl::OkStatus();
}

bool Placements::TryTake(const PlacementSnapshot& placing, Draft& draft) {
  std::vector<PlacementSnapshotKeeper::Chosen> plan;
  std::vector<const NodeHolds::Wish*> wishes;
  for (const Wanted& wanted : draft) {
    plan.push_back({HostsOfPlacement(*placing.snapshot.fabric, *wanted.record),
                    !wanted.args.task.candidates.empty(), wanted.record->is_exclusive});
    wishes.push_back(&wanted.wish);
  }
  if (!keeper_.IsStillFree(placing, plan)) return false;
  std::lock_guard lock(mu_);
  if (!holds_.TakeAll(wishes, placing.generation)) return false;
  for (const Wanted& wanted : draft) {
    wanted.record->id = last_ = PlacementId(last_.value() + 1);
    taking_.emplace(wanted.record->id, wanted.record);
  }
  return true;
}

absl::StatusOr<bool> Placements::PlanAndTakeOnce(Draft& draft, CallBudget& budget, bool has_turn) {
  const auto may_wait = [&budget] { return budget.Check(); };
  PlacementTurns::Turn turn;
  if (has_turn) {
    ASSIGN_OR_RETURN(turn, turns_.Begin(may_wait));
    budget.LimitTo(kMaxTurn);
  }
  ASSIGN_OR_RETURN(PlacementSnapshot placing, TakeSnapshot());
  RETURN_IF_ERROR(PlanAll(placing, draft, budget, /*is_advice=*/false));
  if (budget.IsCancelled()) return budget.Check();
  RETURN_IF_ERROR(TakeNodes(draft));
  const absl::StatusOr<bool> taken =
      turns_.Take(has_turn, may_wait, [&] { return TryTake(placing, draft); });
  if (!taken.ok() || !*taken) GiveNodes(draft);
  return taken;
}

absl::Status Placements::TakeNodes(absl::Span<const Wanted> draft) {
  for (size_t i = 0; i < draft.size(); ++i) {
    const PlacementRecord& record = *draft[i].record;
    if (draft[i].args.actor.is_scheduled) {
      tables_->quotas.Count(PayerOf(record), AmountsOf(record));
      continue;
    }
    const absl::Status taken = tables_->quotas.Take(PayerOf(record), AmountsOf(record));
    if (taken.ok()) continue;
    GiveNodes(draft.first(i));
    return At(draft, i, taken);
  }
  return absl::OkStatus();
}

void Placements::GiveNodes(absl::Span<const Wanted> draft) {
  for (const Wanted& wanted : draft) {
    tables_->quotas.Give(PayerOf(*wanted.record), AmountsOf(*wanted.record));
  }
}

absl::StatusOr<PlannerWork> Placements::BeginWork(const Draft& draft, const Payer& payer) {
  const bool is_search = std::any_of(draft.begin(), draft.end(), [](const Wanted& wanted) {
    return wanted.args.task.pattern != nullptr;
  });
  return PlannerWork::Begin(tables_->quotas, *clock_, payer,
                            is_search ? PlannerWork::Kind::kSearch : PlannerWork::Kind::kPlan);
}

absl::Status Placements::PlanAndTake(Draft& draft, const PlacementCancelled& is_cancelled) {
  ASSIGN_OR_RETURN(const Payer payer, FindPayer(draft.front().args));
  ASSIGN_OR_RETURN(const PlannerWork work, BeginWork(draft, payer));
  CallBudget budget(clock_, is_cancelled);
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    ASSIGN_OR_RETURN(const bool is_taken, PlanAndTakeOnce(draft, budget, attempt >= kFreeAttempts));
    if (is_taken) return absl::OkStatus();
  }
  return absl::AbortedError(
      absl::StrCat("placement: jobs took the nodes, or the fabric moved, during each of ",
                   kMaxAttempts, " attempts; call again"));
}

void Placements::Create(std::vector<CreatePlacementArgs> requests,
                        const PlacementCancelled& is_cancelled, Callback<Views> done) {
  auto draft = std::make_shared<Draft>();
  for (CreatePlacementArgs& args : requests) draft->push_back({std::move(args)});
  if (absl::Status status = CheckArgs(*draft); !status.ok()) return done(std::move(status));
  if (!Begin(*draft, done)) return;
  if (const absl::Status status = PlanAndTake(*draft, is_cancelled); !status.ok()) {
    return Fail(*draft, status, std::move(done));
  }
  PutPlacements put;
  for (const Wanted& wanted : *draft) put.placements.push_back(*wanted.record);
  std::string object = absl::StrCat("placement:", draft->front().record->id.value());
  if (draft->size() > 1) absl::StrAppend(&object, " and ", draft->size() - 1, " more");
  put.deed = DeedOf(draft->front().args.actor, std::move(object), clock_->Now());
  calls_->Submit(std::move(put),
                 [this, draft, callback = std::move(done)](absl::Status status) mutable {
                   OnCreated(*draft, std::move(status), std::move(callback));
                 });
}

// The end of rows that may have been written. Handed over before the nodes are given back: whoever
// takes them next comes after it.
void Placements::UndoWritten(const Draft& draft) {
  for (const Wanted& wanted : draft) {
    calls_->Submit(
        EndPlacement{wanted.record->id, PlacementState::kReleased, clock_->Now()},
        [id = wanted.record->id](absl::Status status) {
          if (status.ok() || absl::IsNotFound(status)) return;
          spdlog::warn(
              "placement {} was not made, but the database may hold its nodes until it is released "
              "or the daemon restarts: {}",
              id.value(), status.ToString());
        });
  }
}

void Placements::OnCreated(Draft& draft, absl::Status status, Callback<Views> done) {
  const CreatePlacementArgs& first = draft.front().args;
  if (!status.ok()) {
    if (!IsRefusal(status)) UndoWritten(draft);
    {
      std::lock_guard lock(mu_);
      for (const Wanted& wanted : draft) {
        taking_.erase(wanted.record->id);
        holds_.Free(wanted.wish);
      }
    }
    GiveNodes(draft);
    if (absl::IsAlreadyExists(status)) {
      status = Annotate(status, "the placement of that request_id is over; take a new request_id");
    }
    return Fail(draft, status, std::move(done));
  }
  std::vector<std::vector<Callback<Views>>> waiters;
  const absl::Duration now = clock_->Monotonic();
  {
    std::lock_guard lock(mu_);
    for (Wanted& wanted : draft) {
      auto held = std::make_shared<Held>();
      held->record = wanted.record;
      held->wish = std::move(wanted.wish);
      held->deadline = now + held->record->term;
      taking_.erase(held->record->id);
      waiters.push_back(requests_.Succeed(OwnName(held->record->owner, held->record->request_id),
                                          held->record->id));
      Enter(std::move(held));
    }
  }
  on_deadline_();
  std::vector<EventRecord> events;
  Views views;
  for (size_t i = 0; i < draft.size(); ++i) {
    const PlacementRecord& record = *draft[i].record;
    std::vector<std::string> nodes = record.nodes;
    SortNodeNames(nodes);
    events.push_back(
        EventOf("placement.created", clock_->Now(), absl::StrCat("placement:", record.id.value()),
                absl::StrCat("\"", record.name, "\" of ", record.owner, ": ", nodes.size(),
                             " nodes, ", FormatNodeList(nodes).substr(0, kMaxListTold))));
    events.back().actor = NameOf(draft[i].args.actor);
    for (Callback<Views>& waiter : waiters[i]) waiter(Views{draft[i].view});
    views.push_back(std::move(draft[i].view));
  }
  events_->Append(std::move(events), first.owner);
  done(std::move(views));
}

void Placements::Fail(const Draft& draft, const absl::Status& status, Callback<Views> done) {
  std::vector<Callback<Views>> waiters;
  {
    std::lock_guard lock(mu_);
    for (const Wanted& wanted : draft) {
      CountOwner(wanted.args.owner, -1);
      for (auto& waiter : requests_.Fail(OwnName(wanted.args.owner, wanted.args.request_id))) {
        waiters.push_back(std::move(waiter));
      }
    }
  }
  Requests::Tell(std::move(waiters), status, std::move(done));
}

absl::StatusOr<Placements::Views> Placements::Advise(const std::vector<PlacementTask>& tasks,
                                                     const Payer& payer,
                                                     const PlacementCancelled& is_cancelled) {
  RETURN_IF_ERROR(CheckCount(tasks.size()));
  Draft draft(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    RETURN_IF_ERROR(At(tasks, i, CheckTask(tasks[i])));
    RETURN_IF_ERROR(At(tasks, i, CheckPositions(tasks[i], options_->max_job_ranks)));
    draft[i].args.task = tasks[i];
    if (tasks[i].account.empty()) draft[i].args.task.account = payer.account;
  }
  ASSIGN_OR_RETURN(const PlannerWork work, BeginWork(draft, payer));
  ASSIGN_OR_RETURN(PlacementSnapshot placing, TakeSnapshot());
  CallBudget budget(clock_, is_cancelled);
  RETURN_IF_ERROR(PlanAll(placing, draft, budget, /*is_advice=*/true));
  Views views;
  for (Wanted& wanted : draft) views.push_back(std::move(wanted.view));
  return views;
}

}  // namespace coppice
