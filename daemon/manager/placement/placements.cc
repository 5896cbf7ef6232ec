#include "daemon/manager/placement/placements.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

// How long a placement whose end could not be written waits for the next try.
constexpr absl::Duration kReleaseRetry = absl::Seconds(1);

// [PlacementState]
constexpr const char* kWords[] = {"over", "held", "started", "released", "expired"};

std::string ObjectOf(PlacementId id) { return absl::StrCat("placement:", id.value()); }

}  // namespace

void Placements::Restore(std::vector<PlacementRecord> placements, PlacementId last) {
  const absl::Duration now = clock_->Monotonic();
  for (const PlacementRecord& record : placements) {
    if (record.state == PlacementState::kStarted) keeper_.MarkExclusive(record.job);
  }
  std::lock_guard lock(mu_);
  last_ = last;
  for (PlacementRecord& record : placements) {
    if (record.state != PlacementState::kHeld) continue;
    auto held = std::make_shared<Held>();
    held->wish.nodes = record.nodes;
    held->wish.is_exclusive = record.is_exclusive;
    held->deadline = now + record.term;
    requests_.Restore(OwnName(record.owner, record.request_id), record.request_fingerprint,
                      record.id);
    tables_->quotas.Count(PayerOf(record), AmountsOf(record));
    held->record = std::make_shared<const PlacementRecord>(std::move(record));
    holds_.Restore(held->wish);
    CountOwner(held->record->owner, 1);
    without_leaves_.push_back(held);
    Enter(std::move(held));
  }
}

std::shared_ptr<Placements::Held> Placements::Find(PlacementId id) const {
  const auto found = held_.find(id);
  return found == held_.end() ? nullptr : found->second;
}

void Placements::Enter(std::shared_ptr<Held> held) {
  held->queued_deadline = held->deadline;
  queue_.insert({held->queued_deadline, held->record->id});
  const PlacementId id = held->record->id;
  held_.emplace(id, std::move(held));
}

void Placements::TakeOut(Held& held) {
  const PlacementRecord& record = *held.record;
  queue_.erase({held.queued_deadline, record.id});
  requests_.Forget(OwnName(record.owner, record.request_id));
  holds_.Free(held.wish);
  tables_->quotas.Give(PayerOf(record), AmountsOf(record));
  CountOwner(record.owner, -1);
  std::erase_if(without_leaves_, [&](const auto& other) { return other.get() == &held; });
  held_.erase(record.id);
}

void Placements::Requeue(Held& held, absl::Duration deadline) {
  queue_.erase({held.queued_deadline, held.record->id});
  held.queued_deadline = deadline;
  queue_.insert({deadline, held.record->id});
}

void Placements::CountOwner(const std::string& owner, int change) {
  const auto found = by_owner_.try_emplace(owner, 0).first;
  found->second = static_cast<uint32_t>(static_cast<int>(found->second) + change);
  if (found->second == 0) by_owner_.erase(found);
  counted_ = static_cast<uint32_t>(static_cast<int>(counted_) + change);
}

PlacementView Placements::ViewOf(const Held& held) const {
  return {held.record, std::max(held.deadline - clock_->Monotonic(), absl::ZeroDuration()), ""};
}

absl::StatusOr<PlacementRecord> Placements::FromStore(PlacementId id) {
  PlacementId last;
  {
    std::lock_guard lock(mu_);
    last = last_;
  }
  if (id < PlacementId(1) || id > last) {
    return absl::NotFoundError(absl::StrCat("placement ", id.value(), " was never made"));
  }
  absl::StatusOr<PlacementRecord> record = calls_->store().GetPlacement(id);
  if (!absl::IsNotFound(record.status())) return record;
  return absl::NotFoundError(
      absl::StrCat("placement ", id.value(),
                   " was not made, or ended so long ago that it is forgotten: the "
                   "daemon keeps those that are over as it keeps jobs (limits.ended_jobs, "
                   "limits.ended_job_age)"));
}

absl::StatusOr<PlacementView> Placements::Get(PlacementId id) {
  {
    std::lock_guard lock(mu_);
    if (const std::shared_ptr<Held> held = Find(id)) return ViewOf(*held);
  }
  ASSIGN_OR_RETURN(PlacementRecord record, FromStore(id));
  return PlacementView{std::make_shared<const PlacementRecord>(std::move(record)),
                       absl::ZeroDuration(), ""};
}

Placements::Views Placements::List(PlacementId after, size_t limit) const {
  Views views;
  std::lock_guard lock(mu_);
  for (auto it = held_.upper_bound(after); it != held_.end() && views.size() < limit; ++it) {
    views.push_back(ViewOf(*it->second));
  }
  return views;
}

