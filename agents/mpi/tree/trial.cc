#include "agents/mpi/tree/trial.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace coppice::mpi {
namespace {

size_t IndexOf(Way way) { return static_cast<size_t>(way); }

// Below the median: calls that something else held up say nothing of the way.
template <size_t kSize>
double Usual(std::array<double, kSize> times, int gone) {
  const auto usual = times.begin() + 3 * gone / 8;
  std::nth_element(times.begin(), usual, times.begin() + gone);
  return *usual;
}

}  // namespace

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
  gone_ = {};
  measured_ = {};
  Enter(Round::kAll, ways_, kFirst);
}

void Trial::Enter(Round round, std::vector<Way> ways, int calls_each) {
  round_ = round;
  calls_ = calls_each * static_cast<int>(ways.size());
  tries_ = std::move(ways);
  tried_ = 0;
  if (round == Round::kInPlace) gone_in_place_ = {};
}

Way Trial::Next() {
  if (!is_trying_ && left_-- == 0) Begin();
  if (!is_trying_) return way_ = chosen_;
  if (round_ == Round::kInPlace) {
    // In halves of each way's calls, A B B A: one leaves things behind that the next call meets.
    const int half = tried_++ / (kInPlace / 2);
    const bool is_kept = half == 1 || half == 2;
    ++gone_in_place_[is_kept];
    return way_ = tries_[is_kept];
  }
  // The sequence of Thue and Morse, of as many symbols as there are ways: what grows or shrinks
  // meanwhile counts for all ways, and so does whatever comes again after some calls.
  const auto ways = static_cast<int>(tries_.size());
  int digits = 0;
  for (int rest = tried_; rest > 0; rest /= ways) digits += rest % ways;
  ++tried_;
  way_ = tries_[digits % ways];
  ++gone_[IndexOf(way_)];
  return way_;
}

void Trial::Took(Seconds time) {
  if (round_ == Round::kInPlace) {
    const size_t which = way_ == tries_[1];
    measured_.in_place[which][gone_in_place_[which] - 1] = time.count();
  } else {
    measured_.times[IndexOf(way_)][gone_[IndexOf(way_)] - 1] = time.count();
  }
}

Trial::Seconds Trial::UsualTime(Way way) const {
  return Seconds(Usual(measured_.times[IndexOf(way)], gone_[IndexOf(way)]));
}

void Trial::Decide(const Measured& longest) {
  // Each one's own times of the calls to come stay its own.
  measured_ = longest;
  if (round_ == Round::kInPlace) {
    return Settle(Usual(measured_.in_place[0], kInPlace) <= Usual(measured_.in_place[1], kInPlace));
  }
  std::sort(tries_.begin(), tries_.end(),
            [this](Way a, Way b) { return UsualTime(a) < UsualTime(b); });
  if (round_ == Round::kAll && UsualTime(tries_[1]) < kOpen * UsualTime(tries_[0])) {
    return Enter(Round::kSoonest, {tries_[0], tries_[1]}, kMost - kFirst);
  }
  const Way soonest = tries_[0];
  const double worth = chosen_ == Way::kNative ? kWorthLeavingNative : kWorthIt;
  if (!(UsualTime(soonest) < worth * UsualTime(chosen_))) return Settle(/*changes=*/false);
  Enter(Round::kInPlace, {soonest, chosen_}, kInPlace);
}

// After a round in place `changes` says whether the way that was to come has.
void Trial::Settle(bool changes) {
  if (changes) chosen_ = tries_[0];
  const double least = UsualTime(chosen_).count();
  pause_ = changes || !is_settled_ ? kMinPause : std::min(2 * pause_, kMaxPause);
  is_settled_ = true;
  is_trying_ = false;
  left_ = pause_;
  last_times_ = {};
  // What was sooner behind barriers alone shall not be what the next run of the application begins
  // with.
  for (const Way way : ways_) last_times_[IndexOf(way)] = std::max(least, UsualTime(way).count());
  if (!(least > 0)) return;
  const int calls = std::accumulate(gone_.begin(), gone_.end(), 0);
  // To agree takes about as long as one barrier of all those.
  double lost = measured_.waited * (1 + 1.0 / calls) - calls * least;
  for (const auto& times : measured_.times) {
    lost += std::accumulate(times.begin(), times.end(), 0.0);
  }
  if (round_ == Round::kInPlace) {
    const auto of = [this](bool which) {
      return std::accumulate(measured_.in_place[which].begin(), measured_.in_place[which].end(),
                             0.0);
    };
    lost += std::max(0.0, of(changes) - of(!changes));
  }
  constexpr double kMostCalls = 1e15;
  const double pause = std::min(lost / (kShare * least), kMostCalls);
  if (pause > static_cast<double>(pause_)) left_ = static_cast<uint64_t>(pause);
}

}  // namespace coppice::mpi
