// Long work on the loop in short steps: so many in one turn, then a pause for whatever else there
// is, so that nobody waits longer for the agent because somebody gave it thousands of things to
// look at.
//
//   | steps, at most kStepsOfTurn |     pause     | steps |     pause     | ...
//
// Works take their steps by turns: one step of each, and again.
#ifndef COPPICE_AGENTS_NODE_LOOP_TURNS_H_
#define COPPICE_AGENTS_NODE_LOOP_TURNS_H_

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>

#include "agents/node/event_loop.h"

namespace coppice {

// Belongs to the loop, which outlives it. What is not done when it goes is dropped.
class LoopTurns final {
 public:
  // A step is a look at one process, some 50 us: a turn takes a fifth of the loop's time.
  static constexpr size_t kStepsOfTurn = 100;
  static constexpr std::chrono::milliseconds kPause{20};

  explicit LoopTurns(EventLoop* loop) : loop_(loop) {}
  ~LoopTurns();
  LoopTurns(const LoopTurns&) = delete;

  // Calls `step` until it answers false; begins at once if the turn has steps left.
  void Add(std::function<bool()> step);

 private:
  void TakeTurn();

  EventLoop* const loop_;
  std::deque<std::function<bool()>> works_;
  size_t steps_left_ = kStepsOfTurn;
  bool is_stepping_ = false;
  bool is_timed_ = false;
  EventLoop::Timer next_turn_;  // if is_timed_
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_LOOP_TURNS_H_
