#include "daemon/manager/grants.h"

#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/placement/placement_view.h"

namespace coppice {
namespace {

// Memory that one attempt of a thread after another reuses, so that a request costs few
// allocations.
DraftScratch& ScratchOfThread() {
  thread_local DraftScratch scratch;
  return scratch;
}

bool IsQuotaRefusal(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && status.GetPayload(kHoldersPayload).has_value();
}

// What takes less, where the owner may not have all that was asked for: one tree instead of a
// forest; and whoever leaves the choice to the daemon gets a tree without entries. *what is missing
// then. nullopt: nothing does.
std::optional<CreateTreeArgs> WithLess(const CreateTreeArgs& args, const TreeDraft& draft,
                                       absl::string_view* what) {
  CreateTreeArgs less = args;
  if (!draft.record.forest.empty()) {
    *what = "no forest";
    less.max_trees.reset();
    return less;
  }
  if (draft.switches.empty() || args.type || args.builder || args.root_switch) return std::nullopt;
  *what = "not of type II";
  less.type = TreeType::kTypeI;
  return less;
}

// Some communicator at least has no tree, which may be the fault of its routes.
bool LacksTreesForRoutes(const absl::StatusOr<BatchDraft>& draft, const BatchWatch& watch) {
  if (draft.ok()) return !draft->view.refusals.empty();
  return !watch.IsCancelled() &&
         (absl::IsResourceExhausted(draft.status()) || MayLackRoutes(draft.status()));
}

// As of now: another batch of the owner's may take of it before this one is planned.
BatchRoom RoomOf(const QuotaLedger& quotas, const JobRecord& job, const Actor& actor) {
  Payer payer = PayerOf(job);
  payer.is_exempt |= actor.is_administrator;
  BatchRoom room{quotas.Left(payer)};
  room.why_not = [&quotas, payer](Quota quota, int64_t more) {
    QuotaAmounts amounts;
    amounts[quota] = more;
    const absl::Status refused = quotas.Check(payer, amounts);
    return refused.ok() ? "the owner's quota is used up by others of his calls"
                        : std::string(refused.message());
  };
  return room;
}

QuotaAmounts AmountsOf(absl::Span<const TreeDraft> drafts) {
  QuotaAmounts amounts;
  for (const TreeDraft& draft : drafts) {
    amounts[Quota::kTrees] += 1;
    amounts[Quota::kTreeRanks] += RanksKept(draft.record);
    amounts[Quota::kEntries] += static_cast<int64_t>(draft.switches.size());
  }
  return amounts;
}

bool IsWithin(const QuotaAmounts& amounts, const QuotaAmounts& left) {
  for (const Quota quota : {Quota::kTrees, Quota::kTreeRanks, Quota::kEntries}) {
    if (amounts[quota] > left[quota]) return false;
  }
  return true;
}

absl::Status TooManyTrees(JobId job, uint64_t held, uint64_t wanted, uint32_t limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat("job ", job.value(), " holds ", held, " trees and ", wanted,
                   " are asked for; the daemon's limits.trees_per_job is ", limit,
                   "; release some first", wanted > 1 ? " or take a smaller batch" : ""));
}

absl::Status Overtaken(absl::string_view what, JobId job, const AvoidedSwitches& avoided) {
  const absl::Status overtaken = absl::AbortedError(absl::StrCat(
      "the fabric or its free entries moved", avoided.empty() ? "" : ", or switches refused,",
      " during ", Grants::kMaxAttempts, " attempts to plan a ", what, " for job ", job.value(),
      "; call again"));
  return GoneRound(overtaken, avoided);
}

// Trees as they are planned, without ids.
std::vector<std::shared_ptr<GrantedTree>> TreesOf(const PlanBasis& basis,
                                                  const std::shared_ptr<Job>& job,
                                                  absl::Span<TreeDraft> drafts) {
  std::vector<std::shared_ptr<GrantedTree>> trees;
  trees.reserve(drafts.size());
  for (TreeDraft& draft : drafts) {
    auto tree = std::make_shared<GrantedTree>();
    tree->record = std::make_shared<const TreeRecord>(std::move(draft.record));
    tree->job = job;
    tree->route_kind = basis.snapshot.routes->kind();
    tree->promise = std::move(draft.promise);
    trees.push_back(std::move(tree));
  }
  return trees;
}

}  // namespace

