// What one call takes of the planner's time, on its payer's account: the processor time of its
// thread, times the threads that it plans on, from its beginning until it is destroyed there.
#ifndef COPPICE_DAEMON_MANAGER_PLANNER_WORK_H_
#define COPPICE_DAEMON_MANAGER_PLANNER_WORK_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/manager/quota_ledger.h"

namespace coppice {

class PlannerWork {
 public:
  enum class Kind : uint8_t { kPlan, kSearch };  // a search counts as one that is under way, too

  // RESOURCE_EXHAUSTED: the quota searches or planner_seconds of a level of the payer is used up.
  static absl::StatusOr<PlannerWork> Begin(QuotaLedger& quotas, const Clock& clock, Payer payer,
                                           Kind kind = Kind::kPlan, uint32_t threads = 1);
  ~PlannerWork() { End(); }
  PlannerWork(PlannerWork&& other) noexcept { *this = std::move(other); }
  PlannerWork& operator=(PlannerWork&& other) noexcept;

 private:
  PlannerWork() = default;
  void End();

  QuotaLedger* quotas_ = nullptr;  // null: it has ended
  const Clock* clock_ = nullptr;
  Payer payer_;
  Kind kind_ = Kind::kPlan;
  uint32_t threads_ = 1;
  absl::Duration begin_;  // of the thread's processor time
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PLANNER_WORK_H_
