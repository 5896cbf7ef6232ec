#include <algorithm>
#include <cmath>
#include <compare>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "daemon/tree/type1_postal.h"

namespace coppice {
namespace {

constexpr double kTimeRounding = 1e-9;  // of a time; sums in another order differ by less
constexpr int kMaxHalvings = 10, kMaxDoublings = 20;
constexpr uint32_t kTimesPerUnit = 3;  // of the largest part, kept to know what a slot is worth

struct PostalSlot {
  double us = 0;      // when it begins
  uint32_t unit = 0;  // whose it is
  friend auto operator<=>(const PostalSlot&, const PostalSlot&) = default;
};

// In order of time; of one time in order of unit.
class PostalSlots {
 public:
  void Clear() { heap_.clear(); }
  void Push(double us, uint32_t unit) {
    heap_.push_back({us, unit});
    absl::c_push_heap(heap_, std::greater<>());
  }
  // False: there is none.
  bool Take(PostalSlot& slot) {
    if (heap_.empty()) return false;
    absl::c_pop_heap(heap_, std::greater<>());
    slot = heap_.back();
    heap_.pop_back();
    return true;
  }

 private:
  std::vector<PostalSlot> heap_;
};

// Least T from `low` on, to half a gap or a 64th, for which `fits(T)` is true; it is when fits()
// was last true. `fits` may lower its argument to the time that was needed. Infinite: not found.
template <class Fits>
double LeastTime(double low, double high, double gap_us, Fits fits) {
  high = std::max(high, kTimeRounding);
  for (int i = 0; !fits(high); ++i) {
    if (i == kMaxDoublings) return std::numeric_limits<double>::infinity();
    low = high;
    high *= 2;
  }
  for (int i = 0; i < kMaxHalvings && high - low > std::max(gap_us / 2, high / 64); ++i) {
    double middle = (low + high) / 2;
    const double tried = middle;
    if (fits(middle)) {
      high = middle;
    } else {
      low = tried;
    }
  }
  return high;
}

// Times at which a node that serves at most `root_degree` reaches others near it, each of which
// serves at most costs.degree: ascending, the first `count` of them. O(count).
std::vector<double> PostalTimes(const PostalCosts& costs, uint32_t root_degree, uint32_t count) {
  std::vector<double> times;
  times.reserve(count);
  PostalSlots slots;
  slots.Push(costs.near_us, 0);
  std::vector<uint32_t> served;  // [node] how many
  served.reserve(count + 1);
  served.push_back(0);
  PostalSlot slot;
  while (times.size() < count && slots.Take(slot)) {
    times.push_back(slot.us);
    if (++served[slot.unit] < (slot.unit == 0 ? root_degree : costs.degree)) {
      slots.Push(slot.us + costs.gap_us, slot.unit);
    }
    slots.Push(slot.us + costs.near_us, static_cast<uint32_t>(served.size()));
    served.push_back(0);
  }
  return times;
}

// All equally near: whoever can serve first does.
PostalSchedule ScheduleFlat(uint32_t units, double lag_us, const PostalCosts& costs,
                            uint32_t root_degree) {
  PostalSchedule schedule;
  schedule.parents.assign(units, -1);
  std::vector<uint32_t> left(units, costs.degree);
  left[0] = root_degree;
  PostalSlots slots;
  slots.Push(0, 0);
  PostalSlot slot;
  for (uint32_t next = 1; next < units && slots.Take(slot); ++next) {
    schedule.parents[next] = static_cast<int32_t>(slot.unit);
    schedule.time_us = slot.us + lag_us;
    slots.Push(slot.us + lag_us, next);
    if (--left[slot.unit] > 0) slots.Push(slot.us + costs.gap_us, slot.unit);
  }
  return schedule;
}

class NearFar {
 public:
  NearFar(absl::Span<const uint32_t> sizes, const PostalCosts& costs, uint32_t root_degree)
      : sizes_(sizes), costs_(costs), root_degree_(root_degree) {
    for (const uint32_t size : sizes) {
      part_of_.insert(part_of_.end(), size, static_cast<uint32_t>(begin_.size()));
      begin_.push_back(units_);
      units_ += size;
    }
    reaches_ = PostalTimes(costs, UINT32_MAX, kTimesPerUnit * sizes[0]);
    child_reaches_ = PostalTimes(costs, costs.degree, sizes[0]);
    parents_.resize(units_);
    degree_left_.resize(units_);
    own_.resize(units_);
  }

