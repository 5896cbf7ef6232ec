#include "tests/benchmark/soak/users.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

// What a fabric that changes and switches that are full answer with, and trees that went with it.
bool IsRefusal(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsFailedPrecondition(status) ||
         absl::IsAborted(status) || absl::IsNotFound(status) || absl::IsUnavailable(status);
}

}  // namespace

void Launcher::Await(size_t most) {
  std::unique_lock lock(mu_);
  landed_.wait(lock, [&] { return in_flight_ <= most; });
}

void Launcher::Land(const absl::Status& status) {
  --in_flight_;
  if (!status.ok()) {
    ++refused_;
    if (!IsRefusal(status) && failure_.ok()) failure_ = status;
  }
  landed_.notify_one();
}

absl::Status Launcher::failure() const {
  std::lock_guard lock(mu_);
  return failure_;
}

void Launcher::TurnOverJob() {
  if (jobs_.size() == kJobs) {
    Begin();
    manager_->EndJob(jobs_.front(), [this](absl::StatusOr<uint32_t> trees) {
      std::lock_guard lock(mu_);
      Land(trees.status());
    });
    jobs_.pop_front();
  }
  RegisterJobArgs args;
  args.request_id = absl::StrCat("job-", ++requests_);
  args.display_name = "soak";
  args.owner = "ada";
  const uint32_t hosts = fabric_->host_count();
  const uint32_t first = static_cast<uint32_t>(random_() % hosts);
  for (uint32_t i = 0; i < kRanks; ++i) {
    // Spread over the leaf switches: 7 is no divisor of any number of hosts that is used here.
    args.endpoints.emplace_back(fabric_->host_name(HostIndex((first + 7 * i) % hosts)));
  }
  Begin();
  std::optional<JobId> id;
  manager_->RegisterJob(std::move(args), [this, &id](absl::StatusOr<JobView> view) {
    std::lock_guard lock(mu_);
    if (view.ok()) id = view->record->id;
    Land(view.status());
  });
  Await(0);
  if (id) jobs_.push_back(*id);
}

void Launcher::KeepJobsAlive() {
  for (const JobId job : jobs_) {
    const absl::Status status = manager_->KeepAlive(job).status();
    std::lock_guard lock(mu_);
    if (!status.ok() && failure_.ok()) failure_ = status;
  }
}

std::vector<uint32_t> Launcher::RandomRanks() {
  std::vector<uint32_t> ranks(kRanks);
  for (uint32_t i = 0; i < kRanks; ++i) ranks[i] = i;
  std::shuffle(ranks.begin(), ranks.end(), random_);
  ranks.resize(2 + random_() % 30);
  return ranks;
}

void Launcher::CreateOne() {
  CreateTreeArgs args;
  args.job = jobs_[random_() % jobs_.size()];
  if (random_() % 2 == 0) args.request_id = absl::StrCat("tree-", ++requests_);
  args.ranks = RandomRanks();
  args.operation = random_() % 2 == 0 ? Operation::kAllreduce : Operation::kBcast;
  args.sizes = {{8, 1}, {4096, 0.5}};
  const uint64_t type = random_() % 3;
  if (type != 0) args.type = type == 1 ? TreeType::kTypeI : TreeType::kTypeII;
  Begin();
  manager_->CreateTree(std::move(args), [this](absl::StatusOr<TreeView> view) {
    std::lock_guard lock(mu_);
    if (view.ok()) {
      live_.push_back(view->record->id);
      ++created_;
    }
    Land(view.status());
  });
}

void Launcher::CreateBatch() {
  CreateBatchArgs args;
  args.job = jobs_[random_() % jobs_.size()];
  if (random_() % 2 == 0) args.request_id = absl::StrCat("batch-", ++requests_);
  for (uint32_t i = 0; i < kBatch; ++i) args.communicators.push_back(RandomRanks());
  args.largest_part = true;
  args.accept_type1 = random_() % 2 == 0;
  Begin();
  manager_->BatchCreateTrees(std::move(args), {},
                             [this](absl::StatusOr<std::shared_ptr<const BatchView>> batch) {
                               std::lock_guard lock(mu_);
                               if (batch.ok()) {
                                 for (const BatchView::Tree& tree : (*batch)->trees) {
                                   live_.push_back(tree.view.record->id);
                                 }
                                 created_ += (*batch)->trees.size();
                               }
                               Land(batch.status());
                             });
}

