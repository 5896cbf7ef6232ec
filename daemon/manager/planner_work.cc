#include "daemon/manager/planner_work.h"

#include <ctime>

#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

absl::Duration ThreadTime() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

QuotaAmounts OneSearch() {
  QuotaAmounts amounts;
  amounts[Quota::kSearches] = 1;
  return amounts;
}

}  // namespace

absl::StatusOr<PlannerWork> PlannerWork::Begin(QuotaLedger& quotas, const Clock& clock, Payer payer,
                                               Kind kind, uint32_t threads) {
  RETURN_IF_ERROR(quotas.CheckPlanner(payer, clock.Monotonic()));
  if (kind == Kind::kSearch) RETURN_IF_ERROR(quotas.Take(payer, OneSearch()));
  PlannerWork work;
  work.quotas_ = &quotas;
  work.clock_ = &clock;
  work.payer_ = std::move(payer);
  work.kind_ = kind;
  work.threads_ = threads;
  work.begin_ = ThreadTime();
  return work;
}

PlannerWork& PlannerWork::operator=(PlannerWork&& other) noexcept {
  if (this == &other) return *this;
  End();
  quotas_ = std::exchange(other.quotas_, nullptr);
  clock_ = other.clock_;
  payer_ = std::move(other.payer_);
  kind_ = other.kind_;
  threads_ = other.threads_;
  begin_ = other.begin_;
  return *this;
}

void PlannerWork::End() {
  if (quotas_ == nullptr) return;
  quotas_->SpendPlanner(payer_, (ThreadTime() - begin_) * threads_, clock_->Monotonic());
  if (kind_ == Kind::kSearch) quotas_->Give(payer_, OneSearch());
  quotas_ = nullptr;
}

}  // namespace coppice