  PostalSchedule Solve() {
    PostalSchedule best;
    const double least = ScheduleFlat(units_, costs_.near_us, costs_, root_degree_).time_us;
    const double most = ScheduleFlat(units_, costs_.far_us, costs_, root_degree_).time_us;
    best.time_us = LeastTime(least, most, costs_.gap_us, [&](double& limit) {
      if (!Run(limit)) return false;
      limit = last_us_;
      best.parents = parents_;
      return true;
    });
    return best;
  }

 private:
  static constexpr int32_t kUnknown = -1;

  // How many a unit reaches in its part in `left_us`, itself included, with `degree` more children:
  // those that it would reach without limit, less those by later slots. At least a part's size
  // where there is time for more than the table tells of.
  int32_t Reach(double left_us, uint32_t degree) const {
    if (left_us > reaches_.back()) return ReachLate(left_us, degree);
    const int32_t all = Count(reaches_, left_us);
    const double unused_us = left_us - degree * costs_.gap_us;
    return unused_us < costs_.near_us ? 1 + all : 1 + all - Count(reaches_, unused_us);
  }
  int32_t ReachLate(double left_us, uint32_t degree) const {
    uint32_t reach = 1;
    size_t below = child_reaches_.size();  // of the child at hand; a later one has no more
    for (uint32_t child = 0; child < degree && reach < sizes_[0]; ++child) {
      const double child_us = left_us - costs_.near_us - child * costs_.gap_us;
      if (child_us < 0) break;
      while (below > 0 && child_reaches_[below - 1] > child_us + kTimeRounding) --below;
      reach += 1 + static_cast<uint32_t>(below);
    }
    return static_cast<int32_t>(reach);
  }
  static int32_t Count(const std::vector<double>& times, double left_us) {
    const auto after = absl::c_upper_bound(times, left_us + kTimeRounding);
    return static_cast<int32_t>(after - times.begin());
  }

  // Answers the unit that is reached at `us`.
  uint32_t Enter(uint32_t part, double us, int32_t parent, uint32_t degree) {
    const uint32_t unit = begin_[part] + sizes_[part] - static_cast<uint32_t>(missing_[part]);
    parents_[unit] = parent;
    degree_left_[unit] = degree;
    own_[unit] = kUnknown;
    --missing_[part];
    --left_;
    last_us_ = std::max(last_us_, us);
    if (us + costs_.near_us <= limit_us_) slots_.Push(us, unit);
    return unit;
  }

  // Parts that lack units: those that nobody has entered, which stand in order of size, and others.

  void Lack(uint32_t part) {
    if (missing_[part] <= reach_[part]) return;
    lacking_.emplace_back(missing_[part] - reach_[part], ~part);
    std::push_heap(lacking_.begin(), lacking_.end());
  }
  uint32_t TakeEntered() {
    std::pop_heap(lacking_.begin(), lacking_.end());
    const uint32_t part = ~lacking_.back().second;
    lacking_.pop_back();
    return part;
  }
  bool IsLacking() {
    // Times of more than seven digits may be rounded so that a part lacks none any more.
    while (!lacking_.empty() && missing_[~lacking_.front().second] == 0) TakeEntered();
    return fresh_ < sizes_.size() || !lacking_.empty();
  }
  // The one that lacks most, the first of those alike.
  uint32_t TakeLacking() {
    if (fresh_ == sizes_.size()) return TakeEntered();
    if (lacking_.empty() || lacking_.front() < std::pair(missing_[fresh_], ~fresh_))
      return fresh_++;
    return TakeEntered();
  }

  bool Run(double limit_us) {
    limit_us_ = limit_us + kTimeRounding;
    left_ = units_;
    last_us_ = 0;
    missing_.assign(sizes_.begin(), sizes_.end());
    reach_.assign(sizes_.size(), 0);
    slots_.Clear();
    lacking_.clear();
    fresh_ = 1;
    Enter(0, 0, -1, root_degree_);
    own_[0] = Reach(limit_us_, root_degree_);
    reach_[0] = own_[0] - 1;
    Lack(0);
    PostalSlot slot;
    while (left_ > 0 && slots_.Take(slot)) {
      if (slot.us + costs_.far_us > limit_us_ && fresh_ < sizes_.size()) return false;
      Serve(slot.us, slot.unit);
    }
    return left_ == 0;
  }

  // The slot of `unit` at `us`.
  void Serve(double us, uint32_t unit) {
    const uint32_t part = part_of_[unit];
    if (us + costs_.far_us <= limit_us_ && IsLacking() && Spare(unit, part, limit_us_ - us)) {
      const uint32_t other = TakeLacking();
      const double there_us = us + costs_.far_us;
      const uint32_t there = Enter(other, there_us, static_cast<int32_t>(unit), costs_.degree);
      own_[there] = Reach(limit_us_ - there_us, costs_.degree);
      reach_[other] += own_[there] - 1;
      Lack(other);
    } else if (missing_[part] > 0) {
      Enter(part, us + costs_.near_us, static_cast<int32_t>(unit), costs_.degree);
      --reach_[part];
    } else {
      return;
    }
    --degree_left_[unit];
    const double next_us = us + costs_.gap_us;
    if (degree_left_[unit] > 0 && next_us + costs_.near_us <= limit_us_) slots_.Push(next_us, unit);
  }

