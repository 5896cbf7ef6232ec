// The two schedules that a postal tree is put together from. Both look for the least time T within
// which all can be reached, halving an interval, and for a given T serve greedily in order of time.
//
// Flat (Bar-Noy and Kipnis 1992, Karp et al. 1993): whoever can serve first does. Where all are
// equally far this is optimal, and N(t), how many a node reaches in time t including itself,
// follows from it; with lag 3 gap 1 the counts are 1, 1, 1, 2, 3, 4, 6, 9, ...
//
// Near and far: parts of units that are near each other (a leaf switch's), all others far.
//
//   root        far far far far | near near near        a slot goes far while some part lacks
//   part B          far | near near near near           units that its own members will not reach
//   part C              near near near                  by T, and the sender's part can spare it
//
// A part can spare a slot if its members' later slots still reach all that are missing: the sum of
// N(T - next slot) - 1 over its members, which is exact within a part. Parts that are entered late
// get several packets from outside, each for as many units as there is time for.
//
// Leaders: each part's first unit is reached once, then serves its own part, which takes `own_us`.
// It may serve others' leaders before, for as long as T leaves that time. The part that needs most
// is served first.
//
// Knows neither fabric nor ranks.
#ifndef COPPICE_DAEMON_TREE_POSTAL_SCHEDULE_H_
#define COPPICE_DAEMON_TREE_POSTAL_SCHEDULE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"

namespace coppice {

struct PostalCosts {
  double near_us = 0, far_us = 0;  // lag within a part and between parts; near <= far
  double gap_us = 0;
  uint32_t degree = 2;  // most children of a unit, 1 or more
};

// Times at which a node that serves at most `root_degree` reaches others near it, each of which
// serves at most costs.degree: ascending, the first `count` of them. O(count).
std::vector<double> PostalTimes(const PostalCosts& costs, uint32_t root_degree, uint32_t count);

struct PostalSchedule {
  double time_us = 0;            // when the last is reached
  std::vector<int32_t> parents;  // [unit or part] the one that serves it; -1 for the first
};

// Units are numbered part after part, in each in the order in which they are reached; part 0 holds
// the root, unit 0. `sizes` are 1 or more, largest first. `root_degree`: most children of the root.
// Should the greedy way find none, all count as far. O(units log parts) for each T tried, mostly
// less than a dozen.
PostalSchedule ScheduleNearFar(absl::Span<const uint32_t> sizes, const PostalCosts& costs,
                               uint32_t root_degree);

// `own_us` largest first; part 0 holds the root. Every leader serves at most `degree` others of
// `far_us` each.
PostalSchedule ScheduleLeaders(absl::Span<const double> own_us, const PostalCosts& costs);

// Slots of a postal schedule in order of time. What follows from a slot begins one of a few
// constants later (the gap, a lag), and slots are taken in order of time: so what begins the same
// constant later arises in order of time, too. A queue for each constant does what a heap would.
//
//   taken at    1  2  2  5        + gap 1:   2  3  3  6    each in order; the earliest of all
//                                 + lag 4:   5  6  6  9    stands first in one of them

struct PostalSlot {
  double us = 0;      // when it begins
  uint32_t unit = 0;  // whose it is
  bool IsBefore(const PostalSlot& other) const {
    return us < other.us || (us == other.us && unit < other.unit);
  }
};

// Slots one constant later, in order of time; of one time in order of unit.
class PostalSlotQueue {
 public:
  void Clear() { next_ = sorted_ = end_ = 0; }
  bool empty() const { return next_ == end_; }
  void Push(double us, uint32_t unit) {
    if (end_ == slots_.size()) slots_.resize(2 * end_ + 16);
    slots_[end_++] = {us, unit};
  }
  double front_us() const { return slots_[next_].us; }
  // Once all slots of its time are there: those of one time are put in order now.
  const PostalSlot& front() {
    if (next_ == sorted_) SortRun();
    return slots_[next_];
  }
  void Pop() { ++next_; }

 private:
  // Those of the next time, which mostly stand in order.
  void SortRun() {
    const double us = slots_[next_].us;
    bool in_order = true;
    for (sorted_ = next_ + 1; sorted_ < end_ && slots_[sorted_].us == us; ++sorted_) {
      in_order = in_order && slots_[sorted_ - 1].unit < slots_[sorted_].unit;
    }
    if (in_order) return;
    std::sort(slots_.begin() + static_cast<std::ptrdiff_t>(next_),
              slots_.begin() + static_cast<std::ptrdiff_t>(sorted_),
              [](const PostalSlot& a, const PostalSlot& b) { return a.IsBefore(b); });
  }

  std::vector<PostalSlot> slots_;
  size_t next_ = 0, sorted_ = 0, end_ = 0;  // those before are taken; stand in order; are there
};

// All slots; `kQueues` constants.
template <size_t kQueues>
class PostalSlots {
 public:
  void Clear() {
    for (PostalSlotQueue& queue : queues_) queue.Clear();
  }
  // `us` is the same constant after the slot taken last as for all others of this queue.
  void Push(size_t queue, double us, uint32_t unit) { queues_[queue].Push(us, unit); }

  // The earliest slot; false: there is none. Of those alike the least unit's, where all constants
  // are above 0: then no other can still come to begin at that time.
  bool Take(PostalSlot& slot) {
    double us = std::numeric_limits<double>::infinity();
    for (const PostalSlotQueue& queue : queues_) {
      if (!queue.empty()) us = std::min(us, queue.front_us());
    }
    PostalSlotQueue* first = nullptr;
    for (PostalSlotQueue& queue : queues_) {
      if (queue.empty() || queue.front_us() > us) continue;
      if (first != nullptr && first->front().unit < queue.front().unit) continue;
      first = &queue;
    }
    if (first == nullptr) return false;
    slot = first->front();
    first->Pop();
    return true;
  }

 private:
  std::array<PostalSlotQueue, kQueues> queues_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_POSTAL_SCHEDULE_H_
