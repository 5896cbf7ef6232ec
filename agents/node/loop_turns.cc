#include "agents/node/loop_turns.h"

#include <utility>

namespace coppice {

LoopTurns::~LoopTurns() {
  if (is_timed_) loop_->Cancel(next_turn_);
}

void LoopTurns::Add(std::function<bool()> step) {
  works_.push_back(std::move(step));
  TakeTurn();
}

void LoopTurns::TakeTurn() {
  if (is_stepping_) return;  // a step added more
  is_stepping_ = true;
  while (steps_left_ > 0 && !works_.empty()) {
    --steps_left_;
    std::function<bool()> work = std::move(works_.front());
    works_.pop_front();
    if (work()) works_.push_back(std::move(work));
  }
  is_stepping_ = false;
  if (is_timed_ || steps_left_ == kStepsOfTurn) return;
  is_timed_ = true;
  next_turn_ = loop_->After(kPause, [this] {
    is_timed_ = false;
    steps_left_ = kStepsOfTurn;
    TakeTurn();
  });
}

}  // namespace coppice
