// How long a program waits for Coppice, all in all: so many seconds, and then a twentieth of its
// time, however often it asks and whether the agent is away, slow, or back and away again.
//
//   budget = kQuestions questions, full at first; + 1/20 of the time that passes; - what is waited
//   a question is asked only if it may take its whole time
//
// There is one budget for answers and one for what nobody answers: a program that asked a thousand
// times, and was answered each time in some milliseconds, has as much patience with an agent that
// goes away then as one that never asked.
//
// An agent that did not answer is left alone for a while besides, twice as long each time, until it
// has answered. Knows no agent and no clock: whoever asks says when it is and how long it took.
// Not for several threads at once.
#ifndef COPPICE_AGENTS_MPI_CORE_AGENT_PATIENCE_H_
#define COPPICE_AGENTS_MPI_CORE_AGENT_PATIENCE_H_

#include <algorithm>
#include <chrono>

namespace coppice::mpi {

class AgentPatience final {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  static constexpr int kQuestions = 5;
  static constexpr int kShare = 20;  // one of so many parts of the time may be waited
  // About as long as an agent takes to come back under a service manager.
  static constexpr Duration kAwhile = std::chrono::seconds(10);
  static constexpr Duration kMaxPause = std::chrono::minutes(10);

  // `question`: how long one may take, which is more than nothing.
  AgentPatience(Duration question, Time now)
      : question_(question),
        answered_{kQuestions * question, now},
        in_vain_(answered_),
        away_until_(now) {}

  // Whether a question may be asked.
  bool MayAsk(Time now) const {
    return !IsLeftAlone(now) && LeftAt(answered_, now) >= question_ &&
           LeftAt(in_vain_, now) >= question_;
  }
  // Whether the agent is left alone for a while; if not, and no question may be asked, too much was
  // waited already.
  bool IsLeftAlone(Time now) const { return now < away_until_; }
  // One was asked, and this process waited for `waited`, without the time that it asked the agent
  // to take. `is_answered`: whatever the answer was.
  void Asked(bool is_answered, Duration waited, Time now) {
    Spend(waited, now, is_answered ? &answered_ : &in_vain_);
    if (is_answered) {
      pause_ = kAwhile;
      return;
    }
    away_until_ = now + pause_;
    pause_ = std::min(2 * pause_, kMaxPause);
  }
  // This process waited for another one's question, which nobody answered. What answers here may be
  // another agent, but hardly another daemon.
  void WaitedForOthers(Duration waited, Time now) {
    Spend(waited, now, &in_vain_);
    away_until_ = std::max(away_until_, now + kAwhile);
  }

 private:
  struct Budget {
    Duration left;  // as it was at `since`
    Time since;
  };

  Duration LeftAt(const Budget& budget, Time now) const {
    return std::min(kQuestions * question_, budget.left + (now - budget.since) / kShare);
  }
  // A question may have taken longer than it may: there is a debt then.
  void Spend(Duration waited, Time now, Budget* budget) const {
    *budget = {LeftAt(*budget, now) - waited, now};
  }

  Duration question_;
  Budget answered_, in_vain_;
  Duration pause_ = kAwhile;  // after the next question that nobody answers
  Time away_until_;
};

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_CORE_AGENT_PATIENCE_H_