absl::Status Grants::Restore(std::vector<TreeRecord> trees, TreeId last) {
  std::lock_guard lock(tables_->mu);
  tables_->trees.set_last(last);
  for (TreeRecord& record : trees) {
    auto tree = std::make_shared<GrantedTree>();
    tree->job = tables_->jobs.Find(record.job);
    if (tree->job == nullptr) {
      return absl::DataLossError(absl::StrCat("tree ", record.id.value(), " belongs to job ",
                                              record.job.value(), ", which is not active"));
    }
    if (const auto part = BatchPartOf(record)) {
      tree->job->batch_requests.Restore(std::string(part->batch), record.request_fingerprint,
                                        Job::kBatchDone);
    } else {
      tree->job->tree_requests.Restore(record.request_id, record.request_fingerprint, record.id);
    }
    if (auto carried = record.carriage.key.empty() ? std::nullopt : CarriedTreeOf(record)) {
      // Until they speak they have no entry for others.
      for (const CarriedEntry& entry : carried->entries) tables_->SetAway(entry.guid, true);
      installer_->Restore(*std::move(carried));
    }
    tables_->last_stamp = std::max(tables_->last_stamp, record.created);
    tables_->entries.Restore(record.id, record.switches, record.created);
    tables_->quotas.Count(PayerOf(*tree->job->record), AmountsOf(record), record.switches);
    tree->record = std::make_shared<const TreeRecord>(std::move(record));
    tables_->AddTree(std::move(tree), TreeChangeKind::kPresent);
  }
  return absl::OkStatus();
}

// --- What grants of one tree and of batches have in common ---

template <class Requests, class Made>
bool Grants::Begin(Requests& requests, const Begun& begun, uint64_t fingerprint, const Made& made,
                   typename Requests::Callback& done) {
  Job& job = *begun.job;
  const auto may_begin = [&]() -> absl::Status {
    if (job.ending) return JobIsEnding(job.record->id);
    const uint64_t held = job.trees.size() + job.trees_in_flight;
    if (held + begun.wanted > options_->max_trees_per_job) {
      return TooManyTrees(job.record->id, held, begun.wanted, options_->max_trees_per_job);
    }
    job.trees_in_flight += begun.wanted;
    return absl::OkStatus();
  };
  const auto recall = [&](const auto& ids) -> decltype(made(ids)) {
    if (job.ending) return JobIsEnding(job.record->id);
    return made(ids);
  };
  return requests.Begin(std::unique_lock(tables_->mu),
                        {{begun.request_id, begun.request_id, fingerprint}}, recall, may_begin,
                        done);
}

template <class Requests, class Id, class Answer>
void Grants::Finish(Requests& requests, const Begun& begun, const Reserved& trees, Id id,
                    const absl::Status& status, const Answer& answer,
                    typename Requests::Callback done) {
  decltype(answer()) outcome = absl::UnknownError("");
  std::vector<typename Requests::Callback> waiters;
  std::vector<std::shared_ptr<const TreeRecord>> entered;  // that switches carry
  {
    std::lock_guard lock(tables_->mu);
    begun.job->trees_in_flight -= begun.wanted;
    for (const std::shared_ptr<GrantedTree>& tree : trees) {
      const TreeRecord& record = *tree->record;
      if (status.ok()) {
        tables_->entries.Settle(record.id, record.switches, record.created);
        tables_->AddTree(tree);
        if (!record.carriage.key.empty()) entered.push_back(tree->record);
      } else {
        installer_->Remove({record.id, record.revision});
        tables_->entries.Cancel(record.switches);
        tables_->quotas.Give(PayerOf(*tree->job->record), AmountsOf(record), record.switches);
      }
    }
    if (status.ok()) {
      tables_->activity.Granted(trees.size());
      outcome = answer();
    } else {
      outcome = status;
    }
    // Of an empty batch nothing lives under the name.
    waiters = status.ok() && !trees.empty() ? requests.Succeed(begun.request_id, id)
                                            : requests.Fail(begun.request_id);
  }
  for (const std::shared_ptr<const TreeRecord>& record : entered) {
    // Lost before it was in the tables: whoever told of that did not find it.
    if (!installer_->WhyLost(*record)) continue;
    std::lock_guard lock(tables_->mu);
    tables_->NoteUnjudged(record->id);
  }
  Requests::Tell(std::move(waiters), std::move(outcome), std::move(done));
}

