// Which way is the sooner one for collectives of one kind and size class of a communicator: along
// its tree, or the MPI library's own. The program's own calls tell, as in STAR-MPI (Faraj, Yuan,
// Lowenthal 2006, sections 3 and 4):
//
//     call  0 1 2 3 4 5 6 7      8 ..... 23                     24 .............
//           T N N T N T T N  [agree: near?  N T T N ...]  [agree]  the sooner way ... try again
//
// All members make these calls alike, so they count alike. Before each call of a trial they hold a
// native barrier, or whoever is late would be measured; then the call takes as long as at the
// member that it takes longest. On that they agree after a trial, by one small native Allreduce.
// The next trial waits until what this one has cost is a small share of the time.
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
  static constexpr double kOpen = 4;
  // A way is left for another that takes less than this share of it.
  static constexpr double kWorthIt = 0.97;
  // Of all time, what a trial may cost beyond calls that go the sooner way.
  static constexpr double kShare = 0.005;
  // Calls from one trial to the next, at the least; twice as many each time nothing changes.
  static constexpr uint64_t kMinPause = 512, kMaxPause = uint64_t{1} << 20U;

  // Numbers that members agree on: of each the greatest.
  struct Measured {
    std::array<std::array<double, kMost>, 2> times = {};  // [way][call], in seconds
    double waited = 0;                                    // in barriers
  };
  static constexpr int kNumbers = sizeof(Measured) / sizeof(double);

  // Whether members are to agree before the next call.
  bool IsDue() const { return is_trying_ && tried_ == 2 * goal_; }
  const Measured& measured() const { return measured_; }
  void Decide(const Measured& longest);

  // The way of the next call, which is counted. Not if IsDue.
  Way Next();
  // Whether that call is one of a trial; then this member says how long it waited for the others,
  // and how long the call took.
  bool IsMeasured() const { return is_trying_; }
  // Whether it begins a trial after another.
  bool TriesAgain() const { return is_trying_ && is_settled_ && tried_ == 1; }
  void Waited(Seconds time) { measured_.waited += time.count(); }
  void Took(Seconds time);

  // Another tree: it is tried with the next call.
  void Restart();

 private:
  double UsualTime(const Measured& longest, Way way) const;

  bool is_trying_ = true;
  bool is_settled_ = false;  // once
  Way chosen_ = Way::kNative;
  int goal_ = kFirst;
  int tried_ = 0;                 // calls of this trial
  std::array<int, 2> gone_ = {};  // [way], of these
  Way way_ = Way::kTree;          // of the last call
  Measured measured_;
  uint64_t left_ = 0;  // calls until the next trial
  uint64_t pause_ = kMinPause;
};

// The call that this thread is in, from the moment when its way was chosen; nothing if it is not
// measured.
class MeasuredCall final {
 public:
  MeasuredCall() = default;
  explicit MeasuredCall(Trial* trial) : trial_(trial), begun_(Clock::now()) {}
  // Of a call without an error: after another one the communicator may be gone, and its trials.
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
