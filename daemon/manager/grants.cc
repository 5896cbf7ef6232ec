#include "daemon/manager/grants.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/placement/placement_view.h"
#include "daemon/manager/requests.h"

namespace coppice {
namespace {

bool IsQuotaRefusal(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && status.GetPayload(kHoldersPayload).has_value();
}

// Whoever leaves the choice to the daemon gets a tree without entries where more are not allowed.
bool MayDoWithoutEntries(const CreateTreeArgs& args, const TreeDraft& draft) {
  return !draft.switches.empty() && !args.type && !args.builder && !args.root_switch;
}

}  // namespace

Grants::Grants(StoreCalls* calls, const Clock* clock, Tables* tables, LiveOptions options,
               Jobs* jobs)
    : calls_(calls), clock_(clock), tables_(tables), options_(std::move(options)), jobs_(jobs) {}

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
    tables_->entries.Restore(record.id, record.switches);
    tables_->quotas.Count(AccountOf(*tree->job->record), AmountsOf(record));
    tree->record = std::make_shared<const TreeRecord>(std::move(record));
    tables_->AddTree(std::move(tree), TreeChangeKind::kPresent);
  }
  return absl::OkStatus();
}

bool Grants::Begin(Job& job, const CreateTreeArgs& args, uint64_t fingerprint,
                   Callback<TreeView>& done) {
  const auto made = [&](const std::vector<TreeId>& ids) -> absl::StatusOr<TreeView> {
    if (job.ending) return JobIsEnding(args.job);
    return tables_->ViewOf(*tables_->trees.Find(ids.front()));
  };
  const auto may_begin = [&]() -> absl::Status {
    if (job.ending) return JobIsEnding(args.job);
    const size_t held = job.trees.size() + job.trees_in_flight;
    if (held >= options_->max_trees_per_job) {
      return absl::ResourceExhaustedError(
          absl::StrCat("job ", args.job.value(), " holds ", held,
                       " trees, the daemon's limits.trees_per_job is ", options_->max_trees_per_job,
                       "; release some first"));
    }
    ++job.trees_in_flight;
    return absl::OkStatus();
  };
  return job.tree_requests.Begin(std::unique_lock(tables_->mu),
                                 {{args.request_id, args.request_id, fingerprint}}, made, may_begin,
                                 done);
}

void Grants::Create(CreateTreeArgs args, Callback<TreeView> done) {
  args.list_tradeoffs = false;  // a granted tree keeps no list of others
  if (absl::Status status = CheckTreeRequest(args); !status.ok()) return done(std::move(status));
  const absl::StatusOr<std::shared_ptr<Job>> job = jobs_->FindActive(args.job);
  if (!job.ok()) return done(job.status());
  const uint64_t fingerprint = FingerprintOf(args);
  if (!Begin(**job, args, fingerprint, done)) return;
  absl::StatusOr<Reserved> reserved = PlanAndReserve(*job, args, fingerprint);
  if (!reserved.ok()) return FailGrant(**job, args.request_id, reserved.status(), std::move(done));
  GrantTree mutation(reserved->record,
                     DeedOf(args.actor, absl::StrCat("tree:", reserved->record->id.value()),
                            reserved->record->created));
  calls_->Submit(std::move(mutation), [this, reserved = *std::move(reserved),
                                       callback = std::move(done)](absl::Status status) mutable {
    OnGranted(reserved, std::move(status), std::move(callback));
  });
}

absl::StatusOr<TreeDraft> Grants::Plan(PlanBasis& basis, const Job& job, const CreateTreeArgs& args,
                                       DraftScratch& scratch) {
  std::vector<RefusedSwitch> full;
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
  return draft;
}