std::vector<CarriedTree> Grants::CarriedOf(const Reserved& trees) {
  std::vector<CarriedTree> carried;
  for (const std::shared_ptr<GrantedTree>& tree : trees) {
    if (tree->record->carriage.key.empty()) continue;
    if (auto one = CarriedTreeOf(*tree->record)) carried.push_back(*std::move(one));
  }
  return carried;
}

void Grants::GiveBack(const Reserved& trees) {
  std::lock_guard lock(tables_->mu);
  for (const std::shared_ptr<GrantedTree>& tree : trees) {
    tables_->entries.Cancel(tree->record->switches);
    tables_->quotas.Give(PayerOf(*tree->job->record), AmountsOf(*tree->record),
                         tree->record->switches);
  }
}

absl::StatusOr<std::optional<Grants::Reserved>> Grants::TryReserve(
    const std::shared_ptr<Job>& job, const PlanBasis& basis, const Actor& actor,
    absl::Span<TreeDraft> drafts, const BatchRoom* room, Detour& detour) {
  std::vector<absl::Span<const SwitchIndex>> switches;
  switches.reserve(drafts.size());
  std::vector<TreeSwitchRecord> entries;
  for (const TreeDraft& tree : drafts) {
    switches.emplace_back(tree.switches);
    entries.insert(entries.end(), tree.record.switches.begin(), tree.record.switches.end());
  }
  const Payer payer = PayerOf(*job->record);
  const QuotaAmounts amounts = AmountsOf(drafts);
  {
    std::lock_guard lock(tables_->mu);
    if (job->ending) return JobIsEnding(job->record->id);
    if (tables_->view->snapshot->fabric != basis.view->snapshot->fabric) return std::nullopt;
    // Nobody gives way to what is refused anyway.
    const bool is_allowed =
        actor.is_administrator || tables_->quotas.CheckLevels(payer, amounts).ok();
    if (is_allowed && !tables_->LeavesKept(payer, entries, detour.lent)) return std::nullopt;
    std::vector<Guid> contested;
    if (absl::Status beyond = tables_->quotas.CheckShare(payer, entries, contested);
        !actor.is_administrator && !beyond.ok()) {
      for (const Guid guid : contested) {
        detour.avoided[guid] = "another tenant asks for its share there";
      }
      detour.beyond_share = std::move(beyond);
      return std::nullopt;
    }
    if (actor.is_administrator) {
      tables_->quotas.Count(payer, amounts, entries);
    } else if (absl::Status taken = tables_->quotas.Take(payer, amounts, entries); !taken.ok()) {
      // What stayed within what there was has lost a race: planned again, it takes less.
      if (absl::IsAborted(taken)) return std::nullopt;
      if (room != nullptr && IsWithin(amounts, room->left)) return std::nullopt;
      return taken;
    }
    if (!tables_->entries.ReserveAll(switches)) {
      tables_->quotas.Give(payer, amounts, entries);
      return std::nullopt;
    }
    for (TreeDraft& tree : drafts) {
      tree.record.id = tables_->trees.TakeId();
      tree.record.created = tables_->Stamp(clock_->Now());
    }
  }
  return TreesOf(basis, job, drafts);
}

// --- One tree ---

void Grants::CreateTree(CreateTreeArgs args, Callback<TreeView> done) {
  args.list_tradeoffs = false;  // a granted tree keeps no list of others
  if (absl::Status status = CheckTreeRequest(args); !status.ok()) return done(std::move(status));
  const absl::StatusOr<std::shared_ptr<Job>> job = jobs_->FindActive(args.job);
  if (!job.ok()) return done(job.status());
  const uint64_t fingerprint = FingerprintOf(args);
  const Begun begun{*job, args.request_id, 1};
  const auto made = [&](const std::vector<TreeId>& ids) -> absl::StatusOr<TreeView> {
    return tables_->ViewOf(*tables_->trees.Find(ids.front()));
  };
  if (!Begin((*job)->tree_requests, begun, fingerprint, made, done)) return;
  auto creation = std::make_shared<Creation>();
  creation->begun = begun;
  creation->args = std::move(args);
  creation->fingerprint = fingerprint;
  creation->done = std::move(done);
  Proceed(creation);
}

