// Which way is the sooner one for collectives of one kind and size class of a communicator: along
// its tree, or the MPI library's own. The program's own calls tell, as in STAR-MPI (Faraj, Yuan,
// Lowenthal 2006, sections 3 and 4):
//
//     call  0 1 2 3 4 5 6 7      8 ..... 23                     24 .............
//           T N N T T N N T  [agree: near?  T N N T ...]  [agree]  the sooner way ... try again
//
// All members make these calls alike, so they count alike. What each measured is its own: members
// agree by one small native Allreduce after a trial, of what whoever took longest took usually. A
// trial costs calls that go the slower way; the next one waits until they are a small share of all.
#ifndef COPPICE_AGENTS_MPI_TREE_TRIAL_H_
#define COPPICE_AGENTS_MPI_TREE_TRIAL_H_

#include <array>
#include <chrono>
#include <cstdint>

namespace coppice::mpi {

enum class Way : uint8_t { kTree, kNative };

class Trial final {
 public:
  using Seconds = std::chrono::duration<double>;

  // First, each way is gone so many times; where that leaves it open, so many times in all.
  static constexpr int kFirst = 4, kMost = 12;
  // It is open if the slower way takes less than so many times what the other does.
  static constexpr double kOpen = 1.5;
  // A way that is gone already is left for one that takes less than this share of it.
  static constexpr double kWorthIt = 0.97;
  // Of all time, what calls of a trial may cost beyond those of the sooner way; and how many calls
  // lie between two trials at the least. These become twice as many each time a trial changes
  // nothing, up to kMaxPause.
  static constexpr double kShare = 0.005;
  static constexpr uint64_t kMinPause = 512, kMaxPause = uint64_t{1} << 20U;

  // Whether members are to agree before the next call: on the longest of their UsualTimes.
  bool IsDue() const { return is_trying_ && tried_ == 2 * goal_; }
  // This member's, in seconds [way]: the lower quartile, as calls for which somebody came late say
  // nothing of the way. 0: nothing was measured.
  std::array<double, 2> UsualTimes() const;
  void Decide(const std::array<double, 2>& longest);

  // The way of the next call, which is counted. Not if IsDue.
  Way Next();
  // Whether that call is measured: then this member says how long it took.
  bool IsMeasured() const { return is_trying_; }
  void Took(Seconds time);

 private:
  bool is_trying_ = true;
  bool is_settled_ = false;  // once
  Way chosen_ = Way::kNative;
  int goal_ = kFirst;
  int tried_ = 0;                                        // calls of this trial
  std::array<std::array<double, kMost>, 2> times_ = {};  // [way]
  std::array<int, 2> measured_ = {};                     // [way]
  Way way_ = Way::kTree;                                 // of the last call
  uint64_t left_ = 0;                                    // calls until the next trial
  uint64_t pause_ = kMinPause;
};

// The call that this thread is in, from the moment when its way was chosen; nothing if it is not
// measured. Collectives within it are calls of their own.
class MeasuredCall final {
 public:
  MeasuredCall() = default;
  explicit MeasuredCall(Trial* trial) : trial_(trial), begun_(Clock::now()) {}
  void End() {
    if (trial_ != nullptr) trial_->Took(Clock::now() - begun_);
    trial_ = nullptr;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Trial* trial_ = nullptr;
  Clock::time_point begun_;
};

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_TRIAL_H_