absl::StatusOr<Grants::Reserved> Grants::PlanAndReserve(const std::shared_ptr<Job>& job,
                                                        const CreateTreeArgs& args,
                                                        uint64_t fingerprint) {
  const ScratchPool::Loan scratch(scratches_);
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    ASSIGN_OR_RETURN(PlanBasis basis, TakeBasis(*tables_, *job, (*scratch).capacity));
    ASSIGN_OR_RETURN(TreeDraft draft, Plan(basis, *job, args, *scratch));
    draft.record.request_id = args.request_id;
    draft.record.request_fingerprint = fingerprint;
    draft.record.created = clock_->Now();
    absl::StatusOr<bool> reserved = TryReserve(*job, basis, args.actor, draft);
    if (IsQuotaRefusal(reserved.status()) && MayDoWithoutEntries(args, draft)) {
      CreateTreeArgs without = args;
      without.type = TreeType::kTypeI;
      const std::string why(reserved.status().message());
      ASSIGN_OR_RETURN(draft, Plan(basis, *job, without, *scratch));
      absl::StrAppend(&draft.record.reason, "; not of type II: ", why);
      draft.record.request_id = args.request_id;
      draft.record.request_fingerprint = fingerprint;
      draft.record.created = clock_->Now();
      reserved = TryReserve(*job, basis, args.actor, draft);
    }
    RETURN_IF_ERROR(reserved.status());
    if (!*reserved) continue;
    return Reserved{job, std::make_shared<const TreeRecord>(std::move(draft.record)),
                    basis.snapshot.routes->kind(), std::move(draft.promise)};
  }
  return absl::AbortedError(absl::StrCat("the fabric or its free entries moved during ",
                                         kMaxAttempts, " attempts to plan a tree for job ",
                                         args.job.value(), "; call again"));
}

// False: what was planned on is gone. Otherwise the draft has its id and holds its entries.
absl::StatusOr<bool> Grants::TryReserve(const Job& job, const PlanBasis& basis, const Actor& actor,
                                        TreeDraft& draft) {
  std::lock_guard lock(tables_->mu);
  if (job.ending) return JobIsEnding(job.record->id);
  if (tables_->view->snapshot->fabric != basis.view->snapshot->fabric) return false;
  const QuotaAccount account = AccountOf(*job.record);
  const QuotaAmounts amounts = AmountsOf(draft.record);
  if (actor.is_administrator) {
    tables_->quotas.Count(account, amounts);
  } else {
    RETURN_IF_ERROR(tables_->quotas.Take(account, amounts));
  }
  if (!tables_->entries.Reserve(draft.switches)) {
    tables_->quotas.Give(account, amounts);
    return false;
  }
  draft.record.id = tables_->trees.TakeId();
  return true;
}

void Grants::OnGranted(const Reserved& reserved, absl::Status status, Callback<TreeView> done) {
  Job& job = *reserved.job;
  const TreeRecord& record = *reserved.record;
  if (!status.ok()) {
    {
      std::lock_guard lock(tables_->mu);
      tables_->entries.Cancel(record.switches);
      tables_->quotas.Give(AccountOf(*job.record), AmountsOf(record));
    }
    return FailGrant(job, record.request_id, status, std::move(done));
  }
  auto tree = std::make_shared<GrantedTree>();
  tree->record = reserved.record;
  tree->job = reserved.job;
  tree->route_kind = reserved.route_kind;
  tree->promise = reserved.promise;
  TreeView view{reserved.record, job.record, reserved.route_kind, reserved.promise.busiest};
  std::vector<Callback<TreeView>> waiters;
  {
    std::lock_guard lock(tables_->mu);
    --job.trees_in_flight;
    tables_->entries.Settle(record.id, record.switches);
    tables_->AddTree(std::move(tree));
    tables_->activity.Granted();
    waiters = job.tree_requests.Succeed(record.request_id, record.id);
  }
  Job::TreeRequests::Tell(std::move(waiters), std::move(view), std::move(done));
}

void Grants::FailGrant(Job& job, const std::string& request_id, const absl::Status& status,
                       Callback<TreeView> done) {
  std::vector<Callback<TreeView>> waiters;
  {
    std::lock_guard lock(tables_->mu);
    --job.trees_in_flight;
    waiters = job.tree_requests.Fail(request_id);
  }
  Job::TreeRequests::Tell(std::move(waiters), status, std::move(done));
}