  // True: `part` can do without the slot at hand of its member `unit`, and does.
  bool Spare(uint32_t unit, uint32_t part, double left_us) {
    const uint32_t degree = degree_left_[unit];
    const int32_t own = own_[unit] == kUnknown ? Reach(left_us, degree) : own_[unit];
    const int32_t later = Reach(left_us - costs_.gap_us, degree - 1);
    own_[unit] = later;
    if (reach_[part] - own + later < missing_[part]) return false;
    reach_[part] += later - own;
    return true;
  }

  const absl::Span<const uint32_t> sizes_;
  const PostalCosts& costs_;
  const uint32_t root_degree_;
  uint32_t units_ = 0;
  std::vector<uint32_t> begin_, part_of_;        // [part] its first unit; [unit]
  std::vector<double> reaches_, child_reaches_;  // PostalTimes() within a part

  double limit_us_ = 0, last_us_ = 0;  // of the run at hand
  uint32_t left_ = 0;                  // units not reached
  std::vector<int32_t> missing_;       // [part] units not reached
  std::vector<int32_t> reach_;         // [part] units that its members' slots will reach
  std::vector<int32_t> parents_;
  std::vector<uint32_t> degree_left_;  // [unit]
  std::vector<int32_t> own_;           // [unit] Reach() at its next slot, or kUnknown
  PostalSlots slots_;
  uint32_t fresh_ = 0;                                 // the first part that nobody has entered
  std::vector<std::pair<int32_t, uint32_t>> lacking_;  // units, ~part; a heap of the others
};

class Leaders {
 public:
  Leaders(absl::Span<const double> own_us, const PostalCosts& costs)
      : own_us_(own_us), costs_(costs), parents_(own_us.size()), degree_left_(own_us.size()) {}

  PostalSchedule Solve() {
    PostalSchedule best;
    const double most = own_us_[0] + costs_.far_us + costs_.gap_us * own_us_.size();
    best.time_us = LeastTime(0, most, costs_.gap_us, [&](double& limit) {
      if (!Run(limit)) return false;
      limit = last_us_;
      best.parents = parents_;
      return true;
    });
    return best;
  }

 private:
  bool Run(double limit_us) {
    if (own_us_[0] > limit_us + kTimeRounding) return false;
    last_us_ = own_us_[0];
    slots_.Clear();
    slots_.Push(0, 0);
    parents_[0] = -1;
    absl::c_fill(degree_left_, costs_.degree);
    for (uint32_t next = 1; next < own_us_.size();) {
      PostalSlot slot;
      if (!slots_.Take(slot)) return false;
      const auto [us, part] = slot;
      const double free_us = us + costs_.gap_us;
      if (free_us + own_us_[part] > limit_us + kTimeRounding) continue;
      const double there_us = us + costs_.far_us;
      if (there_us + own_us_[next] > limit_us + kTimeRounding) return false;
      last_us_ = std::max({last_us_, there_us + own_us_[next], free_us + own_us_[part]});
      parents_[next] = static_cast<int32_t>(part);
      slots_.Push(there_us, next++);
      if (--degree_left_[part] > 0) slots_.Push(free_us, part);
    }
    return true;
  }

  const absl::Span<const double> own_us_;
  const PostalCosts& costs_;
  PostalSlots slots_;
  double last_us_ = 0;
  std::vector<int32_t> parents_;
  std::vector<uint32_t> degree_left_;  // [part]
};

}  // namespace

PostalSchedule ScheduleNearFar(absl::Span<const uint32_t> sizes, const PostalCosts& costs,
                               uint32_t root_degree) {
  if (sizes.size() == 1) return ScheduleFlat(sizes[0], costs.near_us, costs, root_degree);
  PostalSchedule schedule = NearFar(sizes, costs, root_degree).Solve();
  if (std::isfinite(schedule.time_us)) return schedule;
  const uint32_t all = absl::c_accumulate(sizes, 0U);
  return ScheduleFlat(all, costs.far_us, costs, root_degree);
}

PostalSchedule ScheduleLeaders(absl::Span<const double> own_us, const PostalCosts& costs) {
  return Leaders(own_us, costs).Solve();
}

}  // namespace coppice
