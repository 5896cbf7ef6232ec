// Which way is the soonest one for collectives of one kind and size class of a communicator: along
// its tree, another one over the same ranks (rank_order.h), or the MPI library's own. The program's
// own calls tell, as in STAR-MPI (Faraj, Yuan, Lowenthal 2006, sections 3 and 4):
//
//     call  0 1 2  3 4 5  6 ... 11      12 ........... 27       28 ......... 43         44 ....
//           N T C  T C N  C N T [agree:  T N N T ...    [agree]  the soonest  [agree]   the soonest
//                                near?]  the two soonest         and the one that       ... again
//                                                                would be left
//
// All members make these calls alike, so they count alike. Before each call of the first two rounds
// they hold a native barrier, or whoever is late would be measured; then the call takes as long as
// at the member that it takes longest. But ranks that come from a barrier are not as a program has
// them. So another way is taken only if it is no slower in a last round, without barriers. On all
// that they agree after each round, by one small native Allreduce. The next trial waits until what
// this one has cost is a small share of the time.
//
// Where earlier runs of the application are known to have found a soonest way, calls go that way
// from the first one on, and the first trial comes after some of them.
#ifndef COPPICE_AGENTS_MPI_TREE_TRIAL_H_
#define COPPICE_AGENTS_MPI_TREE_TRIAL_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace coppice::mpi {

// The MPI library's; along the tree; along other trees over its ranks; by exchanges; and along all
// trees of a forest.
enum class Way : uint8_t { kNative, kTree, kChain, kBinomial, kExchange, kForest };
constexpr size_t kWays = 6;
constexpr const char* kWayNames[kWays] = {"native",   "tree",     "chain",
                                          "binomial", "exchange", "forest"};

// What earlier runs of the application measured of collectives of one kind and length.
struct KnownTimes {
  // Times by which runs differ more, as a share of them, say nothing.
  static constexpr double kMaxSpread = 0.25;
  static constexpr size_t kMaxTold = 128;  // of one tree

  uint8_t operation = 0;             // coppice_operation
  uint8_t bits = 0;                  // of the length
  std::array<float, kWays> us = {};  // [way]; 0: not known
};

class Trial final {
 public:
  using Seconds = std::chrono::duration<double>;

  // First, each way is gone so many times; where that leaves it open, the two soonest so many times
  // in all.
  static constexpr int kFirst = 4, kMost = 12;
  // In the last round each.
  static constexpr int kInPlace = 8;
  // It is open if the second way takes less than so many times what the soonest does.
  static constexpr double kOpen = 4;
  // A way is left for another that takes less than this share of it. The native one is left for
  // more: what a call takes between barriers and what it takes in the program differ by some
  // percent either way, and native is what nobody asks to be explained.
  static constexpr double kWorthIt = 0.97, kWorthLeavingNative = 0.93;
  // Of all time, what a trial may cost beyond calls that go the soonest way.
  static constexpr double kShare = 0.005;
  // Calls from one trial to the next, at the least; twice as many each time nothing changes.
  static constexpr uint64_t kKnownPause = 128, kMinPause = 512, kMaxPause = uint64_t{1} << 20U;

  // Numbers that members agree on: of each the greatest.
  struct Measured {
    std::array<std::array<double, kMost>, kWays> times = {};    // [way][call], in seconds
    std::array<std::array<double, kInPlace>, 2> in_place = {};  // of who comes and who would go
    double waited = 0;                                          // in barriers
  };
  static constexpr int kNumbers = sizeof(Measured) / sizeof(double);

  // Two ways at least, the native one among them.
  explicit Trial(std::vector<Way> ways) : Trial(std::move(ways), std::nullopt) {}
  // `known`: the one that was the soonest in earlier runs, which goes from the first call on; then
  // the first trial comes after kKnownPause calls.
  Trial(std::vector<Way> ways, std::optional<Way> known);
  // Of these ways the one that is the soonest and clearly sooner than the native one; else the
  // native one. nullopt: of some nothing is known.
  static std::optional<Way> SoonestOf(const std::vector<Way>& ways, const KnownTimes& known);

  // Whether members are to agree before the next call.
  bool IsDue() const { return is_trying_ && tried_ == calls_; }
  const Measured& measured() const { return measured_; }
  void Decide(const Measured& longest);
  // Which way goes since the last trial that ended, before the first the known one or kNative; and,
  // right after it, how long each took.
  Way chosen() const { return chosen_; }
  const std::vector<Way>& ways() const { return ways_; }
  Seconds UsualTime(Way way) const;
  // [way] of the last trial that ended with this tree, in seconds; 0: not tried.
  const std::array<double, kWays>& last_times() const { return last_times_; }

  // The way of the next call, which is counted. Not if IsDue.
  Way Next();
  // Whether that call is one of a trial; then this member says how long it took.
  bool IsMeasured() const { return is_trying_; }
  // Whether members hold a barrier before it; then this one says how long it waited for the others.
  bool WantsBarrier() const { return is_trying_ && round_ != Round::kInPlace; }
  // Whether it begins a trial after another.
  bool TriesAgain() const {
    return is_trying_ && is_settled_ && round_ == Round::kAll && tried_ == 1;
  }
  void Waited(Seconds time) { measured_.waited += time.count(); }
  void Took(Seconds time);

  // Another tree: it is tried with the next call.
  void Restart() {
    Begin();
    last_times_ = {};
  }

 private:
  enum class Round : uint8_t { kAll, kSoonest, kInPlace };

  void Begin();
  void Enter(Round round, std::vector<Way> ways, int calls_each);
  void Settle(bool changes);

  const std::vector<Way> ways_;
  bool is_trying_ = false;
  bool is_settled_ = false;  // once
  Way chosen_ = Way::kNative;
  Round round_ = Round::kAll;
  std::vector<Way> tries_;            // the ways of this round
  int calls_ = 0;                     // of this round
  int tried_ = 0;                     // of these
  std::array<int, kWays> gone_ = {};  // [way], in this trial, behind barriers
  std::array<int, 2> gone_in_place_ = {};
  Way way_ = Way::kNative;  // of the last call
  Measured measured_;
  std::array<double, kWays> last_times_ = {};
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