void Grants::Proceed(const std::shared_ptr<Creation>& creation) {
  absl::StatusOr<Reserved> reserved = PlanAndReserve(*creation);
  if (!reserved.ok()) return FinishCreation(*creation, {}, reserved.status());
  if (!creation->detour.lent.empty()) {
    creation->lent_until = SystemClock().Monotonic() + kMaxAwaitLent;
    return ProceedLater(creation);
  }
  std::vector<CarriedTree> carried = CarriedOf(*reserved);
  if (carried.empty()) return SubmitGrant(creation, *std::move(reserved));
  installer_->Install(std::move(carried), [this, creation, trees = *std::move(reserved)](
                                              const InstallOutcome& outcome) mutable {
    if (outcome.status.ok()) return SubmitGrant(creation, std::move(trees));
    GiveBack(trees);
    if (outcome.refusing.empty()) return FinishCreation(*creation, {}, outcome.status);
    Add(outcome.refusing, creation->detour.avoided);
    ProceedLater(creation);
  });
}

void Grants::ProceedLater(const std::shared_ptr<Creation>& creation) {
  {
    std::lock_guard lock(again_mutex_);
    if (again_.running()) {
      refused_.push_back(creation);
      again_changed_.notify_all();
      return;
    }
  }
  FinishCreation(*creation, {}, InstallerIsClosed());
}

bool Grants::IsGivingWay(const LentEntries& lent) const {
  std::lock_guard lock(tables_->mu);
  return absl::c_any_of(lent, [&](const auto& of) {
    return absl::c_any_of(of.second, [&](TreeId tree) { return tables_->IsGivingWay(tree); });
  });
}

void Grants::AwaitLent(const LentEntries& lent) {
  // Of the machine's clock: another's may stand still.
  const absl::Duration end = SystemClock().Monotonic() + kMaxAwaitLent;
  std::unique_lock lock(again_mutex_);
  while (!again_.stopping() && SystemClock().Monotonic() < end && IsGivingWay(lent)) {
    again_changed_.wait_for(lock, kLookForLent);
  }
}

void Grants::EndLent(Detour& detour) const {
  std::lock_guard lock(tables_->mu);
  for (const auto& [guid, trees] : std::exchange(detour.lent, {})) {
    const bool has_given_way = !trees.empty() && absl::c_none_of(trees, [&](TreeId tree) {
      return tables_->IsGivingWay(tree);
    });
    if (!has_given_way) detour.avoided[guid] = "its entries are lent, and nobody has given way yet";
  }
}

std::shared_ptr<Grants::Creation> Grants::TakeReady() {
  const absl::Duration now = SystemClock().Monotonic();
  const auto ready = absl::c_find_if(refused_, [&](const std::shared_ptr<Creation>& one) {
    return again_.stopping() || one->lent_until <= now || !IsGivingWay(one->detour.lent);
  });
  if (ready == refused_.end()) return nullptr;
  std::shared_ptr<Creation> taken = std::move(*ready);
  refused_.erase(ready);
  return taken;
}

void Grants::PlanAgain() {
  for (;;) {
    std::shared_ptr<Creation> next;
    {
      std::unique_lock lock(again_mutex_);
      again_changed_.wait(lock, [this] { return again_.stopping() || !refused_.empty(); });
      if (refused_.empty()) return;
      next = TakeReady();
      if (next == nullptr) {
        again_changed_.wait_for(lock, kLookForLent);
        continue;
      }
    }
    EndLent(next->detour);
    Proceed(next);
  }
}

void Grants::SubmitGrant(const std::shared_ptr<Creation>& creation, Reserved trees) {
  const std::shared_ptr<const TreeRecord>& record = trees.front()->record;
  GrantTree mutation(record, DeedOf(creation->args.actor, absl::StrCat("tree:", record->id.value()),
                                    record->created));
  calls_->Submit(std::move(mutation),
                 [this, creation, trees = std::move(trees)](const absl::Status& status) {
                   FinishCreation(*creation, trees, status);
                 });
}

