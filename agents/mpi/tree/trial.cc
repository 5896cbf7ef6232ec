#include "agents/mpi/tree/trial.h"

#include <algorithm>
#include <bit>

namespace coppice::mpi {

void Trial::Restart() {
  is_trying_ = true;
  goal_ = kFirst;
  tried_ = 0;
  gone_ = {};
  measured_ = {};
}

Way Trial::Next() {
  if (!is_trying_ && left_-- == 0) Restart();
  if (!is_trying_) return way_ = chosen_;
  // The sequence of Thue and Morse: what grows or shrinks meanwhile counts for both ways, and so
  // does whatever comes again after some calls.
  const bool is_native = std::popcount(static_cast<unsigned>(tried_)) % 2 != 0;
  ++tried_;
  way_ = is_native ? Way::kNative : Way::kTree;
  ++gone_[static_cast<size_t>(way_)];
  return way_;
}

void Trial::Took(Seconds time) {
  const auto way = static_cast<size_t>(way_);
  measured_.times[way][gone_[way] - 1] = time.count();
}

// The lower quartile: calls that something else held up say nothing of the way.
double Trial::UsualTime(const Measured& longest, Way way) const {
  std::array<double, kMost> times = longest.times[static_cast<size_t>(way)];
  const auto quartile = times.begin() + goal_ / 4;
  std::nth_element(times.begin(), quartile, times.begin() + goal_);
  return *quartile;
}

void Trial::Decide(const Measured& longest) {
  const double tree = UsualTime(longest, Way::kTree), native = UsualTime(longest, Way::kNative);
  const double slower = std::max(tree, native), sooner = std::min(tree, native);
  if (goal_ == kFirst && slower < kOpen * sooner) {
    goal_ = kMost;
    return;
  }
  const bool changes = chosen_ == Way::kTree ? native < kWorthIt * tree : tree < kWorthIt * native;
  if (changes) chosen_ = chosen_ == Way::kTree ? Way::kNative : Way::kTree;
  pause_ = changes || !is_settled_ ? kMinPause : std::min(2 * pause_, kMaxPause);
  is_settled_ = true;
  is_trying_ = false;
  left_ = pause_;
  if (!(sooner > 0)) return;
  // To agree takes about as long as one barrier of all those.
  double lost = longest.waited * (1 + 1.0 / tried_) - tried_ * sooner;
  for (const auto& times : longest.times) {
    for (int call = 0; call < goal_; ++call) lost += times[call];
  }
  constexpr double kMostCalls = 1e15;
  const double calls = std::min(lost / (kShare * sooner), kMostCalls);
  if (calls > static_cast<double>(pause_)) left_ = static_cast<uint64_t>(calls);
}

}  // namespace coppice::mpi