absl::StatusOr<TreeView> Grants::Advise(const CreateTreeArgs& args) {
  RETURN_IF_ERROR(CheckTreeRequest(args));
  ASSIGN_OR_RETURN(const std::shared_ptr<Job> job, jobs_->FindActive(args.job));
  const ScratchPool::Loan scratch(scratches_);
  ASSIGN_OR_RETURN(PlanBasis basis, TakeBasis(*tables_, *job, (*scratch).capacity));
  ASSIGN_OR_RETURN(TreeDraft draft, Plan(basis, *job, args, *scratch));
  draft.record.created = clock_->Now();
  return TreeView{std::make_shared<const TreeRecord>(std::move(draft.record)), job->record,
                  basis.snapshot.routes->kind(), draft.promise.busiest, std::move(draft.tradeoffs)};
}

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
    if (gone && tables_->trees.Find(id) != nullptr) tables_->RemoveTree(tree);
    if (!gone) tables_->NoteUnjudged(id);  // repairs have passed it over meanwhile
  }
  for (Callback<TreeId>& done : waiters) {
    if (status.ok()) {
      done(id);
    } else {
      done(absl::IsNotFound(status) ? NoSuchTree(id) : status);
    }
  }
}

namespace {

bool IsCancelled(const BatchWatch& watch) { return watch.is_cancelled && watch.is_cancelled(); }

// Some communicator at least has no tree, which may be the fault of its routes.
bool LacksTreesForRoutes(const absl::StatusOr<BatchDraft>& draft, const BatchWatch& watch) {
  if (draft.ok()) return !draft->refusals.empty();
  return !IsCancelled(watch) &&
         (absl::IsResourceExhausted(draft.status()) || MayLackRoutes(draft.status()));
}

// As of now: another batch of the owner's may take of it before this one is planned.
BatchRoom RoomOf(const QuotaLedger& quotas, const JobRecord& job, const Actor& actor) {
  QuotaAccount account = AccountOf(job);
  account.is_exempt |= actor.is_administrator;
  const QuotaAmounts left = quotas.Left(account);
  BatchRoom room{left[Quota::kTrees], left[Quota::kTreeRanks], left[Quota::kEntries]};
  room.why_not = [&quotas, account](Quota quota, int64_t more) {
    QuotaAmounts amounts;
    amounts[quota] = more;
    const absl::Status refused = quotas.Check(account, amounts);
    return refused.ok() ? "the owner's quota is used up by others of his calls"
                        : std::string(refused.message());
  };
  return room;
}

QuotaAmounts AmountsOf(const BatchDraft& draft) {
  QuotaAmounts amounts;
  for (const TreeDraft& tree : draft.trees) {
    amounts[Quota::kTrees] += 1;
    amounts[Quota::kTreeRanks] += static_cast<int64_t>(tree.record.ranks.size());
    amounts[Quota::kEntries] += static_cast<int64_t>(tree.switches.size());
  }
  return amounts;
}

void TellOverLinks(BatchDraft& draft) {
  for (TreeDraft& tree : draft.trees) absl::StrAppend(&tree.record.reason, kOverLinks);
}

absl::Status TooManyTrees(JobId job, uint64_t held, uint64_t wanted, uint32_t limit) {
  return absl::ResourceExhaustedError(absl::StrCat("job ", job.value(), " holds ", held,
                                                   " trees and the batch is of ", wanted,
                                                   "; the daemon's limits.trees_per_job is ", limit,
                                                   "; release some first or take a smaller batch"));
}

// What the answer says beside the trees themselves.
std::shared_ptr<BatchView> OutcomeOf(const PlanBasis& basis, const CreateBatchArgs& args,
                                     BatchDraft& draft) {
  auto view = std::make_shared<BatchView>();
  view->communicators = static_cast<uint32_t>(args.communicators.size());
  view->refusals = std::move(draft.refusals);
  view->most_packets = draft.most_packets;
  view->most_loaded = std::move(draft.most_loaded);
  view->fabric_version = basis.snapshot.fabric->version();
  view->comparison = std::move(draft.comparison);
  return view;
}

std::vector<std::shared_ptr<GrantedTree>> TreesOf(const PlanBasis& basis,
                                                  const std::shared_ptr<Job>& job,
                                                  BatchDraft& draft) {
  std::vector<std::shared_ptr<GrantedTree>> trees;
  trees.reserve(draft.trees.size());
  for (TreeDraft& planned : draft.trees) {
    auto tree = std::make_shared<GrantedTree>();
    tree->record = std::make_shared<const TreeRecord>(std::move(planned.record));
    tree->job = job;
    tree->route_kind = basis.snapshot.routes->kind();
    tree->promise = std::move(planned.promise);
    trees.push_back(std::move(tree));
  }
  return trees;
}

}  // namespace

