#include "agents/mpi/core/agent_patience.h"

#include <algorithm>

namespace coppice::mpi {

AgentPatience::AgentPatience(Duration question, Time now)
    : question_(question),
      answered_{kQuestions * question, now},
      in_vain_(answered_),
      away_until_(now) {}

AgentPatience::Duration AgentPatience::LeftAt(const Budget& budget, Time now) const {
  return std::min(kQuestions * question_, budget.left + (now - budget.since) / kShare);
}

bool AgentPatience::MayAsk(Time now) const {
  return !IsLeftAlone(now) && LeftAt(answered_, now) >= question_ &&
         LeftAt(in_vain_, now) >= question_;
}

// A question may have taken longer than it may: there is a debt then.
void AgentPatience::Spend(Duration waited, Time now, Budget* budget) const {
  *budget = {LeftAt(*budget, now) - waited, now};
}

void AgentPatience::Asked(bool is_answered, Duration waited, Time now) {
  Spend(waited, now, is_answered ? &answered_ : &in_vain_);
  if (is_answered) {
    pause_ = kAwhile;
    return;
  }
  away_until_ = now + pause_;
  pause_ = std::min(2 * pause_, kLongest);
}

void AgentPatience::WaitedForOthers(Duration waited, Time now) {
  Spend(waited, now, &in_vain_);
  away_until_ = std::max(away_until_, now + kAwhile);
}

}  // namespace coppice::mpi