void Launcher::ReleaseOldest() {
  TreeId oldest;
  {
    std::lock_guard lock(mu_);
    if (live_.size() <= kLive) return;
    oldest = live_.front();
    live_.pop_front();
  }
  Begin();
  manager_->ReleaseTree(oldest, [this](absl::StatusOr<TreeId> id) {
    std::lock_guard lock(mu_);
    // It may have gone with its job, or been revoked.
    Land(absl::IsNotFound(id.status()) ? absl::OkStatus() : id.status());
  });
}

void Launcher::CreateAndRelease(uint64_t trees) {
  for (uint64_t i = 0; i < trees;) {
    const bool is_batch = random_() % 64 == 0;
    is_batch ? CreateBatch() : CreateOne();
    const uint64_t count = is_batch ? kBatch : 1;
    for (uint64_t k = 0; k < count; ++k) ReleaseOldest();
    i += count;
  }
  Await(0);
}

void Launcher::EndAll() {
  for (; !jobs_.empty(); jobs_.pop_front()) {
    Begin();
    manager_->EndJob(jobs_.front(), [this](absl::StatusOr<uint32_t> trees) {
      std::lock_guard lock(mu_);
      Land(trees.status());
    });
  }
  Await(0);
}

absl::Status Watcher::Take(const TreeChange& change) {
  ++changes_;
  if (change.kind == TreeChangeKind::kSynced) return absl::OkStatus();
  const TreeId id = change.tree.record->id;
  bool is_right = true;
  switch (change.kind) {
    case TreeChangeKind::kPresent:
    case TreeChangeKind::kGranted:
      is_right = trees_.insert(id).second;
      break;
    case TreeChangeKind::kRevised:
      is_right = trees_.contains(id);
      break;
    default:
      is_right = trees_.erase(id) == 1;
  }
  if (is_right) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("a watcher was told of tree ", id.value(),
                                          " twice or after its end: change ",
                                          static_cast<int>(change.kind)));
}

absl::Status Watcher::LookAtTrees() {
  for (;;) {
    if (tree_watch_ == nullptr) {
      trees_.clear();
      ASSIGN_OR_RETURN(tree_watch_, manager_->WatchTrees(JobId(), "", [] {}));
    }
    const absl::StatusOr<std::vector<TreeChange>> changes = tree_watch_->Next(1000);
    if (absl::IsOutOfRange(changes.status())) {
      ++restarts_;
      tree_watch_.reset();
      continue;
    }
    RETURN_IF_ERROR(changes.status());
    if (changes->empty()) return absl::OkStatus();
    for (const TreeChange& change : *changes) RETURN_IF_ERROR(Take(change));
  }
}

absl::Status Watcher::LookAtEvents() {
  for (;;) {
    if (event_watch_ == nullptr) {
      ASSIGN_OR_RETURN(event_watch_, manager_->WatchEvents({}, 0, [] {}));
    }
    const absl::StatusOr<std::vector<EventWatch::Event>> events = event_watch_->Next(1000);
    if (absl::IsOutOfRange(events.status())) {
      ++restarts_;
      event_watch_.reset();
      last_event_ = 0;
      continue;
    }
    RETURN_IF_ERROR(events.status());
    if (events->empty()) return absl::OkStatus();
    for (const EventWatch::Event& event : *events) {
      if (event->id <= last_event_) {
        return absl::InternalError(
            absl::StrCat("a watcher was told event ", event->id, " after ", last_event_));
      }
      last_event_ = event->id;
    }
  }
}

absl::Status Watcher::Look() {
  RETURN_IF_ERROR(LookAtTrees());
  return LookAtEvents();
}

}  // namespace coppice