BatchGrants::BatchGrants(StoreCalls* calls, const Clock* clock, Tables* tables, LiveOptions options,
                         Jobs* jobs)
    : calls_(calls), clock_(clock), tables_(tables), options_(std::move(options)), jobs_(jobs) {}

void BatchGrants::Create(CreateBatchArgs args, const BatchWatch& watch, Done done) {
  if (IsCancelled(watch)) return done(BatchIsCancelled());  // while it was queued
  if (absl::Status status = CheckBatchRequest(args); !status.ok()) return done(std::move(status));
  const uint64_t count = CommunicatorCount(args);
  if (count > options_->max_trees_per_job) {
    return done(TooManyTrees(args.job, 0, count, options_->max_trees_per_job));
  }
  const absl::StatusOr<std::shared_ptr<Job>> found = jobs_->FindActive(args.job);
  if (!found.ok()) return done(found.status());
  const std::shared_ptr<Job>& job = *found;
  const uint64_t fingerprint = FingerprintOf(args);
  const auto job_ranks = static_cast<uint32_t>(job->record->endpoints.size());
  absl::Status listed = ListCommunicators(job_ranks, args);
  if (!listed.ok()) return done(std::move(listed));
  if (args.validate_only) return Advise(job, args, watch, std::move(done));

  if (!Begin(*job, args, fingerprint, done)) return;
  const auto communicators = static_cast<uint32_t>(args.communicators.size());
  absl::StatusOr<Reserved> reserved = PlanAndReserve(job, args, fingerprint, watch);
  if (!reserved.ok()) {
    return Fail(*job, args.request_id, communicators, reserved.status(), std::move(done));
  }
  ChangeTrees mutation;
  mutation.granted.reserve(reserved->trees.size());
  for (const auto& tree : reserved->trees) mutation.granted.push_back(tree->record);
  mutation.deed = DeedOf(
      args.actor, absl::StrCat("job:", args.job.value(), " ", reserved->trees.size(), " trees"),
      clock_->Now());
  calls_->Submit(std::move(mutation), [this, reserved = *std::move(reserved),
                                       callback = std::move(done)](absl::Status status) mutable {
    OnGranted(reserved, status, std::move(callback));
  });
}

bool BatchGrants::Begin(Job& job, const CreateBatchArgs& args, uint64_t fingerprint, Done& done) {
  const auto made = [&](const std::vector<uint64_t>&) -> absl::StatusOr<View> {
    if (job.ending) return JobIsEnding(args.job);
    return Recall(job, args);
  };
  const auto may_begin = [&]() -> absl::Status {
    if (job.ending) return JobIsEnding(args.job);
    const uint64_t held = job.trees.size() + job.trees_in_flight;
    const size_t wanted = args.communicators.size();
    if (held + wanted > options_->max_trees_per_job) {
      return TooManyTrees(args.job, held, wanted, options_->max_trees_per_job);
    }
    job.trees_in_flight += static_cast<uint32_t>(wanted);
    return absl::OkStatus();
  };
  return job.batch_requests.Begin(std::unique_lock(tables_->mu),
                                  {{args.request_id, args.request_id, fingerprint}}, made,
                                  may_begin, done);
}

// What lives of a batch that was granted before. With the lock held.
std::shared_ptr<const BatchView> BatchGrants::Recall(const Job& job,
                                                     const CreateBatchArgs& args) const {
  const GrantedBatch& batch = job.batches.at(args.request_id);
  auto view = batch.outcome == nullptr ? std::make_shared<BatchView>()
                                       : std::make_shared<BatchView>(*batch.outcome);
  view->communicators = static_cast<uint32_t>(args.communicators.size());
  std::vector<bool> is_told(args.communicators.size(), false);
  for (const BatchView::Refusal& refusal : view->refusals) is_told[refusal.communicator] = true;
  std::vector<BatchView::Refusal> refusals;
  auto told = view->refusals.begin();
  for (uint32_t c = 0; c < args.communicators.size(); ++c) {
    const auto tree = batch.trees.find(c);
    if (tree != batch.trees.end()) {
      view->trees.push_back({c, tables_->ViewOf(*tables_->trees.Find(tree->second))});
      view->fabric_version = view->trees.back().view.record->fabric_version;
    } else if (is_told[c]) {
      refusals.push_back(std::move(*told++));
    } else {
      refusals.push_back({c, "has no tree any more, or was granted none before a restart"});
    }
  }
  view->refusals = std::move(refusals);
  return view;
}