void Grants::FinishCreation(Creation& creation, const Reserved& trees, const absl::Status& status) {
  const Begun& begun = creation.begun;
  Finish(
      begun.job->tree_requests, begun, trees, trees.empty() ? TreeId() : trees[0]->record->id,
      status, [&]() -> absl::StatusOr<TreeView> { return tables_->ViewOf(*trees[0]); },
      std::move(creation.done));
}

absl::StatusOr<TreeDraft> Grants::Plan(PlanBasis& basis, const Job& job, const CreateTreeArgs& args,
                                       const AvoidedSwitches& avoided,
                                       std::vector<RefusedSwitch>& full) {
  DraftScratch& scratch = ScratchOfThread();
  Avoid(*basis.snapshot.fabric, avoided, scratch.capacity);
  LeaveKept(tables_->quotas, KeptEntries::Asker::kGrant, basis, scratch.capacity);
  full.clear();
  absl::StatusOr<TreeDraft> draft = DraftTree(basis, *job.record, args, scratch, full);
  if (MayLackRoutes(draft.status()) && AreTablesBehind(basis)) {
    basis = OverLinks(*tables_, std::move(basis));
    draft = DraftTree(basis, *job.record, args, scratch, full);
    if (draft.ok()) absl::StrAppend(&draft->record.reason, kOverLinks);
  }
  if (absl::IsResourceExhausted(draft.status())) {
    std::lock_guard lock(tables_->mu);
    tables_->activity.Refused(full);
  }
  if (!draft.ok()) return GoneRound(draft.status(), avoided);
  absl::StrAppend(&draft->record.reason, WordsOf(avoided));
  draft->record.created = clock_->Now();
  return draft;
}

absl::StatusOr<Grants::Reserved> Grants::PlanAndReserve(Creation& creation) {
  const std::shared_ptr<Job>& job = creation.begun.job;
  const CreateTreeArgs& args = creation.args;
  ASSIGN_OR_RETURN(const PlannerWork work, BeginWork(*job->record, args.actor));
  for (; creation.attempts < kMaxAttempts; ++creation.attempts) {
    ASSIGN_OR_RETURN(PlanBasis basis, TakeBasis(*tables_, *job, ScratchOfThread().capacity));
    std::vector<RefusedSwitch> full;
    absl::StatusOr<TreeDraft> planned = Plan(basis, *job, args, creation.detour.avoided, full);
    if (!full.empty()) {
      tables_->quotas.NoteAsking(PayerOf(*job->record), full, clock_->Monotonic());
    }
    RETURN_IF_ERROR(WithShare(planned.status(), creation.detour));
    TreeDraft draft = *std::move(planned);
    const auto reserve = [&]() -> absl::StatusOr<std::optional<Reserved>> {
      draft.record.request_id = args.request_id;
      draft.record.request_fingerprint = creation.fingerprint;
      RETURN_IF_ERROR(GiveCarriage(*installer_, draft.record));
      return TryReserve(job, basis, args.actor, absl::MakeSpan(&draft, 1), nullptr,
                        creation.detour);
    };
    absl::StatusOr<std::optional<Reserved>> reserved = reserve();
    if (IsQuotaRefusal(reserved.status())) {
      absl::string_view what;
      if (const auto less = WithLess(args, draft, &what); less.has_value()) {
        ASSIGN_OR_RETURN(draft, Plan(basis, *job, *less, creation.detour.avoided, full));
        absl::StrAppend(&draft.record.reason, "; ", what, ": ", reserved.status().message());
        reserved = reserve();
      }
    }
    RETURN_IF_ERROR(reserved.status());
    if (!creation.detour.lent.empty()) {
      ++creation.attempts;
      return Reserved();
    }
    if (!reserved->has_value()) continue;
    ++creation.attempts;  // whoever refuses it ends this one
    return **std::move(reserved);
  }
  return Overtaken("tree", args.job, creation.detour.avoided);
}

absl::StatusOr<PlannerWork> Grants::BeginWork(const JobRecord& job, const Actor& actor) {
  // Who asks for advice on another's job pays for it himself.
  const bool is_own = actor.user.empty() || actor.user == job.owner;
  return PlannerWork::Begin(
      tables_->quotas, *clock_,
      is_own ? PayerOf(job) : tables_->quotas.PayerOf(actor.user, actor.is_administrator));
}

