#include "daemon/mapping/mapping_standing.h"

#include <algorithm>

namespace coppice {
namespace {

constexpr double kSumRounding = 1e-12;  // of sums of doubles in another order, relative
// Of some hundred channels one more that is full makes about as much: nobody measures less.
constexpr double kSmoother = 1e-3;
constexpr double kWorthMoving = 1e-6;  // of the hop-bytes

// Of two that are not negative, and may be infinite.
bool IsLess(double a, double b, double tolerance) { return b - a > tolerance * std::min(a, b); }

}  // namespace

bool MappingStanding::HasScoreOf(const MappingStanding& other) const {
  return !IsLess(score, other.score, kSumRounding) && !IsLess(other.score, score, kSumRounding);
}

bool MappingStanding::HasLessSmooth(const MappingStanding& other) const {
  return IsLess(smooth, other.smooth, kSmoother);
}

bool MappingStanding::HasFewerHopBytes(const MappingStanding& other) const {
  return IsLess(hop_bytes, other.hop_bytes, kWorthMoving);
}

bool MappingStanding::IsBetterThan(const MappingStanding& other) const {
  if (!HasScoreOf(other)) return score < other.score;
  return HasLessSmooth(other) || (!other.HasLessSmooth(*this) && HasFewerHopBytes(other));
}

MappingStanding StandingOf(const Objective& objective, const MappingMeasures& measures,
                           const MappingMeasures& present) {
  MappingStanding standing{Score(objective, measures, present)};
  if (objective.congestion == 0) return standing;
  standing.smooth = *measures.smooth_congestion;
  standing.hop_bytes = *measures.hop_bytes;
  return standing;
}

}  // namespace coppice