void BatchGrants::Advise(const std::shared_ptr<Job>& job, const CreateBatchArgs& args,
                         const BatchWatch& watch, Done done) {
  std::vector<SwitchCapacity> capacity;
  absl::StatusOr<PlanBasis> basis = TakeBasis(*tables_, *job, capacity);
  if (!basis.ok()) return done(basis.status());
  absl::StatusOr<BatchDraft> draft = Draft(*basis, *job, args, watch, capacity);
  if (!draft.ok()) return done(draft.status());
  for (TreeDraft& tree : draft->trees) tree.record.created = clock_->Now();
  const std::vector<uint32_t> communicators = draft->communicators;
  const std::shared_ptr<BatchView> view = OutcomeOf(*basis, args, *draft);
  const std::vector<std::shared_ptr<GrantedTree>> trees = TreesOf(*basis, job, *draft);
  {
    std::lock_guard lock(tables_->mu);
    for (size_t i = 0; i < trees.size(); ++i) {
      view->trees.push_back({communicators[i], tables_->ViewOf(*trees[i])});
    }
  }
  done(std::shared_ptr<const BatchView>(view));
}

absl::StatusOr<BatchDraft> BatchGrants::Draft(PlanBasis& basis, const Job& job,
                                              const CreateBatchArgs& args, const BatchWatch& watch,
                                              std::vector<SwitchCapacity>& capacity) {
  if (IsCancelled(watch)) return BatchIsCancelled();  // a plan may take seconds
  std::vector<RefusedSwitch> full;
  const BatchRoom room = RoomOf(tables_->quotas, *job.record, args.actor);
  absl::StatusOr<BatchDraft> draft =
      DraftBatch(basis, *job.record, args, capacity, room, watch, full);
  if (LacksTreesForRoutes(draft, watch) && AreTablesBehind(basis)) {
    PlanBasis links = OverLinks(*tables_, basis);
    std::vector<RefusedSwitch> full_there;
    absl::StatusOr<BatchDraft> there =
        DraftBatch(links, *job.record, args, capacity, room, watch, full_there);
    if (IsCancelled(watch)) return BatchIsCancelled();
    if (!draft.ok() || (there.ok() && there->trees.size() > draft->trees.size())) {
      basis = std::move(links);
      draft = std::move(there);
      full = std::move(full_there);
      if (draft.ok()) TellOverLinks(*draft);
    }
  }
  if (draft.ok()) draft->room = room;
  if (!full.empty()) {
    std::lock_guard lock(tables_->mu);
    tables_->activity.Refused(full);
  }
  return draft;
}

absl::StatusOr<BatchGrants::Reserved> BatchGrants::PlanAndReserve(const std::shared_ptr<Job>& job,
                                                                  const CreateBatchArgs& args,
                                                                  uint64_t fingerprint,
                                                                  const BatchWatch& watch) {
  std::vector<SwitchCapacity> capacity;
  for (int attempt = 0; attempt < Grants::kMaxAttempts; ++attempt) {
    ASSIGN_OR_RETURN(PlanBasis basis, TakeBasis(*tables_, *job, capacity));
    ASSIGN_OR_RETURN(BatchDraft draft, Draft(basis, *job, args, watch, capacity));
    const absl::Time now = clock_->Now();
    for (size_t i = 0; i < draft.trees.size(); ++i) {
      TreeRecord& record = draft.trees[i].record;
      record.request_id = BatchTreeName(args.request_id, draft.communicators[i]);
      record.request_fingerprint = fingerprint;
      record.created = now;
    }
    const auto planned = static_cast<uint32_t>(draft.trees.size());
    if (watch.progress) {
      watch.progress(BatchWatch::Phase::kGranting, planned,
                     static_cast<uint32_t>(args.communicators.size()));
    }
    if (IsCancelled(watch)) return BatchIsCancelled();
    ASSIGN_OR_RETURN(const bool reserved, TryReserve(*job, basis, args.actor, draft));
    if (!reserved) continue;
    Reserved result{job, args.request_id, static_cast<uint32_t>(args.communicators.size()), {}, {}};
    result.view = OutcomeOf(basis, args, draft);
    for (const uint32_t c : draft.communicators) result.view->trees.push_back({c, {}});
    result.trees = TreesOf(basis, job, draft);
    return result;
  }
  return absl::AbortedError(absl::StrCat("the fabric or its free entries moved during ",
                                         Grants::kMaxAttempts, " attempts to plan a batch for job ",
                                         args.job.value(), "; call again"));
}