absl::Status Grants::WithShare(const absl::Status& planned, const Detour& detour) {
  if (!absl::IsResourceExhausted(planned) || detour.beyond_share.ok()) return planned;
  absl::Status status(planned.code(),
                      absl::StrCat(detour.beyond_share.message(), "; ", planned.message()));
  status.SetPayload(kHoldersPayload, *detour.beyond_share.GetPayload(kHoldersPayload));
  return status;
}

absl::StatusOr<TreeView> Grants::AdviseTree(const CreateTreeArgs& args) {
  RETURN_IF_ERROR(CheckTreeRequest(args));
  ASSIGN_OR_RETURN(const std::shared_ptr<Job> job, jobs_->FindActive(args.job));
  ASSIGN_OR_RETURN(const PlannerWork work, BeginWork(*job->record, args.actor));
  ASSIGN_OR_RETURN(PlanBasis basis, TakeBasis(*tables_, *job, ScratchOfThread().capacity));
  std::vector<RefusedSwitch> full;
  ASSIGN_OR_RETURN(TreeDraft draft, Plan(basis, *job, args, {}, full));
  return TreeView{std::make_shared<const TreeRecord>(std::move(draft.record)), job->record,
                  basis.snapshot.routes->kind(), draft.promise.busiest, std::move(draft.tradeoffs)};
}

// --- Batches ---

void Grants::BatchCreateTrees(CreateBatchArgs args, const BatchWatch& watch, Callback<Batch> done) {
  if (watch.IsCancelled()) return done(BatchIsCancelled());  // while it was queued
  if (absl::Status status = CheckBatchRequest(args); !status.ok()) return done(std::move(status));
  const uint64_t count = CommunicatorCount(args);
  if (count > options_->max_trees_per_job) {
    return done(TooManyTrees(args.job, 0, count, options_->max_trees_per_job));
  }
  const absl::StatusOr<std::shared_ptr<Job>> found = jobs_->FindActive(args.job);
  if (!found.ok()) return done(found.status());
  const std::shared_ptr<Job>& job = *found;
  const uint64_t fingerprint = FingerprintOf(args);
  absl::Status listed =
      ListCommunicators(static_cast<uint32_t>(job->record->endpoints.size()), args);
  if (!listed.ok()) return done(std::move(listed));
  if (args.validate_only) return done(AdviseBatch(job, args, watch));

  const Begun begun{job, args.request_id, static_cast<uint32_t>(args.communicators.size())};
  const auto made = [&](const std::vector<uint64_t>&) -> absl::StatusOr<Batch> {
    return Recall(*job, args);
  };
  if (!Begin(job->batch_requests, begun, fingerprint, made, done)) return;
  absl::StatusOr<ReservedBatch> reserved = PlanAndReserve(job, args, fingerprint, watch);
  const auto finish = [this, begun](const ReservedBatch& batch, const absl::Status& status,
                                    Callback<Batch> callback) {
    const auto answer = [&]() -> absl::StatusOr<Batch> {
      // Kept without its trees: they may go, and be planned anew, before somebody asks again.
      BatchView outcome = *batch.view;
      outcome.trees.clear();
      for (size_t i = 0; i < batch.trees.size(); ++i) {
        batch.view->trees[i].view = tables_->ViewOf(*batch.trees[i]);
      }
      if (!begun.request_id.empty() && !batch.trees.empty()) {
        begun.job->batches[begun.request_id].outcome =
            std::make_shared<const BatchView>(std::move(outcome));
      }
      return batch.view;
    };
    Finish(begun.job->batch_requests, begun, batch.trees, Job::kBatchDone, status, answer,
           std::move(callback));
  };
  if (!reserved.ok()) return finish({}, reserved.status(), std::move(done));
  ChangeTrees mutation;
  for (const auto& tree : reserved->trees) mutation.granted.push_back(tree->record);
  mutation.deed = DeedOf(args.actor,
                         absl::StrCat("job:", args.job.value(), " ", reserved->trees.size(),
                                      reserved->trees.size() == 1 ? " tree" : " trees"),
                         clock_->Now());
  calls_->Submit(
      std::move(mutation),
      [finish, batch = *std::move(reserved), callback = std::move(done)](
          const absl::Status& status) mutable { finish(batch, status, std::move(callback)); });
}

