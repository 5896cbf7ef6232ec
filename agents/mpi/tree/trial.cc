#include "agents/mpi/tree/trial.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace coppice::mpi {

Trial::Trial(std::vector<Way> ways, std::optional<Way> known) : ways_(std::move(ways)) {
  if (!known) {
    Begin();
    return;
  }
  is_settled_ = true;
  chosen_ = *known;
  left_ = kKnownPause;
}

std::optional<Way> Trial::SoonestOf(const std::vector<Way>& ways, const KnownTimes& known) {
  const auto us = [&known](Way way) { return known.us[static_cast<size_t>(way)]; };
  Way soonest = Way::kNative;
  for (const Way way : ways) {
    if (!(us(way) > 0)) return std::nullopt;
    if (us(way) < us(soonest)) soonest = way;
  }
  return us(soonest) < kWorthLeavingNative * us(Way::kNative) ? soonest : Way::kNative;
}

void Trial::Begin() {
  is_trying_ = true;
  round_ = ways_;
  is_second_ = false;
  calls_ = kFirst * static_cast<int>(round_.size());
  tried_ = 0;
  gone_ = {};
  measured_ = {};
}

Way Trial::Next() {
  if (!is_trying_ && left_-- == 0) Begin();
  if (!is_trying_) return way_ = chosen_;
  // The sequence of Thue and Morse, of as many symbols as there are ways: what grows or shrinks
  // meanwhile counts for all ways, and so does whatever comes again after some calls.
  const auto ways = static_cast<int>(round_.size());
  int digits = 0;
  for (int rest = tried_; rest > 0; rest /= ways) digits += rest % ways;
  ++tried_;
  way_ = round_[digits % ways];
  ++gone_[static_cast<size_t>(way_)];
  return way_;
}

void Trial::Took(Seconds time) {
  const auto way = static_cast<size_t>(way_);
  measured_.times[way][gone_[way] - 1] = time.count();
}

// Below the median: calls that something else held up say nothing of the way.
Trial::Seconds Trial::UsualTime(Way way) const {
  std::array<double, kMost> times = measured_.times[static_cast<size_t>(way)];
  const int gone = gone_[static_cast<size_t>(way)];
  const auto usual = times.begin() + 3 * gone / 8;
  std::nth_element(times.begin(), usual, times.begin() + gone);
  return Seconds(*usual);
}

void Trial::Decide(const Measured& longest) {
  // Each one's own times of the calls to come stay its own.
  measured_ = longest;
  std::sort(round_.begin(), round_.end(),
            [this](Way a, Way b) { return UsualTime(a) < UsualTime(b); });
  const Way soonest = round_[0];
  if (is_second_ || !(UsualTime(round_[1]) < kOpen * UsualTime(soonest))) {
    Settle(soonest);
    return;
  }
  is_second_ = true;
  round_.resize(2);
  calls_ = 2 * (kMost - kFirst);
  tried_ = 0;
}

void Trial::Settle(Way soonest) {
  const double least = UsualTime(soonest).count();
  const double worth = chosen_ == Way::kNative ? kWorthLeavingNative : kWorthIt;
  const bool changes = least < worth * UsualTime(chosen_).count();
  if (changes) chosen_ = soonest;
  pause_ = changes || !is_settled_ ? kMinPause : std::min(2 * pause_, kMaxPause);
  is_settled_ = true;
  is_trying_ = false;
  left_ = pause_;
  last_times_ = {};
  for (const Way way : ways_) last_times_[static_cast<size_t>(way)] = UsualTime(way).count();
  if (!(least > 0)) return;
  const int calls = std::accumulate(gone_.begin(), gone_.end(), 0);
  // To agree takes about as long as one barrier of all those.
  double lost = measured_.waited * (1 + 1.0 / calls) - calls * least;
  for (const auto& times : measured_.times) {
    lost += std::accumulate(times.begin(), times.end(), 0.0);
  }
  constexpr double kMostCalls = 1e15;
  const double pause = std::min(lost / (kShare * least), kMostCalls);
  if (pause > static_cast<double>(pause_)) left_ = static_cast<uint64_t>(pause);
}

}  // namespace coppice::mpi