// False: what was planned on is gone. Otherwise the trees have ids and hold their entries.
absl::StatusOr<bool> BatchGrants::TryReserve(const Job& job, const PlanBasis& basis,
                                             const Actor& actor, BatchDraft& draft) {
  std::vector<absl::Span<const SwitchIndex>> switches;
  switches.reserve(draft.trees.size());
  for (const TreeDraft& tree : draft.trees) switches.emplace_back(tree.switches);
  std::lock_guard lock(tables_->mu);
  if (job.ending) return JobIsEnding(job.record->id);
  if (tables_->view->snapshot->fabric != basis.view->snapshot->fabric) return false;
  const QuotaAccount account = AccountOf(*job.record);
  const QuotaAmounts amounts = AmountsOf(draft);
  if (actor.is_administrator) {
    tables_->quotas.Count(account, amounts);
  } else if (absl::Status taken = tables_->quotas.Take(account, amounts); !taken.ok()) {
    // What stayed within what there was has lost a race: planned again, it takes less.
    const bool was_within = amounts[Quota::kTrees] <= draft.room.trees &&
                            amounts[Quota::kTreeRanks] <= draft.room.ranks &&
                            amounts[Quota::kEntries] <= draft.room.entries;
    if (was_within) return false;
    return taken;
  }
  if (!tables_->entries.ReserveAll(switches)) {
    tables_->quotas.Give(account, amounts);
    return false;
  }
  for (TreeDraft& tree : draft.trees) tree.record.id = tables_->trees.TakeId();
  return true;
}

void BatchGrants::OnGranted(const Reserved& reserved, const absl::Status& status, Done done) {
  Job& job = *reserved.job;
  if (!status.ok()) {
    {
      std::lock_guard lock(tables_->mu);
      for (const auto& tree : reserved.trees) {
        tables_->entries.Cancel(tree->record->switches);
        tables_->quotas.Give(AccountOf(*job.record), AmountsOf(*tree->record));
      }
    }
    return Fail(job, reserved.request_id, reserved.communicators, status, std::move(done));
  }
  // Without its trees: they may go, and be planned anew, before somebody asks again.
  auto outcome = std::make_shared<BatchView>();
  outcome->refusals = reserved.view->refusals;
  outcome->most_packets = reserved.view->most_packets;
  outcome->most_loaded = reserved.view->most_loaded;
  std::vector<Done> waiters;
  {
    std::lock_guard lock(tables_->mu);
    job.trees_in_flight -= reserved.communicators;
    for (size_t i = 0; i < reserved.trees.size(); ++i) {
      const std::shared_ptr<GrantedTree>& tree = reserved.trees[i];
      tables_->entries.Settle(tree->record->id, tree->record->switches);
      tables_->AddTree(tree);
      reserved.view->trees[i].view = tables_->ViewOf(*tree);
    }
    tables_->activity.Granted(reserved.trees.size());
    if (reserved.trees.empty()) {
      waiters = job.batch_requests.Fail(reserved.request_id);  // nothing lives under the name
    } else {
      waiters = job.batch_requests.Succeed(reserved.request_id, Job::kBatchDone);
      if (!reserved.request_id.empty()) job.batches[reserved.request_id].outcome = outcome;
    }
  }
  Job::BatchRequests::Tell(std::move(waiters), View(reserved.view), std::move(done));
}

void BatchGrants::Fail(Job& job, const std::string& request_id, uint32_t communicators,
                       const absl::Status& status, Done done) {
  std::vector<Done> waiters;
  {
    std::lock_guard lock(tables_->mu);
    job.trees_in_flight -= communicators;
    waiters = job.batch_requests.Fail(request_id);
  }
  Job::BatchRequests::Tell(std::move(waiters), status, std::move(done));
}

}  // namespace coppice
