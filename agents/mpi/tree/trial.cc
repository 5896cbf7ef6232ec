#include "agents/mpi/tree/trial.h"

#include <algorithm>

namespace coppice::mpi {
namespace {

constexpr size_t kTree = static_cast<size_t>(Way::kTree);
constexpr size_t kNative = static_cast<size_t>(Way::kNative);

}  // namespace

Way Trial::Next() {
  if (!is_trying_ && left_-- == 0) {
    is_trying_ = true;
    goal_ = kFirst;
    tried_ = 0;
    measured_ = {};
  }
  if (!is_trying_) return way_ = chosen_;
  // T N N T: what grows or shrinks meanwhile counts for both.
  const bool is_native = tried_ % 4 == 1 || tried_ % 4 == 2;
  ++tried_;
  return way_ = is_native ? Way::kNative : Way::kTree;
}

void Trial::Took(Seconds time) {
  const auto way = static_cast<size_t>(way_);
  if (measured_[way] < kMost) times_[way][measured_[way]++] = time.count();
}

std::array<double, 2> Trial::UsualTimes() const {
  std::array<double, 2> usual = {};
  for (const size_t way : {kTree, kNative}) {
    if (measured_[way] == 0) continue;
    std::array<double, kMost> sorted = times_[way];
    const auto quartile = sorted.begin() + measured_[way] / 4;
    std::nth_element(sorted.begin(), quartile, sorted.begin() + measured_[way]);
    usual[way] = *quartile;
  }
  return usual;
}

void Trial::Decide(const std::array<double, 2>& longest) {
  const double tree = longest[kTree], native = longest[kNative];
  const double slower = std::max(tree, native), sooner = std::min(tree, native);
  if (goal_ == kFirst && slower < kOpen * sooner) {
    goal_ = kMost;
    return;
  }
  const Way other = chosen_ == Way::kTree ? Way::kNative : Way::kTree;
  const bool changes =
      longest[static_cast<size_t>(other)] < kWorthIt * longest[static_cast<size_t>(chosen_)];
  if (changes) chosen_ = other;
  pause_ = changes || !is_settled_ ? kMinPause : std::min(2 * pause_, kMaxPause);
  is_settled_ = true;
  const double lost_calls = sooner > 0 ? goal_ * (slower / sooner - 1) : 0;
  left_ = static_cast<uint64_t>(std::min(
      static_cast<double>(kMaxPause), std::max(static_cast<double>(pause_), lost_calls / kShare)));
  is_trying_ = false;
}

}  // namespace coppice::mpi
