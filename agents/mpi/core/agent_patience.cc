#include "agents/mpi/core/agent_patience.h"

#include <algorithm>

namespace coppice::mpi {

AgentPatience::AgentPatience(Duration question, Time now)
    : question_(question), budget_(kQuestions * question), since_(now), away_until_(now) {}

AgentPatience::Duration AgentPatience::BudgetAt(Time now) const {
  return std::min(kQuestions * question_, budget_ + (now - since_) / kShare);
}

bool AgentPatience::MayAsk(Time now) const {
  return !IsLeftAlone(now) && BudgetAt(now) >= question_;
}

// A question may have taken longer than it may: there is a debt then.
void AgentPatience::Spend(Duration waited, Time now) {
  budget_ = BudgetAt(now) - waited;
  since_ = now;
}

void AgentPatience::Asked(bool is_answered, Duration waited, Time now) {
  Spend(waited, now);
  if (is_answered) {
    pause_ = kAwhile;
    return;
  }
  away_until_ = now + pause_;
  pause_ = std::min(2 * pause_, kLongest);
}

void AgentPatience::WaitedForOthers(Duration waited, Time now) {
  Spend(waited, now);
  away_until_ = std::max(away_until_, now + kAwhile);
}

}  // namespace coppice::mpi
