// How long a search may go on, who wants to hear of it, and who else searches: the one door through
// which clocks, callers and other processes reach an algorithm.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_CONTROL_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_CONTROL_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/mapping/places.h"

namespace coppice {

// A solution of a dense problem is what searches hand to each other, within a process and between
// processes. The slot of every rank, dummies included: a permutation of 0..size-1.
using DenseOrder = std::vector<uint32_t>;

// A solution and its cost, in sums of the kept numbers (search/dense/dense_qap.h).
struct DenseSolution {
  DenseOrder order;
  double cost = std::numeric_limits<double>::infinity();

  friend bool operator<(const DenseSolution& a, const DenseSolution& b) { return a.cost < b.cost; }
};

// The processes that search one problem together, as an algorithm sees them. Each runs the same
// algorithm with workers of its own; all workers have one numbering, so that it does not matter
// which process a worker belongs to. Alone unless SearchControl says otherwise; over MPI in
// daemon/search. Knows no MPI.
//
//     process 0: workers 0 1 2    process 1: workers 3 4 5    process 2: workers 6 7 8
//
// Whether another round follows must be the same answer in every process: an algorithm asks Any(),
// and compares only costs that ShareBest() has told everybody, never a clock or a cost of its own.
// Sums of doubles may differ between nodes of unlike processors.
//
// All but process() and process_count() are collective: every process calls them in the same order,
// with orders of the same size, and waits for the others. An error, of a process that is gone or
// silent for too long, says which and ends the search in all of them. Not thread-safe.
class SearchTeam {
 public:
  virtual ~SearchTeam() = default;
  virtual uint32_t process() const = 0;
  virtual uint32_t process_count() const = 0;

  // True in all if `mine` is in any.
  virtual absl::StatusOr<bool> Any(bool mine) = 0;
  // The cheapest of all; of equal ones that of the lowest process.
  virtual absl::Status ShareBest(DenseSolution& solution) = 0;
  // The ring: gives `solution` to the next process and puts that of the one before in its place.
  virtual absl::Status PassOn(DenseSolution& solution) = 0;
  // In process 0 what all gave, in the order of the processes, elsewhere nothing. All give equally
  // many.
  virtual absl::StatusOr<std::vector<DenseSolution>> Gather(std::vector<DenseSolution> mine) = 0;
  // The opposite: `all` counts in process 0 alone, `each` is how many every process gets.
  virtual absl::StatusOr<std::vector<DenseSolution>> Scatter(std::vector<DenseSolution> all,
                                                             uint32_t each) = 0;
};

// One process. It keeps nothing: any number of searches may share it.
SearchTeam& SearchAlone();

// All functions but team() may be called by several threads at once.
class SearchControl final {
 public:
  using Stopped = std::function<bool()>;
  using Offered = std::function<void(const Mapping&)>;
  using Remaining = std::function<double()>;

  // A search that ends by itself and tells nobody.
  SearchControl() = default;
  // With `remaining`, the seconds until `stopped` becomes true by itself, the search has a deadline
  // and is expected to use its time.
  // `team`, which outlives the search, is null for one that is alone.
  SearchControl(Stopped stopped, Offered offered, Remaining remaining = nullptr,
                SearchTeam* team = nullptr)
      : stopped_(std::move(stopped)),
        offered_(std::move(offered)),
        remaining_(std::move(remaining)),
        team_(team != nullptr ? team : &SearchAlone()) {}

  // The budget is spent or the caller has cancelled: hand back the best so far, soon. Stays true
  // once it is. About 30 ns with a clock behind it: ask every few microseconds of work.
  bool stopped() const { return stopped_ && stopped_(); }

  bool has_deadline() const { return static_cast<bool>(remaining_); }
  // Seconds, for what cannot be stopped; infinite without a deadline, below 0 after it.
  double remaining() const {
    return remaining_ ? remaining_() : std::numeric_limits<double>::infinity();
  }

  // Stopped with this, or once a part of the time that is left is over, if that ends; offers
  // nothing. This outlives it.
  SearchControl PartOfTime(double share) const {
    const double least = (1 - share) * remaining();
    return SearchControl(
        [this, least] { return stopped() || (has_deadline() && remaining() < least); }, nullptr);
  }

  // A new best that is worth keeping if the search is stopped from now on. Admissible.
  void Offer(const Mapping& mapping) const {
    if (offered_) offered_(mapping);
  }

  // By one thread at a time.
  SearchTeam& team() const { return *team_; }

 private:
  Stopped stopped_;
  Offered offered_;
  Remaining remaining_;
  SearchTeam* team_ = &SearchAlone();
};

// Calls work(0) ... work(count - 1), each once, on at most `threads` threads of which the caller's
// is one; returns when all have ended. What a piece does must depend on its number alone: then the
// number of threads changes the time and nothing else.
void RunLogicalWorkers(uint32_t threads, uint32_t count,
                       absl::FunctionRef<void(uint32_t worker)> work);

// The seed of a worker's random numbers: unlike for unlike workers, stages and seeds.
uint64_t WorkerSeed(uint64_t seed, uint64_t stage, uint64_t worker);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_CONTROL_H_
