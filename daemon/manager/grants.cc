#include "daemon/manager/grants.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/placement/placement_view.h"
#include "daemon/manager/tree_request.h"

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

}  // namespace coppice