// What lives of a batch that was granted before. With the lock held.
Grants::Batch Grants::Recall(const Job& job, const CreateBatchArgs& args) const {
  const GrantedBatch& batch = job.batches.at(args.request_id);
  auto view = batch.outcome == nullptr ? std::make_shared<BatchView>()
                                       : std::make_shared<BatchView>(*batch.outcome);
  view->communicators = static_cast<uint32_t>(args.communicators.size());
  std::vector<BatchView::Refusal> refusals;
  auto told = view->refusals.begin();
  for (uint32_t c = 0; c < args.communicators.size(); ++c) {
    const auto tree = batch.trees.find(c);
    if (told != view->refusals.end() && told->communicator == c) {
      refusals.push_back(std::move(*told++));
    } else if (tree != batch.trees.end()) {
      view->trees.push_back({c, tables_->ViewOf(*tables_->trees.Find(tree->second))});
      view->fabric_version = view->trees.back().view.record->fabric_version;
    } else {
      refusals.push_back({c, "has no tree any more, or was granted none before a restart"});
    }
  }
  view->refusals = std::move(refusals);
  return view;
}

absl::StatusOr<Grants::Batch> Grants::AdviseBatch(const std::shared_ptr<Job>& job,
                                                  const CreateBatchArgs& args,
                                                  const BatchWatch& watch) {
  ASSIGN_OR_RETURN(const PlannerWork work, BeginWork(*job->record, args.actor));
  std::vector<SwitchCapacity> capacity;
  ASSIGN_OR_RETURN(PlanBasis basis, TakeBasis(*tables_, *job, capacity));
  std::vector<RefusedSwitch> full;
  ASSIGN_OR_RETURN(BatchDraft draft, Plan(basis, *job, args, {}, watch, capacity, full));
  const Reserved trees = TreesOf(basis, job, absl::MakeSpan(draft.trees));
  std::lock_guard lock(tables_->mu);
  for (size_t i = 0; i < trees.size(); ++i) draft.view.trees[i].view = tables_->ViewOf(*trees[i]);
  return std::make_shared<const BatchView>(std::move(draft.view));
}

absl::StatusOr<BatchDraft> Grants::Plan(PlanBasis& basis, const Job& job,
                                        const CreateBatchArgs& args, const AvoidedSwitches& avoided,
                                        const BatchWatch& watch,
                                        std::vector<SwitchCapacity>& capacity,
                                        std::vector<RefusedSwitch>& full) {
  Avoid(*basis.snapshot.fabric, avoided, capacity);
  LeaveKept(tables_->quotas, KeptEntries::Asker::kGrant, basis, capacity);
  if (watch.IsCancelled()) return BatchIsCancelled();  // a plan may take seconds
  full.clear();
  const BatchRoom room = RoomOf(tables_->quotas, *job.record, args.actor);
  absl::StatusOr<BatchDraft> draft =
      DraftBatch(basis, *job.record, args, capacity, room, watch, full);
  if (LacksTreesForRoutes(draft, watch) && AreTablesBehind(basis)) {
    PlanBasis links = OverLinks(*tables_, basis);
    std::vector<RefusedSwitch> full_there;
    absl::StatusOr<BatchDraft> there =
        DraftBatch(links, *job.record, args, capacity, room, watch, full_there);
    if (watch.IsCancelled()) return BatchIsCancelled();
    if (!draft.ok() || (there.ok() && there->trees.size() > draft->trees.size())) {
      basis = std::move(links);
      draft = std::move(there);
      full = std::move(full_there);
      if (draft.ok()) {
        for (TreeDraft& tree : draft->trees) absl::StrAppend(&tree.record.reason, kOverLinks);
      }
    }
  }
  if (!full.empty()) {
    std::lock_guard lock(tables_->mu);
    tables_->activity.Refused(full);
  }
  if (!draft.ok()) return GoneRound(draft.status(), avoided);
  draft->room = room;
  const absl::Time now = clock_->Now();
  const std::string round = WordsOf(avoided);
  for (TreeDraft& tree : draft->trees) {
    tree.record.created = now;
    absl::StrAppend(&tree.record.reason, round);
  }
  return draft;
}

