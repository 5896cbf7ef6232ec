// How long a search may go on, and who wants to hear of it: the one door through which clocks and
// callers reach an algorithm.
//
//     stopped()     asked again and again by whatever can end at once
//     remaining()   asked before work that cannot: is there time for it?
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_CONTROL_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_CONTROL_H_

#include <functional>
#include <limits>
#include <utility>

#include "daemon/mapping/places.h"

namespace coppice {

// All functions may be called by several threads at once.
class SearchControl final {
 public:
  using Stopped = std::function<bool()>;
  using Offered = std::function<void(const Mapping&)>;
  using Remaining = std::function<double()>;

  // A search that ends by itself and tells nobody.
  SearchControl() = default;
  // With `remaining`, the seconds until `stopped` becomes true by itself, the search has a deadline
  // and is expected to use its time.
  SearchControl(Stopped stopped, Offered offered, Remaining remaining = nullptr)
      : stopped_(std::move(stopped)),
        offered_(std::move(offered)),
        remaining_(std::move(remaining)) {}

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

 private:
  Stopped stopped_;
  Offered offered_;
  Remaining remaining_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_CONTROL_H_
