// How long a search may go on, who wants to hear of it, and who else searches: the one door through
// which clocks, callers and other processes reach an algorithm.
//
//     stopped()     asked again and again by whatever can end at once
//     remaining()   asked before work that cannot: is there time for it?
//     team()        the processes that search with this one, by algorithms that span processes
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_CONTROL_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_CONTROL_H_

#include <functional>
#include <limits>
#include <utility>

#include "daemon/mapping/places.h"
#include "daemon/mapping/search_team.h"

namespace coppice {

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
  // Seconds; infinite without a deadline, below 0 after it. The difference of two answers is what
  // the work between them took.
  double remaining() const {
    return remaining_ ? remaining_() : std::numeric_limits<double>::infinity();
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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_CONTROL_H_