absl::StatusOr<Grants::ReservedBatch> Grants::PlanAndReserve(const std::shared_ptr<Job>& job,
                                                             const CreateBatchArgs& args,
                                                             uint64_t fingerprint,
                                                             const BatchWatch& watch) {
  ASSIGN_OR_RETURN(const PlannerWork work, BeginWork(*job->record, args.actor));
  std::vector<SwitchCapacity> capacity;
  std::vector<RefusedSwitch> full;
  Detour detour;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    ASSIGN_OR_RETURN(PlanBasis basis, TakeBasis(*tables_, *job, capacity));
    absl::StatusOr<BatchDraft> planned =
        Plan(basis, *job, args, detour.avoided, watch, capacity, full);
    if (!full.empty()) {
      tables_->quotas.NoteAsking(PayerOf(*job->record), full, clock_->Monotonic());
    }
    RETURN_IF_ERROR(WithShare(planned.status(), detour));
    BatchDraft draft = *std::move(planned);
    for (size_t i = 0; i < draft.trees.size(); ++i) {
      TreeRecord& record = draft.trees[i].record;
      record.request_id = BatchTreeName(args.request_id, draft.view.trees[i].communicator);
      record.request_fingerprint = fingerprint;
      RETURN_IF_ERROR(GiveCarriage(*installer_, record));
    }
    if (watch.progress) {
      watch.progress(BatchWatch::Phase::kGranting, static_cast<uint32_t>(draft.trees.size()),
                     draft.view.communicators);
    }
    if (watch.IsCancelled()) return BatchIsCancelled();
    ASSIGN_OR_RETURN(
        std::optional<Reserved> trees,
        TryReserve(job, basis, args.actor, absl::MakeSpan(draft.trees), &draft.room, detour));
    if (!detour.lent.empty()) {
      AwaitLent(detour.lent);
      EndLent(detour);
    }
    if (!trees) continue;
    const InstallOutcome outcome = installer_->InstallAndWait(CarriedOf(*trees));
    if (!outcome.status.ok()) {
      GiveBack(*trees);
      if (outcome.refusing.empty()) return outcome.status;
      Add(outcome.refusing, detour.avoided);
      continue;
    }
    return ReservedBatch{*std::move(trees), std::make_shared<BatchView>(std::move(draft.view))};
  }
  return Overtaken("batch", args.job, detour.avoided);
}

// --- Release ---

void Grants::Release(TreeId id, Callback<TreeId> done, const Actor& actor) {
  std::unique_lock lock(tables_->mu);
  std::shared_ptr<GrantedTree> tree = tables_->trees.Find(id);
  if (tree == nullptr) {
    lock.unlock();
    return done(NoSuchTree(id));
  }
  tree->release_waiters.push_back(std::move(done));
  if (tree->releasing) return;  // answered together with the one that came first
  tree->releasing = true;
  const JobId job = tree->record->job;
  lock.unlock();
  ReleaseTree release{id, job, DeedOf(actor, absl::StrCat("tree:", id.value()), clock_->Now())};
  calls_->Submit(std::move(release), [this, tree = std::move(tree)](absl::Status status) {
    OnReleased(*tree, status);
  });
}

void Grants::OnReleased(GrantedTree& tree, const absl::Status& status) {
  const TreeId id = tree.record->id;
  std::vector<Callback<TreeId>> waiters;
  {
    std::lock_guard lock(tables_->mu);
    tree.releasing = false;
    waiters = std::exchange(tree.release_waiters, {});
    // NOT_FOUND: the store released it before, with its job or by a write reported as failed.
    const bool gone = status.ok() || absl::IsNotFound(status);
    if (gone && tables_->trees.Find(id) != nullptr) {
      // Before the ledger has its entries for others.
      installer_->Remove({id, tree.record->revision});
      tables_->RemoveTree(tree);
    }
    if (!gone) tables_->NoteUnjudged(id);  // repairs have passed it over meanwhile
  }
  absl::StatusOr<TreeId> answer = id;
  if (!status.ok()) answer = absl::IsNotFound(status) ? NoSuchTree(id) : status;
  AnswerAll(std::move(waiters), answer);
}

}  // namespace coppice
