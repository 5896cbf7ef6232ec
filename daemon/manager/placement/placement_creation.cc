// Placements::Create and Advise: from requests to nodes that are held.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/log.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/event_kinds.h"
#include "daemon/manager/placement/placement_view.h"
#include "daemon/manager/placement/placements.h"
#include "daemon/manager/requests.h"
#include "proto/text/node_list.h"

namespace coppice {
namespace {

constexpr size_t kMaxHoldersTold = 10;
constexpr size_t kMaxListTold = 200;  // letters of a node list in an event

// Who has how many, most first, as lines of kHoldersPayload.
void SetHolders(std::vector<std::pair<uint32_t, std::string>> lines, absl::Status& status) {
  std::sort(lines.rbegin(), lines.rend());
  if (lines.size() > kMaxHoldersTold) lines.resize(kMaxHoldersTold);
  status.SetPayload(kHoldersPayload,
                    absl::Cord(absl::StrJoin(lines, "\n", [](std::string* out, const auto& line) {
                      absl::StrAppend(out, line.second);
                    })));
}

// The holders of the nodes that the request wanted to choose from.
void TellHolders(const PlacementSnapshot& placing, const PlacementConstraints& constraints,
                 absl::Status& status) {
  std::map<uint32_t, uint32_t> count;
  const auto look = [&](HostIndex host) {
    const uint32_t holder = placing.occupancy.holder[host.value()];
    if (holder != Occupancy::kFree) ++count[holder];
  };
  for (const HostIndex host : constraints.candidates) look(host);
  for (uint32_t h = 0; constraints.candidates.empty() && h < placing.occupancy.holder.size(); ++h) {
    look(HostIndex(h));
  }
  std::vector<std::pair<uint32_t, std::string>> lines;
  for (const auto& [holder, nodes] : count) {
    const auto label = placing.holders.find(holder);
    if (label == placing.holders.end()) continue;
    const size_t space = label->second.find(' ');
    lines.emplace_back(nodes, absl::StrCat(label->second.substr(0, space), " ", nodes, " nodes",
                                           label->second.substr(space)));
  }
  SetHolders(std::move(lines), status);
}

// A search with a pattern has memory for each position. More than a job may have no start takes.
absl::Status CheckPositions(const PlacementTask& task, uint32_t most) {
  const uint64_t positions = uint64_t{task.constraints.host_count} * task.ranks_per_node;
  if (task.pattern == nullptr || positions <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("ranks_per_node: ", task.constraints.host_count, " nodes of ",
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

absl::Status At(bool is_batch, size_t i, const absl::Status& status) {
  return is_batch ? Annotate(status, absl::StrCat("requests[", i, "]")) : status;
}

std::vector<std::string> NamesOf(const Fabric& fabric, absl::Span<const HostIndex> hosts) {
  std::vector<std::string> names;
  names.reserve(hosts.size());
  for (const HostIndex host : hosts) names.emplace_back(fabric.host_name(host));
  return names;
}

// What a plan makes of a record.
void Fill(const PlacementSnapshot& placing, const PlacementPlan& plan, const PlacementTask& task,
          PlacementRecord& record) {
  const Fabric& fabric = *placing.snapshot.fabric;
  record.nodes = NamesOf(fabric, plan.hosts);
  record.ranks_per_node = task.ranks_per_node;
  record.permutation = plan.permutation;
  record.is_exclusive = task.constraints.exclusive_switches;
  record.fabric_version = fabric.version();
  record.reason = plan.reason;
  record.measures = MeasuresJson(plan.measures, plan.is_optimal);
}

PlacementView ViewOfPlan(std::shared_ptr<const PlacementRecord> record, const PlacementPlan& plan) {
  PlacementView view;
  view.record = std::move(record);
  view.measures = plan.measures;
  view.is_optimal = plan.is_optimal;
  return view;
}

}  // namespace

absl::Duration Placements::TermOf(const CreatePlacementArgs& args) const {
  if (args.term) return *args.term;
  const QuotaAccount account{args.owner, args.actor.is_administrator};
  return std::min(options_->placement.default_term, tables_->quotas.LongestLease(account));
}

absl::Status Placements::CheckArgs(const Draft& draft) const {
  if (draft.requests.empty() || draft.requests.size() > kMaxAtOnce) {
    return absl::InvalidArgumentError(absl::StrCat(
        "requests: ", draft.requests.size(), " placements at once; ask for 1 to ", kMaxAtOnce));
  }
  absl::flat_hash_set<absl::string_view> names;
  for (size_t i = 0; i < draft.requests.size(); ++i) {
    const CreatePlacementArgs& args = draft.requests[i];
    absl::Status status = CheckLength("request_id", args.request_id, kMaxRequestIdBytes);
    status.Update(CheckLength("display_name", args.display_name, kMaxNameBytes));
    status.Update(CheckTask(args.task));
    status.Update(CheckPositions(args.task, options_->max_job_ranks));
    const absl::Duration term = args.term.value_or(kShortestTerm);
    if (term < kShortestTerm || term > kLongestTerm) {
      status.Update(absl::InvalidArgumentError(absl::StrCat(
          "term: ", absl::FormatDuration(term), " must be between ",
          absl::FormatDuration(kShortestTerm), " and ", absl::FormatDuration(kLongestTerm))));
    }
    if (status.ok()) {
      status.Update(tables_->quotas.CheckLease({args.owner, args.actor.is_administrator},
                                               TermOf(args), "term"));
    }
    if (!args.request_id.empty() && !names.insert(args.request_id).second) {
      status.Update(absl::InvalidArgumentError(
          absl::StrCat("request_id ", args.request_id, " is given twice; each has its own")));
    }
    if (!status.ok()) return At(draft.is_batch, i, status);
  }
  return absl::OkStatus();
}

absl::Status Placements::CheckRoom(const Draft& draft) const {
  const std::shared_ptr<const ManagerOptions> options = options_.Get();
  const size_t more = draft.requests.size();
  const std::string& owner = draft.requests.front().owner;
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
  std::vector<std::pair<uint32_t, std::string>> lines;
  for (const auto& [user, count] : by_owner_) {
    lines.emplace_back(count, absl::StrCat("user:", user, " ", count, " placements held"));
  }
  SetHolders(std::move(lines), status);
  return status;
}

bool Placements::Begin(const Draft& draft, Callback<Views>& done) {
  std::vector<Requests::Asked> asked;
  for (size_t i = 0; i < draft.requests.size(); ++i) {
    const CreatePlacementArgs& args = draft.requests[i];
    asked.push_back({OwnName(args.owner, args.request_id), args.request_id, draft.fingerprints[i]});
  }
  const auto made = [this](const std::vector<PlacementId>& ids) {
    Views views;
    for (const PlacementId id : ids) views.push_back(ViewOf(*Find(id)));
    return views;
  };
  const auto may_begin = [&] {
    absl::Status status = CheckRoom(draft);
    for (const CreatePlacementArgs& args : draft.requests) {
      if (status.ok()) CountOwner(args.owner, 1);
    }
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

absl::StatusOr<PlacementPlan> Placements::PlanOne(const PlacementSnapshot& placing,
                                                  const PlacementTask& task, CallBudget& budget,
                                                  const PlacementCancelled& is_cancelled) const {
  ASSIGN_OR_RETURN(const PlacementRequest request,
                   ReadTask(*placing.snapshot.fabric, task, options_->placement.weights));
  const absl::Duration end = clock_->Monotonic() + budget.NextOf(task);
  const auto stopped = [&, this] {
    return (is_cancelled && is_cancelled()) || clock_->Monotonic() >= end;
  };
  const auto remaining = [&, this] { return absl::ToDoubleSeconds(end - clock_->Monotonic()); };
  absl::StatusOr<PlacementPlan> plan = Place(placing.snapshot, *placing.index, placing.occupancy,
                                             request, SearchControl(stopped, nullptr, remaining));
  if (plan.ok() || !absl::IsResourceExhausted(plan.status())) return plan;
  absl::Status status = plan.status();
  TellHolders(placing, request.constraints, status);
  return status;
}

absl::Status Placements::PlanAll(PlacementSnapshot& placing, Draft& draft, CallBudget& budget,
                                 const PlacementCancelled& is_cancelled) const {
  const size_t count = draft.requests.size();
  budget.BeginAttempt(
      std::count_if(draft.requests.begin(), draft.requests.end(),
                    [](const CreatePlacementArgs& a) { return a.task.pattern != nullptr; }));
  draft.records.resize(count);
  draft.wishes.resize(count);
  draft.views.resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (is_cancelled && is_cancelled()) return absl::CancelledError("the client went away");
    RETURN_IF_ERROR(budget.Check());
    const CreatePlacementArgs& args = draft.requests[i];
    const absl::StatusOr<PlacementPlan> plan = PlanOne(placing, args.task, budget, is_cancelled);
    if (!plan.ok()) return At(draft.is_batch, i, plan.status());
    auto record = std::make_shared<PlacementRecord>();
    record->request_id = args.request_id;
    record->request_fingerprint = draft.fingerprints[i];
    record->name = args.display_name;
    record->owner = args.owner;
    record->by_administrator = args.actor.is_administrator;
    record->term = TermOf(args);
    record->created = clock_->Now();
    record->ended = absl::InfiniteFuture();
    Fill(placing, *plan, args.task, *record);
    draft.wishes[i] = {record->nodes, LeavesOf(*placing.index, plan->hosts), record->is_exclusive};
    if (i + 1 < count) {
      placing.Add(plan->hosts, record->is_exclusive,
                  absl::StrCat("requests[", i, "] of this call"));
    }
    draft.views[i] = ViewOfPlan(record, *plan);
    draft.views[i].term_left = record->term;
    draft.records[i] = std::move(record);
  }
  return absl::OkStatus();
}

bool Placements::TryTake(const PlacementSnapshot& placing, Draft& draft) {
  std::vector<PlacementSnapshotKeeper::Chosen> plan;
  for (size_t i = 0; i < draft.records.size(); ++i) {
    const PlacementRecord& record = *draft.records[i];
    plan.push_back({HostsOfPlacement(*placing.snapshot.fabric, record),
                    !draft.requests[i].task.candidates.empty(), record.is_exclusive});
  }
  if (!keeper_.IsStillFree(placing, plan)) return false;
  std::vector<const NodeHolds::Wish*> wishes;
  for (const NodeHolds::Wish& wish : draft.wishes) wishes.push_back(&wish);
  std::lock_guard lock(mu_);
  if (!holds_.TakeAll(wishes, placing.generation)) return false;
  for (const std::shared_ptr<PlacementRecord>& record : draft.records) {
    record->id = last_ = PlacementId(last_.value() + 1);
    taking_.emplace(record->id, record);
  }
  return true;
}

absl::Status Placements::PlanAndTakeOnce(Draft& draft, const PlacementCancelled& is_cancelled,
                                         CallBudget& budget, bool has_turn, bool& is_taken) {
  const auto may_wait = [&]() -> absl::Status {
    if (is_cancelled && is_cancelled()) return absl::CancelledError("the client went away");
    return budget.Check();
  };
  PlacementTurns::Turn turn;
  if (has_turn) {
    ASSIGN_OR_RETURN(turn, turns_.Begin(may_wait));
    budget.LimitTo(kLongestTurn);
  }
  ASSIGN_OR_RETURN(PlacementSnapshot placing, TakeSnapshot());
  RETURN_IF_ERROR(PlanAll(placing, draft, budget, is_cancelled));
  if (is_cancelled && is_cancelled()) return absl::CancelledError("the client went away");
  const CreatePlacementArgs& first = draft.requests.front();  // all are one caller's
  const QuotaAccount account{first.owner, first.actor.is_administrator};
  const QuotaAmounts nodes = NodesOf(draft);
  if (first.actor.is_scheduled) {
    tables_->quotas.Count(account, nodes);
  } else {
    RETURN_IF_ERROR(tables_->quotas.Take(account, nodes));
  }
  const absl::StatusOr<bool> taken =
      turns_.Take(has_turn, may_wait, [&] { return TryTake(placing, draft); });
  is_taken = taken.ok() && *taken;
  if (!is_taken) tables_->quotas.Give(account, nodes);
  return taken.status();
}

QuotaAmounts Placements::NodesOf(const Draft& draft) {
  QuotaAmounts amounts;
  for (const std::shared_ptr<PlacementRecord>& record : draft.records) {
    amounts[Quota::kNodes] += static_cast<int64_t>(record->nodes.size());
  }
  return amounts;
}

absl::Status Placements::PlanAndTake(Draft& draft, const PlacementCancelled& is_cancelled) {
  CallBudget budget(clock_);
  bool is_taken = false;
  for (int attempt = 0; attempt < kMaxAttempts && !is_taken; ++attempt) {
    RETURN_IF_ERROR(
        PlanAndTakeOnce(draft, is_cancelled, budget, attempt >= kFreeAttempts, is_taken));
  }
  if (is_taken) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat("placement: jobs took the nodes, or the fabric moved, during each of ",
                   kMaxAttempts, " attempts; call again"));
}

void Placements::Create(std::vector<CreatePlacementArgs> requests,
                        const PlacementCancelled& is_cancelled, Callback<Views> done) {
  auto draft = std::make_shared<Draft>();
  draft->is_batch = requests.size() > 1;
  draft->requests = std::move(requests);
  if (absl::Status status = CheckArgs(*draft); !status.ok()) return done(std::move(status));
  for (const CreatePlacementArgs& args : draft->requests) {
    draft->fingerprints.push_back(FingerprintOf(args));
  }
  if (!Begin(*draft, done)) return;
  if (const absl::Status status = PlanAndTake(*draft, is_cancelled); !status.ok()) {
    return Fail(*draft, status, std::move(done));
  }
  PutPlacements put;
  for (const std::shared_ptr<PlacementRecord>& record : draft->records) {
    put.placements.push_back(*record);
  }
  put.deed = DeedOf(
      draft->requests.front().actor,
      absl::StrCat("placement:", draft->records.front()->id.value(), draft->is_batch ? " and " : "",
                   draft->is_batch ? absl::StrCat(draft->records.size() - 1) : "",
                   draft->is_batch ? " more" : ""),
      clock_->Now());
  calls_->Submit(std::move(put),
                 [this, draft, callback = std::move(done)](absl::Status status) mutable {
                   OnCreated(draft, std::move(status), std::move(callback));
                 });
}

// The end of rows that may have been written. Handed over before the nodes are given back: whoever
// takes them next comes after it.
void Placements::UndoWritten(const Draft& draft) {
  for (const std::shared_ptr<PlacementRecord>& record : draft.records) {
    calls_->Submit(EndPlacement{record->id, PlacementState::kReleased, clock_->Now()},
                   [id = record->id](absl::Status status) {
                     if (status.ok() || absl::IsNotFound(status)) return;
                     spdlog::warn(
                         "placement {} was not made, but the database may hold its nodes until it "
                         "is released or the daemon restarts: {}",
                         id.value(), status.ToString());
                   });
  }
}

void Placements::OnCreated(const std::shared_ptr<Draft>& draft, absl::Status status,
                           Callback<Views> done) {
  if (!status.ok()) {
    if (!IsRefusal(status)) UndoWritten(*draft);
    {
      std::lock_guard lock(mu_);
      for (size_t i = 0; i < draft->records.size(); ++i) {
        taking_.erase(draft->records[i]->id);
        holds_.Free(draft->wishes[i]);
      }
    }
    const CreatePlacementArgs& first = draft->requests.front();
    tables_->quotas.Give({first.owner, first.actor.is_administrator}, NodesOf(*draft));
    if (absl::IsAlreadyExists(status)) {
      status = Annotate(status, "the placement of that request_id is over; take a new request_id");
    }
    return Fail(*draft, status, std::move(done));
  }
  std::vector<std::vector<Callback<Views>>> waiters;
  const absl::Duration now = clock_->Monotonic();
  {
    std::lock_guard lock(mu_);
    for (size_t i = 0; i < draft->records.size(); ++i) {
      auto held = std::make_shared<Held>();
      held->record = draft->records[i];
      held->wish = std::move(draft->wishes[i]);
      held->deadline = now + held->record->term;
      taking_.erase(held->record->id);
      waiters.push_back(requests_.Succeed(OwnName(held->record->owner, held->record->request_id),
                                          held->record->id));
      Enter(std::move(held));
    }
  }
  on_deadline_();
  std::vector<EventRecord> events;
  for (size_t i = 0; i < draft->records.size(); ++i) {
    const PlacementRecord& record = *draft->records[i];
    std::vector<std::string> nodes = record.nodes;
    SortNodeNames(nodes);
    events.push_back(
        EventOf("placement.created", clock_->Now(), absl::StrCat("placement:", record.id.value()),
                absl::StrCat("\"", record.name, "\" of ", record.owner, ": ", nodes.size(),
                             " nodes, ", FormatNodeList(nodes).substr(0, kMaxListTold))));
    events.back().actor = NameOf(draft->requests[i].actor);
    for (Callback<Views>& waiter : waiters[i]) waiter(Views{draft->views[i]});
  }
  events_->Append(std::move(events), draft->requests.front().owner);
  done(std::move(draft->views));
}

void Placements::Fail(const Draft& draft, const absl::Status& status, Callback<Views> done) {
  std::vector<Callback<Views>> waiters;
  {
    std::lock_guard lock(mu_);
    for (const CreatePlacementArgs& args : draft.requests) {
      CountOwner(args.owner, -1);
      for (Callback<Views>& waiter : requests_.Fail(OwnName(args.owner, args.request_id))) {
        waiters.push_back(std::move(waiter));
      }
    }
  }
  Requests::Tell(std::move(waiters), status, std::move(done));
}

absl::StatusOr<Placements::Views> Placements::Advise(const std::vector<PlacementTask>& tasks,
                                                     const PlacementCancelled& is_cancelled) {
  if (tasks.empty() || tasks.size() > kMaxAtOnce) {
    return absl::InvalidArgumentError(absl::StrCat("requests: advice on ", tasks.size(),
                                                   " placements; ask for 1 to ", kMaxAtOnce));
  }
  const bool is_batch = tasks.size() > 1;
  for (size_t i = 0; i < tasks.size(); ++i) {
    RETURN_IF_ERROR(At(is_batch, i, CheckTask(tasks[i])));
    RETURN_IF_ERROR(At(is_batch, i, CheckPositions(tasks[i], options_->max_job_ranks)));
  }
  ASSIGN_OR_RETURN(PlacementSnapshot placing, TakeSnapshot());
  CallBudget budget(clock_);
  budget.BeginAttempt(std::count_if(tasks.begin(), tasks.end(),
                                    [](const PlacementTask& t) { return t.pattern != nullptr; }));
  Views views;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (is_cancelled && is_cancelled()) return absl::CancelledError("the client went away");
    RETURN_IF_ERROR(budget.Check());
    auto record = std::make_shared<PlacementRecord>();
    record->fabric_version = placing.snapshot.fabric->version();
    const absl::StatusOr<PlacementPlan> plan = PlanOne(placing, tasks[i], budget, is_cancelled);
    if (plan.ok()) {
      Fill(placing, *plan, tasks[i], *record);
      views.push_back(ViewOfPlan(record, *plan));
      placing.Add(plan->hosts, record->is_exclusive,
                  absl::StrCat("requests[", i, "] of this call"));
      continue;
    }
    if (!absl::IsResourceExhausted(plan.status()) && !absl::IsFailedPrecondition(plan.status())) {
      return At(is_batch, i, plan.status());
    }
    PlacementView view;
    view.record = std::move(record);
    view.why_not = std::string(plan.status().message());
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace coppice