absl::StatusOr<PlacementView> Placements::Renew(PlacementId id) {
  {
    std::lock_guard lock(mu_);
    if (const std::shared_ptr<Held> held = Find(id)) {
      // Late, but before the end was begun, still counts.
      if (held->phase == Phase::kEnding) {
        return absl::FailedPreconditionError(
            absl::StrCat("placement ", id.value(), " is being released; make a new one"));
      }
      held->deadline = clock_->Monotonic() + held->record->term;
      return ViewOf(*held);
    }
  }
  ASSIGN_OR_RETURN(const PlacementRecord record, FromStore(id));
  return absl::FailedPreconditionError(
      absl::StrCat("placement ", id.value(),
                   " is over: ", kWords[static_cast<size_t>(record.state)], "; make a new one"));
}

// Of one that is not in memory: it is over, or the store has what it reported as failed.
void Placements::ReleaseStored(PlacementId id, Callback<PlacementId> done, const Actor& actor) {
  const absl::StatusOr<PlacementRecord> record = FromStore(id);
  if (!record.ok()) return done(record.status());
  if (record->state != PlacementState::kHeld) return done(id);
  const absl::Time now = clock_->Now();
  calls_->Submit(EndPlacement{id, PlacementState::kReleased, now, DeedOf(actor, ObjectOf(id), now)},
                 [id, callback = std::move(done)](absl::Status status) mutable {
                   if (status.ok() || absl::IsNotFound(status)) return callback(id);
                   callback(std::move(status));
                 });
}

void Placements::Release(PlacementId id, Callback<PlacementId> done, const Actor& actor) {
  std::unique_lock lock(mu_);
  const std::shared_ptr<Held> held = Find(id);
  if (held == nullptr) {
    const bool is_made = id <= last_ && !taking_.contains(id);
    lock.unlock();
    if (is_made) return ReleaseStored(id, std::move(done), actor);
    return done(absl::NotFoundError(absl::StrCat("placement ", id.value(), " is not made")));
  }
  held->end_waiters.push_back(std::move(done));
  if (held->phase != Phase::kHeld) return;  // answered with what is under way
  held->phase = Phase::kEnding;
  lock.unlock();
  SubmitEnd(id, PlacementState::kReleased, actor);
}

void Placements::ForgiveStall(absl::Duration stalled) {
  std::lock_guard lock(mu_);
  const absl::Duration now = clock_->Monotonic();
  for (auto& [id, held] : held_) {
    if (!IsForgiven(stalled, held->record->term)) continue;
    held->deadline = std::max(held->deadline, now + held->record->term);
  }
}

absl::Duration Placements::Expire(absl::Duration now) {
  std::vector<PlacementId> expired;
  absl::Duration next = absl::InfiniteDuration();
  {
    std::lock_guard lock(mu_);
    while (!queue_.empty() && queue_.begin()->first <= now) {
      const std::shared_ptr<Held> held = held_.at(queue_.begin()->second);
      queue_.erase(queue_.begin());
      if (held->deadline > now) {  // renewed since it was queued
        held->queued_deadline = held->deadline;
        queue_.insert({held->queued_deadline, held->record->id});
      } else if (held->phase == Phase::kHeld) {
        held->phase = Phase::kEnding;
        expired.push_back(held->record->id);
      }
      // One that is starting or ending is off the queue until Requeue.
    }
    if (!queue_.empty()) next = queue_.begin()->first;
  }
  for (const PlacementId id : expired) SubmitEnd(id, PlacementState::kExpired);
  return next - now;
}

void Placements::SubmitEnd(PlacementId id, PlacementState state, const Actor& actor) {
  const absl::Time now = clock_->Now();
  calls_->Submit(EndPlacement{id, state, now, DeedOf(actor, ObjectOf(id), now)},
                 [this, id, state, by = NameOf(actor)](absl::Status status) {
                   OnEnded(id, state, by, status);
                 });
}

void Placements::OnEnded(PlacementId id, PlacementState state, const std::string& by,
                         const absl::Status& status) {
  // NOT_FOUND: the store has ended it before, by a write that it reported as failed.
  const bool ended = status.ok() || absl::IsNotFound(status);
  std::vector<Callback<PlacementId>> waiters;
  std::shared_ptr<Held> held;
  {
    std::lock_guard lock(mu_);
    held = Find(id);
    waiters = std::exchange(held->end_waiters, {});
    if (ended) {
      TakeOut(*held);
    } else {
      held->phase = Phase::kHeld;
      Requeue(*held, std::max(held->deadline, clock_->Monotonic() + kReleaseRetry));
    }
  }
  if (ended) {
    const bool expired = state == PlacementState::kExpired;
    events_->Append(expired ? "placement.expired" : "placement.released", ObjectOf(id),
                    absl::StrCat(expired ? "its term ran out; " : "", held->record->nodes.size(),
                                 " nodes are free again"),
                    {by, held->record->owner});
  } else {
    spdlog::warn("placement {} could not be ended: {}", id.value(), status.ToString());
    on_deadline_();
  }
  AnswerAll(std::move(waiters), ended ? absl::StatusOr<PlacementId>(id) : status);
}

Placements::Numbers Placements::numbers() const {
  const uint32_t waiting = turns_.waiting();
  std::lock_guard lock(mu_);
  return {static_cast<uint32_t>(held_.size()), holds_.count(), waiting};
}

}  // namespace coppice
